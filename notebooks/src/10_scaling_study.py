# %% [markdown] slot="title" lang="en"
# # What to buy: a scaling study
#
# Training is too slow. Should you buy more machines, a faster network, memory for a cache? Or is a
# better partition enough, which costs nothing? Trying everything out would cost more than it
# saves. So a **cost model** answers first, a formula for the time of a step, and the simulator
# checks it before any money is spent. Afterwards you can
#
# - derive the bytes and the time of a training step from a few counts;
# - check a cost model, and say what it leaves out;
# - tell whether the network, the processor or waiting limits a job;
# - judge cache, fanout, number format, batch size and partition, and choose machines by your own
#   prices.

# %% [markdown] slot="title" lang="ko"
# # 무엇을 살 것인가: 확장성 연구
#
# 학습이 너무 느립니다. 머신(machine)을 더 사야 할까요, 더 빠른 네트워크를 사야 할까요,
# 캐시(cache)에 쓸 메모리를 사야 할까요? 아니면 돈이 들지 않는 더 나은 파티션(partition)만으로
# 충분할까요? 모두 시험해 보려면 절약하는 돈보다 더 많은 돈이 듭니다. 그래서 먼저 **비용
# 모델**(cost model), 곧 한 단계에 걸리는 시간을 구하는 식으로 답을 찾고, 돈을 쓰기 전에
# 시뮬레이터(simulator)로 그 답을 확인합니다. 레슨을 마치면 다음과 같은 일을 할 수 있습니다.
#
# - 몇 가지 수만 세어 학습 한 단계의 바이트 수와 시간을 구하기
# - 비용 모델을 확인하고, 모델이 무엇을 빠뜨리는지 설명하기
# - 작업의 속도를 제한하는 것이 네트워크인지, 프로세서인지, 대기 시간인지 가려내기
# - 캐시, 팬아웃(fanout), 수의 형식, 배치 크기, 파티션을 평가하고, 자신이 치를 가격에 맞추어 머신을
#   고르기

# %% [markdown] slot="title" lang="zh"
# # 该买什么：扩展性研究
#
# 训练太慢了。应该多买几台机器（machine），买更快的网络，还是买内存做缓存（cache）？或者，换一种更
# 好的分区（partition）就够了，一分钱也不用花？样样都试一遍，花的钱比省下的还多。所以先用**成本模
# 型**（cost model）来回答，它是一个计算每一步所需时间的公式；在花钱之前，再用模拟器（simulator）
# 检验它。学完之后，你能够：
#
# - 从几个计数推算出训练一步的字节数和时间；
# - 检验一个成本模型，并说出它忽略了什么；
# - 判断限制一个作业的是网络、处理器还是等待；
# - 评价缓存、扇出（fanout）、数值格式、批次大小和分区，并按照你自己的价格选择机器。

# %% [markdown] slot="setup" lang="en"
# ## Set-up
#
# This computer plays all machines. Counts and bytes are exact, and the same everywhere. Times are
# predictions; they rest on what *your* processor needs for sampling and computing, so your bars
# will differ from those shown. Sentences about times speak of the run stored here.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 이 컴퓨터가 모든 머신의 역할을 합니다. 개수와 바이트 수는 정확하며 어디서나 같습니다. 시간은
# 예측한 값입니다. **여러분의** 프로세서가 샘플링과 계산에 쓰는 시간을 바탕으로 하므로, 막대의
# 높이도, 속도를 제한하는 요인도 여기에 실린 것과 다를 수 있습니다. 본문에서 시간에 관해 말하는
# 문장은 여기에 저장된 실행을 가리킵니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 这台计算机扮演所有机器。计数和字节数是精确的，在哪里都一样。时间是预测值，以**你的**处理器采样和
# 计算所用的时间为依据，所以你看到的柱子会比这里的更高或更低，成为瓶颈的也可能是另一项。文中关于时
# 间的说法，都以这里保存的运行结果为准。

# %% slot="imports"
import contextlib
import functools
import hashlib
import io
import tempfile

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

import gnnlab as dgl
from gnnlab import plot
from gnnlab.dataloading import NeighborSampler, NodeDataLoader
from gnnlab.distributed import DistGraph, DistNodeDataLoader, load_partition_book
from gnnlab.distributed import node_split, partition_graph
from gnnlab.nn import SAGEConv
from gnnlab.simulate import Network, simulate
from gnnlab.simulate.replay import replay

BATCH, FANOUTS, EPOCHS = 512, (10, 10), 2  # a batch is divided among all trainers
BLUE, ORANGE, GREEN, GRAY = "#3b6fb6", "#e07b39", "#3a9e75", "#c3c9d1"
plt.rcParams.update({"figure.dpi": 110, "font.size": 9, "legend.frameon": False})
plt.rcParams.update({"axes.spines.right": False, "axes.spines.top": False})
scratch = globals().get("scratch") or tempfile.TemporaryDirectory()  # keep it

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# Eight nodes lie on two machines, the blue ones on machine 0, the orange ones on machine 1. The
# trainer on machine 0 has one seed, node 0. It samples two neighbors of that, then two neighbors
# of every node that it has; the tree on the right shows the result, and there colors stand for
# layers. So it reads at most $1 \cdot 3 \cdot 3 = 9$ nodes. Each row that machine 1 owns takes a
# request, an ID of 8 bytes, and a reply, the row, here two float32 numbers.

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기
#
# 노드(node) 8개가 머신 두 대에 있습니다. 파란 노드는 머신 0에, 주황색 노드는 머신 1에 있습니다.
# 머신 0의 트레이너(trainer)는 시드 노드(seed node)가 노드 0 하나입니다. 트레이너는 먼저 노드 0의
# 이웃(neighbor) 두 개를 샘플링하고, 이어서 지금까지 얻은 노드마다 이웃을 두 개씩 샘플링합니다.
# 오른쪽 트리가 그 결과이며, 트리에서는 색이 계층을 나타냅니다. 따라서 읽는 노드는 많아야
# $1 \cdot 3 \cdot 3 = 9$개입니다. 머신 1이 소유한 행을 하나 읽을 때마다 8바이트짜리 ID로 요청하고
# 그 행을 응답으로 받습니다. 여기서 한 행은 float32 수 두 개입니다.

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图
#
# 8 个节点（node）放在两台机器上，蓝色的在机器 0，橙色的在机器 1。机器 0 上的训练器（trainer）有一
# 个种子节点（seed node），即节点 0。它先采样节点 0 的两个邻居（neighbor），再为已有的每个节点各采
# 样两个邻居；右边的树画出了结果，树中的颜色表示层。所以它最多读取 $1 \cdot 3 \cdot 3 = 9$ 个节
# 点。机器 1 所拥有的每一行，都要用一个 8 字节的 ID 去请求，再收到这一行作为应答；这里的一行是两个
# float32 数。

