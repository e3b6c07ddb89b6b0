# %% [markdown] slot="title" lang="en"
# # A cluster on a laptop
#
# A cluster costs money before it answers the first question: would it help? Half of the answer
# needs no cluster. What a job sends from machine to machine follows from the graph, the cut and
# the samples, so one computer can play all machines and count every byte. The other half, time,
# depends on a network that is not there; it has to be modelled. Afterwards you can
#
# - count what a mini-batch asks of another machine;
# - play a job on many machines in one process, and read its byte matrix and its timeline;
# - check that the bytes are those of a real job;
# - say what 1 to 64 machines bring, with METIS or random parts, on a network that you do not have.

# %% [markdown] slot="title" lang="ko"
# # 노트북 컴퓨터 한 대로 흉내 내는 클러스터
#
# 클러스터(cluster)가 도움이 될지는 써 보아야 알 수 있는데, 클러스터를 마련하는 데에는 먼저 돈이
# 듭니다. 그런데 답의 절반은 클러스터 없이도 알 수 있습니다. 머신(machine) 사이에 어떤 데이터가
# 오가는지는 그래프(graph), 그래프를 나눈 방식, 샘플링 결과에 따라 정해집니다. 따라서 컴퓨터 한 대로
# 모든 머신을 흉내 내면서 바이트를 하나도 빠짐없이 셀 수 있습니다. 나머지 절반인 시간은 네트워크에
# 따라 달라지는데, 여기에는 그 네트워크가 없으므로 모델로 계산해야 합니다. 레슨을 마치면 다음과 같은
# 일을 할 수 있습니다.
#
# - 미니배치(mini-batch) 하나를 만들 때 다른 머신에 요청하는 데이터의 양을 직접 세기
# - 여러 머신에서 실행하는 작업을 프로세스(process) 하나로 흉내 내고, 바이트 행렬과 타임라인 읽기
# - 이렇게 센 바이트 수가 실제 작업의 바이트 수와 같은지 확인하기
# - 갖고 있지 않은 네트워크를 가정하고 머신을 1대에서 64대까지 늘리면 어떤 효과가 있는지, METIS로
#   나눌 때와 무작위로 나눌 때를 각각 설명하기

# %% [markdown] slot="title" lang="zh"
# # 笔记本电脑上的集群
#
# 集群（cluster）还没派上用场就要花钱，所以先要弄清：它究竟有没有用？这个问题有一半不用集群就能回
# 答。作业在机器（machine）之间传送多少数据，取决于图（graph）、图的切法和采样结果，所以用一台计算机
# 就能模拟所有机器，把每一个字节都数清楚。另一半是时间，它取决于一个手头没有的网络，只能用模型来计
# 算。学完之后，你能够：
#
# - 算清一个小批次（mini-batch）要向另一台机器请求多少数据；
# - 在一个进程（process）中模拟多台机器上的作业，读懂它的字节矩阵和时间线；
# - 验证这些字节数与真实作业的完全相同；
# - 说明在手头没有的网络上，用 METIS 切分或随机切分时，机器从 1 台增加到 64 台有什么效果。

# %% [markdown] slot="setup" lang="en"
# ## Set-up
#
# The graphs are made here, so nothing is downloaded. One cell starts a real job: servers and
# trainers of two machines, as processes of this computer. In all others this process plays the
# machines.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 그래프는 이 노트북에서 생성하므로 내려받을 데이터가 없습니다. 실제 작업을 시작하는 셀은
# 하나뿐이며, 그 셀에서는 머신 두 대의 서버(server)와 트레이너(trainer)가 이 컴퓨터의 프로세스로
# 실행됩니다. 나머지 셀에서는 노트북의 프로세스 하나로 모든 머신을 흉내 냅니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 图都在本课中生成，不需要下载任何数据。只有一个单元格会启动真实的作业：两台机器的服务器（server）和
# 训练器（trainer），都作为本机的进程运行。在其余单元格中，各台机器都由当前进程模拟。

# %% slot="imports"
import hashlib
import json
import os
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import gnnlab as dgl
from gnnlab import plot
from gnnlab.dataloading import NeighborSampler
from gnnlab.distributed import DistGraph, initialize
from gnnlab.distributed.traffic import KINDS, Traffic
from gnnlab.helpers import dist_graph_simulator as small, source
from gnnlab.simulate import Network, simulate
from gnnlab.tools import launch

plt.rcParams.update({"figure.dpi": 110, "font.size": 9})
torch.set_num_threads(1)
temporary = globals().get("temporary") or tempfile.TemporaryDirectory()  # keep it
scratch = Path(temporary.name)

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# Eight nodes lie on two machines, 0 to 3 on machine 0 and 4 to 7 on machine 1. Every node has a
# feature of three numbers. Each machine runs one trainer: trainer 0 has a mini-batch of nodes 0
# and 1, trainer 1 one of node 5 alone.

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기
#
# 노드(node) 8개를 머신 두 대에 나누어 놓았습니다. 노드 0~3은 머신 0에, 노드 4~7은 머신 1에
# 있습니다. 노드마다 수 세 개로 이루어진 피처(feature)가 있습니다. 머신마다 트레이너가 하나씩
# 실행됩니다. 트레이너 0의 미니배치는 노드 0과 1이고, 트레이너 1의 미니배치는 노드 5 하나입니다.

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图
#
# 8 个节点（node）分布在两台机器上：0 到 3 在机器 0 上，4 到 7 在机器 1 上。每个节点的特征
# （feature）是三个数。每台机器运行一个训练器：训练器 0 的小批次是节点 0 和 1，训练器 1 的小批次只有
# 节点 5。

# %% slot="toy-code"
src = [5, 3, 0, 6, 2, 4, 3, 7, 2, 1, 5, 6, 7]
dst = [0, 0, 2, 2, 4, 5, 1, 6, 3, 2, 7, 4, 5]
toy = dgl.graph((src, dst))
toy.ndata["x"] = torch.arange(24.0).reshape(8, 3)
owner = torch.arange(8) // 4
batches = [[0, 1], [5]]  # of trainer 0, of trainer 1

