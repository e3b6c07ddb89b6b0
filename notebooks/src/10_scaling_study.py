# %% [markdown] slot="title" lang="en"
# # What to buy: a scaling study
#
# Training is too slow. Do you need more machines, a faster network, or memory for a cache? Or is a
# better partition enough? We start with a **cost model**, a formula for the time of a training
# step, and check it with the simulator. By the end of this lesson, you will be able to
#
# - derive the bytes and the time of a training step from a few counts;
# - check a cost model, and say what it leaves out;
# - find the bottleneck of a job: network, processor or waiting;
# - weigh cache, fanout, data type, batch size and partition, and choose machines at your own
#   prices;
# - plan for a graph that is larger than memory, on a disk or on many machines, and say how
#   uncertain each number is.

# %% [markdown] slot="title" lang="ko"
# # 무엇을 살 것인가: 확장성 연구
#
# 학습이 너무 느릴 때 필요한 것은 무엇일까요? 머신을 늘리거나, 더 빠른 네트워크를 쓰거나,
# 캐시(cache)로 쓸 메모리를 늘릴 수 있습니다. 돈을 들이지 않고 그래프를 파티션(partition)으로 잘
# 나누기만 해도 충분할지 모릅니다. 하나씩 다 시험해 보다가는 아끼는 돈보다 시험에 드는 돈이 더
# 많아질 수 있습니다. 그래서 먼저 학습 한 단계에 걸리는 시간을 식으로 나타낸 **비용 모델**(cost
# model)로 답을 구하고, 그 식이 맞는지 시뮬레이터(simulator)로 확인한 다음에 돈을 씁니다. 레슨을
# 마치면 다음과 같은 일을 할 수 있습니다.
#
# - 몇 가지 개수만 세어 학습 한 단계의 전송량과 시간을 구하기
# - 비용 모델을 검증하고, 모델이 다루지 않는 것을 설명하기
# - 작업의 병목이 네트워크인지, 프로세서인지, 대기 시간인지 찾아내기
# - 캐시, 팬아웃(fanout), 자료형(dtype), 배치 크기, 파티션의 효과를 평가하고, 실제 가격에 맞추어
#   머신을 고르기
# - 메모리에 다 들어가지 않는 그래프를 디스크에 두거나 여러 머신에 나누어 학습할 계획을 세우고, 각
#   추정값이 얼마나 불확실한지 밝히기

# %% [markdown] slot="title" lang="zh"
# # 该买什么：扩展性研究
#
# 训练太慢时，该怎么办？可以增加机器，换更快的网络，或者加内存做缓存（cache）；也许只要改进图的分
# 区（partition）就够了，一分钱也不用花。如果逐一试验，花掉的钱会比省下的还多。所以先建立**成本模
# 型**（cost model），即计算训练一步所需时间的公式，用它来回答这个问题；再用模拟器（simulator）检验
# 公式，然后才花钱。学完之后，你能够：
#
# - 由几个计数推算一步训练的通信量（traffic）和时间；
# - 检验成本模型，并说明它忽略了什么；
# - 找出作业的瓶颈：网络、处理器，还是等待；
# - 评价缓存、扇出（fanout）、数据类型、批次大小和分区的效果，并按实际价格选择机器；
# - 为一张内存放不下的图制定计划（放在硬盘上，还是分到多台机器上），并说明每个估计值的不确定程度。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# This computer acts as all machines. Counts and bytes are exact; times are predicted from the work
# of *your* processor. The text describes the stored run.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 이 컴퓨터 한 대가 모든 머신의 역할을 합니다. 개수와 바이트 수는 정확하며, 파티션이 같으면
# 어디에서 실행하든 같습니다. 시간은 **실행하는 컴퓨터**의 프로세서가 샘플링과 계산에 쓰는 시간을
# 바탕으로 예측한 값이므로, 직접 실행하면 막대의 높이가 달라집니다. 시간에 관한 본문의 설명은 여기에
# 저장된 실행 결과를 기준으로 합니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 所有机器都由这台计算机模拟。计数和字节数是精确的，只要分区相同，在哪里运行都一样。时间则是预测值，
# 依据是**你的**处理器采样和计算所用的时间，所以你看到的柱子高度会与这里不同。文中关于时间的说法，都
# 是就这里保存的运行结果而言的。

# %% slot="imports"
import contextlib
import functools
import warnings
from itertools import permutations

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from tqdm.auto import tqdm

import gnnlab as dgl
from gnnlab import plot
from gnnlab.dataloading import NeighborSampler, NodeDataLoader
from gnnlab.distributed import DistGraph, DistNodeDataLoader, load_partition_book
from gnnlab.distributed import node_split, partition_graph
from gnnlab.exercises import Lesson
from gnnlab.nn import SAGEConv
from gnnlab.simulate import Network, simulate

BATCH, FANOUTS, EPOCHS = 512, (10, 10), 2  # a batch is divided among all trainers
AS_IN_TEXT = (BATCH, FANOUTS) == (512, (10, 10))
assert len(FANOUTS) == 2, "FANOUTS: one for each of the two layers of the model"
GRAY = "#8a929c"
lesson = Lesson("10", "en")  # exercises, and the style of figures
lesson.style()

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# Eight nodes are stored on two machines: blue on machine 0, orange on machine 1. The trainer on
# machine 0 has one seed, node 0. It samples up to two neighbors of node 0, then up to two of every
# node found so far. The tree shows the result. Each step at most triples the number of nodes, so
# the trainer reads at most $1 \cdot 3 \cdot 3 = 9$ nodes. For each feature row read from machine 1,
# the trainer sends a request of 8 bytes, the ID, and receives the row, here two float32 numbers: 16
# bytes in all.

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기
#
# 노드 8개가 머신 두 대에 나뉘어 있습니다. 파란 노드는 머신 0에, 주황색 노드는 머신 1에 있습니다.
# 머신 0의 트레이너(trainer)는 시드 노드(seed node)로 노드 0 하나를 받았습니다. 먼저 노드 0의 이웃을
# 최대 두 개 샘플링하고, 이어서 그때까지 얻은 모든 노드의 이웃을 최대 두 개씩 샘플링합니다. 아래
# 그림의 오른쪽 트리가 그 결과입니다. 한 번 샘플링할 때마다 노드 수는 최대 세 배가 되므로, 읽는
# 노드는 많아야 $1 \cdot 3 \cdot 3 = 9$개입니다. 머신 1이 소유한 피처(feature) 행을 읽을 때는 행마다
# 8바이트짜리 ID를 요청으로 보내고 그 행을 응답으로 받습니다. 여기서는 한 행이 float32 수 두
# 개이므로 모두 16바이트입니다.

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图
#
# 8 个节点分布在两台机器上：蓝色的在机器 0，橙色的在机器 1。机器 0 上的训练器（trainer）只有一个种子
# 节点（seed node），即节点 0。它先为节点 0 采样至多两个邻居，再为此时已有的每个节点各采样至多两个邻
# 居。右边的树画出了结果。每采样一次，节点数最多变成三倍，所以最多读取 $1 \cdot 3 \cdot 3 = 9$ 个节
# 点。读取的节点如果归机器 1 所有，训练器就要为它发送一个 8 字节的 ID 作为请求，再收到它的特
# 征（feature）行作为响应。这里一行是两个 float32 数，所以一来一回共 16 字节。

# %% slot="toy-code"
toy_src = [2, 6, 0, 4, 5, 1, 6, 7, 5, 3, 2, 4, 7]
toy_dst = [0, 0, 5, 5, 1, 2, 3, 4, 6, 5, 7, 1, 2]
toy = dgl.graph((toy_src, toy_dst))
toy_owner = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1])
place = [(-2, 1), (1, 0), (2, 1), (-2, -1), (2, -1), (-1, 0), (-3, 0), (3, 0)]

dgl.seed(4)
toy_nodes, _, toy_blocks = NeighborSampler([2, 2]).sample(toy, [0])
toy_away = toy_nodes[toy_owner[toy_nodes] == 1]
ids = toy_away.sort().values.tolist()
print(f"{len(toy_nodes)} nodes; on machine 1: {ids}")
print("bytes:", len(toy_away) * (8 + 2 * 4))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained")
plot.partition_map(toy, toy_owner, halo_of=None, pos=place, ax=left)
plot.sampling_tree(toy, toy_blocks, ax=right)
plt.show()

# %% [markdown] slot="count" lang="en"
# The trainer reads six nodes, since some are found twice and node 6 has only one neighbor. Three of
# them are on machine 1: $3 \cdot 16 = 48$ bytes. Three numbers determine how much is sent for
# features: how many nodes are read, what share of them is **remote** (owned by other machines), and
# how large a row is.
#
# ## Build it yourself: count
#
# The graph is shaped like `ogbn-products`: a few nodes have many neighbors. `cut` partitions it.
# `reads` goes through all trainers' mini-batches with the ordinary loader, on the whole graph. The
# same seed nodes yield the same samples under any partition, so we need no cluster to know what one
# would read. `node_split` gives each trainer its seeds. On four machines, each trainer takes 128 of
# the 512 seeds of a batch, and with two layers of fanout 10, reads at most
# $128 \cdot 11 \cdot 11 = 15{,}488$ nodes. Parts are random or by METIS (LDG without pymetis).