# %% slot="toy-code"
toy_src = [2, 6, 0, 4, 5, 1, 6, 7, 5, 3, 2, 4, 7]
toy_dst = [0, 0, 5, 5, 1, 2, 3, 4, 6, 5, 7, 1, 2]
toy = dgl.graph((toy_src, toy_dst))
toy_owner = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1])
place = [(-2, 1), (1, 0), (2, 1), (-2, -1), (2, -1), (-1, 0), (-3, 0), (3, 0)]

dgl.seed(4)
toy_nodes, _, toy_blocks = NeighborSampler([2, 2]).sample(toy, [0])
toy_away = toy_nodes[toy_owner[toy_nodes] == 1]
print(len(toy_nodes), "nodes; of machine 1:", toy_away.sort().values.tolist())
print("bytes:", len(toy_away) * (8 + 2 * 4))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained")
plot.partition_map(toy, toy_owner, halo_of=None, pos=place, ax=left)
plot.sampling_tree(toy, toy_blocks, ax=right)
plt.show()

# %% [markdown] slot="count" lang="en"
# The trainer reads six nodes, since some are found twice, and node 6 has one neighbor only. Three
# of them lie on machine 1, which makes 48 bytes. Three numbers decide: how many nodes are read,
# what share of them is **remote**, that is, owned by other machines, and how large a row is.
#
# ## Build it yourself: count
#
# Now a generated graph, shaped like `ogbn-products`: a few nodes have very many neighbors. `cut`
# partitions it. `reads` goes through the mini-batches of all trainers, with the ordinary loader
# and on the whole graph. Since samples do not depend on the cut, we know what a cluster will read
# without having one. Which seeds each trainer gets, `node_split` tells.

# %% [markdown] slot="count" lang="ko"
# 트레이너가 읽는 노드는 여섯 개입니다. 두 번 뽑힌 노드가 있고, 노드 6의 이웃은 하나뿐이기
# 때문입니다. 그 가운데 세 개가 머신 1에 있으므로 48바이트가 오갑니다. 결국 세 가지 수가 모든 것을
# 결정합니다. 읽는 노드가 몇 개인지, 그 가운데 다른 머신이 소유한 노드, 곧 **원격**(remote) 노드의
# 비율이 얼마인지, 행 하나가 얼마나 큰지입니다.
#
# ## 직접 만들어 보기: 세기
#
# 이번에는 `ogbn-products`를 본떠 생성한 그래프(graph)를 씁니다. 몇몇 노드에는 이웃이 아주
# 많습니다. `cut`은 이 그래프를 여러 파티션으로 나눕니다. `reads`는 그래프 전체에서 보통의 로더로
# 모든 트레이너의 미니배치(mini-batch)를 차례로 살펴봅니다. 그래프를 어떻게 나누든 샘플링 결과는
# 같으므로, 클러스터(cluster)가 없어도 클러스터가 무엇을 읽을지 알 수 있습니다. 각 트레이너가 어떤
# 시드 노드를 받는지는 `node_split`이 알려 줍니다.

# %% [markdown] slot="count" lang="zh"
# 训练器读取了六个节点，因为有的节点被抽到两次，而节点 6 只有一个邻居。其中三个在机器 1 上，共 48 字
# 节。起决定作用的是三个数：读取多少个节点，其中**远程**（remote）节点，也就是归其他机器所有的节点，
# 占多大比例，以及一行有多大。
#
# ## 亲手实现：计数
#
# 现在换成一张生成的图（graph），它的形状与 `ogbn-products` 相似：少数节点的邻居非常多。`cut` 把它切
# 成若干分区。`reads` 在整张图上用普通的加载器，逐一查看所有训练器的小批次（mini-batch）。采样结果与
# 图的切分无关，所以没有集群（cluster），我们也知道集群会读取什么。每个训练器得到哪些种子节点，由
# `node_split` 给出。

# %% slot="data-code"
sizes = {"num_nodes": 51_200, "num_edges": 1_024_000}
dataset = dgl.data.load("products-like", progress=False, **sizes)
graph, train_idx = dataset[0], dataset.train_idx
WIDTH, CLASSES = graph.ndata["feat"].shape[1], dataset.num_classes
ROW, ALL_ROWS = 4 * WIDTH, 4 * WIDTH * graph.num_nodes()  # bytes


@functools.cache
def cut(machines, method):
    folder = f"{scratch.name}/{method}-{machines}"
    wish = {"part_method": method, "balance_ntypes": graph.ndata["train_mask"]}
    wish["return_mapping"] = True
    dgl.seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        old, _ = partition_graph(graph, "graph", machines, folder, **wish)
    config = f"{folder}/graph.json"
    return config, load_partition_book(config, 0)[0], old  # old ID of each new one


print(f"{graph.num_edges():,} edges, {len(train_idx):,} training nodes")
print(f"features: {ROW} bytes a node, {ALL_ROWS:,} in all")


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


def count(*choice, **choices):
    batches = reads(*choice, **choices)
    found = [(len(nodes), int(away.sum())) for _, nodes, away in batches]
    rows, remote = (sum(column) for column in zip(*found))
    return rows, remote, len(found)


print(f"a mini-batch reads at most {BATCH // 4 * 11 * 11:,} nodes")
for method in ("random", "metis"):
    rows, remote, steps = count(4, method)
    print(f"{method}: reads {rows / steps:,.0f}, {remote / rows:.0%} of them remote")