place = [(-2, 1), (-2, -1), (-1, 0), (-3, 0), (1, 0), (2, 1), (2, -1), (3, 0)]
figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
plot.partition_map(toy, owner, pos=place, ax=ax)
plt.show()

# %% [markdown] slot="count" lang="en"
# ## Build it yourself: what a mini-batch asks for
#
# Three edges are cut. The nodes with a ring are HALO nodes of part 0: machine 0 knows that they
# exist, but their features and their neighbors lie on machine 1.
#
# Two layers sample all neighbors. For each layer a trainer looks up the neighbors of all nodes
# that it has met so far: at home those of its own nodes, on the other machine those of foreign
# ones. At the end it needs the features of every node that it has met.
#
# `dist_graph_simulator.py` of `gnnlab.helpers` plays all machines in one process. Its code for
# features: `by_owner` sorts nodes by machine, and `__getitem__` fetches their rows and counts those
# that no cache holds. The sampler gets neighbors in the same way.

# %% [markdown] slot="count" lang="ko"
# ## 직접 만들어 보기: 미니배치 하나에 필요한 요청
#
# 파티션(partition) 사이를 잇는 에지(edge)는 세 개입니다. 고리를 두른 노드는 파티션 0의 헤일로
# 노드(halo node)입니다. 머신 0에는 이 노드의 ID만 있고, 피처와 이웃(neighbor) 정보는 머신 1에
# 있습니다.
#
# 두 계층에서 모든 이웃을 샘플링합니다. 트레이너는 계층마다 그때까지 나온 모든 노드의 이웃을
# 조회합니다. 자기 머신에 있는 노드의 이웃은 그 자리에서 조회하고, 다른 머신에 있는 노드의 이웃은 그
# 머신에 요청합니다. 마지막에는 그동안 나온 모든 노드의 피처가 필요합니다.
#
# `gnnlab.helpers`의 `dist_graph_simulator.py`를 쓰면 프로세스 하나로 모든 머신을 흉내 낼 수
# 있습니다. 다음은 그 가운데 피처를 읽는 코드입니다. `by_owner`는 노드를 머신별로 나누고,
# `__getitem__`은 피처 행을 가져오면서 캐시(cache)에 없는 행을 셉니다. 샘플러(sampler)도 같은
# 방식으로 이웃을 가져옵니다.

# %% [markdown] slot="count" lang="zh"
# ## 亲手实现：一个小批次要请求哪些数据
#
# 有三条边（edge）被切断。带圆环的节点是分区（partition）0 的 HALO 节点（halo node）：机器 0 上只有
# 它们的 ID，它们的特征和邻居（neighbor）都在机器 1 上。
#
# 两层都采样全部邻居。在每一层，训练器都要查找迄今涉及的所有节点的邻居：属于本机的节点在本机查，其余
# 节点到另一台机器上查。最后，还要读取涉及的每一个节点的特征。
#
# `gnnlab.helpers` 中的 `dist_graph_simulator.py` 在一个进程里模拟所有机器。下面是其中读取特征的代
# 码：`by_owner` 把节点按所属的机器分组，`__getitem__` 取回特征行，并统计缓存（cache）中没有的行数。
# 采样器（sampler）以同样的方式获取邻居。

# %% slot="count-code"
source(small.DistGraph.by_owner, small.DistTensor.__getitem__)

# %% [markdown] slot="weigh" lang="en"
# Now the two mini-batches. In a matrix of rows, row $i$, column $j$ is what machine $i$ asked
# machine $j$ for; in a matrix of bytes, it is what machine $i$ received from machine $j$: replies,
# and requests, those for features with 8 bytes an ID.

# %% [markdown] slot="weigh" lang="ko"
# 이제 두 미니배치를 만들어 봅시다. 행 수 행렬(rows)의 $i$행 $j$열은 머신 $i$가 머신 $j$에 요청한
# 데이터가 몇 행인지를 나타냅니다. 바이트 행렬(bytes)의 같은 자리는 머신 $i$가 머신 $j$에서 받은
# 바이트 수이며, 응답뿐 아니라 상대가 보낸 요청(피처를 요청할 때는 ID 하나에 8바이트)도 포함합니다.

# %% [markdown] slot="weigh" lang="zh"
# 现在来运行这两个小批次。在行数矩阵中，第 $i$ 行第 $j$ 列是机器 $i$ 向机器 $j$ 请求的行数；在字节矩
# 阵中，则是机器 $i$ 从机器 $j$ 收到的字节数，既包括对方返回的响应，也包括对方发来的请求（特征请求中
# 每个 ID 占 8 字节）。


# %% slot="weigh-code"
def cut(g, owner):
    plain = small.Graph(*g.edges(), g.num_nodes())
    plain.ndata["x"] = g.ndata["x"]
    return small.DistGraphSimulator(plain, owner)


def play(cluster, batches):
    sums = []
    for g, seeds in zip(cluster.graphs, batches):
        nodes, *_ = small.NeighborSampler([-1, -1]).sample(g, seeds)
        sums.append(g.ndata["x"][nodes].sum().item())
    return sums


cluster = cut(toy, owner)
print("sums of features:", play(cluster, batches))
for kind, rows in cluster.traffic.rows.items():
    moved = cluster.traffic.bytes(kind)
    print(f"{kind}: rows {rows.tolist()}, bytes {moved.tolist()}")

# %% [markdown] slot="library" lang="en"
# Both trainers start from nodes of their own. On the way trainer 0 meets node 5, so it asks for the
# neighbors of that node, and in the end for the features of three nodes. Trainer 1 meets node 2
# only in the last step. Machine 0 thus receives three rows of three numbers of 4 bytes, and a
# request of 8 bytes: 44 bytes. `gnnlab export dist_graph_simulator my_project/` copies the file.
#
# ## The library does the same
#
# `simulate` cuts a graph for some machines, and `run` calls a function once for each trainer, in a
# thread of its own: `initialize` connects it, and `DistGraph` opens the graph, as in a real job.
# The messages are real too; they are weighed and not sent. We compare the toy and a graph of 20,000
# nodes. Rows must be equal, and so must bytes, apart from the header of each message: its kind,
# names and shapes.

