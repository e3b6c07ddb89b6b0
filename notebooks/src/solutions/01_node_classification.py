# %% [markdown] slot="title" lang="en"
# # Solutions: node classification
#
# These are the answers to the exercises at the end of the
# [lesson](../en/01_node_classification.ipynb). The cells up to the first exercise are the lesson's
# own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 노드 분류
#
# [레슨](../../ko/01_node_classification.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의
# 셀들은 레슨의 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：节点分类
#
# 本 Notebook 给出[第 01 课](../../zh/01_node_classification.ipynb)末尾各道练习题的解答。第一题解答
# 之前的单元格是该课的代码，请先运行。

# %% [markdown] slot="why-1-2" lang="en"
# **1.** The seed has 4 neighbors, each of these has 4 of its own, and each of those has another 4:
# $1 + 4 + 16 + 64 = 85$. A node that is reached twice counts once, so this is an upper bound.
# (Sampling with fanouts `[4, 4, 4]` in a graph with more edges can read up to $5^3 = 125$ nodes:
# the nodes reached so far remain among the seeds of the next layer, which draws their neighbors
# again.)
#
# **2.** Node 3 receives messages from nodes 2, 7 and 8; of these, only node 2 has neighbors: nodes
# 6 and 7. Adding node 3 itself gives the input nodes 2, 3, 6, 7 and 8; the sampler, with `None` for
# each of the two layers, returns the same nodes.

# %% [markdown] slot="why-1-2" lang="ko"
# **1.** 시드 노드의 이웃은 4개, 그 이웃마다 다시 4개, 또 그 이웃마다 4개이므로
# $1 + 4 + 16 + 64 = 85$개입니다. 두 번 도달한 노드는 한 번만 세므로 이 값은 상한입니다. (에지가 더
# 많은 그래프에서 팬아웃 `[4, 4, 4]`로 샘플링하면 최대 $5^3 = 125$개까지 읽을 수 있습니다. 한
# 계층에서 도달한 노드가 다음 계층에서도 목록에 남고, 그 노드의 이웃을 새로 뽑기 때문입니다.)
#
# **2.** 노드 3은 노드 2, 7, 8의 메시지를 받습니다. 이 가운데 들어오는 에지가 있는 것은 노드
# 2뿐이며, 노드 2에 메시지를 보내는 이웃은 노드 6과 7입니다. 노드 3 자신까지 더하면 입력 노드는 2,
# 3, 6, 7, 8이며, 두 계층 모두 `None`으로 샘플링해도 같은 결과가 나옵니다.

# %% [markdown] slot="why-1-2" lang="zh"
# **1.** 种子节点有 4 个邻居，每个邻居又有 4 个邻居，再往外一跳同样如此：$1 + 4 + 16 + 64 = 85$。重
# 复遇到的节点只计一次，所以这是上限。（如果每个节点的邻居更多，用扇出 `[4, 4, 4]` 采样时最多会读取
# $5^3 = 125$ 个节点：每一层采样之后，已有的节点都会保留，到下一层还要为它们重新抽取邻居。）
#
# **2.** 节点 3 接收节点 2、7、8 的消息，其中只有节点 2 还有邻居，即 6 和 7。加上节点 3 自身，输入节
# 点是 2、3、6、7、8；两层都用 `None` 采样，结果相同。

# %% slot="answer-1-2"
answer_1 = sum(4**hop for hop in range(4))
answer_2 = MultiLayerNeighborSampler([None, None]).sample(toy, torch.tensor([3]))[0]
answer_2 = answer_2.sort().values.tolist()
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% [markdown] slot="why-3" lang="en"
# **3.** `copy_u` sends the features of each source along its edges; `mean` averages what arrives.
# `local_scope` keeps the temporary features out of the caller's graph.

# %% [markdown] slot="why-3" lang="ko"
# **3.** `copy_u`는 출발 노드의 피처를 에지를 따라 보내고, `mean`은 도착한 메시지의 평균을 구합니다.
# `local_scope`를 쓰면 임시 피처가 호출한 쪽의 그래프에 남지 않습니다.

# %% [markdown] slot="why-3" lang="zh"
# **3.** `copy_u` 沿着边发送源节点的特征，`mean` 对到达的消息求平均。有了 `local_scope`，临时特征不
# 会留在调用者的图上。


# %% slot="answer-3"
def answer_3(graph, x):
    with graph.local_scope():
        graph.ndata["x"] = x
        graph.update_all(dgl.function.copy_u("x", "m"), dgl.function.mean("m", "mean"))
        return graph.ndata["mean"]


lesson.check(3, answer_3)

# %% [markdown] slot="why-4" lang="en"
# **4.** For each edge, check whether the graph also contains its reverse. The toy graph lacks
# twelve reverse edges, the real graph none, and the one-way graph all of them.

# %% [markdown] slot="why-4" lang="ko"
# **4.** 에지마다 양 끝을 바꾼 에지도 그래프에 있는지 확인합니다. 작은 그래프에는 역방향 에지가 12개
# 빠져 있고, 실제 그래프에는 모두 있으며, ‘함정’ 절에서 한 방향 에지만으로 만든 그래프에는 하나도
# 없습니다.

# %% [markdown] slot="why-4" lang="zh"
# **4.** 对每条边，检查图中是否也有两端互换的边。小图缺 12 条反向边，真实的图一条不缺，“陷阱”一节中
# 的单向图则一条反向边也没有。


# %% slot="answer-4"
def answer_4(graph):
    src, dst = graph.edges()
    return (~graph.has_edges_between(dst, src)).sum().item()


lesson.check(4, answer_4)
print(answer_4(toy), answer_4(graph), answer_4(one_way))
