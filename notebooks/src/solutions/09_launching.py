# %% [markdown] slot="title" lang="en"
# # Solutions: launching a job on many machines
#
# These answers belong to the exercises at the end of the [lesson](../en/09_launching.ipynb). The
# cells up to the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="why" lang="en"
# **1.** One line for each machine, in the order of the parts. A port stands only where it matters.
#
# **2.** Servers and trainers are counted per machine, samplers per trainer: $4 \cdot 2$,
# $4 \cdot 2$ and $4 \cdot 2 \cdot 3$.
#
# **3.** Two machines save 27 s in each epoch and must first earn back 300 s: $300 / 27 = 11.1$, so
# from 12 epochs on.
#
# **4.** The length must be a multiple of eight, and every number that of an existing row. A
# negative number would read rows from the end without any error, so it has to be refused as well.
#
# **5.** Only a checkpoint that *all* machines have is complete; of those, the newest.

# %% slot="answers"
answer_1 = "10.0.0.1 31000\n10.0.0.2\n"
answer_2 = [4 * 2, 4 * 2, 4 * 2 * 3]
answer_3 = 300 // (60 - 33) + 1


def answer_4(request, rows):
    if len(request) % 8:
        return b""
    ids = np.frombuffer(request, np.int64)
    if len(ids) == 0 or ids.min() < 0 or ids.max() >= len(rows):
        return b""
    return rows[ids].tobytes()


def answer_5(complete):
    common = set(complete[0]).intersection(*complete)
    return max(common, default=-1)


cases = {3: [[1, 3], [2, 3]], 2: [[2, 3], [1, 2]], -1: [[1], [2], [1, 2]], 10: [[9, 10]]}
check(1, answer_1, names_two)
check(2, answer_2, lambda answer: sha(list(answer)) == "10d8b413")
check(3, answer_3, lambda answer: sha(answer) == "6b51d431")
check(4, answer_4, serves)
check(5, answer_5, lambda f: all(f(case) == right for right, case in cases.items()))
