# %% [markdown] slot="title" lang="en"
# # Solutions: writing your own samplers
#
# These are the answers to the exercises at the end of the [lesson](../en/03_custom_sampling.ipynb).
# The cells up to the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 직접 만드는 샘플러
#
# [레슨](../../ko/03_custom_sampling.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의 셀들은
# 레슨의 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：编写自己的采样器
#
# 本 Notebook 给出[第 03 课](../../zh/03_custom_sampling.ipynb)末尾各道练习题的解答。第一题解答之前
# 的单元格是该课的代码，请先运行。

# %% [markdown] slot="why-1-2" lang="en"
# **1.** A layer adds at most its budget to the nodes already there: $32 + 128 + 256 = 416$,
# whatever the graph. With neighbor sampling and fanouts `[5, 5]`, the bound would be
# $32 \cdot 6 \cdot 6 = 1152$.
#
# **2.** Every draw must give the same value, $x_u / (n p_u) = m$, so $p_u$ must be proportional to
# $x_u$. The sampler confirms it. (In practice the values are not known beforehand, so we use
# weights that should be roughly proportional to them.)

# %% [markdown] slot="why-1-2" lang="ko"
# **1.** 계층을 지날 때마다 노드는 많아야 예산만큼 늘어나므로, 그래프와 관계없이
# $32 + 128 + 256 = 416$개입니다. 팬아웃이 `[5, 5]`인 이웃 샘플링이라면 상한은
# $32 \cdot 6 \cdot 6 = 1152$개입니다.
#
# **2.** 어떤 이웃을 뽑아도 같은 값, 즉 $x_u / (n p_u) = m$이 나와야 하므로 $p_u$는 $x_u$에 비례해야
# 합니다. 샘플러를 실행해 보면 확인할 수 있습니다. (실제로는 값을 미리 알 수 없으므로 값에 대체로
# 비례하는 가중치를 씁니다.)

# %% [markdown] slot="why-1-2" lang="zh"
# **1.** 每一层在已有节点之外新增的节点数不会超过该层的预算，所以无论是什么样的图，总数都不超过
# $32 + 128 + 256 = 416$。如果改用扇出为 `[5, 5]` 的邻居采样，上限是 $32 \cdot 6 \cdot 6 = 1152$。
#
# **2.** 无论抽到哪个邻居，结果都必须相同，即 $x_u / (n p_u) = m$，所以 $p_u$ 必须与 $x_u$ 成正比。
# 运行采样器即可验证。（实际应用中事先并不知道这些值，所以才用与之大致成正比的权重。）

# %% slot="answers-1-2"
answer_1 = 32 + sum([256, 128])
answer_2 = [6, 1, 3, 2, 1]
lesson.check(1, answer_1)
lesson.check(2, answer_2)

set_importance(toy, torch.tensor([*answer_2, *[1] * 10]).float())
found = means("weight", undo=True)
print(f"mean {found.mean():.1f}, variance {found.var():.2f}")

# %% [markdown] slot="why-3-4" lang="en"
# **3.** Decide at random, for each edge of the full frontier, whether to keep it. The base class
# makes the blocks. This is DropEdge (Rong et al., 2020) with a new draw for each layer.
#
# **4.** `prob` also takes a tensor, and edges of weight zero are never drawn, so a Boolean tensor
# is enough.

# %% [markdown] slot="why-3-4" lang="ko"
# **3.** 모든 이웃을 담은 프런티어에서 에지를 남길지 말지를 하나씩 무작위로 정합니다. 블록은 기반
# 클래스에서 만듭니다. 제외할 에지를 계층마다 새로 정하는 방식의 DropEdge(Rong 외, 2020)에
# 해당합니다.
#
# **4.** `prob`에는 텐서도 넣을 수 있으며, 가중치가 0인 에지는 뽑히지 않습니다. 여기서는 불리언
# 텐서면 충분합니다.

# %% [markdown] slot="why-3-4" lang="zh"
# **3.** 对含有全部邻居的边界子图，逐条边随机决定去留；块由基类生成。这相当于 DropEdge（Rong 等，
# 2020），只是每一层都重新决定丢弃哪些边。
#
# **4.** `prob` 也接受张量，权重为零的边永远不会被抽到，所以用布尔张量就够了。


# %% slot="answers-3-4"
class DropSampler(BlockSampler):
    def __init__(self, num_layers, rate):
        super().__init__(num_layers)
        self.rate = rate

    def sample_frontier(self, layer_id, g, seed_nodes):
        frontier = dgl.in_subgraph(g, seed_nodes)
        kept = torch.rand(frontier.num_edges()) >= self.rate
        return frontier.edge_subgraph(kept, relabel_nodes=False, store_ids=False)


class PastSampler(OwnNeighborSampler):
    def __init__(self, fanouts, limit):
        super().__init__(fanouts)
        self.limit = limit

    def sample_frontier(self, layer_id, g, seed_nodes):
        fanout, past = self.fanouts[layer_id], g.edata["time"] < self.limit
        return dgl.sampling.sample_neighbors(g, seed_nodes, fanout, prob=past)


answer_3 = DropSampler
answer_4 = PastSampler
lesson.check(3, answer_3)
lesson.check(4, answer_4)