# %% [markdown] slot="formula" lang="en"
# Of 15,488 possible nodes only about half are read, for popular nodes are found again and again.
# With four machines and a random partition, three quarters are remote; METIS halves that.
#
# ## Build it yourself: a formula
#
# On $K$ machines with a trainer each, a step of a model with $L$ layers takes
#
# $$T = t + L\,(2\ell + (K-1)\,q) + \frac{r\,n\,(8+s)}{w} +
# 2\,(K-1)\left(\frac{P}{K\,w}+\ell\right)$$
#
# - $t$ is the time for sampling and computing, measured on one machine.
# - Asking: the seeds belong to the trainer's machine, which knows their neighbors. It must ask for
#   the neighbors of other nodes, and at last for features, all in all $L$ times, one after
#   another. Each time a packet goes there and back, with latency $\ell$, and each machine that is
#   asked costs $q$ of the processor.
# - Features: of $n$ nodes a share $r$ is remote, a row has $s$ bytes, and $w$ bytes travel per
#   second. That is what the link carries, less 8% for headers, or what a processor can copy, 2
#   GB/s, whichever is less.
# - All-reduce: $P$ bytes of gradients go around a ring, in $2(K-1)$ rounds, a $K$-th part in each.

# %% [markdown] slot="formula" lang="ko"
# 읽을 수 있는 노드는 최대 15,488개이지만 실제로 읽는 것은 그 절반 정도입니다. 인기 있는 노드가
# 거듭 뽑히기 때문입니다. 머신 네 대에 무작위로 나누면 4분의 3이 원격 노드이고, METIS로 나누면 그
# 비율이 절반으로 줄어듭니다.
#
# ## 직접 만들어 보기: 식
#
# 머신이 $K$대이고 머신마다 트레이너가 하나씩 있을 때, 계층이 $L$개인 모델의 한 단계에 걸리는
# 시간은 다음과 같습니다.
#
# $$T = t + L\,(2\ell + (K-1)\,q) + \frac{r\,n\,(8+s)}{w} +
# 2\,(K-1)\left(\frac{P}{K\,w}+\ell\right)$$
#
# - $t$는 샘플링과 계산에 드는 시간이며, 머신 한 대에서 측정합니다.
# - 묻기: 시드 노드는 트레이너의 머신에 있으므로, 그 이웃은 묻지 않아도 알 수 있습니다. 다른 노드의
#   이웃은 물어야 하고, 마지막에는 피처(feature)도 물어야 합니다. 모두 $L$번이며, 한 번의 답이 와야
#   다음 것을 묻습니다. 물을 때마다 패킷이 한 번 갔다 오는데, 가는 데와 오는 데 지연 시간(latency)
#   $\ell$이 한 번씩 걸립니다. 또 묻는 상대 머신 하나마다 프로세서 시간이 $q$만큼 듭니다.
# - 피처: 노드 $n$개 가운데 원격 노드의 비율은 $r$이고, 행 하나는 $s$바이트이며, 1초에 $w$바이트를
#   보낼 수 있습니다. 이 속도는 헤더 8%를 뺀 링크의 속도와 프로세서가 복사하는 속도 2 GB/s 가운데
#   느린 쪽입니다.
# - 올리듀스(all-reduce): 그래디언트(gradient) $P$바이트가 $2(K-1)$번에 걸쳐 링(ring)을 따라 돌며,
#   한 번에 $K$분의 1씩 이동합니다.

# %% [markdown] slot="formula" lang="zh"
# 最多可能读取 15,488 个节点，实际读取的只有一半左右，因为热门节点会被反复抽到。四台机器、随机切分
# 时，四分之三的节点是远程的；用 METIS 切分，这个比例减半。
#
# ## 亲手实现：公式
#
# 有 $K$ 台机器、每台一个训练器时，一个 $L$ 层的模型每一步所需的时间是
#
# $$T = t + L\,(2\ell + (K-1)\,q) + \frac{r\,n\,(8+s)}{w} +
# 2\,(K-1)\left(\frac{P}{K\,w}+\ell\right)$$
#
# - $t$ 是采样和计算的时间，在一台机器上测得。
# - 询问：种子节点属于训练器所在的机器，它们的邻居在本机就能查到。其他节点的邻居则要询问别的机器，最
#   后还要索取特征（feature），一共 $L$ 次，一次接着一次。每次都有一个数据包往返，单程延迟
#   （latency）为 $\ell$；每询问一台机器，还要花费处理器时间 $q$。
# - 特征：$n$ 个节点中有 $r$ 的比例是远程的，一行有 $s$ 个字节，每秒能传输 $w$ 个字节。这个速度取两
#   者中较慢的一个：链路扣除 8% 的包头开销之后的速度，或者处理器复制数据的速度，即 2 GB/s。
# - 全归约（all-reduce）：$P$ 个字节的梯度（gradient）沿着一个环传递，共 $2(K-1)$ 次，每次传递其
#   中的 $K$ 分之一。

# %% slot="formula-code"
HIDDEN = 256
GRADIENTS = 4 * (2 * WIDTH * HIDDEN + HIDDEN + 2 * HIDDEN * CLASSES + CLASSES)  # bytes


def gbit(speed):
    costs = {"per_request": 1e-4, "per_byte": 5e-10}  # seconds of a processor
    return Network(bandwidth=speed * 1e9, latency=1e-4, overhead=0.08, **costs)


def moving(remote, machines, network, row=ROW):
    if machines == 1:
        return [0.0, 0.0, 0.0]
    speed = min(network.bytes_per_second, 1 / network.per_byte)
    asking = len(FANOUTS) * (2 * network.latency + (machines - 1) * network.per_request)
    features = remote * (8 + row) / speed
    ring = 2 * (machines - 1) * (GRADIENTS / machines / speed + network.latency)
    return [asking, features, ring]


rows, remote, steps = count(4, "random")
text = "{:3} Gbit/s: asking {:.1f}, features {:.1f}, all-reduce {:.1f} ms a step"
for speed in (1, 10, 100):
    terms = moving(remote / steps, 4, gbit(speed))
    print(text.format(speed, *(1000 * seconds for seconds in terms)))

# %% [markdown] slot="train" lang="en"
# At 1 Gbit/s the features take by far the longest, 23 ms a step. From 10 to 100 Gbit/s little is
# gained: there the processor's copying limits.
#
# ## The library does the same
#
# The simulator of lesson 07 runs a training script as it is, trainer by trainer, counts every
# message, and measures the work on this processor. `train` is such a script; at the end it returns
# the parameters of the model and what a cache has done. With `prefetch=0`, a mini-batch is made
# when it is asked for: one thing after the other, as in the formula.