# %% [markdown] slot="count" lang="ko"
# 트레이너가 읽는 노드는 여섯 개뿐입니다. 두 번 뽑힌 노드가 있고, 노드 6은 이웃이 하나뿐이기
# 때문입니다. 이 가운데 세 개가 머신 1에 있으므로 $3 \cdot 16 = 48$바이트를 주고받습니다. 전송량은
# 세 가지 수로 정해집니다. 읽는 노드의 수, 그 가운데 다른 머신이 소유한 **원격**(remote) 노드의
# 비율, 그리고 행 하나의 크기입니다.
#
# ## 직접 만들어 보기: 개수 세기
#
# 이번에는 `ogbn-products`와 비슷한 모양으로 생성한 그래프를 씁니다. 몇몇 노드에 이웃이 아주 많이
# 몰려 있는 그래프입니다. `cut`은 그래프를 파티션으로 나눕니다. `reads`는 그래프 전체에서 일반
# 로더를 써서 모든 트레이너의 미니배치(mini-batch)를 차례로 만듭니다. 시드 노드가 같으면 그래프를
# 어떻게 나누든 샘플링 결과도 같으므로, 클러스터가 없어도 클러스터에서 무엇을 읽을지 알 수 있습니다.
# 트레이너별 시드 노드는 `node_split`이 정합니다. 머신이 네 대이면 트레이너마다 배치의 시드 노드
# 512개 가운데 128개씩을 맡으며, 팬아웃이 10인 계층이 두 개이므로 트레이너 하나가 읽는 노드는 많아야
# $128 \cdot 11 \cdot 11 = 15{,}488$개입니다.
#
# 그래프를 무작위로 나눈 경우와 METIS로 나눈 경우를 비교합니다. Windows처럼 pymetis 패키지를 쓸 수
# 없는 환경에서는 METIS 대신 LDG를 쓰므로 결과가 본문의 수치와 다릅니다.

# %% [markdown] slot="count" lang="zh"
# 训练器只读取了六个节点，因为有的节点被抽到两次，而节点 6 只有一个邻居。其中三个在机器 1 上，所以要
# 传输 $3 \cdot 16 = 48$ 字节。通信量由三个数决定：读取多少个节点；其中归其他机器所有的节点，即**远
# 程**（remote）节点，占多大比例；一行有多大。
#
# ## 亲手实现：计数
#
# 现在换成一张生成的图，它的结构与 `ogbn-products` 相似：少数节点的邻居非常多。`cut` 把图切成分区；
# `reads` 在整张图上，用普通的加载器依次生成所有训练器的小批次（mini-batch）。只要种子节点相同，采样
# 结果就与切分方式无关，所以没有集群也能知道集群会读取什么。每个训练器的种子节点由 `node_split` 分
# 配。有四台机器时，一个批次的 512 个种子节点，每个训练器分到 128 个；两层的扇出都是 10，所以一个训
# 练器最多读取 $128 \cdot 11 \cdot 11 = 15{,}488$ 个节点。
#
# 切分方法有随机切分和 METIS 两种；如果没有 pymetis 包，例如在 Windows 上，则改用 LDG，结果会与正文
# 中的数字有出入。

# %% slot="data-code"
shape = {"num_nodes": 51_200, "num_edges": 1_024_000}
dataset = dgl.data.load("products-like", progress=False, **shape)
graph, train_idx = dataset[0], dataset.train_idx
WIDTH, CLASSES = graph.ndata["feat"].shape[1], dataset.num_classes
ROW, ALL_ROWS = 4 * WIDTH, 4 * WIDTH * graph.num_nodes()  # bytes


@functools.cache
def cut(machines, method):
    folder = f"{lesson.folder}/{method}-{machines}"
    wish = {"part_method": method, "balance_ntypes": graph.ndata["train_mask"]}
    wish["return_mapping"] = True
    dgl.seed(0)
    with contextlib.redirect_stdout(None):
        old, _ = partition_graph(graph, "graph", machines, folder, **wish)
    config = f"{folder}/graph.json"
    return config, load_partition_book(config, 0)[0], old  # old ID of each new one


print(f"{graph.num_edges():,} edges, {len(train_idx):,} training nodes")
print(f"features: {ROW} bytes per node, {ALL_ROWS:,} in all")