# %% [markdown] slot="library" lang="ko"
# 두 트레이너의 시드 노드(seed node)는 모두 트레이너와 같은 머신에 있습니다. 트레이너 0에서는 샘플링
# 도중에 노드 5가 나오므로 그 노드의 이웃을 머신 1에 요청하고, 마지막에 노드 세 개의 피처를
# 요청합니다. 트레이너 1에서는 마지막 단계에서야 머신 0의 노드 2가 나옵니다. 따라서 피처를 읽을 때
# 머신 0이 받는 데이터는 4바이트짜리 수 세 개로 된 행 세 개와 8바이트짜리 요청 하나로, 모두
# 44바이트입니다. `gnnlab export dist_graph_simulator my_project/`를 실행하면 이 파일을 복사할 수
# 있습니다.
#
# ## 라이브러리로 같은 일 하기
#
# `simulate`로 그래프를 머신 수만큼 나누고, `run`으로 함수를 트레이너마다 별도의 스레드에서 한 번씩
# 호출합니다. 함수에서는 실제 작업과 마찬가지로 `initialize`로 트레이너를 연결하고 `DistGraph`로
# 그래프를 엽니다. 메시지도 실제와 똑같이 만들지만, 크기만 재고 보내지는 않습니다. 앞의 작은
# 그래프와, 노드가 20,000개인 그래프에서 작은 파일과 라이브러리의 결과를 비교합니다. 행 수는 같아야
# 하고, 바이트 수도 메시지마다 붙는 헤더를 제외하면 같아야 합니다. 헤더에는 메시지의 종류와 이름,
# 텐서의 형태(shape)가 들어 있습니다.

# %% [markdown] slot="library" lang="zh"
# 两个训练器都从本机的节点出发。训练器 0 采到了节点 5，因此要请求这个节点的邻居，最后还要请求三个节
# 点的特征。训练器 1 直到最后一步才采到节点 2。于是，机器 0 收到三行特征，每行是三个 4 字节的数，再
# 加上机器 1 发来的一个 8 字节的请求，共 44 字节。运行
# `gnnlab export dist_graph_simulator my_project/` 可以复制这个文件。
#
# ## 用库做同样的事
#
# `simulate` 把图切分给若干台机器，`run` 为每个训练器在单独的线程中调用一次函数。与真实的作业一样，
# `initialize` 为训练器建立连接，`DistGraph` 打开图。消息也与真实作业中的相同，只是仅计算大小，并不
# 发送。我们在这张小图和一张有 20,000 个节点的图上，比较库与上述文件的结果：行数应当相同；除去每条消
# 息的消息头，字节数也应当相同。消息头写明消息的种类，以及数据的名称和形状。


# %% slot="library-code"
def trainer(batches):
    initialize()
    g = DistGraph("graph")
    nodes, *_ = NeighborSampler([-1, -1]).sample(g, torch.tensor(batches[g.rank()]))
    return g.ndata["x"][nodes].sum().item()


def compare(cluster, played):
    ours, headers = cluster.traffic, {}
    for i, j, kind, count in played.traffic.items():
        if kind in small.KINDS:
            assert count.rows == ours.rows[kind][i, j]
            payload = (ours.bytes_out[kind][i, j] + ours.bytes_in[kind][i, j]).item()
            header = (count.bytes_out + count.bytes_in - payload) / count.requests
            assert headers.setdefault(kind, header) == header
    print("rows and bytes are equal, except the bytes of headers:", headers)


simulation = simulate(toy, machines=2, part_method=lambda graph, k: owner)
played = simulation.run(trainer, batches)
print("sums of features:", played.returned)
compare(cluster, played)

# %% slot="same-code" tags=["nbval-ignore-output"]
large, parts = dgl.rand_graph(20_000, 300_000), torch.arange(20_000) // 5_000
large.ndata["x"] = torch.rand(20_000, 50)
seeds = torch.arange(20_000).view(4, -1)[:, :100].tolist()  # 100 nodes of each machine
four_machines, times = cut(large, parts), []
simulation = simulate(large, machines=4, part_method=lambda graph, k: parts)
for _ in range(3):
    four_machines.reset()
    start = time.perf_counter()
    play(four_machines, seeds)
    middle = time.perf_counter()
    played = simulation.run(trainer, seeds)
    times.append((middle - start, time.perf_counter() - middle))
compare(four_machines, played)
ours, library = map(min, zip(*times))
print(f"time: small file {ours / library:.1f}, library 1")

# %% [markdown] slot="script" lang="en"
# The rows agree, and the header of a request and its reply has one size for each kind. The
# library's time includes encoding the messages. `"structure"` is sampling. The library also counts
# `"control"`, such as greeting the servers.
#
# ## Play a whole job
#
# Now training, on a graph of 20,000 nodes shaped like `ogbn-products`. The script is an ordinary
# one, as it would run on a cluster. It comes in two pieces, the model and the loop. At the end
# each trainer writes into a file how long its epochs took, and what it has asked for: its
# **traffic**.

# %% [markdown] slot="script" lang="ko"
# 행 수가 일치하고, 요청과 응답에 붙는 헤더의 크기는 종류마다 일정합니다. 라이브러리의 시간에는
# 메시지를 인코딩하는 시간도 포함됩니다. `"structure"`는 샘플링에 쓰인 트래픽(traffic)입니다.
# 라이브러리에서는 서버에 접속할 때 주고받는 것과 같은 나머지 메시지도 `"control"`로 셉니다.
#
# ## 작업 전체를 실행해 보기
#
# 이제 학습할 차례입니다. `ogbn-products`와 구조가 비슷하고 노드가 20,000개인 그래프를 씁니다.
# 스크립트는 클러스터에서 실행하는 일반적인 스크립트와 같으며, 모델과 루프 두 부분으로 되어
# 있습니다. 학습이 끝나면 트레이너마다 에폭(epoch)별로 걸린 시간과 요청한 데이터의 양, 곧
# **트래픽**을 파일에 기록합니다.