# %% [markdown] slot="train" lang="ko"
# 1 Gbit/s에서는 피처에 걸리는 시간이 한 단계에 23 ms로 단연 가장 깁니다. 10 Gbit/s에서 100 Gbit/s로
# 올려도 얻는 것은 적습니다. 그 구간에서는 프로세서가 복사하는 속도가 한계이기 때문입니다.
#
# ## 라이브러리 사용하기
#
# 레슨 07의 시뮬레이터는 학습 스크립트를 고치지 않고 트레이너별로 번갈아 실행하면서 모든 메시지를
# 세고, 이 프로세서가 일한 시간을 잽니다. `train`이 그런 스크립트이며, 끝나면 모델의 매개변수와
# 캐시가 한 일을 돌려줍니다. `prefetch=0`이면 미니배치를 달라고 할 때 비로소 만듭니다. 식에서처럼 한
# 가지 일이 끝난 뒤에 다음 일을 하는 것입니다.

# %% [markdown] slot="train" lang="zh"
# 在 1 Gbit/s 时，传输特征的时间远远超过其他各项，每一步 23 ms。从 10 Gbit/s 提高到 100 Gbit/s，收获
# 很小，因为这时的瓶颈是处理器复制数据的速度。
#
# ## 使用库
#
# 第 07 课的模拟器原样运行训练脚本，轮流扮演各个训练器，统计每一条消息，并测量这个处理器的工作时间。
# `train` 就是这样一个脚本，结束时返回模型的参数，以及缓存的使用情况。`prefetch=0` 表示小批次在需要
# 时才生成：与公式一样，做完一件事，再做下一件。


