# %% [markdown] slot="title" lang="en"
# # Solutions: what to buy
#
# These are the answers to the exercises at the end of the [lesson](../en/10_scaling_study.ipynb).
# The cells up to the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 무엇을 살 것인가
#
# [레슨](../../ko/10_scaling_study.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의 셀들은
# 레슨의 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：该买什么
#
# 本 Notebook 给出[第 10 课](../../zh/10_scaling_study.ipynb)末尾各道练习题的解答。第一题解答之前的
# 单元格是该课的代码，请先运行。

# %% [markdown] slot="why-1-3" lang="en"
# **1.** In each layer, every node found so far contributes itself and at most as many neighbors as
# the fanout: at most $1{,}000 \cdot 16 \cdot 11 \cdot 6 = 1{,}056{,}000$ nodes, whatever the order
# of the fanouts.
#
# **2.** 75,000 rows of $8 + 4 \cdot 128$ bytes are 39 MB; at 1.25 GB/s, they take 31.2 ms.
#
# **3.** Fetching is hidden when it takes no longer than computing: 25 MB, or 0.2 Gbit, in 20 ms is
# 10 Gbit/s.

# %% [markdown] slot="why-1-3" lang="ko"
# **1.** 샘플링을 한 번 할 때마다 노드마다 최대 팬아웃만큼의 이웃이 더해지므로, 노드 수는 최대 (1 +
# 팬아웃)배가 됩니다. 따라서 최대 $1{,}000 \cdot 16 \cdot 11 \cdot 6 = 1{,}056{,}000$개이며,
# 팬아웃의 순서가 바뀌어도 같습니다.
#
# **2.** 행 75,000개를 $8 + 4 \cdot 128$바이트씩 전송하면 39 MB이고, 1.25 GB/s로 보내면 31.2 ms가
# 걸립니다.
#
# **3.** 가져오는 시간이 계산 시간보다 길지 않으면 계산에 가려집니다. 25 MB, 곧 0.2 Gbit를 20 ms에
# 가져오려면 10 Gbit/s가 필요합니다.

# %% [markdown] slot="why-1-3" lang="zh"
# **1.** 每采样一层，除了保留原有的节点，每个节点最多再抽取与扇出同样多的邻居，所以最多读取
# $1{,}000 \cdot 16 \cdot 11 \cdot 6 = 1{,}056{,}000$ 个节点，与扇出的先后顺序无关。
#
# **2.** 75,000 行，每行 $8 + 4 \cdot 128$ 字节，共 39 MB；以 1.25 GB/s 传输，需要 31.2 毫秒。
#
# **3.** 获取数据的时间不超过计算时间，就会被计算掩盖。25 MB 即 0.2 Gbit，要在 20 毫秒内传完，需要
# 10 Gbit/s。

# %% slot="answers-1-3"
answer_1 = 1000 * (1 + 15) * (1 + 10) * (1 + 5)
answer_2 = 1000 * 75_000 * (8 + 4 * 128) * 8 / 10e9
answer_3 = 25e6 * 8 / 0.020 / 1e9
lesson.check(1, answer_1)
lesson.check(2, answer_2)
lesson.check(3, answer_3)
print(answer_1, round(answer_2, 1), round(answer_3, 1))

# %% [markdown] slot="why-4-5" lang="en"
# **4.** The hit rate is the number of requests for the cached rows, divided by all requests.
#
# **5.** Drop the offers that miss the deadline, then take the cheapest with `min`; tuples are
# compared by their first entry, the cost. `default` is the result for an empty list.

# %% [markdown] slot="why-4-5" lang="ko"
# **4.** 요청이 많은 순으로 보관한 행의 요청 횟수를 모두 더해 전체 요청 횟수로 나눕니다.
#
# **5.** 기한을 넘기는 선택지를 빼고 `min`으로 가장 싼 것을 고릅니다. 튜플은 첫 항목인 비용부터
# 비교합니다. `default`는 남은 것이 없을 때의 값입니다.

