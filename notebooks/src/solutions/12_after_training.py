# %% [markdown] slot="title" lang="en"
# # Solutions: after training
#
# These are the answers to the exercises at the end of the [lesson](../en/12_after_training.ipynb).
# The cells before the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 학습을 마친 뒤
#
# [레슨](../../ko/12_after_training.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의 셀들은
# 레슨의 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：训练之后
#
# 本 Notebook 给出[第 12 课](../../zh/12_after_training.ipynb)末尾各道练习题的解答。第一题解答之前
# 的单元格是该课的代码，请先运行。

# %% [markdown] slot="why" lang="en"
# **1.** Shop 0 has the customers 0 and 1, and shop 2 has customer 3. Account 4 is now a customer of
# both, so it reads itself as well.
#
# **2.** The account, its three shops, and $999 + 39 + 4$ other customers make 1,046. With fanouts
# of 10, the first two shops draw at most ten other customers each, and the third has only four.
# Stored rows already include the customers, so only the account and its shops are read.
#
# **3.** In the first layer, a payment changes the row of its shop, which gets another customer, and
# the row of the account that pays, which gets another shop. No other row changes, since features
# stay as they are. In the second layer, customers read the row of the shop.
#
# **4.** Days differ in their number of accounts, so accuracies must be compared. The comparison is
# with day 0: a model that loses a little each day would pass a comparison with the day before.
#
# **5.** Write all rows to a table by original ID, then read from it. `load_checkpoint` moves rows
# in the same way, except that its table holds new IDs by original ID and is spread over all
# machines.

# %% [markdown] slot="why" lang="ko"
# **1.** 상점 0의 고객은 0과 1이고 상점 2의 고객은 3입니다. 계정 4도 이제 두 상점의 고객이므로
# 자기 행도 읽습니다.
#
# **2.** 계정 자신과 상점 세 곳, 다른 고객 $999 + 39 + 4$명을 합하면 1,046개입니다. 팬아웃이
# 10이면 앞의 두 상점에서는 다른 고객을 최대 열 명씩 뽑지만, 세 번째 상점에는 다른 고객이 네
# 명뿐입니다. 저장해 둔 행에는 고객의 영향이 이미 들어 있으므로, 계정과 상점만 읽으면 됩니다.
#
# **3.** 첫째 계층에서는 결제가 있었던 상점의 행과 결제한 계정의 행이 바뀝니다. 상점에는 고객이,
# 계정에는 상점이 하나 늘기 때문입니다. 피처는 그대로이므로 다른 행은 바뀌지 않습니다. 둘째
# 계층에서는 고객들이 그 상점의 행을 읽습니다.
#
# **4.** 날마다 계정 수가 다르므로 정확도끼리 비교해야 합니다. 비교 대상은 0일째입니다. 전날과
# 비교하면 날마다 조금씩 나빠지는 모델을 알아차리지 못합니다.
#
# **5.** 모든 행을 원래 ID 순서로 표에 적은 다음 그 표에서 읽습니다. `load_checkpoint`도 비슷하게
# 행을 옮깁니다. 다만 표에 행이 아니라 원래 ID에 대응하는 새 ID를 적으며, 이 표를 모든 머신에 나누어
# 둡니다.

# %% [markdown] slot="why" lang="zh"
# **1.** 商店 0 的顾客是 0 和 1，商店 2 的顾客是 3。账户 4 现在也是这两家商店的顾客，所以它自己的
# 行也要读取。
#
# **2.** 账户自己、三家商店、其他顾客 $999 + 39 + 4$ 个，合计 1,046 个。扇出为 10 时，前两家商店各
# 至多抽取十个其他顾客，第三家只有四个。存储的行已经包含了顾客的影响，所以只需读取账户和它的商店。
#
# **3.** 在第一层中，一笔付款改变两行：商店多了一个顾客，付款的账户多了一家商店。特征没有变，所以
# 其他行都不变。在第二层中，商店的顾客会读取商店的行。
#
# **4.** 每天的账户数不同，所以要比较准确率，而且是与第 0 天比较：如果与前一天比较，就发现不了每天
# 下降一点的模型。
#
# **5.** 把所有的行按原始 ID 写入一张表，再从表中读取。`load_checkpoint` 也用类似的办法移动各行，只
# 不过表里存的不是行，而是各原始 ID 对应的新 ID，并且分布在所有机器上。

# %% slot="check"
answer_1 = [0, 1, 3, 4]
answer_2 = [1 + 3 + 999 + 39 + 4, 1 + 3 + 10 + 10 + 4, 1 + 3]
lesson.check(1, answer_1)
lesson.check(2, answer_2)
_, read_1 = mean_of_means(4, [*toy_pays, (4, 0), (4, 2)], toy_x + new_x)
assert read_1 == answer_1


# %% slot="answers"
def answer_3(pays, new):
    old, shops = {a for a, _ in pays}, {s for _, s in new}
    payers = {a for a, _ in new}
    return payers & old | {a for a, s in pays if s in shops}


def answer_4(right, drop):
    accuracy = [sum(day) / len(day) for day in right]
    falls = (d for d, x in enumerate(accuracy) if accuracy[0] - x >= drop)
    return next(falls, None)


def answer_5(saved, wanted):
    ids, rows = (torch.cat(each) for each in zip(*saved))
    table = torch.empty_like(rows)
    table[ids] = rows
    return [table[each] for each in wanted]


lesson.check(3, answer_3)
lesson.check(4, answer_4)
lesson.check(5, answer_5)