# %% slot="model-code"
class SAGE(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = SAGEConv(WIDTH, HIDDEN, "mean")
        self.second = SAGEConv(HIDDEN, CLASSES, "mean")

    def forward(self, blocks):
        h = self.first(blocks[0], blocks[0].srcdata["feat"].float())
        return self.second(blocks[1], F.relu(h))


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
    caches = []
    for _ in range(EPOCHS):
        for _, _, blocks in loader:
            loss = F.cross_entropy(model(blocks), blocks[-1].dstdata["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        caches.append(g.cache_info())
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach(), caches


# %% slot="simulate-code" tags=["nbval-ignore-output"]
def run(machines, method="random", features=None, **choice):
    config, _, old = cut(machines, method)
    cluster = simulate(config, network=gbit(1), features=features)
    return cluster.run(lambda: train(old.argsort()[train_idx], **choice))


run(4)  # once to warm up
alone, base = run(1), run(4)
for result in (alone, base):
    last = result.epochs[-1]
    parts = ", ".join(f"{kind} {1000 * s:.0f}" for kind, s in last.parts.items())
    print(f"{result.machines.count}: {1000 * last.seconds:.0f} ms an epoch ({parts})")

# %% [markdown] slot="prove" lang="en"
# Here four machines took longer than one! Each computes less, but they fetch. Before we act on
# that, we check it.
#
# ## Check that they agree
#
# First: did the simulated trainers ask for exactly as many rows as we have counted by hand?
# Second: if sampling, computing and serving took no time, would the simulator arrive at the time
# of the formula?

# %% [markdown] slot="prove" lang="ko"
# 이번 실행에서는 머신 네 대가 한 대보다 오래 걸렸습니다! 머신마다 계산은 줄었지만, 데이터를
# 가져와야 하기 때문입니다. 이 결과를 바탕으로 무언가를 결정하기 전에 먼저 확인해 봅시다.
#
# ## 확인하기
#
# 첫째, 시뮬레이터의 트레이너들이 요청한 행의 수는 우리가 직접 센 것과 정확히 같을까요? 둘째,
# 샘플링과 계산과 응답에 시간이 전혀 들지 않는다면, 시뮬레이터가 구한 시간은 식으로 구한 시간과
# 같을까요?

# %% [markdown] slot="prove" lang="zh"
# 这次运行中，四台机器竟然比一台更慢！每台机器的计算少了，却要去取数据。在据此做决定之前，我们先来
# 检验。
#
# ## 验证
#
# 第一，模拟的训练器所请求的行数，与我们亲手数出的是否完全相同？第二，假如采样、计算和应答都不花时
# 间，模拟器得出的时间与公式的结果是否一致？

# %% slot="prove-rows"
asked = base.traffic.total("features")
ratio = (asked.bytes_out + asked.bytes_in) / (remote * (8 + ROW))
print(f"{asked.rows:,} rows; bytes: {ratio:.4f} times those of the formula")
assert asked.rows == remote and 1 <= ratio < 1.001

# %% slot="prove-time" tags=["nbval-ignore-output"]
free = ("sample", "compute", "serve")  # what was measured shall take no time
for speed in (1, 10, 25, 100):
    formula = sum(moving(remote / steps, 4, gbit(speed)))
    last = replay(base.lanes, gbit(speed), base.machines, free).epochs[-1]
    ratio = last.steps * formula / last.seconds
    print(f"{speed:3} Gbit/s: the formula has {ratio:.0%} of the simulator's time")
    assert 0.85 < ratio < 1.1

# %% [markdown] slot="limits" lang="en"
# Not a row more or less; only 0.01% of bytes are added, the headers of messages. The time of the
# formula is some percent short, because it knows only means: in fact all wait for the trainer
# with the most to fetch. And lists of neighbors travel as well, 3% of all bytes.
#
# ## What limits?
#
# For another network, nothing need be run again: `retimed` computes the times anew. `savings`
# tells what share of an epoch would be saved if something took no time at all. What limits is what
# would save most.

# %% [markdown] slot="limits" lang="ko"
# 행의 수는 하나도 어긋나지 않습니다. 바이트는 메시지의 헤더 때문에 0.01% 많을 뿐입니다. 식으로
# 구한 시간은 몇 퍼센트 짧습니다. 식은 평균만 알지만, 실제로는 가져올 것이 가장 많은 트레이너를
# 모두가 기다리기 때문입니다. 게다가 이웃의 목록도 오가며, 이것이 전체 바이트의 3%를 차지합니다.
#
# ## 무엇이 속도를 제한하는가
#
# 네트워크를 바꾸어 보려고 다시 실행할 필요는 없습니다. `retimed`가 시간을 새로 계산합니다.
# `savings`는 어떤 일에 시간이 전혀 들지 않을 때 에폭(epoch)의 시간이 몇 퍼센트 줄어드는지 알려
# 줍니다. 없앨 때 시간이 가장 많이 줄어드는 일이 바로 속도를 제한하는 요인입니다.

# %% [markdown] slot="limits" lang="zh"
# 一行不多，一行不少；字节数只因消息头多出 0.01%。公式算出的时间短了百分之几，因为它只知道平均值，
# 而实际上，所有训练器都要等待取数据最多的那一个。此外，邻居的列表也要传输，占全部字节的 3%。
#
# ## 瓶颈在哪里？
#
# 换一种网络，什么都不必重新运行：`retimed` 会重新计算时间。`savings` 给出的是：假如某件事完全不花
# 时间，一轮（epoch）会缩短多大比例。缩短得最多的那件事，就是瓶颈。

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
    text = ", ".join(f"{what} {share:.0%}" for what, share in most)
    print(f"{speed:3} Gbit/s: limited by {result.limit} ({text})")

# %% [markdown] slot="choices" lang="en"
# At 1 Gbit/s the network limits, and one machine is faster. At 10 Gbit/s the processor limits,
# and four machines are faster; still faster links are hardly of use.
#
# ## What costs nothing
#
# Much can be changed without buying anything. `predict` applies the formula, with the seconds per
# row that one machine needed, to five ways to train. The simulator tries these and two more: a
# thread that makes mini-batches ahead, and a cache. Black lines are the formula, bars the
# simulator. The float16 features are declared by shape and dtype only: all are zeros, but their
# bytes are counted.

# %% [markdown] slot="choices" lang="ko"
# 1 Gbit/s에서는 네트워크가 속도를 제한하며, 머신 한 대가 더 빠릅니다. 10 Gbit/s에서는 프로세서가
# 속도를 제한하며, 머신 네 대가 더 빠릅니다. 링크가 그보다 더 빨라도 거의 도움이 되지 않습니다.
#
# ## 돈이 들지 않는 방법
#
# 아무것도 사지 않고도 바꿀 수 있는 것이 많습니다. `predict`는 머신 한 대에서 잰 행당 시간을 써서
# 다섯 가지 학습 방법에 식을 적용합니다. 시뮬레이터는 이 다섯 가지에 두 가지를 더해 시험합니다.
# 스레드로 미니배치를 미리 만드는 방법과 캐시를 쓰는 방법입니다. 검은 선은 식으로 구한 값이고,
# 막대는 시뮬레이터로 구한 값입니다. float16 피처는 모양과 dtype만 정해 주었으므로 값이 모두
# 0이지만, 바이트 수는 그대로 셉니다.

# %% [markdown] slot="choices" lang="zh"
# 在 1 Gbit/s 时，瓶颈是网络，一台机器更快。在 10 Gbit/s 时，瓶颈是处理器，四台机器更快；再快的链
# 路，几乎没有用处。
#
# ## 不花钱的办法
#
# 什么都不买，也有许多东西可以改变。`predict` 用一台机器上测得的每行时间，把公式用于五种训练方式。模
# 拟器除了这五种，还尝试另外两种：用一个线程提前生成小批次，以及使用缓存。黑线是公式的结果，柱子是模
# 拟器的结果。float16 的特征只声明了形状和 dtype，值全部为零，但字节数照样计算。

# %% slot="predict-code"
at_work = alone.epochs[-1].parts["sample"] + alone.epochs[-1].parts["compute"]
SECONDS_A_ROW = at_work * EPOCHS / count(1, "random")[0]


def predict(method="random", fanouts=FANOUTS, batch=BATCH, row=ROW):
    rows, remote, steps = count(4, method, fanouts, batch)
    step = SECONDS_A_ROW * rows / steps + sum(moving(remote / steps, 4, gbit(1), row))
    return 1000 * step * steps / 4 / EPOCHS  # milliseconds


by_formula = [predict(), predict("metis"), predict(row=ROW // 2)]
by_formula += [predict(fanouts=(5, 5)), predict(batch=4 * BATCH)]

# %% slot="choices-code" tags=["nbval-ignore-output"]
choices = {
    "as it is": {},
    "METIS": {"method": "metis"},
    "float16": {"features": {"feat": ((WIDTH,), torch.float16)}},
    "fanout 5": {"fanouts": (5, 5)},
    "batch x 4": {"batch": 4 * BATCH},
    "prefetch": {"prefetch": 2},
    "cache 25%": {"cache": ALL_ROWS // 4},
}
tried = {name: run(4, **choice) for name, choice in choices.items()}
figure, ax = plt.subplots(figsize=(7.5, 2.7), layout="constrained")
plot.time_parts({name: result.epochs[-1].parts for name, result in tried.items()}, ax=ax)
ax.plot(range(5), by_formula, "k_", ms=30)
plt.show()

# %% [markdown] slot="cache" lang="en"
# The formula is short, in some runs by over a fifth, yet it tells better ideas from worse ones.
# `prefetch` saves little here, since features and gradients need the same link; at 10 Gbit/s,
# computing would hide most of the fetching.
#
# Faster does not mean otherwise the same. METIS, `prefetch` and a cache leave the training itself
# alone. float16, fanout and batch size change what is learned: compare accuracies first.
#
# ## Which rows to keep
#
# A cache holds rows of other machines. Which ones are worth it? We count how often trainer 0 asks
# for each row, and keep as many as a quarter of all features: those most asked for, which one
# knows only afterwards; those of the nodes with the most edges, which one can guess before; or
# any.

# %% [markdown] slot="cache" lang="ko"
# 식으로 구한 시간은 시뮬레이터보다 짧고, 5분의 1 넘게 짧을 때도 있습니다. 그래도 더 나은 방법과
# 못한 방법을 가려 줍니다. 여기서 `prefetch`로 줄어드는 시간은 많지 않습니다. 피처와 그래디언트가
# 같은 링크를 쓰기 때문입니다. 10 Gbit/s에서는 데이터를 가져오는 시간이 대부분 계산하는 시간에
# 가려질 것입니다.
#
# 빨라진다고 해서 나머지가 모두 그대로인 것은 아닙니다. METIS, `prefetch`, 캐시는 학습 자체를
# 건드리지 않습니다. 그러나 float16, 팬아웃, 배치 크기는 학습되는 내용을 바꾸므로, 정확도부터
# 비교해야 합니다.
#
# ## 어떤 행을 남겨 둘 것인가
#
# 캐시는 다른 머신의 행을 보관합니다. 어떤 행이 그럴 만한 가치가 있을까요? 트레이너 0이 각 행을 몇
# 번 요청하는지 세고, 전체 피처의 4분의 1만큼을 남겨 봅니다. 가장 많이 요청된 행은 나중에야 알 수
# 있고, 에지(edge)가 가장 많은 노드의 행은 미리 짐작할 수 있으며, 아무 행이나 고를 수도 있습니다.

# %% [markdown] slot="cache" lang="zh"
# 公式算出的时间比模拟器的短，有时短五分之一以上，但它能分清办法的优劣。`prefetch` 在这里节省得不
# 多，因为特征和梯度使用同一条链路；在 10 Gbit/s 时，取数据的时间大部分会被计算掩盖。
#
# 变快了，不等于其他一切都没有变。METIS、`prefetch` 和缓存不影响训练本身。float16、扇出和批次大小
# 则会改变学到的东西，应当先比较准确率。
#
# ## 该留下哪些行
#
# 缓存保存其他机器的行。哪些行值得保存？我们数一数训练器 0 对每一行请求了多少次，然后留下相当于全部
# 特征四分之一的行。留下的可以是被请求最多的行，但这要到事后才知道；可以是边（edge）最多的节点的行，
# 这能够事先推测；也可以是随便哪些行。

# %% slot="cache-hand"
_, book, old = cut(4, "random")
away = old[book.nid2partid(torch.arange(len(old))) != 0]  # what others own
asks = torch.zeros(len(old))
for rank, nodes, remote in reads(4, "random"):
    if rank == 0:
        asks[nodes[remote]] += 1

orders = {"most asked for": asks[away], "most edges": graph.out_degrees()[away]}
orders["no matter which"] = torch.arange(len(away))
hits = {}
for name, worth in orders.items():
    order = away[worth.argsort(descending=True, stable=True)]
    hits[name] = asks[order].cumsum(0) / asks.sum()
    print(f"{name}: {hits[name][len(old) // 4 - 1]:.0%}")

# %% [markdown] slot="cache-library" lang="en"
# With a quarter of the memory, a good choice serves more than half of the requests, for few nodes
# are popular; a blind one serves a third.
#
# The cache of `DistGraph(…, cache_bytes=…)` begins with the guess by edges, and learns from what
# is asked for. Orange points are its hit rate in the second epoch, and the time of that epoch. We
# assert that the parameters are the same to the last bit.

# %% [markdown] slot="cache-library" lang="ko"
# 행을 잘 고르면 4분의 1의 메모리로 요청의 절반이 넘게 해결됩니다. 인기 있는 노드가 몇 되지 않기
# 때문입니다. 아무 행이나 고르면 3분의 1만 해결됩니다.
#
# `DistGraph(…, cache_bytes=…)`의 캐시는 에지 수에 따른 짐작에서 시작하여, 실제 요청에서 배워
# 나갑니다. 주황색 점은 둘째 에폭의 적중률(hit rate)과 그 에폭에 걸린 시간입니다. 매개변수가 마지막
# 비트까지 같다는 것을 단언문(assert)으로 확인합니다.

# %% [markdown] slot="cache-library" lang="zh"
# 选得好，四分之一的内存就能满足一半以上的请求，因为热门节点只有少数；随便选，则只能满足三分之一。
#
# `DistGraph(…, cache_bytes=…)` 的缓存先按边数推测，再从实际的请求中学习。橙色的点是它在第二轮的命中
# 率，以及这一轮所用的时间。我们用断言（assert）确认，参数的每一个比特都相同。

# %% slot="cache-code" tags=["nbval-ignore-output"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.7), layout="constrained")
for (name, curve), color in zip(hits.items(), (GREEN, BLUE, GRAY)):
    left.plot(torch.arange(1, len(away) + 1) / len(old), curve, color=color, label=name)
for share in (0.05, 0.1, 0.25, 0.5):
    result = run(4, cache=int(share * ALL_ROWS))
    parameters, (before, after) = result.returned[0]
    assert torch.equal(parameters, base.returned[0][0])
    found, missed = after.hits - before.hits, after.misses - before.misses
    left.plot(share, found / (found + missed), "o", color=ORANGE)
    right.plot(share, 1000 * result.epochs[-1].seconds, "o", color=ORANGE)
right.axhline(1000 * base.epochs[-1].seconds, color=GRAY)
left.set(xlabel="cache / all features", ylabel="hit rate", ylim=(0, 1.05))
right.set(xlabel="cache / all features", ylabel="ms an epoch", ylim=0)
left.legend()
plt.show()

# %% [markdown] slot="buy" lang="en"
# The points follow the guess; in longer runs they rise slowly towards the upper curve. That is
# memory in place of network: the larger the cache, the shorter the epoch.
#
# ## What to buy
#
# Enter your prices and the length of your job. We use METIS and `prefetch`, for they cost nothing.
# Numbers beside points are machines; what lies to the right of the vertical line is too late.

# %% [markdown] slot="buy" lang="ko"
# 점들은 에지 수로 짐작한 곡선을 따라갑니다. 더 오래 실행하면 위쪽 곡선을 향해 천천히 올라갑니다.
# 네트워크 대신 메모리를 쓰는 셈이며, 캐시가 클수록 에폭이 짧아집니다.
#
# ## 무엇을 살 것인가
#
# 여러분이 치를 가격과 작업의 길이를 적어 넣습니다. METIS와 `prefetch`는 돈이 들지 않으므로 둘 다
# 씁니다. 점 옆의 숫자는 머신의 수이고, 세로선보다 오른쪽에 있는 것은 기한을 넘깁니다.

# %% [markdown] slot="buy" lang="zh"
# 这些点大致落在事先推测的那条曲线上；运行得更久，它们会慢慢向上方的曲线靠近。这是用内存代替网络：
# 缓存越大，一轮的时间越短。
#
# ## 该买什么
#
# 填入你的价格和作业的长度。METIS 和 `prefetch` 不花钱，所以都用上。点旁边的数字是机器的台数；落在竖
# 线右边的，都赶不上期限。

# %% slot="fleet-code" tags=["nbval-ignore-output"]
sizes, methods = [1, 2, 4, 8], ["random", "metis"]
fleet = {(k, method): run(k, method, prefetch=2) for k in sizes for method in methods}


def epoch(machines, network, partitioner):
    return fleet[machines, partitioner].retimed(gbit(network)).epochs[-1]


# %% slot="buy-code" tags=["nbval-ignore-output"]
JOB = 100_000  # epochs
PRICES = {1: 1.00, 10: 1.10, 100: 1.60}  # of a machine and hour, by Gbit/s: enter yours
figure, ax = plt.subplots(figsize=(6.5, 2.9), layout="constrained")
offers = []
for (speed, price), color in zip(PRICES.items(), (GRAY, BLUE, ORANGE)):
    hours = [JOB * epoch(k, speed, "metis").seconds / 3600 for k in sizes]
    costs = [h * k * (price if k > 1 else PRICES[1]) for h, k in zip(hours, sizes)]
    offers += zip(costs, hours, sizes, [speed] * len(sizes))
    ax.plot(hours, costs, "o-", color=color, label=f"{speed} Gbit/s")
    for k, spot in zip(sizes, zip(hours, costs)):
        ax.annotate(k, spot, (-4, 4), textcoords="offset points", ha="right")

DEADLINE = 0.7 * offers[0][1]  # hours
ax.axvline(DEADLINE, color="black", lw=0.8)
ax.margins(y=0.1)
ax.set(xlabel="hours", ylabel="cost", xlim=0, ylim=0)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
for limit in (float("inf"), DEADLINE):
    cost, hours, machines, speed = min(offer for offer in offers if offer[1] <= limit)
    print(f"{machines} x {speed} Gbit/s: {hours:.1f} hours, cost {cost:.1f}")

# %% [markdown] slot="explore" lang="en"
# One machine costs least: $K$ machines cost $K$ times as much, and are never $K$ times as fast.
# More machines gained hardly anything at 1 Gbit/s; who must be done sooner pays for machines and
# 10 Gbit/s; 100 Gbit/s were not worth their price. Should the graph not fit into one machine,
# strike out that offer.
#
# ## Try it out
#
# In a running notebook, change network and partitioner below. On a web page, you see four settings
# instead.

# %% [markdown] slot="explore" lang="ko"
# 가장 싼 것은 머신 한 대입니다. 머신 $K$대는 $K$배의 비용이 들지만, $K$배 빠른 경우는 없습니다.
# 이번 실행에서는 1 Gbit/s에서 머신을 늘려도 얻는 것이 거의 없었습니다. 더 일찍 끝내야 한다면 머신
# 여러 대와 10 Gbit/s 네트워크에 돈을 써야 했고, 100 Gbit/s는 제값을 하지 못했습니다. 그래프가
# 머신 한 대에 담기지 않는다면 그 선택지는 지웁니다.
#
# ## 바꾸어 보기
#
# 실행 중인 노트북이라면 아래에서 네트워크와 나누는 방법을 바꾸어 볼 수 있습니다. 웹 페이지에서는 그
# 대신 네 가지 설정의 그림이 보입니다.

# %% [markdown] slot="explore" lang="zh"
# 最便宜的是一台机器：$K$ 台机器的费用是 $K$ 倍，速度却从来达不到 $K$ 倍。这次运行中，在 1 Gbit/s
# 时增加机器几乎没有收获；要想更早完成，就得在机器和 10 Gbit/s 上花钱，而 100 Gbit/s 不值这个价。
# 如果一台机器装不下这张图，就把这个选项划掉。
#
# ## 动手试一试
#
# 如果笔记本正在运行，请在下面改变网络和切分方法。在网页上看到的，则是四种设置的图。


# %% slot="explore-code" tags=["nbval-ignore-output"]
def times(machines, network, partitioner):
    return epoch(machines, network, partitioner).parts


networks = {f"{speed} Gbit/s": speed for speed in PRICES}
plot.explore_time(times, sizes, network=networks, partitioner=methods)

# %% [markdown] slot="summary" lang="en"
# The faster the network, the less METIS gains over a random partition: bandwidth can stand in for
# a good partition.
#
# ## What the model leaves out
#
# - Other processors: $t$ is that of this computer. A GPU makes $t$ much smaller; then the network
#   limits sooner.
# - What disturbs: processes share memory, a switch has other users. And what helps: an all-reduce
#   can overlap with the backward pass.
# - Other sizes: on a larger graph fewer nodes repeat; in longer steps latency weighs less.
#
# So before you buy, rent two machines for an hour, run a few steps with `gnnlab launch --trace`,
# and correct the model by what you measure.
#
# ## Summary
#
# - A step is work, asking, features and all-reduce; a few counts give all of them.
# - Make faster what limits; to make anything else faster brings little.
# - First what costs nothing, METIS and `prefetch`, then a cache, then the network, then machines.
# - A model whose times are off can still decide rightly. Check it where that is cheap.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict. The
# [solutions](../solutions/10_scaling_study.ipynb) are beside the lesson.
#
# 1. A batch of 1,000 seeds is sampled with fanouts 15, 10 and 5. How many nodes does it read at
#    most?
# 2. A step reads 100,000 nodes, 75% of them remote; a row is 128 float32 numbers. How many
#    milliseconds do the features take at 10 Gbit/s, if all of that can be used?
# 3. A step computes for 20 ms and meanwhile fetches 25 MB. From how many Gbit/s on does the
#    network no longer limit?
# 4. `asks[i]` is how often row $i$ is asked for. Write a function of `asks` and `size` that
#    returns the hit rate of a cache with the `size` rows most asked for.
# 5. An offer is a tuple of cost, hours and name. Write a function of `offers` and `deadline`, in
#    hours, that returns the name of the cheapest offer in time, and `None` where there is none.

# %% [markdown] slot="summary" lang="ko"
# 네트워크가 빠를수록 METIS가 무작위 파티션보다 앞서는 폭이 줄어듭니다. 넉넉한 대역폭(bandwidth)은
# 좋은 파티션을 대신할 수 있습니다.
#
# ## 모델이 빠뜨리는 것
#
# - 다른 프로세서: $t$는 이 컴퓨터에서 잰 값입니다. GPU를 쓰면 $t$가 훨씬 작아지고, 그러면
#   네트워크가 더 일찍 한계에 이릅니다.
# - 방해하는 것과 돕는 것: 프로세스(process)들은 메모리를 나누어 쓰고, 스위치는 다른 사람도 씁니다.
#   한편 올리듀스는 역전파와 겹쳐서 실행할 수 있습니다.
# - 다른 크기: 더 큰 그래프에서는 거듭 뽑히는 노드가 줄고, 단계가 길어지면 지연 시간의 비중이
#   작아집니다.
#
# 그러므로 사기 전에 머신 두 대를 한 시간 빌려 `gnnlab launch --trace`로 몇 단계를 실행하고, 측정한
# 값으로 모델을 바로잡으십시오.
#
# ## 요약
#
# - 한 단계는 샘플링과 계산, 묻기, 피처, 올리듀스로 이루어지며, 모두 몇 가지 수에서 구할 수
#   있습니다.
# - 속도를 제한하는 것을 빠르게 만드십시오. 다른 것을 빠르게 해도 얻는 것은 적습니다.
# - 돈이 들지 않는 METIS와 `prefetch`가 먼저이고, 그다음이 캐시, 그다음이 네트워크, 마지막이
#   머신입니다.
# - 시간이 어긋나는 모델로도 올바른 결정을 내릴 수 있습니다. 모델은 적은 비용으로 확인할 수 있는
#   곳에서 확인하십시오.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 판정을 확인합니다.
# [풀이](../solutions/10_scaling_study.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 시드 노드 1,000개로 된 배치를 팬아웃 15, 10, 5로 샘플링합니다. 읽는 노드는 최대 몇 개입니까?
# 2. 한 단계에 노드 100,000개를 읽으며, 그 가운데 75%가 원격 노드입니다. 행 하나는 float32 수
#    128개입니다. 10 Gbit/s를 모두 쓸 수 있다면 피처에 몇 밀리초가 걸립니까?
# 3. 한 단계에 20 ms 동안 계산하고, 그동안 25 MB를 가져옵니다. 몇 Gbit/s부터 네트워크가 더는 속도를
#    제한하지 않습니까?
# 4. `asks[i]`는 행 $i$를 요청한 횟수입니다. `asks`와 `size`를 받아, 가장 많이 요청된 행 `size`개를
#    담은 캐시의 적중률을 돌려주는 함수를 작성합니다.
# 5. 제안 하나는 비용, 시간, 이름으로 된 튜플입니다. `offers`와 시간 단위의 `deadline`을 받아,
#    기한을 지키는 제안 가운데 가장 싼 것의 이름을 돌려주는 함수를 작성합니다. 그런 것이 없으면
#    `None`을 돌려줍니다.

# %% [markdown] slot="summary" lang="zh"
# 网络越快，METIS 相对随机切分的优势就越小：充足的带宽（bandwidth）可以代替好的分区。
#
# ## 模型忽略了什么
#
# - 别的处理器：$t$ 是这台计算机的时间。用 GPU 会使 $t$ 小得多，网络就会更早成为瓶颈。
# - 干扰与帮助：各个进程（process）共用内存，交换机还有其他用户；另一方面，全归约可以与反向传播
#   同时进行。
# - 别的规模：图更大时，重复的节点更少；每一步的时间更长时，延迟的影响更小。
#
# 所以在购买之前，先租两台机器用一小时，用 `gnnlab launch --trace` 运行几步，再根据测量结果修正模
# 型。
#
# ## 小结
#
# - 一步由工作、询问、特征和全归约组成，它们都可以从几个计数推算出来。
# - 要加快的是瓶颈；加快别的，收获很小。
# - 先用不花钱的 METIS 和 `prefetch`，然后是缓存，然后是网络，最后才是机器。
# - 即使算出的时间有误差，一个模型仍然可能给出正确的决定。请在代价小的地方检验它。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看判定结果。[解答](../solutions/10_scaling_study.ipynb)随
# 本课提供。
#
# 1. 一个批次有 1,000 个种子节点，以 15、10、5 的扇出采样。它最多读取多少个节点？
# 2. 一步读取 100,000 个节点，其中 75% 是远程的；一行是 128 个 float32 数。如果 10 Gbit/s 可以
#    全部利用，特征要花多少毫秒？
# 3. 一步计算 20 ms，同时取来 25 MB。从多少 Gbit/s 起，网络不再是瓶颈？
# 4. `asks[i]` 是第 $i$ 行被请求的次数。写一个以 `asks` 和 `size` 为参数的函数，返回一个缓存的命中
#    率，这个缓存保存被请求最多的 `size` 行。
# 5. 一个报价是由费用、小时数和名称组成的元组。写一个以 `offers` 和 `deadline`（单位是小时）为参数的
#    函数，在来得及完成的报价中，返回最便宜的一个的名称；如果没有，则返回 `None`。


# %% slot="check"
def check(number, answer, is_right):
    verdict = "not answered yet"
    if answer is not None:
        verdict = "right" if is_right(answer) else "wrong"
    print(f"exercise {number}: {verdict}")


def sha(answer):
    return hashlib.sha256(str(answer).encode()).hexdigest()[:8]


# %% slot="answers-1-3"
answer_1 = None  # a number
answer_2 = None  # a number
answer_3 = None  # a number
check(1, answer_1, lambda answer: sha(int(answer)) == "5087c5ac")
check(2, answer_2, lambda answer: sha(round(float(answer), 1)) == "55779a35")
check(3, answer_3, lambda answer: sha(round(float(answer), 1)) == "f1e42019")

# %% slot="answers-4-5"
answer_4 = None  # a function of asks and size
answer_5 = None  # a function of offers and deadline

case = torch.tensor([0, 5, 1, 0, 4])
rates = {0: 0.0, 1: 0.5, 2: 0.9, 5: 1.0}
deals = [(7.0, 2.0, "a"), (4.0, 5.0, "b"), (6.0, 3.0, "c"), (4.5, 3.5, "d")]
best = {1: None, 2: "a", 3: "c", 4: "d", 9: "b"}
check(4, answer_4, lambda f: all(abs(f(case, k) - r) < 1e-6 for k, r in rates.items()))
check(5, answer_5, lambda f: all(f(deals, limit) == name for limit, name in best.items()))
