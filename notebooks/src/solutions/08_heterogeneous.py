# %% [markdown] slot="title" lang="en"
# # Solutions: graphs with several types
#
# These answers belong to the exercises at the end of the [lesson](../en/08_heterogeneous.ipynb).
# The cells up to the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="why" lang="en"
# **1.** Films 0 to 3 belong to part 0, so film 5 is the second of part 1. Part 0 has 14 nodes, and
# films come first within a part: $14 + 1 = 15$.
#
# **2.** Part 2 begins at $14 + 22 = 36$ with its three films, so 40 is the second of its users.
# Parts 0 and 1 own 30 users: it is user 31.
#
# **3.** Homogeneous IDs need no types to find their owners. The relations are those of
# `dgl.ETYPE`, in the order of `g.etypes`; `minlength` keeps a zero for relations without an edge.
#
# **4.** Films are the destinations of `likes` and `dislikes`, users those of the other two. −1
# takes all edges.

# %% slot="check"
def check(number, answer, is_right):
    verdict = "not answered yet"
    if answer is not None:
        verdict = "right" if is_right(answer) else "wrong"
    print(f"exercise {number}: {verdict}")


def sha(answer):
    return hashlib.sha256(str(answer).encode()).hexdigest()[:8]


answer_1 = 4 + 10 + 1
answer_2 = "user", 30 + 40 - (14 + 22 + 3)
check(1, answer_1, lambda answer: sha(answer) == "e629fa65")
check(2, answer_2, lambda answer: sha(answer) == "e75c6d0c")

# %% slot="answers"
answer_4 = {"likes": -1, "dislikes": 3, "liked_by": 2, "disliked_by": 2}


def answer_3(frontier):
    u, v = frontier.edges()
    away = book.nid2partid(u) != book.nid2partid(v)
    found = frontier.edata[dgl.ETYPE][away].bincount(minlength=len(g.etypes))
    return dict(zip(g.etypes, found.tolist()))


def counts(answer):
    dgl.seed(3)
    typed, wanted = sample_neighbors(g, {"film": train_ids}, 5), {}
    for etype in g.canonical_etypes:
        u, v = typed.edges(etype=etype)
        cut = book.nid2partid(u, etype[0]) != book.nid2partid(v, etype[2])
        wanted[etype[1]] = int(cut.sum())
    dgl.seed(3)
    homo_ids = book.map_to_homo_nid(train_ids, "film")
    return answer(sample_neighbors(g, homo_ids, 5)) == wanted


def samples(answer):
    ids, most = torch.arange(99), dict(zip(g.etypes, (2, 2, 3, 999)))
    found = sample_neighbors(g, {"film": ids, "user": ids}, answer)
    rows = [(found.in_degrees(ids, e), g.in_degrees(ids, e)) for e in most]
    return all(torch.equal(a, b.clamp(max=k)) for (a, b), k in zip(rows, most.values()))


check(3, answer_3, counts)
check(4, answer_4, samples)
