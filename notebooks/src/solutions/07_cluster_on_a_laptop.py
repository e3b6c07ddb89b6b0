# %% [markdown] slot="title" lang="en"
# # Solutions: a cluster on a laptop
#
# These are the answers to the exercises at the end of the
# [lesson](../en/07_cluster_on_a_laptop.ipynb). The cells before the first exercise are the lesson's
# own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 노트북 컴퓨터 한 대로 흉내 내는 클러스터
#
# [레슨](../../ko/07_cluster_on_a_laptop.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의
# 셀들은 레슨의 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：笔记本电脑上的集群
#
# 本 Notebook 给出[第 07 课](../../zh/07_cluster_on_a_laptop.ipynb)末尾各道练习题的解答。第一题解答
# 之前的单元格是该课的代码，请先运行。

# %% [markdown] slot="why" lang="en"
# **1.** Node 2 has the neighbors 0, 1 and 6. Of these, only 6 is on machine 1, so trainer 0
# requests the neighbors of node 6 from machine 1. The neighbor of node 6 is 7, those of node 0 are
# 3 and 5, and that of node 1 is 3. So trainer 0 requests the features of nodes 5, 6 and 7 from
# machine 1. The small simulator gives the same counts.
#
# **2.** Each trainer sends $2B(R-1)/R$ bytes, where $B$ is 48 million and $R = 8$: 84 million
# bytes, or 672 million bits. At 10 billion bits per second, they take about 67 ms.
#
# **3.** A machine receives the sum of its row of the matrix and sends the sum of its column. In the
# exercise, both directions of a link share its bandwidth, so the machine whose two sums add up to
# the most determines the time. The diagonal is zero: data that stays on a machine uses no link.
#
# **4.** The speedup is the time on one machine divided by that on several, and the ideal is the
# number of machines. The ratio of the two need not fall every time a machine is added, so the
# function tries every entry of the list.

# %% [markdown] slot="why" lang="ko"
# **1.** 노드 2의 이웃은 0, 1, 6입니다. 이 가운데 노드 6만 머신 1에 있으므로, 트레이너 0은 노드 6의
# 이웃을 머신 1에 요청합니다. 노드 6의 이웃은 7, 노드 0의 이웃은 3과 5, 노드 1의 이웃은 3입니다.
# 따라서 트레이너 0이 머신 1에서 피처를 받아 와야 하는 노드는 5, 6, 7입니다. 레슨의 시뮬레이터
# 파일로 세어도 같습니다.
#
# **2.** 트레이너마다 $2B(R-1)/R$바이트를 보냅니다. $B$는 4,800만이고 $R = 8$이므로 8,400만 바이트,
# 곧 6억 7,200만 비트이고, 이를 초당 100억 비트로 보내면 약 67 ms가 걸립니다.
#
# **3.** 머신이 받는 바이트 수는 행렬에서 그 머신의 행을 더한 값이고, 보내는 바이트 수는 열을 더한
# 값입니다. 문제의 링크에서는 송신과 수신이 대역폭을 나누어 쓰므로, 둘의 합이 가장 큰 머신이 전체
# 시간을 정합니다. 머신 안에서 오가는 데이터는 링크를 쓰지 않으므로 대각 성분은 0입니다.
#
# **4.** 속도 향상은 머신이 한 대일 때 걸린 시간을 머신이 여러 대일 때 걸린 시간으로 나눈 값이고,
# 이상적인 값은 머신 수입니다. 머신을 늘릴 때마다 둘의 비율이 반드시 떨어지는 것은 아니므로 모든
# 머신 수를 확인합니다.

# %% [markdown] slot="why" lang="zh"
# **1.** 节点 2 的邻居是 0、1、6。其中只有 6 在机器 1 上，所以训练器 0 要向机器 1 请求节点 6 的邻
# 居。节点 6 的邻居是 7，节点 0 的邻居是 3 和 5，节点 1 的邻居是 3。因此，训练器 0 要向机器 1 请求节
# 点 5、6、7 的特征。用小模拟器统计，结果相同。
#
# **2.** 每个训练器发送 $2B(R-1)/R$ 字节，其中 $B$ 是 4800 万，$R = 8$：共 8400 万字节，即 6.72 亿比
# 特；速率为每秒 100 亿比特，约需 67 毫秒。
#
# **3.** 每台机器接收的字节数是矩阵中对应行各元素之和，发送的字节数是对应列各元素之和。按题意，收发
# 两个方向共用带宽，所以收发字节数之和最大的机器决定总时间。机器内部的数据不经过链路，所以对角线为
# 零。
#
# **4.** 加速比是单机所用的时间除以多台机器所用的时间，理想值等于机器数。机器增多时，加速比与理想值
# 之比不一定逐步下降，所以每一种机器数都要检查。

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


lesson.check(1, answer_1)
lesson.check(2, answer_2)
lesson.check(3, answer_3)
lesson.check(4, answer_4)
