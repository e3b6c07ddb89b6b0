# %% [markdown] slot="title" lang="en"
# # Solutions: link prediction
#
# These are the answers to the exercises at the end of the [lesson](../en/02_link_prediction.ipynb).
# The cells up to the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 링크 예측
#
# [레슨](../../ko/02_link_prediction.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의 셀들은
# 레슨의 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：链接预测
#
# 本 Notebook 给出[第 02 课](../../zh/02_link_prediction.ipynb)末尾各道练习题的解答。第一题解答之前
# 的单元格是该课的代码，请先运行。

# %% [markdown] slot="why-1-2" lang="en"
# **1.** Each edge has two endpoints and five nodes drawn as negatives: $100 \cdot (2 + 5) = 700$. A
# node that occurs twice counts once, so this is an upper bound.
#
# **2.** The edges themselves, 0 and 10, and their reverses, 7 and 3.

# %% [markdown] slot="why-1-2" lang="ko"
# **1.** 에지마다 양 끝 노드 두 개와 네거티브로 뽑은 노드 다섯 개가 있으므로
# $100 \cdot (2 + 5) = 700$개입니다. 두 번 나오는 노드는 한 번만 세므로 이 값은 상한입니다.
#
# **2.** 에지 0과 10, 그리고 그 역방향인 7과 3입니다.

# %% [markdown] slot="why-1-2" lang="zh"
# **1.** 每条边有两个端点，另外为它抽取五个负样本，各带来一个节点：$100 \cdot (2 + 5) = 700$。重复出
# 现的节点只计一次，所以这是上限。
#
# **2.** 边 0 和边 10 本身，以及它们的反向边 7 和 3。

# %% slot="answer-1-2"
answer_1 = 100 * (2 + 5)
batch = torch.tensor([0, 10])
answer_2 = torch.cat([batch, reverse_ids(toy)[batch]]).sort().values.tolist()
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% [markdown] slot="why-3-4" lang="en"
# **3.** Draw all destinations, find the pairs that are not allowed, and draw those again until none
# is left. On a graph where a node is connected to all others, this loop would never end;
# `GlobalUniform` avoids that by drawing the source as well.
#
# **4.** `u_sub_v` gives the difference between the vectors of the two endpoints; square its entries
# and add them up.

# %% [markdown] slot="why-3-4" lang="ko"
# **3.** 먼저 도착 노드를 한꺼번에 뽑은 뒤, 조건에 맞지 않는 쌍이 없어질 때까지 그런 쌍만 다시
# 뽑습니다. 어떤 노드가 다른 모든 노드와 이어져 있으면 이 반복은 끝나지 않습니다. `GlobalUniform`은
# 출발 노드도 함께 뽑으므로 그런 문제가 없습니다.
#
# **4.** `u_sub_v`로 두 벡터의 차를 구한 뒤, 제곱하여 더합니다.

# %% [markdown] slot="why-3-4" lang="zh"
# **3.** 先抽取一遍，再找出不合要求的节点对重新抽取，直到全部合格。如果某个节点与其他所有节点都相
# 连，这个循环就不会结束；`GlobalUniform` 连源节点也一起抽取，没有这个问题。
#
# **4.** 用 `u_sub_v` 求两个向量之差，平方后求和。


# %% slot="answer-3-4"
def answer_3(g, eids):
    src = g.find_edges(eids)[0]
    dst = torch.randint(g.num_nodes(), src.shape)
    while (wrong := g.has_edges_between(src, dst) | (src == dst)).any():
        dst[wrong] = torch.randint(g.num_nodes(), dst[wrong].shape)
    return src, dst


def answer_4(graph, h):
    with graph.local_scope():
        graph.ndata["h"] = h
        graph.apply_edges(fn.u_sub_v("h", "h", "difference"))
        return (graph.edata["difference"] ** 2).sum(1)


lesson.check(3, answer_3)
lesson.check(4, answer_4)
