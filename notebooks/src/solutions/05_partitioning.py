# %% [markdown] slot="title" lang="en"
# # Solutions: partitioning a graph
#
# These are the answers to the exercises at the end of the [lesson](../en/05_partitioning.ipynb).
# The cells before the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 그래프를 파티션으로 나누기
#
# [레슨](../../ko/05_partitioning.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의 셀들은
# 레슨의 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：把图切成分区
#
# 本 Notebook 给出[第 05 课](../../zh/05_partitioning.ipynb)末尾各道练习题的解答。第一题解答之前的单
# 元格是该课的代码，请先运行。

# %% [markdown] slot="why-1-2" lang="en"
# **1.** Wherever the destination of an edge lies, the source lies in the same part with probability
# $1/10$, so on average $9/10$ of the edges are cut.
#
# **2.** After the move, 0 → 5, 3 → 5 and 5 → 6 are cut, while 4 → 5 and 5 → 1 no longer are.
# Together with 2 → 0, which is still cut, that makes four cut edges. Part 0 has nodes 2 and 5 as
# HALO nodes, and part 1 has nodes 0, 3 and 6. With two parts, every endpoint of a cut edge is a
# HALO node of the other part; the code counts the distinct endpoints.

# %% [markdown] slot="why-1-2" lang="ko"
# **1.** 에지의 도착 노드가 어느 파티션에 있든 출발 노드가 같은 파티션에 있을 확률은 $1/10$이므로,
# 평균적으로 에지의 $9/10$가 잘립니다.
#
# **2.** 노드 5를 옮기면 0 → 5, 3 → 5, 5 → 6이 잘리고, 4 → 5와 5 → 1은 이제 잘리지 않습니다. 원래
# 잘려 있던 2 → 0을 더하면 잘린 에지는 모두 네 개입니다. 파티션 0의 헤일로 노드는 2와 5이고, 파티션
# 1의 헤일로 노드는 0, 3, 6입니다. 파티션이 두 개이면 잘린 에지의 양 끝 노드는 각각 상대편 파티션의
# 헤일로 노드가 됩니다. 코드에서는 이 노드를 중복 없이 셉니다.

# %% [markdown] slot="why-1-2" lang="zh"
# **1.** 无论边的目标节点在哪个分区，源节点在同一分区的概率都是 $1/10$，所以平均有 $9/10$ 的边被切
# 断。
#
# **2.** 移动之后，0 → 5、3 → 5 和 5 → 6 被切断，而 4 → 5 和 5 → 1 不再被切断；加上原来的 2 → 0，共
# 有四条边被切断。节点 2 和 5 是分区 0 的 HALO 节点，节点 0、3、6 是分区 1 的 HALO 节点。只有两个分
# 区时，被切断的边的每个端点都是另一个分区的 HALO 节点；代码统计的就是这些端点，重复的只算一次。

# %% slot="answers-1-2"
answer_1 = 1 - 1 / 10
moved = owner.clone()
moved[5] = 1
pairs = [(u, v) for u, v in zip(toy_src, toy_dst) if moved[u] != moved[v]]
answer_2 = [len(pairs), len({node for pair in pairs for node in pair})]
lesson.check(1, answer_1)
lesson.check(2, answer_2)
print(answer_2)

# %% [markdown] slot="why-3-5" lang="en"
# **3.** Leave out the first boundary, 0, which is not above any ID. The part of an ID is then the
# number of remaining boundaries that are not above it; a binary search finds this number.
#
# **4.** Entry $i$ of `node_map` says where row $i$ belongs. `values[node_map]` would go the other
# way, from the original order to the new one.
#
# **5.** The parts that METIS found turned out to group nodes with the same label, so we go the
# other way and make parts from the labels: sort the nodes by label and cut the sequence into equal
# pieces. On `digits`, that cuts only 10% of the edges. Without labels, the order in which a
# breadth-first search reaches the nodes will do: cutting it into equal pieces cuts 31% of the edges
# and is accepted too.

# %% [markdown] slot="why-3-5" lang="ko"
# **3.** 이진 탐색으로 ID보다 크지 않은 경계값의 수를 셉니다. 첫 경계값 0은 언제나 ID 이하이므로
# 세지 않습니다.
#
# **4.** `node_map`의 $i$번째 값은 $i$번째 행이 놓일 자리입니다. `values[node_map]`은 새 순서로
# 바꾸는 식이지 원래 순서로 되돌리는 식이 아닙니다.
#
# **5.** METIS로 나누었을 때 같은 레이블끼리 모였으므로, 거꾸로 노드를 레이블 순서로 정렬한 뒤 같은
# 크기로 나눕니다. `digits`에서는 에지의 10%가 잘립니다. 레이블이 없다면 노드를 너비 우선 탐색으로
# 방문한 순서대로 정렬해도 됩니다. 이때는 31%가 잘리며, 역시 정답으로 처리됩니다.

# %% [markdown] slot="why-3-5" lang="zh"
# **3.** 用二分查找数出不大于该 ID 的分界值有几个；第一个分界值 0 总是满足，所以略去，得到的正是分区
# 编号。
#
# **4.** `node_map` 的第 $i$ 项给出第 $i$ 行应放的位置。`values[node_map]` 是换到新顺序，而不是换回
# 来。
#
# **5.** METIS 把标签相同的节点聚到了一起，所以可以反过来做：按标签给节点排序，再切成大小相等的几
# 段。在 `digits` 上，这样只切断 10% 的边。没有标签时，可以按广度优先搜索到达节点的顺序来切：这样切
# 断 31% 的边，也会判为正确。


# %% slot="answers-3-5"
def answer_3(borders, ids):
    return torch.bucketize(ids, torch.tensor(borders[1:]), right=True)


def answer_4(values, node_map):
    restored = torch.empty_like(values)
    restored[node_map] = values
    return restored


def answer_5(graph, num_parts):
    order = graph.ndata["label"].argsort(stable=True)
    part = torch.empty_like(order)
    part[order] = torch.arange(len(order)) * num_parts // len(order)
    return part


def in_order_of_search(graph, num_parts):
    order, seen = [], set()
    for start in range(graph.num_nodes()):
        queue = [] if start in seen else [start]
        seen.update(queue)
        for node in queue:  # the queue grows in this loop
            new = [n for n in graph.successors(node).tolist() if n not in seen]
            seen.update(new)
            queue += new
        order += queue
    part = torch.empty(len(order), dtype=torch.int64)
    part[torch.tensor(order)] = torch.arange(len(order)) * num_parts // len(order)
    return part


lesson.check(3, answer_3)
lesson.check(4, answer_4)
lesson.check(5, answer_5)
lesson.check(5, in_order_of_search)