# %% [markdown] slot="why-4-5" lang="zh"
# **4.** 把缓存中各行的请求次数加起来，再除以全部请求次数。
#
# **5.** 去掉不能按时完成的方案，再用 `min` 取费用最低的：元组先比较第一项，即费用。没有方案能按时完
# 成时，`min` 返回 `default` 给出的元组，其中的名称是 None，正是题目要求返回的。


# %% slot="answers-4-5"
def answer_4(asks, size):
    return float(asks.sort(descending=True).values[:size].sum() / asks.sum())


def answer_5(offers, deadline):
    in_time = [(cost, name) for cost, hours, name in offers if hours <= deadline]
    return min(in_time, default=(None, None))[1]


lesson.check(4, answer_4)
lesson.check(5, answer_5)

# %% [markdown] slot="why-6-7" lang="en"
# **6.** The calculated size is 72 GB, or 108 GB with 50% added for halo nodes and indexes: at 32 GB
# per machine, three or four machines are needed; with four, each holds 18 to 27 GB. Each of four
# trainers has 250,000 seeds. Each machine receives at least
# $250{,}000 \cdot 58 \cdot 36\% \cdot 408$ bytes, or 2 GB, and at most
# $250{,}000 \cdot 121 \cdot 75\% \cdot 408$ bytes, or 9 GB. Four machines suffice in either case.
#
# **7.** 250,000 seeds are about 1,953 steps of 128. Add the work, the features and the 2 ms per
# step. The maximum is several times the minimum, mainly because of the assumed factor of two per
# row and the range of the reads. An hour on rented machines narrows both.

# %% [markdown] slot="why-6-7" lang="ko"
# **6.** 계산한 값은 72 GB이고, 그 절반만큼 더 필요하면 108 GB입니다. 머신 한 대에 32 GB씩이면 세 대
# 또는 네 대가 필요하며, 네 대에 나누면 한 대에 18~27 GB입니다. 트레이너 네 개는 시드 노드를
# 250,000개씩 맡습니다. 받는 데이터는 최소 $250{,}000 \cdot 58 \cdot 36\% \cdot 408$바이트, 곧 2
# GB이고, 최대 $250{,}000 \cdot 121 \cdot 75\% \cdot 408$바이트, 곧 9 GB입니다. 어느 경우에도 네
# 대면 충분합니다.
#
# **7.** 시드 노드 250,000개를 128개씩 처리하면 약 1,953단계입니다. 작업 시간, 피처 전송 시간,
# 단계마다 드는 2 ms를 더합니다. 최댓값은 최솟값의 몇 배나 됩니다. 행당 시간을 최대 두 배까지 잡은
# 것과 읽는 노드 수의 범위가 넓은 것이 주된 원인입니다. 빌린 머신에서 한 시간만 실행해 보면 둘 다
# 범위를 좁힐 수 있습니다.

# %% [markdown] slot="why-6-7" lang="zh"
# **6.** 算得的结果是 72 GB；HALO 节点和索引最多使它增加一半，达到 108 GB。每台 32 GB，就需要三台或
# 四台；用四台时，每台 18 到 27 GB。四个训练器各有 250,000 个种子节点。接收的数据最少是
# $250{,}000 \cdot 58 \cdot 36\% \cdot 408$ 字节，即 2 GB；最多是
# $250{,}000 \cdot 121 \cdot 75\% \cdot 408$ 字节，即 9 GB。无论哪种情况，四台都够用。
#
# **7.** 250,000 个种子节点，每步 128 个，约 1,953 步。把采样和计算的时间、传输特征的时间和每步 2 毫
# 秒加起来。一轮时间的最大值是最小值的好几倍，主要是因为假定每行的耗时可能加倍，而且读取的节点数范围
# 较大。在租来的机器上运行一小时，就能缩小这两项的范围。


# %% slot="answers-6-7" tags=["nbval-ignore-output"]
answer_6 = [[3, 4], [72 / 4, 108 / 4], []]
for nodes, remote_share in ((58, 0.36), (121, 0.75)):
    answer_6[2].append(250_000 * nodes * remote_share * 408e-9)