# %% slot="count-code"
def reads(machines, method, fanouts=FANOUTS, batch=BATCH):
    _, book, old = cut(machines, method)
    owner = book.nid2partid(old.argsort())
    how = {"batch_size": batch // machines, "shuffle": True, "seed": 1}
    seeds = old.argsort()[train_idx]
    for rank in range(machines):
        mine = node_split(seeds, book, rank=rank, num_trainers=machines)
        loader = NodeDataLoader(graph, old[mine], NeighborSampler(fanouts), **how)
        for _ in range(EPOCHS):
            for nodes, _, _ in loader:
                yield rank, nodes, owner[nodes] != rank


@functools.cache
def count(*choice, **choices):
    batches = reads(*choice, **choices)
    found = [(len(nodes), int(away.sum())) for _, nodes, away in batches]
    rows, remote = (sum(column) for column in zip(*found))
    return rows, remote, len(found)


best = dgl.partition.plan(graph, 4).part_method
for method in ("random", best):
    rows, remote, steps = count(4, method)
    print(f"{method}: {rows / steps:,.0f} nodes per batch, {remote / rows:.0%} remote")

# %% [markdown] slot="formula" lang="en"
# About half of the 15,488 nodes are read, because popular nodes recur. With four machines and
# random parts, three quarters are remote; METIS halves that share.
#
# ## Build it yourself: a formula
#
# How long does a step's communication take at 1 Gbit/s with the random partition?
#
# - **Requests.** Suppose the trainer's machine owns the seeds and knows their neighbors. It
#   requests the neighbors of the nodes found next, then the features: two rounds for two layers. In
#   each round, packets go there and back, 0.1 ms each way (common behind one switch), and each of
#   the three requests, one per machine asked, costs the trainer 0.1 ms of processor time:
#   $2 \cdot (0.2 + 3 \cdot 0.1) = 1.0$ ms.
# - **Features.** 74% of 8,698 rows, at $8 + 400$ bytes each, make 2.6 MB. The link carries 125 MB
#   per second, less 8% for headers (90 of 1,538 bytes) and acknowledgements, so 115 MB: 23 ms.
# - **All-reduce.** The gradients are 302 kB. In a ring of four machines, each passes on a quarter
#   of them in each of $2 \cdot 3 = 6$ rounds: $6 \cdot (75.6/115 + 0.1) = 4.5$ ms.
#
# In general, on $K \ge 2$ machines with one trainer each, a step of an $L$-layer model takes
#
# $$T = t + L\,(2\ell + (K-1)\,q) + \frac{r\,n\,(8+s)}{w} +
# 2\,(K-1)\left(\frac{P}{K\,w}+\ell\right)$$
#
# The time for sampling and computing, $t$, is measured on one machine. $\ell$ is the latency of a
# packet and $q$ the trainer's processor time per request. Of $n$ nodes read, a share $r$ is remote;
# a row has $s$ bytes, the gradients $P$. $w$ bytes are sent per second: the lesser of what the link
# carries and what a processor copies, 2 GB/s on a machine that was measured. Measure yours.

# %% [markdown] slot="formula" lang="ko"
# 최대 15,488개 가운데 실제로 읽는 노드는 절반 정도입니다. 이웃이 많은 노드가 거듭 뽑히기
# 때문입니다. 머신 네 대에 무작위로 나누면 4분의 3이 원격 노드이며, METIS로 나누면 그 비율이
# 절반으로 줄어듭니다.
#
# ## 직접 만들어 보기: 식 세우기
#
# 무작위로 나눈 그래프에서 1 Gbit/s 네트워크를 쓸 때 학습 한 단계의 통신에 걸리는 시간을 구해
# 봅시다.
#
# - **요청**: 시드 노드는 모두 트레이너와 같은 머신에 있어 이웃을 바로 알 수 있다고 가정합니다.
#   그다음 노드들의 이웃과 마지막에 읽을 피처는 다른 머신에 요청해야 합니다. 계층이 두 개이면 요청도
#   두 번이며, 앞 요청의 응답을 받아야 다음 요청을 보냅니다. 요청할 때마다 패킷이 가는 데 0.1 ms,
#   돌아오는 데 0.1 ms가 걸리고(스위치 하나에 연결된 머신 사이에서 흔한 값입니다), 머신 세 대에
#   보내는 요청마다 트레이너의 프로세서 시간이 0.1 ms씩 듭니다. 따라서
#   $2 \cdot (0.2 + 3 \cdot 0.1) = 1.0$ ms입니다.
# - **피처**: 8,698개 행의 74%를 행마다 $8 + 400$바이트씩 전송하면 2.6 MB입니다. 링크는 초당 125
#   MB를 보내지만 헤더(1,538바이트 가운데 90바이트)와 확인 응답이 8%를 차지하므로 실제로는 115
#   MB이고, 시간은 23 ms입니다.
# - **올리듀스**(all-reduce): 그래디언트(gradient)는 302 kB입니다. 머신 네 대가 링(ring)을 이루어,
#   한 번에 그래디언트의 4분의 1을 옆 머신으로 보내는 일을 $2 \cdot 3 = 6$번 되풀이합니다. 따라서
#   $6 \cdot (75.6/115 + 0.1) = 4.5$ ms입니다.
#
# 일반적으로 머신이 $K \ge 2$대이고 머신마다 트레이너가 하나씩 있을 때, 계층이 $L$개인 모델의 학습
# 한 단계에 걸리는 시간은 다음과 같습니다.
#
# $$T = t + L\,(2\ell + (K-1)\,q) + \frac{r\,n\,(8+s)}{w} +
# 2\,(K-1)\left(\frac{P}{K\,w}+\ell\right)$$
#
# 샘플링과 계산에 드는 시간 $t$는 머신 한 대에서 잽니다. $\ell$은 패킷의 지연 시간(latency), $q$는
# 요청 하나에 드는 트레이너의 프로세서 시간입니다. 노드 $n$개 가운데 원격 노드의 비율이 $r$이고, 행
# 하나는 $s$바이트, 그래디언트는 $P$바이트입니다. 1초에 보낼 수 있는 바이트 수 $w$는 링크의 속도와
# 프로세서의 복사 속도 가운데 느린 쪽입니다. 복사 속도 2 GB/s는 어느 머신에서 잰 값이므로, 실제로 쓸
# 머신에서 다시 재야 합니다.

# %% [markdown] slot="formula" lang="zh"
# 最多可能读取 15,488 个节点，实际只读取了一半左右，因为邻居多的节点会被反复抽到。四台机器、随机切分
# 时，四分之三的节点是远程的；用 METIS 切分，这个比例减半。
#
# ## 亲手实现：公式
#
# 随机切分、网络为 1 Gbit/s 时，训练一步的通信要多长时间？
#
# - **请求**：种子节点几乎都在训练器所在的机器上，公式假定它们的邻居都可以直接查到。其他节点的邻
#   居，以及最后要读取的特征，都要向别的机器请求：两层就是两次，收到前一次的响应，才发出下一次请
#   求。每次请求，数据包都要往返，单程 0.1 毫秒（同一台交换机下常见的值）；发给另外三台机器的请
#   求，每个还要占用训练器 0.1 毫秒的处理器时间。所以是 $2 \cdot (0.2 + 3 \cdot 0.1) = 1.0$ 毫秒。
# - **特征**：8,698 行的 74%，每行 $8 + 400$ 字节，共 2.6 MB。链路每秒传输 125 MB，扣除包头（每
#   1,538 字节中占 90 字节）和确认包，共 8%，实际是 115 MB，需要 23 毫秒。
# - **全归约**（all-reduce）：梯度（gradient）有 302 kB。四台机器连成一个环，每次把四分之一传给下一
#   台，共 $2 \cdot 3 = 6$ 次：$6 \cdot (75.6/115 + 0.1) = 4.5$ 毫秒。
#
# 一般地，有 $K \ge 2$ 台机器、每台一个训练器时，一个 $L$ 层的模型每一步所需的时间是
#
# $$T = t + L\,(2\ell + (K-1)\,q) + \frac{r\,n\,(8+s)}{w} +
# 2\,(K-1)\left(\frac{P}{K\,w}+\ell\right)$$
#
# 其中 $t$ 是采样和计算的时间，在一台机器上测得；$\ell$ 是数据包的延迟（latency），$q$ 是训练器处理
# 一个请求所用的处理器时间。$n$ 是读取的节点数，其中远程节点的比例是 $r$；一行有 $s$ 字节，梯度
# 有 $P$ 字节。$w$ 是每秒能传输的字节数，取链路速度与处理器复制速度中较小的一个；后者取 2 GB/s，是在
# 一台机器上测得的，请换成你自己测得的值。

# %% slot="formula-code"
HIDDEN = 256
GRADIENTS = 4 * (2 * WIDTH * HIDDEN + HIDDEN + 2 * HIDDEN * CLASSES + CLASSES)  # bytes


def gbit(speed):
    costs = {"per_request": 1e-4, "per_byte": 5e-10}  # processor seconds
    return Network(bandwidth=speed * 1e9, latency=1e-4, overhead=0.08, **costs)


def moving(remote, machines, network, row=ROW):
    if machines == 1:
        return [0, 0, 0]
    speed = min(network.bytes_per_second, 1 / network.per_byte)
    asking = len(FANOUTS) * (2 * network.latency + (machines - 1) * network.per_request)
    ring = 2 * (machines - 1) * (GRADIENTS / machines / speed + network.latency)
    return [asking, remote * (8 + row) / speed, ring]


_, remote, steps = count(4, "random")
ms = {n: [1000 * s for s in moving(remote / steps, 4, gbit(n))] for n in (1, 10, 100)}
print(f"{GRADIENTS:,} bytes of gradients; requests, features, all-reduce, ms per step:")
for n, (asking, features, ring) in ms.items():
    print(f"{n:3} Gbit/s: {asking:.1f}, {features:.1f}, {ring:.1f}")
assert not AS_IN_TEXT or 2 * ms[1][1] > sum(ms[1]), "1 Gbit/s: not mostly features"
assert 2 * sum(ms[100]) > sum(ms[10]), "100 Gbit/s: the time is halved"

# %% [markdown] slot="train" lang="en"
# At 1 Gbit/s, features take by far the longest. Ten times 10 Gbit/s does not even halve the time,
# because the processor then copies more slowly than the link sends.
#
# ## The library does the same
#
# The simulator of lesson 07 runs an unchanged training script, counts every message, and measures
# the work on this processor. `train` is such a script. With `prefetch=0`, the loader makes a
# mini-batch only when asked, so all work is sequential, as in the formula.

# %% [markdown] slot="train" lang="ko"
# 1 Gbit/s에서는 피처 전송이 단연 가장 오래 걸립니다. 10 Gbit/s에서 100 Gbit/s로 올려도 시간은 4.3
# ms에서 3.1 ms로 줄 뿐, 절반도 줄지 않습니다. 그 사이에 링크가 프로세서의 복사 속도보다 빨라지기
# 때문입니다.
#
# ## 라이브러리 사용하기
#
# 레슨 07의 시뮬레이터는 학습 스크립트를 고치지 않고 트레이너별로 번갈아 실행하면서, 모든 메시지를
# 세고 이 컴퓨터의 프로세서에서 샘플링과 계산, 요청 처리에 걸린 시간을 잽니다. `train`은 그런
# 스크립트를 함수로 옮긴 것으로, 모델의 매개변수와 캐시의 적중 횟수를 반환합니다. `prefetch=0`이면
# 로더는 루프가 미니배치를 요구할 때 비로소 미니배치를 만듭니다. 따라서 식에서처럼 모든 일이
# 차례대로 일어납니다.

# %% [markdown] slot="train" lang="zh"
# 在 1 Gbit/s 时，传输特征所用的时间远远超过其他各项。从 10 Gbit/s 提高到 100 Gbit/s，三项之和只减少
# 不到三成，因为这时处理器复制数据比链路还慢。
#
# ## 使用库
#
# 使用第 07 课的模拟器，无需修改训练脚本：它轮流运行各个训练器，统计每一条消息，并测量各项工作在这个
# 处理器上所用的时间。`train` 相当于这样一个脚本，只是写成了函数，它返回模型的参数和缓存的命中情况。
# 设 `prefetch=0` 之后，加载器要等循环需要小批次时才生成它，所以各项工作依次进行，与公式一样。


# %% slot="model-code"
class SAGE(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = SAGEConv(WIDTH, HIDDEN, "mean"), SAGEConv(HIDDEN, CLASSES, "mean")
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, blocks):
        h = blocks[0].srcdata["feat"].float()
        for i, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            h = layer(block, F.relu(h) if i else h)
        return h


# %% slot="train-code"
def train(seeds, fanouts=FANOUTS, batch=BATCH, prefetch=0, cache=0):
    dgl.distributed.initialize()
    torch.distributed.init_process_group("gloo")
    g = DistGraph("graph", cache_bytes=cache)
    mine = node_split(seeds, g.get_partition_book())
    wanted = {"prefetch_node_feats": ["feat"], "prefetch_labels": ["label"]}
    sampler = NeighborSampler(fanouts, **wanted)
    how = {"batch_size": batch // torch.distributed.get_world_size(), "shuffle": True}
    loader = DistNodeDataLoader(g, mine, sampler, seed=1, prefetch=prefetch, **how)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(SAGE())
    optimizer = torch.optim.Adam(model.parameters())
    caches = [g.cache_info()]
    for _ in range(EPOCHS):
        for _, _, blocks in loader:
            loss = F.cross_entropy(model(blocks), blocks[-1].dstdata["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        caches.append(g.cache_info())
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach(), caches


# %% slot="simulate-code" tags=["nbval-ignore-output"]
SAID = dict(compute="computing", sample="sampling", fetch="fetching", wait="waiting")
SAID |= dict(allreduce="all-reduce", bandwidth="bandwidth", latency="latency")
SAID |= dict(serve="serving requests")


def run(machines, method="random", features=None, **choice):
    config, _, old = cut(machines, method)
    cluster = simulate(config, network=gbit(1), features=features)
    return cluster.run(lambda: train(old.argsort()[train_idx], **choice))


run(4)  # warm-up run
alone, base = run(1), run(4)
for result in (alone, base):
    k, last = result.machines.count, result.epochs[-1]
    parts = ", ".join(f"{SAID[kind]} {1000 * s:.0f}" for kind, s in last.parts.items())
    print(f"machines: {k}; {1000 * last.seconds:.0f} ms per epoch ({parts})")
assert alone.epochs[-1].seconds < 3 * base.epochs[-1].seconds, "3 times as fast"

# %% [markdown] slot="prove" lang="en"
# Four machines are not even three times as fast as one; in the stored run, they take longer! Each
# computes less, but fetches data.
#
# ## Check that they agree
#
# Did the simulated trainers request exactly as many rows as we counted? And if the
# measured work took no time, would the simulator predict the formula's time?

# %% [markdown] slot="prove" lang="ko"
# 머신 네 대를 써도 속도는 한 대의 세 배가 되지 않습니다. 저장된 실행 결과에서는 오히려 한 대보다
# 느렸습니다! 머신마다 계산할 양은 줄었지만 데이터를 가져와야 하기 때문입니다.
#
# ## 확인하기
#
# 첫째, 시뮬레이션한 트레이너들이 요청한 행의 수는 직접 센 수와 정확히 같을까요? 둘째, 실제로 잰
# 일(샘플링, 데이터 복사, 계산, 요청 처리)에 시간이 전혀 들지 않는다면, 시뮬레이터가 예측한 시간은
# 식으로 구한 시간과 같을까요?

# %% [markdown] slot="prove" lang="zh"
# 用了四台机器，速度却不到一台的三倍；在这里保存的运行结果中，甚至比一台更慢！每台机器的计算量少
# 了，却要去获取数据。
#
# ## 验证
#
# 第一，模拟的训练器所请求的行数，与手动数出的是否完全相同？第二，假如实测的采样、复制数据、计算和处
# 理请求的时间都算作零，模拟器预测的时间与公式的结果是否一致？

# %% slot="prove-rows"
asked = base.traffic.total("features")
_, remote, steps = count(4, "random")
ratio = (asked.bytes_out + asked.bytes_in) / (remote * (8 + ROW))
print(f"{asked.rows:,} rows; bytes: {ratio:.4f} times the formula's")
assert asked.rows == remote, f"{asked.rows:,} rows, not {remote:,}"
assert 1 <= ratio < 1.001, "headers should add less than 0.1%"

# %% slot="prove-time" tags=["nbval-ignore-output"]
kinds = "sample", "fetch", "compute", "serve"
free = dict.fromkeys(kinds, 1e-9)  # work should take no time
_, remote, steps = count(4, "random")
for speed in (1, 10, 25, 100):
    formula = sum(moving(remote / steps, 4, gbit(speed)))
    last = base.retimed(gbit(speed), slowdown=free).epochs[-1]
    ratio = last.steps * formula / last.seconds
    print(f"{speed:3} Gbit/s: the formula gives {ratio:.0%} of the simulator's time")
    assert not AS_IN_TEXT or 0.8 < ratio < 1, "it should be up to 20% short"

# %% [markdown] slot="limits" lang="en"
# The rows are equal; the message headers add 0.01% to the bytes. The formula is up to a
# seventh too short: it knows only averages, while all trainers wait for the one with the most to
# fetch, and omits the servers' processor time and the neighbor lists.
#
# ## What is the bottleneck?
#
# Another network needs no new run: `retimed` recomputes times. `savings` gives, for each cost, the
# share of an epoch that would be saved if that cost were zero. If an epoch takes 300 ms, but 100 ms
# on a link of unlimited bandwidth, the saving is $1 - 100/300 = 67\%$. The **bottleneck** is
# whatever has the largest saving.

# %% [markdown] slot="limits" lang="ko"
# 행의 수는 정확히 같고, 바이트 수는 메시지 헤더 때문에 0.01% 많을 뿐입니다. 식으로 구한 시간은 최대
# 7분의 1 정도 짧습니다. 식은 평균만 다루지만, 실제로는 가져올 데이터가 가장 많은 트레이너를 모두가
# 기다리기 때문입니다. 서버가 요청을 처리하는 시간과 이웃 목록도 식에는 빠져 있습니다.
#
# ## 병목은 무엇인가
#
# 네트워크를 바꾸어 보려고 다시 실행할 필요는 없습니다. `retimed`가 시간을 새로 계산합니다.
# `savings`는 어떤 일에 시간이 전혀 들지 않을 때 에폭(epoch)의 시간이 얼마나 줄어드는지를 비율로
# 알려 줍니다. 300 ms 걸리던 에폭이 대역폭(bandwidth)이 무한한 링크에서 100 ms로 줄어든다면, 그
# 비율은 $1 - 100/300 = 67\%$입니다. 없앴을 때 에폭의 시간이 가장 많이 줄어드는 일이
# **병목**(bottleneck)입니다.

# %% [markdown] slot="limits" lang="zh"
# 行数一行不差；请求和传输特征的字节数，因为消息头而多出 0.01%。公式算出的时间偏短，最多短七分之一，
# 因为它只考虑平均值，而实际上，所有训练器都要等待取数据最多的那一个；服务器处理请求和传输邻居列表的
# 时间，公式也没有计入。
#
# ## 瓶颈在哪里？
#
# 换一种网络，不必重新运行，`retimed` 会重新计算时间。`savings` 给出的是：假如某一项完全不花时间，一
# 轮（epoch）能缩短多大比例。如果一轮要 300 毫秒，带宽（bandwidth）无限时只要 100 毫秒，这个比例就
# 是 $1 - 100/300 = 67\%$。使这个比例最大的那一项，就是**瓶颈**（bottleneck）。

# %% slot="limits-code" tags=["nbval-ignore-output"]
speeds = (1, 10, 25, 100)
timed = {speed: base.retimed(gbit(speed)) for speed in speeds}
bars = {"1 machine": alone.epochs[-1].parts}
for speed, result in timed.items():
    bars[f"4 machines\n{speed} Gbit/s"] = result.epochs[-1].parts
figure, ax = plt.subplots(figsize=(7.5, 2.7), layout="constrained")
plot.time_parts(bars, ax=ax)
plt.show()

for speed, result in timed.items():
    most = sorted(result.savings.items(), key=lambda item: -item[1])[:3]
    text = ", ".join(f"{SAID[what]} {share:.0%}" for what, share in most)
    print(f"{speed:3} Gbit/s: the bottleneck is {SAID[result.limit]} ({text})")
saved = [result.savings[timed[1].limit] for result in timed.values()]
matters = saved[0] > 2 * saved[1]
assert matters or not AS_IN_TEXT, "bandwidth should matter most at 1 Gbit/s"
assert abs(timed[25].seconds - timed[100].seconds) < 1e-6, "100 Gbit/s changed the time"

# %% [markdown] slot="choices" lang="en"
# At 1 Gbit/s, the network is the bottleneck in the stored run; from 10 Gbit/s on, it is computing.
# 25 and 100 Gbit/s take the same time, since the processor copies only 2 GB/s.
#
# ## What costs nothing
#
# `predict` applies the formula to five ways to train. With fanout 5, a step reads 60% fewer rows,
# but its work need not shrink as much, so `work` measures $t$ on one machine, with one trainer's
# fanouts and seeds. The simulator tries two more: a thread that prepares mini-batches in advance,
# and a cache in unused memory. Bars show the simulator's times, diamonds the formula's.

# %% [markdown] slot="choices" lang="ko"
# 저장된 실행 결과에서 1 Gbit/s일 때는 네트워크가 병목이고, 10 Gbit/s부터는 계산이 병목입니다. 25
# Gbit/s와 100 Gbit/s는 걸리는 시간이 같습니다. 프로세서가 초당 2 GB밖에 복사하지 못하기 때문입니다.
#
# ## 돈이 들지 않는 방법
#
# `predict`는 그대로 두는 경우까지 다섯 가지 설정에 식을 적용합니다. 샘플링과 계산에 드는 시간이
# 읽는 행의 수에 비례한다는 보장은 없습니다. 팬아웃이 5이면 한 단계에 읽는 행은 60% 줄지만, 이
# 시간은 그만큼 줄지 않을 수 있습니다. 그래서 `work`는 트레이너 하나가 맡는 시드 노드 수와
# 팬아웃으로 머신 한 대에서 $t$를 잽니다. 시뮬레이터로는 이 다섯 가지에 두 가지를 더해 시험합니다.
# 스레드로 미니배치를 미리 만드는 방법과 남는 메모리에 캐시를 두는 방법입니다. 막대는 시뮬레이터로,
# 마름모는 식으로 구한 값입니다.

# %% [markdown] slot="choices" lang="zh"
# 在这里保存的运行结果中，1 Gbit/s 时瓶颈是网络，从 10 Gbit/s 起瓶颈是计
# 算。25 Gbit/s 与 100 Gbit/s 所用的时间相同，因为处理器每秒只能复制 2 GB。
#
# ## 不花钱的办法
#
# `predict` 把公式用于五种训练方式。采样和计算的时间不一定与读取的行数成正比：扇出为 5 时，一步读取
# 的行少了 60%，这部分时间却未必减少那么多。所以 `work` 按一个训练器的种子节点数和扇出，在一台机器上
# 测出 $t$。除了这五种，模拟器还运行了另外两种：用一个线程提前生成小批次，以及用闲置的内存作缓存。柱
# 子是模拟器的结果，菱形是公式的结果。


# %% slot="choices-code" tags=["nbval-ignore-output"]
@functools.cache
def work(fanouts, seeds):
    last = run(1, fanouts=fanouts, batch=seeds).epochs[-1]
    return (last.parts["sample"] + last.parts["compute"]) / last.steps


def predict(method="random", fanouts=FANOUTS, batch=BATCH, row=ROW):
    _, remote, steps = count(4, method, fanouts, batch)
    step = work(fanouts, batch // 4) + sum(moving(remote / steps, 4, gbit(1), row))
    return 1000 * step * steps / 4 / EPOCHS  # milliseconds


by_formula = [predict(), predict(best), predict(row=ROW // 2)]
by_formula += [predict(fanouts=(5, 5)), predict(batch=4 * BATCH)]
choices = {
    "unchanged": {},
    best.upper(): {"method": best},
    "float16": {"features": {"feat": ((WIDTH,), torch.float16)}},  # zeros
    "fanout 5": {"fanouts": (5, 5)},
    "batch x 4": {"batch": 4 * BATCH},
    "prefetch": {"prefetch": 2},
    "cache 25%": {"cache": ALL_ROWS // 4},
}
tried = {name: run(4, **choices[name]) for name in tqdm(choices, desc="choices")}

# %% slot="choices-draw" tags=["nbval-ignore-output", "folded"]
figure, ax = plt.subplots(figsize=(7.8, 2.9), layout="constrained")
plot.time_parts({name: result.epochs[-1].parts for name, result in tried.items()}, ax=ax)
ax.plot([x + 0.43 for x in range(5)], by_formula, "kD", ms=4, label="formula")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), reverse=True)
plt.show()

# %% slot="choices-rank" tags=["nbval-ignore-output"]
simulated = [1000 * result.epochs[-1].seconds for result in tried.values()]
told = list(zip(choices, by_formula, simulated))
for name, formula, found in told:
    print(f"{name}: {formula:.0f} ms by the formula, {found:.0f} ms by the simulator")
for (quick, short, less), (slow, long, more) in permutations(told, 2):
    if 1.25 * short < long and less > more:
        warnings.warn(f"{quick} should be faster than {slow}")
ahead, usual = (tried[name].epochs[-1].seconds for name in ("prefetch", "unchanged"))
if ahead < usual / 2:
    warnings.warn("prefetch should save less than half")
fewer = count(4, "random", (5, 5))[1] / count(4, "random")[1]
assert not AS_IN_TEXT or 0.35 < fewer < 0.45, f"fanout 5 leaves {fewer:.0%} of the rows"

# %% [markdown] slot="cache" lang="en"
# The formula ignores waiting, so small differences decide nothing. Of two options that differ by
# over a quarter, formula and simulator find the same one faster, as the last cell checks.
# `prefetch` saves less than half: at 1 Gbit/s, fetching takes far longer than the computing behind
# which it hides.
#
# `prefetch` and a cache do not change what is learned; METIS only changes which seeds each trainer
# gets. float16, fanout and batch size can change the accuracy: compare that first.
#
# ## Which rows to keep
#
# A cache holds rows of other machines. If seven of ten requested rows are in it, the **hit rate**
# is 70%. We count how often trainer 0 requests each row, and cache a quarter of all features: those
# requested most often, known only afterward; those of the nodes with the most edges, known
# beforehand; or arbitrary ones, the last by ID.

# %% [markdown] slot="cache" lang="ko"
# 식은 트레이너끼리 서로 기다리는 시간을 다루지 않으므로, 식으로 구한 두 값의 차이가 작다면 어느
# 쪽이 빠르다고 단정할 수 없습니다. 그러나 두 값이 4분의 1 넘게 차이 나면, 식에서 더 빠른 방법은
# 시뮬레이터에서도 더 빠릅니다. 바로 위의 셀이 이를 확인합니다. `prefetch`로는 시간이 절반도 줄지
# 않습니다. 계산하는 동안 데이터를 미리 가져오는 방법인데, 1 Gbit/s에서는 가져오는 시간이 계산
# 시간보다 훨씬 길기 때문입니다.
#
# 시간을 줄이는 방법 가운데에는 학습 결과까지 바꾸는 것도 있습니다. `prefetch`와 캐시는 학습 결과를
# 바꾸지 않고, METIS를 쓰면 트레이너마다 맡는 시드 노드만 달라집니다. 반면 피처를 float16으로
# 바꾸거나 팬아웃, 배치 크기를 바꾸면 정확도가 달라질 수 있으므로 먼저 비교해야 합니다.
#
# ## 어떤 행을 캐시에 둘 것인가
#
# 캐시에는 다른 머신의 행을 보관합니다. 트레이너가 요청한 행 열 개 가운데 일곱 개가 캐시에 있으면
# **적중률**(hit rate)은 70%이고, 나머지 세 개만 전송됩니다. 그렇다면 어떤 행을 보관해야 할까요?
# 트레이너 0이 각 행을 몇 번 요청하는지 세고, 전체 피처의 4분의 1만큼을 보관해 봅시다. 고르는 방법은
# 세 가지입니다. 가장 많이 요청된 행을 고르거나(나중에야 알 수 있습니다), 에지가 가장 많은 노드의
# 행을 고르거나(미리 알 수 있습니다), 아무 행이나(여기서는 그래프를 나눈 뒤의 ID가 큰 순으로)
# 고릅니다.

# %% [markdown] slot="cache" lang="zh"
# 公式不考虑等待，所以，公式给出的两个时间如果相差不大，就不足以判断哪一个更快。但如果相差超过四分之
# 一，公式认为更快的，在模拟器中也更快，上面的单元格检验了这一点。`prefetch` 省不到一半：它在计算的
# 同时获取数据，而在 1 Gbit/s 时，获取数据的时间远远超过计算时间。
#
# 有些办法还会改变学到的模型。`prefetch` 和缓存不改变训练结果，METIS 只改变各个训练器分到哪些训练节
# 点；float16、扇出和批次大小则会改变学到的模型，应当先比较准确率。
#
# ## 该缓存哪些行
#
# 缓存用来保存其他机器的行。如果训练器请求了十行，其中七行已在缓存中，**命中率**（hit rate）就
# 是 70%，只需传输三行。哪些行值得保存？我们统计训练器 0 对每一行请求了多少次，再保存相当于全部特征
# 四分之一的行：可以选请求次数最多的行，但这要到事后才知道；可以选边最多的节点的行，边数事先就知
# 道；也可以随便选，这里取按 ID 排在最后的行。

# %% slot="cache-hand"
_, book, old = cut(4, "random")
foreign = old[book.nid2partid(torch.arange(len(old))) != 0]  # nodes of other machines
asks = torch.zeros(len(old))
for rank, nodes, is_remote in reads(4, "random"):
    if rank == 0:
        asks[nodes[is_remote]] += 1

orders = {"most requested": asks[foreign], "most edges": graph.out_degrees()[foreign]}
orders["arbitrary"] = torch.arange(len(foreign))
hits = {}
for name, worth in orders.items():
    order = foreign[worth.argsort(descending=True, stable=True)]
    hits[name] = asks[order].cumsum(0) / asks.sum()
    print(f"{name}: {hits[name][len(old) // 4 - 1]:.0%}")
rates = [float(hit[len(old) // 4 - 1]) for hit in hits.values()]
if AS_IN_TEXT:
    assert rates[0] > rates[1] > 1 / 2, "a good cache should serve half of the requests"
    assert abs(rates[2] - 1 / 3) < 0.03, "an arbitrary cache should serve a third"

# %% [markdown] slot="cache-library" lang="en"
# A well-chosen cache of a quarter of the rows serves more than half of the requests, which
# concentrate on popular nodes; an arbitrary one serves a third.
#
# The cache of `DistGraph(…, cache_bytes=…)` starts empty, keeps at first the fetched rows with the
# most edges into the machine's part, and learns from the requests. Orange points show its hit rate
# and time in the last epoch; the line is the time without a cache. Trained parameters stay the
# same.

# %% [markdown] slot="cache-library" lang="ko"
# 잘 고르면 전체 피처의 4분의 1만 보관해도 요청의 절반 이상이 해결됩니다. 요청이 몇몇 노드에 몰리기
# 때문입니다. 아무 행이나 고르면 3분의 1만 해결됩니다.
#
# `DistGraph(…, cache_bytes=…)`의 캐시는 처음에 비어 있습니다. 가져온 행 가운데 처음에는 자기
# 파티션으로 들어오는 에지가 많은 노드의 행을 남기고, 그다음부터는 실제 요청에 맞추어 내용을 바꾸어
# 갑니다. 주황색 점은 마지막 에폭의 적중률과 그 에폭에 걸린 시간이고, 오른쪽 그림의 회색 선은 캐시가
# 없을 때의 시간입니다. 모델의 매개변수가 캐시를 쓰지 않았을 때와 비트 단위까지 똑같은지도
# 단언문(assert)으로 확인합니다.

# %% [markdown] slot="cache-library" lang="zh"
# 选得好，缓存四分之一的特征就能满足一半以上的请求，因为请求集中在少数节点上；随便选，只能满足三分之
# 一。
#
# `DistGraph(…, cache_bytes=…)` 的缓存一开始是空的：在取回的行中，先保留通向本机分区的边最多的节点的
# 行，然后根据实际请求不断调整。橙色的点在左图中是最后一轮的命中率，在右图中是这一轮所用的时间；右图
# 的灰线是没有缓存时的时间。我们还用断言（assert）确认，无论有没有缓存，训练出的模型参数都完全相同。

# %% slot="cache-run" tags=["nbval-ignore-output"]
points = []  # share of the features, hit rate, milliseconds
for share in tqdm((0.05, 0.1, 0.25, 0.5), desc="sizes"):
    result = run(4, cache=int(share * ALL_ROWS))
    parameters, (*_, before, after) = result.returned[0]
    assert torch.equal(parameters, base.returned[0][0]), "the cache changed it"
    found, missed = after.hits - before.hits, after.misses - before.misses
    points.append((share, found / (found + missed), 1000 * result.epochs[-1].seconds))
    near = float(hits["most edges"][int(share * len(old)) - 1])
    if AS_IN_TEXT:
        assert abs(points[-1][1] - near) < 0.1, "the point should be near the curve"

# %% slot="cache-draw" tags=["nbval-ignore-output", "folded"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.7), layout="constrained")
for (name, curve), color in zip(hits.items(), (plot.GREEN, plot.BLUE, GRAY)):
    left.plot(torch.arange(1, len(curve) + 1) / len(old), curve, color=color, label=name)
for share, rate, ms in points:
    left.plot(share, rate, "o", color=plot.ORANGE)
    right.plot(share, ms, "o", color=plot.ORANGE)
right.axhline(1000 * base.epochs[-1].seconds, color=GRAY)
left.set(xlabel="cache / all features", ylabel="hit rate", ylim=(0, 1.05))
right.set(xlabel="cache / all features", ylabel="ms per epoch", ylim=0)
left.legend()
plt.show()

# %% [markdown] slot="buy" lang="en"
# The points follow the "most edges" curve. Memory can replace bandwidth: the larger the cache, the
# fewer rows are sent.
#
# ## What to buy
#
# Enter your prices, job length and deadline (here 70% of one machine's time). If an epoch takes
# 0.15 seconds, 100,000 epochs take 4.2 hours; four machines at 1.10 dollars an hour then cost
# $4.2 \cdot 4 \cdot 1.10 = 18$ dollars. We use METIS and `prefetch`, both free. Labels are machine
# counts; points beyond the line miss the deadline.

# %% [markdown] slot="buy" lang="ko"
# 점들은 ‘에지가 많은 순’ 곡선을 따라갑니다. 메모리로 네트워크를 대신하는 셈이며, 캐시가 클수록
# 전송하는 행이 줄어듭니다.
#
# ## 무엇을 살 것인가
#
# 실제 가격, 작업의 길이, 기한을 적어 넣습니다. 여기서 기한은 머신 한 대로 학습할 때 걸리는 시간의
# 70%입니다. 한 에폭이 0.15초이면 100,000에폭에 4.2시간이 걸립니다. 시간당 1.10달러인 머신 네 대를
# 쓰면 비용은 $4.2 \cdot 4 \cdot 1.10 = 18$달러입니다. METIS와 `prefetch`는 돈이 들지 않으므로 둘 다
# 씁니다. 점 옆의 숫자는 머신 수이고, 세로선 오른쪽에 있는 점은 기한을 넘깁니다.

# %% [markdown] slot="buy" lang="zh"
# 这些点大致落在“边最多”那条曲线上。这就是用内存换带宽：缓存越大，传输的行越少。
#
# ## 该买什么
#
# 请填入你那里的价格、作业要训练的轮数和期限；这里把期限设为一台机器所需时间的 70%。如果一轮
# 是 0.15 秒，100,000 轮就要 4.2 小时；用四台每小时 1.10 美元的机器，费用
# 是 $4.2 \cdot 4 \cdot 1.10 = 18$ 美元。METIS 和 `prefetch` 不花钱，所以都用上。点旁边的数字是机器
# 台数；落在竖线右边的，都赶不上期限。

# %% slot="fleet-code" tags=["nbval-ignore-output"]
counts, methods = [1, 2, 4, 8], ["random", best]
pairs = [(k, method) for k in counts for method in methods]
fleet = {pair: run(*pair, prefetch=2) for pair in tqdm(pairs, desc="clusters")}


@functools.cache
def epoch(machines, network, partitioner):
    return fleet[machines, partitioner].retimed(gbit(network)).epochs[-1]


# %% slot="buy-code" tags=["nbval-ignore-output"]
JOB = 100_000  # epochs
PRICES = {1: 1.00, 10: 1.10, 100: 1.60}  # dollars per machine hour, by Gbit/s
offers = []
for speed, price in PRICES.items():
    hours = [JOB * epoch(k, speed, best).seconds / 3600 for k in counts]
    costs = [h * k * (price if k > 1 else PRICES[1]) for h, k in zip(hours, counts)]
    offers += zip(costs, hours, counts, [speed] * len(counts))
for k in counts[1:]:
    fast, faster = (PRICES[speed] * epoch(k, speed, best).seconds for speed in (10, 100))
    assert fast < faster or PRICES[100] < 1.4 * PRICES[10], "100 Gbit/s costs less"

DEADLINE = 0.7 * offers[0][1]  # hours
for limit in (float("inf"), DEADLINE):
    in_time = sorted(offer for offer in offers if offer[1] <= limit)
    for cost, hours, machines, speed in in_time[:1]:
        print(f"{machines} x {speed} Gbit/s: {hours:.1f} hours, {cost:.1f} dollars")

# %% slot="buy-draw" tags=["nbval-ignore-output", "folded"]
figure, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
above = dict(xytext=(7, 1), ha="left")
below = dict(xytext=(-6, -11), ha="right")
for speed, color in zip(PRICES, (GRAY, plot.BLUE, plot.ORANGE)):
    line = [(hours, cost, k) for cost, hours, k, gbits in offers if gbits == speed]
    ax.plot(*list(zip(*line))[:2], "o-", color=color, label=f"{speed} Gbit/s")
    style = {"textcoords": "offset points", "color": color, "weight": "bold"}
    style |= {"bbox": {"fc": figure.get_facecolor(), "ec": "none", "pad": 0.5}}
    style |= above if speed == 100 else below
    for *spot, k in line[speed != 1 :]:  # one machine: one label
        ax.annotate(k, spot, **style)
ax.axvline(DEADLINE, color="black", lw=0.8, label="deadline")
ax.margins(0.1, 0.15)
ax.set(xlabel="hours", ylabel="cost (dollars)", xlim=0, ylim=0)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown] slot="explore" lang="en"
# One machine usually costs least: $K$ cost at least $K$ times as much per hour, and
# are hardly ever $K$ times as fast. To finish sooner, pay for more machines and 10 Gbit/s. At our
# prices, 100 Gbit/s costs more than it saves.
#
# ## Try it out
#
# Move the network slider and choose a partitioner. Without a kernel, you see four settings.

# %% [markdown] slot="explore" lang="ko"
# 가장 싼 것은 대개 머신 한 대입니다. 머신 $K$대의 비용은 시간당 적어도 $K$배이지만, 속도가 $K$배가
# 되는 일은 거의 없습니다. 1 Gbit/s에서는 머신을 늘려도 얻는 것이 적습니다. 더 빨리 끝내야 한다면
# 머신을 늘리고 10 Gbit/s 네트워크를 쓰는 데 돈을 들여야 하며, 위에 적어 넣은 가격대로라면 100
# Gbit/s는 제값을 하지 못합니다.
#
# ## 바꾸어 보기
#
# 노트북을 실행 중이라면 아래에서 네트워크 슬라이더를 움직이고 분할 방법을 골라 봅니다. 새로운
# 설정에서는 그림을 그리는 데 1초쯤 걸릴 수 있으며, 그동안 안내가 나타납니다. 웹 페이지에서는 네
# 가지 설정의 그림이 대신 보입니다.

# %% [markdown] slot="explore" lang="zh"
# 最便宜的通常是一台机器：$K$ 台机器每小时的费用至少是 $K$ 倍，速度却几乎总达不
# 到 $K$ 倍。在 1 Gbit/s 时增加机器，收效很小；想更早完成，就要花钱增加机器，并换用 10 Gbit/s 的网
# 络；按这里的价格，100 Gbit/s 并不值得。
#
# ## 动手试一试
#
# 如果 Notebook 正在运行，请在下面拖动网络滑块，并选择切分方法。切换到新的设置可能要等一秒左右，等待
# 时会有提示。没有启动内核时，显示的是四种设置的图。


# %% slot="explore-code" tags=["nbval-ignore-output"]
def times(machines, network, partitioner):
    return epoch(machines, network, partitioner).parts


gains = []  # seconds that METIS saves with four machines
for speed in (1, 100):
    found = (epoch(4, speed, method).seconds for method in methods)
    gains.append(next(found) - next(found))
assert gains[0] > gains[1], "METIS should gain more on a slow network"
network = ("network (Gbit/s)", [1, 10, 25, 100])
plot.explore_time(times, counts, network=network, partitioner=methods)

# %% [markdown] slot="disk" lang="en"
# The faster the network, the less METIS gains over random parts: bandwidth can replace a good
# partition.
#
# ## Do you need a second machine?
#
# A graph larger than memory may need only one machine, with a fast disk. `DistGraph(…, memory=…)`
# leaves a partition's files on the disk and caches feature rows in that much memory, here a quarter
# of what they need. In a graph much larger than a batch, each missing row and each neighbor list
# costs a **page** of 4 kB. We count pages, and divide by common rates (`fio` measures yours).

# %% [markdown] slot="disk" lang="ko"
# 네트워크가 빠를수록 METIS와 무작위 분할의 차이가 줄어듭니다. 대역폭이 넉넉하면 그래프를 잘 나누지
# 않아도 됩니다.
#
# ## 머신이 한 대 더 필요할까
#
# 그래프가 메모리에 다 들어가지 않아도 디스크를 쓰면 머신 한 대로 충분할 수 있습니다.
# `DistGraph(…, memory=…)`는 파티션 파일을 디스크에 그대로 두고, 지정한 만큼의 메모리에 피처 행을
# 캐시합니다. 여기서는 피처 전체에 필요한 메모리의 4분의 1만 쓰게 합니다. 그래프가 배치보다 훨씬
# 크면, 캐시에 없는 행이나 이웃 목록을 하나 읽을 때마다 디스크 여기저기에 흩어진 4 kB짜리
# **페이지**(page)를 하나씩 읽습니다. 그래서 페이지 수를 세고, 디스크가 1초에 읽는 페이지 수로
# 나눕니다. 여기에는 흔한 값을 썼으며, 실제 디스크의 값은 `fio`로 잴 수 있습니다.

# %% [markdown] slot="disk" lang="zh"
# 网络越快，METIS 相对随机切分的优势就越小：带宽充足时，图切得差一些也没关系。
#
# ## 需要第二台机器吗？
#
# 内存放不下这张图时，只用一台机器也许仍然可行，因为还有硬盘。`DistGraph(…, memory=…)` 把分区的文件
# 留在硬盘上，只用指定大小的内存缓存特征行。这里给它的内存，只有全部特征所需的四分之一。如果图比批次
# 大得多，缓存中没有的每一行，以及每个邻居列表，都要从硬盘的某个位置读取一
# 个 4 kB 的**页**（page）。所以我们数出页数，再除以硬盘每秒能读取的页数；这里用的是常见的数值，你的
# 硬盘可以用 `fio` 测量。

# %% slot="disk-code"
DISKS = {"hard disk": 150, "SATA SSD": 50_000, "NVMe SSD": 400_000}  # pages per second
config, _, old = cut(1, "random")
seeds = old.argsort()[train_idx]
dgl.distributed.initialize()
saving = DistGraph("graph", config, memory=ALL_ROWS // 4)
sampler = NeighborSampler(FANOUTS, prefetch_node_feats=["feat"])
graphs = DistGraph("graph", config), saving
both = [DistNodeDataLoader(g, seeds, sampler, batch_size=BATCH, seed=1) for g in graphs]


def content(blocks):
    return [blocks[0].srcdata["feat"], *(block.edata[dgl.EID] for block in blocks)]


lists = 0
for (*_, one), (*_, other) in zip(*both):
    assert all(map(torch.equal, content(one), content(other))), "the blocks differ"
    lists += sum(block.num_dst_nodes() for block in one)
info, steps = saving.cache_info(), len(both[0])
print(f"{info.hits / (info.hits + info.misses):.0%} of the rows read were in memory")
ms = {name: 1000 * (info.misses + lists) / steps / rate for name, rate in DISKS.items()}
ms["1 Gbit/s"] = 1000 * info.misses / steps * (8 + ROW) / gbit(1).bytes_per_second
for name, time in ms.items():
    print(f"{name}: {time:,.0f} ms per step")
assert not AS_IN_TEXT or 1 / 2 < ms["NVMe SSD"] / ms["1 Gbit/s"] < 2, "the SSD differs"

# %% [markdown] slot="ahead" lang="en"
# The blocks are the same. A hard disk is far too slow for the pages, while the faster SSD takes
# about as long as a link of 1 Gbit/s would for the rows. `prefetch` reads them while the model
# computes ([how to plan it](../../docs/planning.md)).
#
# ## Beyond the laptop
#
# What would a graph of 100 million nodes need, with 2 billion edges, 100 float32 features per node
# and a million training nodes? We cannot try it, but can plan, if each number has a source and a
# range.
#
# - **Calculated**: 400 bytes per node, and 16 bytes per edge for its source and its ID in 64 bits
#   (32 would do), make 72 GB.
# - **Counted here per seed, to be scaled**: a trainer reads 68 nodes with the random partition, 58
#   with METIS; 74% and 36% of them are remote.
# - **Measured here**: the seconds per row.
# - **Assumed**: halo nodes and indexes increase memory needs by up to half. METIS cuts the large
#   graph at best as well as the small one, at worst no better than random. Because no processor
#   cache holds the data, a row takes up to twice as long.
#
# In a larger graph, fewer nodes repeat. We count for four sizes; the upper limit is
# $11 \cdot 11 = 121$.

# %% [markdown] slot="ahead" lang="ko"
# 블록(block)은 메모리에서 읽을 때와 똑같습니다. 이렇게 많은 페이지를 읽기에 하드 디스크는 너무
# 느리지만, 빠른 SSD라면 같은 행을 1 Gbit/s 링크로 가져올 때와 비슷한 시간이 걸립니다. `prefetch`를
# 쓰면 모델이 계산하는 동안 미리 읽습니다. 자세한 내용은 [학습 계획](../../docs/planning.md)(영어)에
# 있습니다.
#
# ## 노트북 컴퓨터 한 대로 감당할 수 없을 때
#
# 노드 1억 개, 에지 20억 개에 노드마다 float32 피처 100개가 있고 학습 노드가 100만 개인 그래프라면
# 무엇이 얼마나 필요할까요? 여기서 직접 실행해 볼 수는 없지만 계획은 세울 수 있습니다. 다만 수치마다
# 출처를 밝히고, 값 하나가 아니라 범위로 나타내야 합니다.
#
# - **계산한 값**: 노드마다 400바이트, 에지마다 출발 노드와 ID에 16바이트가 들어 모두 72 GB입니다.
#   출발 노드와 에지 ID는 각각 64비트로 잡았지만, 이 크기의 그래프라면 gnnlab은 32비트로 저장합니다.
# - **여기서 센 값**(시드 노드 수를 곱해서 씁니다): 트레이너가 시드 노드 하나당 읽는 노드는 무작위로
#   나누면 68개, METIS로 나누면 58개이며, 그 가운데 각각 74%와 36%가 원격 노드입니다.
# - **여기서 잰 값**: 행당 시간.
# - **가정한 값**: 헤일로 노드(halo node)와 인덱스 때문에 메모리가 최대 50% 더 듭니다. 큰 그래프를
#   METIS로 나눈 결과는 가장 좋으면 작은 그래프에서와 같고, 가장 나쁘면 무작위로 나눈 것과 같습니다.
#   데이터가 프로세서 캐시에 들어가지 않으므로 행당 시간은 최대 두 배가 됩니다.
#
# 그래프가 클수록 같은 노드가 거듭 뽑히는 일이 줄어듭니다. 네 가지 크기의 그래프에서 세어 봅시다.
# 상한은 $11 \cdot 11 = 121$입니다.

# %% [markdown] slot="ahead" lang="zh"
# 得到的块与从内存读取时完全相同。这么多页，机械硬盘读起来太慢；而较快的 SSD 所用的时间，与用 1
# Gbit/s 的链路获取这些行差不多。`prefetch` 可以在模型计算的同时提前读取；详
# 见[英文文档](../../docs/planning.md)。
#
# ## 超出单机的规模
#
# 假如一张图有 1 亿个节点、20 亿条边，每个节点有 100 个 float32 特征，训练节点有 100 万个，需要多少
# 资源？这里无法实际运行，但可以做计划，只要每个数都注明来源，并且给出范围而不是单个值。
#
# - **算出的**：每个节点 400 字节，每条边的源节点和 ID 各按 64 位计（这个规模的 ID，gnnlab 其实只用
#   32 位存储），共 16 字节，合计 72 GB。
# - **在这里数出、再按种子节点数放大的**：平均每个种子节点，训练器在随机切分时要读取 68 个节
#   点，用 METIS 时读取 58 个，其中远程节点分别占 74% 和 36%。
# - **在这里测得的**：每行时间，即采样和计算的时间平均到读取的每一行。
# - **假定的**：HALO 节点（halo node）和索引使内存最多增加一半。用 METIS 切分这张大图，效果最好时与
#   上面的生成图相当，最差时与随机切分相当。数据超出处理器缓存之后，每行时间最多变成两倍。
#
# 图越大，重复的节点越少。下面在四种规模上计数，上限是 $11 \cdot 11 = 121$。

# %% slot="ahead-code"
at_work = alone.epochs[-1].parts["sample"] + alone.epochs[-1].parts["compute"]
SECONDS_A_ROW = at_work * EPOCHS / count(1, "random")[0]


def nodes_a_seed(num_nodes):
    wish = {"num_nodes": num_nodes, "num_edges": 20 * num_nodes}
    small = dgl.data.load("products-like", progress=False, **wish)
    how = {"batch_size": 128, "shuffle": True, "seed": 1, "drop_last": True}
    loader = NodeDataLoader(small[0], small.train_idx, NeighborSampler(FANOUTS), **how)
    found = [len(nodes) / 128 for nodes, _, _ in loader]
    return sum(found) / len(found)


for num_nodes in (12_800, 25_600, 51_200, 102_400):
    print(f"{num_nodes:,} nodes: {nodes_a_seed(num_nodes):.0f} nodes read per seed")

# %% [markdown] slot="summary" lang="en"
# With each doubling, more nodes are read per seed, but four points cannot tell us how many at 100
# million. So the plan ranges from 58 (METIS, small graph) to 121 (no node read twice). Exercises 6
# and 7 complete it.
#
# ## What the model leaves out
#
# With a GPU, $t$ is much smaller, and the network becomes the bottleneck sooner. Processes share
# memory bandwidth, a switch has other users, and an all-reduce can overlap with the backward pass.
# Before you buy, rent two machines for an hour, run a few steps with `gnnlab launch --trace`, and
# correct the model.
#
# ## Summary
#
# - A step takes time for work, requests, features and all-reduce; a few counts, the time per row
#   and the network determine all four.
# - Speed up the bottleneck; anything else gains little.
# - Start with what costs nothing (METIS and `prefetch`), then a cache, the network, and machines.
# - A model whose times are off can still lead to the right decision. Check it where you can, and
#   give a range where you cannot.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, run *Setup*; for `moving` (exercise 8), all cells down to the formula; for the
# time printed after exercise 7, all. There are
# [solutions](../solutions/10_scaling_study_solution.ipynb).
#
# 1. A batch of 1,000 seeds is sampled with fanouts 15, 10 and 5. How many nodes does it read at
#    most?
# 2. A step reads 100,000 nodes, 75% of them remote; a row is 128 float32 numbers. How many
#    milliseconds do features and requested IDs take at the full 10 Gbit/s?
# 3. A step computes for 20 ms and meanwhile fetches 25 MB. At how many Gbit/s does the network stop
#    being the bottleneck?
# 4. `asks[i]` is how often row $i$ is requested. Write a function of `asks` and `size` that returns
#    the hit rate of a cache with the `size` rows requested most often.
# 5. An offer is a tuple of cost, hours and name. Write a function of `offers` and `deadline` that
#    returns the name of the cheapest offer within `deadline` hours, or `None` if there is none.
# 6. Plan for the graph of 100 million nodes. Machines have 64 GB, half of it free for the graph.
#    Give three pairs of whole numbers, minimum and maximum: the machines needed; the GB that each
#    of four machines holds; the GB that each of them receives in an epoch, requests included, at
#    $8 + 400$ bytes per remote row. Minimum: METIS as counted here. Maximum: 121 nodes per seed,
#    75% of them remote.
# 7. For the same job of a million seeds, write a function of `rows`, `gigabytes` and `row_seconds`
#    that returns how many seconds an epoch takes if each of four machines reads `rows` rows and
#    receives `gigabytes` GB at 10 Gbit/s (1.15 GB/s without headers). A step of 128 seeds per
#    machine needs 2 ms more for requests and all-reduce.
# 8. On a graph of a [billion nodes](../../docs/planning.md), an epoch has 10,000,000 seeds in
#    mini-batches of 128, with 93 nodes read per seed. Write a function of `machines`,
#    `remote_share` and `row_seconds` that returns the machine hours of an epoch, using `moving` at
#    10 Gbit/s.

# %% [markdown] slot="summary" lang="ko"
# 그래프가 두 배가 될 때마다 시드 노드 하나당 읽는 노드가 늘어납니다. 노드가 1억 개일 때 얼마나 더
# 늘어나는지는 값 네 개만으로는 알 수 없습니다. 그래서 계획에서는 METIS로 나눈 작은 그래프의
# 58개부터, 같은 노드가 한 번도 거듭 뽑히지 않는 121개까지를 범위로 잡습니다. 나머지 계획은 연습
# 문제 6과 7에서 완성합니다.
#
# ## 모델이 다루지 않는 것
#
# GPU를 쓰면 $t$가 훨씬 작아지므로 네트워크가 더 일찍 병목이 됩니다. 또 프로세스들이 메모리 대역폭을
# 나누어 쓰고 스위치는 다른 사용자도 쓰므로 더 느려질 수 있습니다. 반대로 올리듀스는 역전파와 동시에
# 진행하면 시간이 줄어듭니다.
#
# 그러므로 구입하기 전에 머신 두 대를 한 시간 빌려 `gnnlab launch --trace`로 학습을 몇 단계 실행해
# 보고, 잰 값으로 모델을 보정해야 합니다.
#
# ## 요약
#
# - 학습 한 단계의 시간은 샘플링과 계산, 요청, 피처 전송, 올리듀스에 걸리는 시간의 합이며, 몇 가지
#   개수와 행당 시간, 네트워크의 성능을 알면 식으로 구할 수 있습니다.
# - 병목이 되는 부분을 빠르게 해야 합니다. 다른 부분을 빠르게 해도 얻는 것은 적습니다.
# - 돈이 들지 않는 METIS와 `prefetch`부터 쓰고, 캐시, 네트워크, 머신 순서로 검토합니다.
# - 예측한 시간이 조금 빗나가는 모델로도 올바른 결정을 내릴 수 있습니다. 적은 비용으로 확인할 수
#   있는 것은 확인하고, 확인할 수 없는 것은 범위로 나타냅니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 셀만 실행해도 채점할 수 있습니다. 다만 8번의
# `moving`을 쓰려면 식을 세운 셀까지, 7번을 맞힌 뒤 에폭에 걸리는 시간까지 출력하려면 모든 셀을
# 실행해야 합니다. [풀이](../solutions/ko/10_scaling_study_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 시드 노드 1,000개로 이루어진 배치를 팬아웃 15, 10, 5로 샘플링합니다. 읽는 노드는 최대 몇
#    개입니까?
# 2. 학습 한 단계에서 노드 100,000개를 읽고, 그 가운데 75%가 원격 노드입니다. 행 하나는 float32 수
#    128개입니다. 10 Gbit/s를 모두 쓸 수 있다면 요청에 담긴 ID와 응답에 담긴 피처를 전송하는 데 모두
#    몇 밀리초가 걸립니까?
# 3. 학습 한 단계에서 20 ms 동안 계산하면서 동시에 25 MB를 가져옵니다. 네트워크가 몇 Gbit/s 이상이면
#    병목이 되지 않습니까?
# 4. `asks[i]`는 행 $i$를 요청한 횟수입니다. `asks`와 `size`를 받아, 가장 많이 요청된 행 `size`개를
#    보관한 캐시의 적중률을 반환하는 함수를 작성합니다.
# 5. 선택지 하나는 비용, 시간, 이름으로 된 튜플입니다. `offers`와 시간 단위의 `deadline`을 받아,
#    기한 안에 끝나는 선택지 가운데 가장 싼 것의 이름을 반환하는 함수를 작성합니다. 그런 것이 없으면
#    `None`을 반환합니다.
# 6. 노드가 1억 개인 그래프의 학습을 계획합니다. 머신의 메모리는 64 GB이며 그 절반을 그래프에 쓸 수
#    있습니다. 다음 세 가지를 각각 정수인 최솟값과 최댓값의 쌍으로 답합니다. 필요한 머신 수, 머신이
#    네 대일 때 한 대에 저장되는 데이터의 양(GB), 머신이 네 대일 때 한 대가 한 에폭에 받는 데이터의
#    양(GB, 요청 포함, 원격 행마다 $8 + 400$바이트)입니다. 받는 데이터의 최솟값은 여기서 METIS로
#    나누어 센 값으로, 최댓값은 시드 노드 하나당 노드 121개와 원격 노드 75%로 구합니다.
# 7. 시드 노드가 100만 개인 같은 작업에서, 머신 한 대가 한 에폭에 읽는 행 수 `rows`, 받는 데이터
#    `gigabytes`(GB), 행당 시간 `row_seconds`를 받아 한 에폭에 걸리는 시간(초)을 반환하는 함수를
#    작성합니다. 네트워크는 10 Gbit/s, 헤더를 빼면 1.15 GB/s이고, 머신 네 대가 학습 한 단계에 시드
#    노드를 128개씩 처리하며, 요청과 올리듀스에 단계마다 2 ms가 더 듭니다.
# 8. 노드가 10억 개인 그래프([학습 계획](../../docs/planning.md), 영어)에서 한 에폭에 시드 노드
#    1,000만 개를 미니배치마다 128개씩 처리하며, 시드 노드 하나당 노드 93개를 읽습니다. `machines`,
#    `remote_share`, `row_seconds`를 받아 한 에폭에 드는 머신 시간(machine hour), 곧 머신 수에 소요
#    시간(단위: 시간)을 곱한 값을 반환하는 함수를 작성합니다. 통신 시간은 10 Gbit/s에서 `moving`으로
#    구합니다.

# %% [markdown] slot="summary" lang="zh"
# 图每扩大一倍，每个种子节点读取的节点都会增多；到 1 亿个节点时会增加到多少，仅凭四个点无法判断。所
# 以计划取一个范围：从小图用 METIS 时的 58 个，到没有任何节点重复的 121 个。余下的计划在练
# 习 6 和 7 中完成，练习 8 则为一张更大的图做计划。
#
# ## 成本模型忽略了什么
#
# 使用 GPU 时，$t$ 会小得多，网络就会更早成为瓶颈。各个进程会争用内存带宽，交换机还要转发其他用户的
# 数据；另一方面，全归约可以与反向传播同时进行。
#
# 所以在购买之前，先租两台机器用一小时，用 `gnnlab launch --trace` 运行几步，再根据测量结果修正成本
# 模型。
#
# ## 小结
#
# - 训练一步的时间由采样与计算、请求、特征传输和全归约四部分组成，由几个计数、测得的每行时间和网络的
#   参数就可以推算出来。
# - 要改进的是成为瓶颈的那一项；改进其他各项，收效很小。
# - 先用不花钱的 METIS 和 `prefetch`，然后依次考虑缓存、网络，最后才是机器。
# - 即使推算的时间有误差，仍然可以根据成本模型作出正确的决定。能低成本验证的就去验证，不能验证的就给
#   出范围。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的单元格就能评判；不过，第 8 题要用到 `moving`，须先运行公式及其之前的单元格；
# 要让第 7 题的单元格打印出一轮的时间，则要运行全部单元格。
# [解答](../solutions/zh/10_scaling_study_solution.ipynb)随本课
# 提供。
#
# 1. 一个批次有 1,000 个种子节点，扇出为 15、10、5。它最多读取多少个节点？
# 2. 一步读取 100,000 个节点，其中 75% 是远程的；一行是 128 个 float32 数。如果 10 Gbit/s 可以全部利
#    用，按公式，传输特征（包括请求中的 ID）要多少毫秒？
# 3. 一步的计算要 20 毫秒，同时要获取 25 MB 数据。网络达到多少 Gbit/s，就不再是瓶颈？
# 4. `asks[i]` 是第 $i$ 行被请求的次数。写一个以 `asks` 和 `size` 为参数的函数：缓存保存请求次数最多
#    的 `size` 行，返回它的命中率。
# 5. 一个方案是由费用、小时数和名称组成的元组。写一个以 `offers` 和 `deadline`（单位是小时）为参数的
#    函数，在能按时完成的方案中找出最便宜的一个，返回它的名称；如果没有，就返回 `None`。
# 6. 为有 1 亿个节点的图做计划。每台机器有 64 GB 内存，其中一半可以存放图。用三对整数作答，每对是最
#    小值和最大值：需要多少台机器；用四台机器时，每台存储多少 GB；用四台机器时，每台在一轮中接收多
#    少 GB（包括请求，每个远程行 $8 + 400$ 字节）。最小值采用本课用 METIS 切分时数出的结果；最大值则
#    假定每个种子节点读取 121 个节点，其中 75% 是远程节点。
# 7. 沿用第 6 题的图（100 万个种子节点）和四台机器，写一个函数，参数是一台机器在一轮中读取的行
#    数 `rows`、接收的数据量 `gigabytes`（GB）和每行时间 `row_seconds`，返回一轮的秒数。网络
#    是 10 Gbit/s，扣除包头后为 1.15 GB/s；四台机器每一步各处理 128 个种子节点，请求和全归约使每一步
#    增加 2 毫秒。
# 8. 在一张有 10 亿个节点的图上（见[英文文档](../../docs/planning.md)），一轮有 1,000 万个种子节点，
#    每个小批次 128 个；平均每个种子节点读取 93 个节点。写一个以 `machines`、`remote_share` 和
#    `row_seconds` 为参数的函数，返回一轮所用的机器小时，即机器数乘以小时数。通信时间用 `moving` 按
#    10 Gbit/s 计算。

# %% slot="answers-1-3"
answer_1 = None  # a number
answer_2 = None  # a number
answer_3 = None  # a number
lesson.check(1, answer_1)
lesson.check(2, answer_2)
lesson.check(3, answer_3)

# %% slot="answers-4-5"
answer_4 = None  # a function of asks and size
answer_5 = None  # a function of offers and deadline
lesson.check(4, answer_4)
lesson.check(5, answer_5)

# %% slot="answers-6-7" tags=["nbval-ignore-output"]
answer_6 = None  # a list of three pairs, such as [[1, 2], [10, 20], [1, 2]]
answer_7 = None  # a function of rows, gigabytes and row_seconds
lesson.check(6, answer_6)
lesson.check(7, answer_7)
if lesson.judge(7, answer_7).is_right:
    low = answer_7(250_000 * 58, 250_000 * 58 * 0.36 * 408e-9, SECONDS_A_ROW)
    high = answer_7(250_000 * 121, 250_000 * 121 * 0.75 * 408e-9, 2 * SECONDS_A_ROW)
    print(f"an epoch takes {low:.0f} to {high:.0f} seconds")

# %% slot="answer-8"
answer_8 = None  # a function of machines, remote_share and row_seconds
lesson.check(8, answer_8)
if lesson.judge(8, answer_8).is_right:
    for machines, least, most in ((5, 0.31, 0.79), (47, 0.60, 0.97)):
        low = answer_8(machines, least, 1.1e-6)
        high = answer_8(machines, most, 2.2e-6)
        print(f"{machines} machines: {low:.2f} to {high:.2f} machine hours per epoch")
