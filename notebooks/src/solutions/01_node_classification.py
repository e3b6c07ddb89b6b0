# %% [markdown] slot="title" lang="en"
# # Solutions: node classification
#
# These answers belong to the exercises at the end of the
# [lesson](../en/01_node_classification.ipynb). The cells up to the first exercise are the lesson's
# own code; run them first.

# %% [markdown] slot="why-1-2" lang="en"
# **1.** The seed brings at most 4 neighbors, each of these 4 more, each of those 4 more:
# $1 + 4 + 16 + 64 = 85$. A node that is met twice counts once, so this is a bound. (Sampling with
# fanouts `[4, 4, 4]` in a graph with more edges can read up to $5^3 = 125$ nodes: nodes reached in
# one layer stay on the list for the next, which draws their neighbors anew.)
#
# **2.** Node 3 hears from 2, 7 and 8; of these, only node 2 has neighbors, 6 and 7. The sampler
# agrees, with `None` for each of two layers.

# %% slot="answer-1-2"
answer_1 = sum(4**hop for hop in range(4))
answer_2 = MultiLayerNeighborSampler([None, None]).sample(toy, torch.tensor([3]))[0]
answer_2 = answer_2.sort().values.tolist()
check(1, answer_1, lambda answer: sha(answer) == "b4944c6f")
check(2, answer_2, lambda answer: sha(answer) == "b6d8f3f1")

# %% [markdown] slot="why-3" lang="en"
# **3.** `copy_u` sends the features of each source along its edges, `mean` reduces what arrives.
# `local_scope` keeps the temporary columns out of the caller's graph.


# %% slot="answer-3"
def answer_3(graph, x):
    with graph.local_scope():
        graph.ndata["x"] = x
        graph.update_all(dgl.function.copy_u("x", "m"), dgl.function.mean("m", "mean"))
        return graph.ndata["mean"]


check(3, answer_3, lambda answer: torch.allclose(answer(toy, x), mean))

# %% [markdown] slot="why-4" lang="en"
# **4.** Ask for each edge whether the graph also has the edge with its ends swapped. The toy graph
# lacks twelve reverses, the real graph none, the trapped one all of them.


# %% slot="answer-4"
def answer_4(graph):
    src, dst = graph.edges()
    return (~graph.has_edges_between(dst, src)).sum().item()


check(4, answer_4, lambda answer: int(answer(toy)) == 12 and int(answer(graph)) == 0)
print(answer_4(toy), answer_4(graph), answer_4(one_way))