def answer_7(rows, gigabytes, row_seconds):
    return rows * row_seconds + gigabytes / 1.15 + 250_000 / 128 * 0.002


lesson.check(6, answer_6)
lesson.check(7, answer_7)
low = answer_7(250_000 * 58, answer_6[2][0], SECONDS_A_ROW)
high = answer_7(250_000 * 121, answer_6[2][1], 2 * SECONDS_A_ROW)
print(f"an epoch takes {low:.0f} to {high:.0f} seconds")

# %% [markdown] slot="why-8" lang="en"
# **8.** Ten million seeds are 78,125 mini-batches of 128. Each takes the time for work on
# $128 \cdot 93$ rows plus the times that `moving` returns. $K$ machines divide the mini-batches
# among themselves, but each hour counts as $K$ machine hours, so $K$ cancels: the cost is the
# number of mini-batches times the time of one. More machines only lengthen that time: each trainer
# sends requests to more machines, more rows are remote, and the ring has more rounds. So of the two
# fleets on the planning page, the 5 machines with 512 GB each need fewer machine hours than the 47
# with 64 GB each, but take several times as long per epoch. Choose the five large machines if that
# is fast enough, and if an hour on a large machine does not cost much more than an hour on a small
# one.

# %% [markdown] slot="why-8" lang="ko"
# **8.** 시드 노드 1,000만 개는 128개짜리 미니배치 78,125개입니다. 미니배치 하나에는 행
# $128 \cdot 93$개를 처리하는 시간과 `moving`으로 구한 통신 시간이 듭니다. 머신 $K$대가 미니배치를
# 나누어 맡지만 한 시간에 드는 비용도 $K$ 머신 시간이므로 $K$는 약분됩니다. 곧 비용은 미니배치의
# 수에 미니배치 하나의 시간을 곱한 값입니다. 머신을 늘리면 요청을 보낼 머신과 원격 행이 많아지고
# 링에서 데이터를 옮기는 횟수도 늘어나, 미니배치 하나에 걸리는 시간이 길어질 뿐입니다. 따라서 계획
# 문서에 나오는 두 가지 구성 가운데 메모리가 512 GB인 머신 5대를 쓰면 64 GB인 머신 47대를 쓸 때보다
# 머신 시간은 적게 드는 대신 한 에폭이 몇 배 더 오래 걸립니다. 그래도 기한 안에 끝나고, 큰 머신의
# 시간당 가격이 작은 머신에 비해 지나치게 높지 않다면 큰 머신을 고릅니다.


# %% [markdown] slot="why-8" lang="zh"
# **8.** 1,000 万个种子节点分成 78,125 个小批次，每个 128 个种子节点。处理一个小批次的时间，是
# $128 \cdot 93$ 行的采样和计算时间，加上 `moving` 给出的通信时间。$K$ 台机器分担这些小批次，但每过
# 一小时就要计 $K$ 个机器小时，所以 $K$ 正好约去：机器小时数等于小批次的个数乘以处理一个小批次所需的
# 小时数。增加机器只会使处理一个小批次的时间变长，因为要请求的机器更多，远程行更多，环上传递的次数也
# 更多。所以，5 台 512 GB 的机器所用的机器小时比 47 台 64 GB 的机器少，但一轮的时间是后者的好几倍。
# 如果这样也来得及，而且每小时的价格没有比小机器高很多，就选大机器。


# %% slot="answer-8"
def answer_8(machines, remote_share, row_seconds):
    rows = 128 * 93
    step = rows * row_seconds + sum(moving(rows * remote_share, machines, gbit(10)))
    return 10_000_000 / 128 * step / 3600


lesson.check(8, answer_8)
for machines, least, most in ((5, 0.31, 0.79), (47, 0.60, 0.97)):
    low = answer_8(machines, least, 1.1e-6)
    high = answer_8(machines, most, 2.2e-6)
    print(f"{machines} machines: {low:.2f} to {high:.2f} machine hours per epoch")