# %% [markdown] slot="script" lang="zh"
# 行数一致，而且每一种请求及其响应的消息头大小都固定。库的用时还包括对消息编码。`"structure"` 是采样
# 产生的流量（traffic）。库还把其余的消息计入 `"control"`，例如连接服务器时的消息。
#
# ## 模拟整个作业
#
# 现在来模拟训练。图有 20,000 个节点，结构与 `ogbn-products` 相似。脚本很普通，与在集群上运行的没有
# 区别，分为模型和循环两段。最后，每个训练器把两项内容写入一个文件：每一轮（epoch）的用时，以及自己
# 请求过的数据，也就是它的**流量**。

# %% slot="model-code"
HEAD = """
import json, sys, time
import torch, torch.distributed as dist, torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
import gnnlab as dgl, gnnlab.nn as dglnn
from gnnlab.distributed import DistGraph, DistNodeDataLoader, node_split
from gnnlab.distributed.context import current

class SAGE(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = dglnn.SAGEConv(inputs, 64, "mean")
        self.second = dglnn.SAGEConv(64, outputs, "mean")

    def forward(self, blocks, x):
        return self.second(blocks[1], F.relu(self.first(blocks[0], x)))
"""

# %% slot="loop-code"
LOOP = """
dgl.distributed.initialize()
dist.init_process_group("gloo")
g, seconds = DistGraph("graph"), []
model = DistributedDataParallel(SAGE(100, 47))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
sampler = dgl.dataloading.NeighborSampler([10, 10])
seeds = node_split(g.ndata["train_mask"])
loader = DistNodeDataLoader(g, seeds, sampler, batch_size=32, shuffle=True, seed=0)
for epoch in range(2):
    began = time.time()
    for input_nodes, output_nodes, blocks in loader:
        scores = model(blocks, g.ndata["feat"][input_nodes])
        loss = F.cross_entropy(scores, g.ndata["label"][output_nodes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds.append(time.time() - began)
found = {"seconds": seconds, "traffic": current().remote.traffic.to_list()}
with open(f"{sys.argv[1]}-{g.rank()}.json", "w") as file:
    json.dump(found, file)
"""
script = scratch / "train.py"
size = script.write_text(HEAD + LOOP)

# %% [markdown] slot="matrix" lang="en"
# Four machines, once with parts by METIS, once with random ones. Script, model and training nodes
# are the same; which nodes a trainer gets, the parts decide.

# %% [markdown] slot="matrix" lang="ko"
# 머신 네 대로 두 번 실행합니다. 처음에는 그래프를 METIS로 나누고, 다음에는 무작위로 나눕니다. 두
# 실행에서 스크립트, 모델, 학습 노드는 같지만, 각 트레이너가 맡는 학습 노드는 파티션에 따라
# 달라집니다.

# %% [markdown] slot="matrix" lang="zh"
# 模拟四台机器，一次用 METIS 切分，一次随机切分。两次运行的脚本、模型和训练节点都相同；每个训练器分
# 到哪些训练节点，则由分区决定。

# %% slot="matrix-code" tags=["nbval-ignore-output"]
dgl.seed(0)
graph = dgl.data.load("products-like", num_nodes=20_000, num_edges=300_000)[0]
four = {}
figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), layout="constrained")
for ax, method in zip(axes, ("metis", "random")):
    dgl.seed(0)
    cluster = simulate(graph, machines=4, part_method=method)
    four[method] = cluster.run(script, scratch / "four")
    matrix = four[method].traffic.matrix()
    plot.byte_matrix(matrix, ax=ax)
    ax.set_title(f"{method}: {matrix.sum().item() / 1e6:.0f} MB")
plt.show()

# %% [markdown] slot="prove" lang="en"
# Random parts leave three rows in four elsewhere, and all pairs of machines exchange alike. METIS
# keeps neighbors together: fewer than half of the bytes travel. The two darkest cells: parts 1 and
# 2 have few training nodes, so their trainers get some of parts 0 and 3.
#
# ## Check it against a real job
#
# Now the claim: a real job sends exactly these bytes. On two machines we predict first, then
# measure. `launch.run` starts the same script on the same parts, with real servers, and trainers
# that ask them over TCP; with `num_machines=2` this computer is both machines. How that works is
# the subject of lesson 09.

# %% [markdown] slot="prove" lang="ko"
# 무작위로 나누면 필요한 행의 4분의 3이 다른 머신에 있고, 어느 두 머신 사이에서나 비슷한 양이
# 오갑니다. METIS로 나누면 서로 이웃한 노드가 같은 파티션에 모이므로, 오가는 바이트가 무작위로 나눌
# 때의 절반도 되지 않습니다. 이때 색이 가장 진한 두 칸은 학습 노드가 고르게 나뉘지 않아서 생깁니다.
# 파티션 1과 2에는 학습 노드가 적어서, 그 트레이너들이 파티션 0과 3의 학습 노드를 일부 나누어
# 맡습니다.
#
# ## 실제 작업으로 확인하기
#
# 실제 작업에서도 정확히 이만큼의 바이트가 오가야 합니다. 머신이 두 대인 경우를 먼저
# 시뮬레이터(simulator)로 예측하고, 그다음에 실제로 측정합니다. `launch.run`을 호출하면 같은
# 파티션과 같은 스크립트로 작업을 시작합니다. 이번에는 서버가 실제로 실행되고, 트레이너는 TCP로
# 서버에 요청합니다. `num_machines=2`를 지정하면 이 컴퓨터가 두 머신의 역할을 모두 합니다. 그 원리는
# 레슨 09에서 다룹니다.

# %% [markdown] slot="prove" lang="zh"
# 随机切分时，每四行特征中就有三行在别的机器上，任意两台机器之间交换的数据量都差不多。METIS 尽量把相
# 邻的节点分到同一台机器上：需要传送的字节不到随机切分的一半。颜色最深的两格与训练节点的分布有关：分
# 区 1 和 2 的训练节点较少，所以它们的训练器会分到分区 0 和 3 的一些训练节点。
#
# ## 用真实的作业验证
#
# 真实的作业发送的字节应当与模拟的完全相同。我们在两台机器上先预测，再测量。`launch.run` 在同样的分
# 区上启动同一个脚本，这次有真正的服务器，训练器通过 TCP 向它们发送请求；设 `num_machines=2` 时，这
# 台计算机同时充当两台机器。其中的原理见第 09 课。

