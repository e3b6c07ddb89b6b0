# %% [markdown] slot="title" lang="en"
# # Solutions: samplers of your own
#
# These answers belong to the exercises at the end of the
# [lesson](../en/03_custom_sampling.ipynb). The cells up to the first exercise are the lesson's own
# code; run them first.

# %% [markdown] slot="why" lang="en"
# **1.** A layer adds at most its budget to the nodes that are there: $32 + 128 + 256 = 416$,
# whatever the graph. With fanouts `[5, 5]` the bound would be $32 \cdot 6 \cdot 6 = 1152$.
#
# **2.** Every draw must give the same: $x_u / (n p_u) = m$, so $p_u$ has to be proportional to the
# value itself. We let the sampler confirm it. (In practice one does not know the values beforehand;
# that is why weights that are merely similar to them are used.)
#
# **3.** Toss a coin for every edge of the full frontier. The base class makes the blocks. (This is
# DropEdge: Rong, Huang, Xu and Huang, ICLR 2020.)
#
# **4.** `prob` also takes a tensor, and edges of weight zero are never drawn. True and False are
# enough.


# %% slot="answers"
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


answer_1 = 32 + sum([256, 128])
answer_2 = [6, 1, 3, 2, 1]
answer_3 = DropSampler
answer_4 = PastSampler
toy.edata["time"] = torch.arange(15)


def keeps(rate):
    blocks = answer_3(2, rate).sample(graph, train_ids[:100])[2]
    return blocks[-1].num_edges() / graph.in_degrees(train_ids[:100]).sum()


def arrives(limit, fanouts):
    blocks = answer_4(fanouts, limit).sample(toy, torch.tensor([0, 5]))[2]
    return [sorted(block.edata[dgl.EID].tolist()) for block in blocks]


check(1, answer_1, lambda answer: sha(answer) == "67e0bdb7")
check(2, answer_2, lambda a: sha([round(w / sum(a), 3) for w in a]) == "710b9d74")
check(3, answer_3, lambda _: keeps(0) == 1 and keeps(1) == 0 and 0.4 < keeps(0.5) < 0.6)
check(4, answer_4, lambda _: sha((arrives(4, [9]), arrives(13, [9, 9]))) == "c297d48b")

set_importance(toy, torch.tensor([*answer_2, *[1] * 10]).float())
found = means("weight", undo=True)
print(f"mean {found.mean():.1f}, variance {found.var():.2f}")
