# %% [markdown] slot="title" lang="en"
# # Solutions: a cluster on a laptop
#
# These answers belong to the exercises at the end of the
# [lesson](../en/07_cluster_on_a_laptop.ipynb). The cells up to the first exercise are the lesson's
# own code; run them first.

# %% [markdown] slot="why" lang="en"
# **1.** Node 2 has the neighbors 0, 1 and 6. Of these, 6 is foreign, so trainer 0 asks for its
# neighbors. They bring 7, and those of node 0 bring 3 and 5. Foreign are 5, 6 and 7. The small
# simulator counts the same.
#
# **2.** Each rank sends $2B(R-1)/R$ bytes, $B = 48$ million and $R = 8$: 84 million bytes, 672
# million bits, at 10 billion a second.
#
# **3.** A machine has received its row and sent its column, one after the other, so the largest sum
# of both decides. The diagonal is zero: what stays on a machine uses no link.
#
# **4.** The speed-up is the first time divided by the present one, and the ideal is the number of
# machines. Efficiency need not fall with every step, so all numbers are tried.

# %% slot="answers"
toy_cluster = cut(toy, owner)
play(toy_cluster, [[2]])
answer_1 = [toy_cluster.traffic.rows[kind][0, 1].item() for kind in small.KINDS]
answer_2 = round(1000 * 8 * 2 * 12e6 * 4 * (8 - 1) / 8 / 10e9)


def answer_3(matrix, bandwidth):
    most = (matrix.sum(0) + matrix.sum(1)).max().item()
    return 8 * most / bandwidth


def answer_4(machines, seconds, share):
    good = [k for k, s in zip(machines, seconds) if seconds[0] / s >= share * k]
    return max(good)


check(1, answer_1, lambda answer: sha(list(answer)) == "4e397001")
check(2, answer_2, lambda answer: sha(round(answer)) == "49d180ec")
check(3, answer_3, bounds)
check(4, answer_4, chooses)