# %% slot="launch-code" tags=["nbval-ignore-output"]
dgl.seed(0)
pair = simulate(graph, machines=2)
predicted = pair.run(script, scratch / "played")
job = {"part_config": pair.part_config, "workspace": scratch, "log_dir": scratch / "logs"}
runs_jobs = hasattr(os, "fork")
if runs_jobs:
    job = launch.run("python3 train.py real", num_machines=2, **job)
else:
    print("Windows starts no jobs: use WSL, or see the stored outputs")

# %% [markdown] slot="equal" lang="en"
# Both runs left a file for each trainer. We add up the counts and compare them for each kind of
# traffic, then all at once: who asked whom, how many requests, how many rows, bytes there and
# back.

# %% [markdown] slot="equal" lang="ko"
# 두 실행에서 모두 트레이너마다 파일이 하나씩 생겼습니다. 파일에 기록된 수를 합산하여 트래픽의
# 종류별로 비교하고, 이어서 요청한 머신과 요청받은 머신, 요청 수, 행 수, 양방향의 바이트 수까지
# 한꺼번에 비교합니다.

# %% [markdown] slot="equal" lang="zh"
# 两次运行都为每个训练器留下了一个文件。我们把其中的计数加起来，先按流量的种类逐一比较，再把全部计数
# 一起比较：哪台机器向哪台机器发出请求，请求了多少次、多少行，发送和接收各多少字节。


# %% slot="equal-code"
def read(name):
    traffic, seconds = Traffic(2), []
    for rank in range(2):
        found = json.loads((scratch / f"{name}-{rank}.json").read_text())
        traffic.update(Traffic.from_list(2, found["traffic"]))
        seconds.append(found["seconds"])
    return traffic, seconds


if runs_jobs:
    (counted, _), (real, measured) = read("played"), read("real")
    for kind in KINDS:
        print(f"{kind} equal: {torch.equal(counted.matrix(kind), real.matrix(kind))}")
    assert counted.to_list() == real.to_list()

# %% [markdown] slot="time" lang="en"
# Not one byte is off. That is no luck: a sample is a function of its seed, epoch, batch, layer and
# node, so real trainers ask what the played ones ask, and one encoder weighs the messages of both.
# Not counted are what TCP and IP add, and the gradients of the model, which torch exchanges by
# itself. `"gradients"` are those of distributed embeddings; here there are none.
#
# ## What it costs: time
#
# No network is there, so its time has to be computed. In the small simulator one function does it.
# In each step a trainer waits for two latencies per round of requests and for its link. The step
# lasts until the slowest is done; then follows an all-reduce of the gradients, a ring in which
# each of $R$ trainers sends $2B(R-1)/R$ of $B$ bytes.
#
# The library refines this: it measures sampling, computing and answering while this process plays,
# adds a fixed price for each request, and divides links and processors among those that use them
# together. One bound needs no simulator: through a link of $b$ bits per second, $n$ bytes take at
# least $8n/b$ seconds.

# %% [markdown] slot="time" lang="ko"
# 1바이트도 어긋나지 않습니다. 이는 우연이 아닙니다. 샘플링 결과는 난수 시드, 에폭, 배치, 계층,
# 노드만으로 정해지므로 실제 작업의 트레이너도 시뮬레이터의 트레이너와 똑같은 데이터를 요청하고,
# 메시지의 크기도 양쪽 모두 같은 인코더로 잽니다. 다만 TCP와 IP에서 덧붙는 바이트와, torch에서 따로
# 주고받는 모델의 그래디언트(gradient)는 세지 않았습니다. `"gradients"`는 분산 임베딩(distributed
# embedding)의 그래디언트를 뜻하는데, 이 모델에는 분산 임베딩이 없습니다.
#
# ## 비용: 시간
#
# 실제 네트워크가 없으므로 전송 시간은 계산으로 구해야 합니다. 작은 시뮬레이터에서는 함수 하나로
# 계산합니다. 한 단계에서 트레이너가 기다리는 시간은, 요청을 한 차례 보낼 때마다 드는 지연
# 시간(latency)의 두 배와 링크로 데이터를 주고받는 시간을 더한 것입니다. 가장 느린 트레이너까지
# 끝나면 그래디언트를 올리듀스(all-reduce)합니다. 링(ring) 방식에서 그래디언트가 $B$바이트이면
# 트레이너 $R$개가 각각 $2B(R-1)/R$바이트를 보냅니다.
#
# 라이브러리에서는 이를 더 세밀하게 계산합니다. 시뮬레이션하는 동안 샘플링, 계산, 응답에 걸린 시간을
# 재고, 요청마다 고정 비용을 더하며, 링크나 프로세서를 동시에 나누어 쓸 때 느려지는 정도도
# 반영합니다. 시뮬레이터 없이도 구할 수 있는 하한이 하나 있습니다. 초당 $b$비트를 보내는 링크로
# $n$바이트를 보내려면 적어도 $8n/b$초가 걸립니다.

# %% [markdown] slot="time" lang="zh"
# 一个字节也不差。这不是巧合：采样结果由随机种子以及所在的轮、批次、层和节点决定，所以真实的训练器请
# 求的数据与模拟中的相同，而且双方消息的大小都由同一个编码器算出。没有计入的，是 TCP 和 IP 附加的字
# 节，以及由 torch 自行交换的模型梯度（gradient）。`"gradients"` 指的是分布式嵌入（distributed
# embedding）的梯度，而这个模型没有分布式嵌入。
#
# ## 开销：时间
#
# 这里没有真实的网络，传输时间只能靠计算得出。在小模拟器（simulator）中，这由一个函数完成。在每一步
# 中，训练器每发出一组请求，就要等待两倍的延迟（latency），即一去一回，此外还要等自己的链路传完数
# 据。最慢的训练器完成之后，再对梯度做全归约（all-reduce）：$R$ 个训练器排成一个环，梯度共 $B$ 字
# 节，每个训练器要发送 $2B(R-1)/R$ 字节。
#
# 库的计算更细：在当前进程模拟各台机器时，实测采样、计算和响应的时间，给每次请求加上固定开销，并让同
# 时使用同一链路或处理器的各方分摊其带宽（bandwidth）或算力。有一个下界不用模拟器也能算出：如果链路
# 每秒传送 $b$ 比特，那么 $n$ 个字节至少需要 $8n/b$ 秒。

