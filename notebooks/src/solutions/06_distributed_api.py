# %% [markdown] slot="title" lang="en"
# # Solutions: the distributed API
#
# These answers belong to the exercises at the end of the [lesson](../en/06_distributed_api.ipynb).
# The cells up to the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="why" lang="en"
# **1.** The last range that begins at or below 1000 is that of part 2, at 899. There the node is
# row $1000 - 899 = 101$.
#
# **2.** The first step divides by the root of 1, the second by the root of $1 + 9$:
# $-0.1 \cdot 1 / 1 - 0.1 \cdot 3 / \sqrt{10} = -0.195$. With the gradients summed it is one step
# of $-0.1 \cdot 4 / \sqrt{16} = -0.1$. With two steps, the order within
# the batch would matter too.
#
# **3.** Distinct IDs first; `index_add_` adds all values of one ID. Then each row is read once and
# written once. (What others write to these rows in between is still lost: only updates that the
# owner of a row computes are safe. Therefore sparse optimizers run there.)
#
# **4.** Distinct IDs again; the partition book maps them to their owners.

# %% slot="answers"
answer_1 = [2, 1000 - 899]
answer_2 = -0.1 * 1 / 1 - 0.1 * 3 / 10**0.5


def answer_3(tensor, ids, values):
    distinct, position = ids.unique(return_inverse=True)
    rows = tensor[distinct]
    tensor[distinct] = rows.index_add_(0, position, values)


def answer_4(g, ids, part):
    return (g.get_partition_book().nid2partid(ids.unique()) != part).sum().item()


def adds_each(answer):
    total = DistTensor((8,), torch.int64, part_policy=policy)
    for _ in range(2):
        answer(total, torch.tensor([5, 3, 5]), torch.tensor([1, 2, 3]))
    return total[:].tolist() == [0, 0, 0, 4, 0, 8, 0, 0]


check(1, answer_1, lambda answer: sha(answer) == "dd336f6b")
check(2, answer_2, lambda answer: sha(round(answer, 3)) == "3ab26903")
check(3, answer_3, adds_each)
check(4, answer_4, lambda answer: [int(answer(small, ids, p)) for p in (0, 1)] == [2, 1])
