# %% [markdown] slot="title" lang="en"
# # Solutions: link prediction
#
# These answers belong to the exercises at the end of the
# [lesson](../en/02_link_prediction.ipynb). The cells up to the first exercise are the lesson's own
# code; run them first.

# %% [markdown] slot="why-1-2" lang="en"
# **1.** Each edge brings two ends and five nodes drawn as negatives: $100 \cdot (2 + 5) = 700$. A
# node that is met twice counts once, so this is a bound.
#
# **2.** The edges themselves, 0 and 10, and their reverses, 7 and 3.

# %% slot="answer-1-2"
answer_1 = 100 * (2 + 5)
batch = torch.tensor([0, 10])
answer_2 = torch.cat([batch, reverse_ids(toy)[batch]]).sort().values.tolist()
check(1, answer_1, lambda answer: sha(answer) == "99ee5022")
check(2, answer_2, lambda answer: sha(answer) == "7a18ca25")

# %% [markdown] slot="why-3-4" lang="en"
# **3.** Draw, look which pairs are wrong, and draw those again until none is left. On a graph where
# a node is joined to all others this would never end; `GlobalUniform` draws the source as well.
#
# **4.** `u_sub_v` gives the difference of the two rows; square it and sum.


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


check(3, answer_3, draws_no_edges)
check(4, answer_4, is_distance)