# %% slot="time-code"
source(small.DistGraphSimulator.end_step)

# %% slot="least-code" tags=["nbval-ignore-output"]
gigabit = Network(bandwidth=1e9, latency=1e-4)
for method, result in four.items():
    incoming = result.traffic.matrix().sum(1) / 2  # bytes of a machine in an epoch
    least = 8 * incoming.max().item() / gigabit.bandwidth
    seconds = result.retimed(gigabit).epochs[1].seconds
    print(f"{method}: {least:.2f} s at least, {seconds:.2f} s predicted")
    assert least < seconds

# %% [markdown] slot="timeline" lang="en"
# `retimed` takes what was measured and counted and computes the time for another network; nothing
# runs again. The prediction lies above the bound, because bytes are not all. The timeline shows a
# part of the second epoch on random parts.

# %% [markdown] slot="timeline" lang="ko"
# `retimed`를 쓰면 이미 측정하고 센 값을 바탕으로, 아무것도 다시 실행하지 않고 다른 네트워크에서
# 걸릴 시간을 계산할 수 있습니다. 예측한 시간은 하한보다 깁니다. 바이트를 보내는 일 말고도 시간이
# 드는 일이 있기 때문입니다. 다음 타임라인은 그래프를 무작위로 나누었을 때 둘째 에폭의 일부입니다.

# %% [markdown] slot="timeline" lang="zh"
# `retimed` 用已有的测量和计数结果，计算在另一个网络上的时间，不必重新运行任何程序。预测的时间高于下
# 界，因为除了传送字节，还有其他环节也要花时间。下面的时间线是随机切分时第二轮的一部分。

# %% slot="timeline-code" tags=["nbval-ignore-output"]
result = four["random"]
epoch = result.epochs[1]
figure, ax = plt.subplots(figsize=(8.6, 3), layout="constrained")
plot.timeline(result.events, start=epoch.start, seconds=epoch.seconds / 6, ax=ax)
plt.show()

# %% [markdown] slot="clock" lang="en"
# Each trainer has two lanes: its main thread, and a thread that samples mini-batches ahead.
# Orange, the rows from other machines, is time in which a trainer computes nothing. The purple
# all-reduce begins when the last one has come; who came before waits.
#
# Is the clock right as well? The real job ran within this computer, with next to no network and
# with processors that all had to share. We retime the prediction for that.

# %% [markdown] slot="clock" lang="ko"
# 트레이너마다 두 줄로 표시됩니다. 한 줄은 메인 스레드이고, 다른 한 줄은 미니배치를 미리 샘플링하는
# 스레드입니다. 주황색은 다른 머신에서 행을 가져오는 시간으로, 그동안 트레이너는 아무 계산도 하지
# 못합니다. 보라색 올리듀스는 마지막 트레이너가 도착해야 시작되므로, 먼저 도착한 트레이너는
# 기다립니다.
#
# 예측한 시간도 실제와 맞을까요? 실제 작업은 이 컴퓨터 안에서 실행되었습니다. 네트워크에는 시간이
# 거의 들지 않았고, 모든 프로세스가 프로세서를 나누어 썼습니다. 이 조건에 맞추어 시간을 다시
# 예측합니다.

# %% [markdown] slot="clock" lang="zh"
# 每个训练器占两行：主线程，以及一个提前采样小批次的线程。橙色是从其他机器读取特征行的时间，这期间训
# 练器不做任何计算。紫色的全归约要等最后一个训练器到达才开始，先到的只能等待。
#
# 时间也准吗？真实的作业在这台计算机内部运行，几乎不受网络限制，处理器则由所有进程共用。我们按这个条
# 件重新计算预测的时间。

# %% slot="clock-code" tags=["nbval-ignore-output"]
inside = Network(bandwidth=20e9, latency=5e-5)
here = predicted.retimed(inside, shared_cores=os.cpu_count())
slowest = f"{max(seconds[1] for seconds in measured):.2f} s" if runs_jobs else "nothing"
print(f"second epoch: {here.epochs[1].seconds:.2f} s predicted, {slowest} measured")

# %% [markdown] slot="scale" lang="en"
# The bytes were equal; the seconds may differ. On one computer the real epoch took 1.5 times as
# long as predicted, on another almost 3 times. The model knows no caches, no shared memory
# bandwidth, no busy switch and no colleague's job, so it tends to be short. Trust it to compare
# choices rather than to name a time.
#
# ## One to sixteen machines
#
# The training nodes stay the same, and more machines divide them. How much travels, and how much
# faster is an epoch? Dotted lines are half and a quarter of the ideal.

# %% [markdown] slot="scale" lang="ko"
# 바이트 수는 똑같았지만 시간은 다를 수 있습니다. 실제로 한 에폭에 걸린 시간은 어떤 컴퓨터에서는
# 예측의 1.5배, 다른 컴퓨터에서는 3배 가까이 되었습니다. 이 모델은 프로세서의 캐시, 함께 쓰는
# 메모리의 대역폭(bandwidth), 붐비는 스위치, 다른 사람의 작업을 반영하지 않으므로, 실제보다 짧게
# 예측하는 경향이 있습니다. 따라서 정확한 시간을 예측하기보다 여러 선택지를 비교하는 데 적합합니다.
#
# ## 머신 1대에서 64대까지
#
# 학습 노드는 그대로 두고, 머신을 늘려 나누어 맡깁니다. 먼저 16대까지 늘리면서, 오가는 데이터가
# 얼마나 늘어나고 한 에폭이 얼마나 빨라지는지 봅시다. 점선은 이상적인 속도 향상의 절반과 4분의 1을
# 나타냅니다.

