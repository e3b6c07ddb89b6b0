# %% [markdown] slot="title" lang="en"
# # Solutions: what to buy
#
# These answers belong to the exercises at the end of the [lesson](../en/10_scaling_study.ipynb).
# The cells up to the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="why-1-3" lang="en"
# **1.** Each node that is there brings itself and up to as many neighbors as the fanout:
# $1{,}000 \cdot 16 \cdot 11 \cdot 6 = 1{,}056{,}000$ nodes, in whichever order the fanouts come.
#
# **2.** 75,000 rows of $8 + 4 \cdot 128$ bytes are 39 MB; at 1.25 GB/s they take 31.2 ms.
#
# **3.** The fetching is hidden when it takes no longer than the computing: 25 MB, which are 0.2
# Gbit, in 20 ms are 10 Gbit/s.

# %% slot="answers-1-3"
answer_1 = 1000 * (1 + 15) * (1 + 10) * (1 + 5)
answer_2 = 1000 * 75_000 * (8 + 4 * 128) * 8 / 10e9
answer_3 = 25e6 * 8 / 0.020 / 1e9
check(1, answer_1, lambda answer: sha(int(answer)) == "5087c5ac")
check(2, answer_2, lambda answer: sha(round(float(answer), 1)) == "55779a35")
check(3, answer_3, lambda answer: sha(round(float(answer), 1)) == "f1e42019")
print(answer_1, round(answer_2, 1), round(answer_3, 1))

# %% [markdown] slot="why-4-5" lang="en"
# **4.** The requests for the rows that are kept, divided by all requests.
#
# **5.** Leave out what is late, then take the least; tuples compare by their first entry, the
# cost. `default` is for an empty list.


# %% slot="answers-4-5"
def answer_4(asks, size):
    return float(asks.sort(descending=True).values[:size].sum() / asks.sum())


def answer_5(offers, deadline):
    in_time = [(cost, name) for cost, hours, name in offers if hours <= deadline]
    return min(in_time, default=(None, None))[1]


case = torch.tensor([0, 5, 1, 0, 4])
rates = {0: 0.0, 1: 0.5, 2: 0.9, 5: 1.0}
deals = [(7.0, 2.0, "a"), (4.0, 5.0, "b"), (6.0, 3.0, "c"), (4.5, 3.5, "d")]
best = {1: None, 2: "a", 3: "c", 4: "d", 9: "b"}
check(4, answer_4, lambda f: all(abs(f(case, k) - r) < 1e-6 for k, r in rates.items()))
check(5, answer_5, lambda f: all(f(deals, limit) == name for limit, name in best.items()))
