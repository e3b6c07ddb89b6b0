# %% [markdown] slot="title" lang="en"
# # Solutions: training in many processes
#
# These answers belong to the exercises at the end of the
# [lesson](../en/04_multi_gpu.ipynb). The cells up to the first exercise are the lesson's own code;
# run them first.

# %% [markdown] slot="why" lang="en"
# **1.** A chunk is a quarter of the gradient, 250,000 numbers. A rank sends three chunks while
# they are added and three while they are copied: $2 \cdot 3 \cdot 250000 = 1500000$.
#
# **2.** A share has 334 nodes, 1,000 / 3 rounded up. In batches of 64 that is five full ones and
# one of 14: six steps, on every rank.
#
# **3.** The loss of the whole batch is a mean over all its nodes, so each rank counts as many times
# as it has nodes. DDP gives every rank the same weight; that is right only for equal shares.
#
# **4.** Hits and nodes are added over all ranks, then divided. The mean of the ranks' accuracies
# would be wrong here: one rank has 40 nodes, the other 50.


# %% slot="answers"
answer_1 = 2 * (4 - 1) * 1_000_000 // 4
nodes = -(-1000 // 3)
answer_2 = -(-nodes // 64)


def answer_3(sizes):
    return [size / sum(sizes) for size in sizes]


def answer_4(rank, world_size, counts):
    dist.init_process_group("gloo")
    dist.all_reduce(counts[rank])
    hits, nodes = counts[rank].tolist()
    return hits / nodes


def adds_up(answer):
    few, many = answer([1, 3])
    total = few * gradient([1]) + many * gradient([4, 2, 3])
    return torch.allclose(total, whole, atol=1e-6)


def agrees(answer):
    counts = torch.tensor([[30, 40], [10, 50]])
    return all(abs(a - 4 / 9) < 1e-6 for a in launch_processes(answer, 2, counts))


check(1, answer_1, lambda answer: sha(answer) == "490d7c88")
check(2, answer_2, lambda answer: sha(answer) == "e7f6c011")
check(3, answer_3, adds_up)
check(4, answer_4, agrees)