# %% [markdown] slot="scale" lang="zh"
# 字节数完全相等，秒数则未必。真实的一轮，在一台计算机上的用时是预测的 1.5 倍，在另一台上将近 3 倍。
# 这个模型不考虑处理器的缓存、共用的内存带宽、繁忙的交换机，也不考虑其他人的作业，所以预测的时间往往
# 偏短。它更适合用来比较各种选择，而不是给出具体的时间。
#
# ## 从一台机器到十六台
#
# 训练节点不变，由更多的机器分担。要传送多少数据，一轮又能快多少？虚线表示理想加速比的一半和四分之
# 一。

# %% slot="scale-code" tags=["nbval-ignore-output"]
counts, methods = [1, 2, 4, 8, 16], ["metis", "random"]
results, seconds = {}, {}
figure, axes = plt.subplots(1, 2, figsize=(8.6, 2.9), layout="constrained")
alone = simulate(graph, machines=1).run(script, scratch / "many")
for method in methods:
    results[1, method] = alone
    for machines in counts[1:]:
        dgl.seed(0)
        cluster = simulate(graph, machines, network=gigabit, part_method=method)
        results[machines, method] = cluster.run(script, scratch / "many")
    runs = [results[machines, method] for machines in counts]
    moved = [run.traffic.matrix().sum().item() / 1e6 for run in runs]
    axes[0].plot(counts, moved, "o-", label=method)
    seconds[method] = [run.epochs[1].seconds for run in runs]
axes[0].set(xlabel="machines", ylabel="MB between machines", xticks=counts)
axes[0].legend(frameon=False)
plot.speedup(counts, seconds, ax=axes[1])
plt.show()

# %% [markdown] slot="explore" lang="en"
# The more machines, the more nodes are foreign, so more bytes travel in all. On gigabit links, two
# machines may well be slower than one, since a machine alone asks nobody.
#
# Move the number of machines yourself, up to 64. A new one is simulated when you stop there,
# which takes some seconds. Left: who receives from whom; right: the time, beside one machine's.
# Without a kernel you see a few settings instead.

# %% [markdown] slot="explore" lang="ko"
# 머신이 많을수록 필요한 노드가 다른 머신에 있는 경우가 많아지므로, 오가는 바이트의 총량도
# 늘어납니다. 기가비트 링크에서는 두 대가 한 대보다 느릴 수도 있습니다. 머신이 한 대뿐이면 다른
# 머신에 요청할 필요가 없기 때문입니다.
#
# 이번에는 머신 수를 64대까지 직접 바꾸어 봅시다. 처음 선택한 머신 수는 그 자리에서 시뮬레이션하므로
# 몇 초에서 몇십 초가 걸립니다. 왼쪽 그림은 각 머신이 어느 머신에서 얼마나 받는지를 나타내고, 오른쪽
# 그림은 걸리는 시간을 머신이 한 대일 때와 나란히 보여 줍니다. 커널이 실행되지 않는 환경에서는 조절
# 도구 대신 몇 가지 설정의 그림이 표시됩니다.

# %% [markdown] slot="explore" lang="zh"
# 机器越多，不在本机的节点就越多，传送的总字节数也越多。在千兆链路上，两台机器很可能比一台还慢，因为
# 单独一台机器不需要任何网络通信。
#
# 请亲手改变机器的数量，最多 64 台。第一次选到某个数量时，会当场模拟，需要等上若干秒。左图是每台机器
# 从其他各台机器收到的数据量，右图是所需的时间，旁边是单独一台机器的时间，供对照。没有内核运行时，看
# 到的不是控件，而是几种设置的图。

# %% slot="explore-code" tags=["nbval-ignore-output"]
networks = {f"{gbit} Gbit/s": Network(bandwidth=gbit * 1e9) for gbit in (0.1, 1, 10)}


def show(network, method, machines=16):
    if (machines, method) not in results:
        dgl.seed(0)
        cluster = simulate(graph, machines, network=gigabit, part_method=method)
        results[machines, method] = cluster.run(script, scratch / "many")
    result = results[machines, method].retimed(networks[network])
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    plot.byte_matrix(result.traffic.matrix(), ax=left)
    left.set_title(f"{result.traffic.matrix().sum().item() / 1e6:.0f} MB")
    parts = {1: alone.epochs[1].parts, machines: result.epochs[1].parts}
    plot.time_parts(parts, ax=right)
    right.set_xlabel("machines")
    return figure


plot.explore(show, network=list(networks), method=methods, machines=[*counts, 32, 64])

# %% [markdown] slot="summary" lang="en"
# On a slow network nearly all is fetch and all-reduce, and METIS saves most. On a fast one the
# bytes cost little, but each question still costs its round trip and its fixed price, so with
# small batches 64 machines are far from 64 times as fast as one. Which of these limits you is the
# subject of lesson 10.
#
# ## Summary
#
# - What a job sends follows from graph, cut and samples: one process counts it exactly.
# - Row $i$, column $j$ of the byte matrix is what machine $i$ received from machine $j$.
# - A real job on the same parts sent the same bytes, for all kinds of traffic.
# - Time is measured work and a model of the network; `retimed` computes it for another network
#   without another run.
# - A good cut halves the bytes or better; more machines always add some.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict. The
# [solutions](../solutions/07_cluster_on_a_laptop.ipynb) are beside the lesson.
#
# 1. Trainer 0 of the toy has a mini-batch of node 2 alone. Of how many nodes does it ask machine 1
#    for the neighbors, and of how many for the features? Answer with a list of two numbers.
# 2. A model has 12 million parameters of 4 bytes. Eight machines with one trainer each take an
#    all-reduce by a ring over 10 Gbit/s. How many milliseconds do the bytes take at least? Round.
# 3. The two directions of a wireless link share its bandwidth. Write a function of a byte matrix
#    `matrix` and `bandwidth`, in bits per second, that returns the least seconds until all machines
#    have sent and received everything.
# 4. Write a function of `machines`, `seconds` and `share` that returns the largest number of
#    machines whose speed-up, relative to the first, is at least `share` of the ideal. The first of
#    `machines` is 1.

# %% [markdown] slot="summary" lang="ko"
# 느린 네트워크에서는 행을 가져오고 올리듀스를 하는 데 대부분의 시간이 들기 때문에 METIS로 나누는
# 이득이 가장 큽니다. 빠른 네트워크에서는 바이트를 보내는 시간은 짧아지지만, 요청마다 왕복 시간과
# 고정 비용은 그대로 듭니다. 그래서 배치가 이렇게 작으면 머신을 64대 써도 속도는 한 대일 때의 64배에
# 한참 못 미칩니다. 이 가운데 무엇이 작업의 속도를 제한하는지는 레슨 10에서 다룹니다.
#
# ## 요약
#
# - 머신 사이에 오가는 데이터는 그래프, 그래프를 나눈 방식, 샘플링 결과에 따라 정해지며, 프로세스
#   하나로 그 양을 정확히 셀 수 있습니다.
# - 바이트 행렬의 $i$행 $j$열은 머신 $i$가 머신 $j$에서 받은 바이트 수입니다.
# - 같은 파티션에서 실행한 실제 작업에서도 트래픽의 모든 종류에서 바이트 수가 같았습니다.
# - 시간은 측정한 작업 시간과 네트워크 모델로 구합니다. `retimed`를 쓰면 다시 실행하지 않고 다른
#   네트워크에서 걸릴 시간을 계산할 수 있습니다.
# - 그래프를 잘 나누면 오가는 바이트가 절반 이하로 줄어듭니다. 머신을 늘리면 오가는 바이트는 언제나
#   어느 정도 늘어납니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 판정을 확인합니다.
# [풀이](../solutions/07_cluster_on_a_laptop.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 작은 그래프에서 트레이너 0의 미니배치가 노드 2 하나라고 합시다. 머신 1에 이웃을 요청하는 노드는
#    몇 개이고, 피처를 요청하는 노드는 몇 개입니까? 수 두 개를 담은 리스트로 답합니다.
# 2. 4바이트 매개변수가 1,200만 개인 모델이 있습니다. 트레이너가 하나씩 있는 머신 여덟 대가 10
#    Gbit/s 링크로 링 방식의 올리듀스를 합니다. 데이터를 보내는 데만 적어도 몇 밀리초가 걸립니까?
#    반올림하여 정수로 답합니다.
# 3. 무선 링크에서는 송신과 수신이 대역폭을 나누어 씁니다. 바이트 행렬 `matrix`와 초당 비트 수인
#    `bandwidth`를 받아, 모든 머신이 송수신을 마칠 때까지 적어도 몇 초가 걸리는지 반환하는 함수를
#    작성합니다.
# 4. `machines`, `seconds`, `share`를 받아, 속도 향상이 머신 수의 `share`배 이상인 머신 수 가운데
#    최댓값을 반환하는 함수를 작성합니다. `machines`의 첫 번째 값은 1입니다.

# %% [markdown] slot="summary" lang="zh"
# 在慢的网络上，几乎所有时间都花在读取远程的特征行和全归约上，METIS 节省得最多。在快的网络上，传送字
# 节的开销很小，但每次请求仍有往返时间和固定的开销，所以批次这么小时，64 台机器的速度远远达不到一台
# 的 64 倍。限制作业的究竟是哪一项，是第 10 课的内容。
#
# ## 小结
#
# - 作业传送多少数据，取决于图、切法和采样结果：用一个进程就能算得一个字节都不差。
# - 字节矩阵的第 $i$ 行第 $j$ 列，是机器 $i$ 从机器 $j$ 收到的字节数。
# - 在同样的分区上，真实的作业传送的字节与模拟的相同，各种流量都是如此。
# - 时间由实测的处理时间和网络模型得出；用 `retimed` 可以算出在另一个网络上的时间，而不必重新运行。
# - 切得好，字节数能减少一半或更多；机器增多，字节数总会增加一些。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看判定结果。
# [解答](../solutions/07_cluster_on_a_laptop.ipynb)随本课提供。
#
# 1. 在小图中，假设训练器 0 的小批次只有节点 2。它要向机器 1 请求多少个节点的邻居、多少个节点的特
#    征？用含两个数的列表作答。
# 2. 一个模型有 1200 万个 4 字节的参数。八台机器各有一个训练器，通过 10 Gbit/s 的网络做环形全归约。
#    传送这些字节至少需要多少毫秒？结果四舍五入到整数。
# 3. 无线链路的两个方向共用带宽。写一个函数，参数为字节矩阵 `matrix` 和带宽 `bandwidth`（单位为比特
#    每秒），返回所有机器收发完毕至少需要多少秒。
# 4. 写一个参数为 `machines`、`seconds` 和 `share` 的函数，返回满足要求的最大机器数：它相对于
#    `machines` 中第一个机器数的加速比，不低于理想值的 `share` 倍。`machines` 的第一个元素是 1。


# %% slot="check"
def check(number, answer, is_right):
    verdict = "not answered yet"
    if answer is not None:
        verdict = "right" if is_right(answer) else "wrong"
    print(f"exercise {number}: {verdict}")


def sha(answer):
    return hashlib.sha256(str(answer).encode()).hexdigest()[:8]


def bounds(answer):
    cases = {0.9: [[0, 100], [125, 0]], 2.164: [[0, 300, 200], [40, 0, 60], [1, 2, 0]]}
    cases[1.0] = [[0, 0, 0], [150, 0, 0], [100, 5, 0]]
    return all(abs(answer(torch.tensor(m), 2000) - s) < 1e-9 for s, m in cases.items())


def chooses(answer):
    seconds = [8, 5, 4, 1.9]
    return [answer([1, 2, 4, 8], seconds, share) for share in (1, 0.6, 0.5)] == [1, 2, 8]


# %% slot="answers"
answer_1 = None  # a list of two numbers
answer_2 = None  # a whole number
answer_3 = None  # a function of matrix and bandwidth
answer_4 = None  # a function of machines, seconds and share

check(1, answer_1, lambda answer: sha(list(answer)) == "4e397001")
check(2, answer_2, lambda answer: sha(round(answer)) == "49d180ec")
check(3, answer_3, bounds)
check(4, answer_4, chooses)
