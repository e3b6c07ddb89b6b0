# %% [markdown] slot="title" lang="en"
# # A cluster on a laptop
#
# A cluster costs money before it answers the first question: would it help? Half of the answer
# needs no cluster. What a job sends from machine to machine follows from the graph, the cut and
# the samples, so one computer can play all machines and count every byte. The other half, time,
# depends on a network that is not there; it has to be modelled. Afterwards you can
#
# - count by hand what a mini-batch asks of another machine;
# - play a job on many machines in one process, and read its byte matrix and its timeline;
# - prove that the bytes are those of a real job;
# - say what 1 to 64 machines bring, with METIS or random parts, on a network that you do not have.

# %% [markdown] slot="title" lang="ko"
# # 노트북 컴퓨터 위의 클러스터
#
# 클러스터(cluster)를 쓰려면 과연 도움이 될까 하는 첫 질문에 답을 얻기도 전에 돈부터 듭니다. 그런데
# 답의 절반은 클러스터 없이도 알 수 있습니다. 작업이 머신(machine)과 머신 사이에 무엇을 보내는지는
# 그래프(graph), 그래프를 나눈 방식, 뽑힌 표본에 따라 정해집니다. 그래서 컴퓨터 한 대가 모든 머신의
# 역할을 하면서 바이트를 하나도 빠짐없이 셀 수 있습니다. 나머지 절반인 시간은 여기에 없는 네트워크에
# 달려 있으므로 모델로 계산해야 합니다. 레슨을 마치면 다음과 같은 일을 할 수 있습니다.
#
# - 미니배치(mini-batch) 하나가 다른 머신에 무엇을 요청하는지 직접 세기
# - 여러 머신의 작업을 프로세스(process) 하나에서 실행하고, 바이트 행렬과 타임라인을 읽기
# - 그 바이트 수가 실제 작업과 같다는 것을 증명하기
# - 지금 갖고 있지 않은 네트워크에서 머신을 1대에서 64대까지 늘리면 무엇을 얻는지, METIS로 나눌 때와
#   무작위로 나눌 때를 각각 설명하기

# %% [markdown] slot="title" lang="zh"
# # 笔记本电脑上的集群
#
# 集群（cluster）还没有回答第一个问题，就已经开始花钱了：它究竟有没有用？这个问题的一半，不需要集群
# 就能回答。作业在机器（machine）之间传送什么，取决于图（graph）、图的切法和采样的结果，所以一台计
# 算机就能扮演所有机器，把每一个字节都数清楚。另一半是时间，它取决于一个并不存在的网络，只能用模型
# 来计算。学完之后，你能够：
#
# - 亲手数出一个小批次（mini-batch）要向另一台机器索取什么；
# - 在一个进程（process）中演练多台机器上的作业，读懂它的字节矩阵和时间线；
# - 证明这些字节数与真实作业的完全相同；
# - 说出在一个你手头没有的网络上，用 METIS 切分或随机切分时，从 1 台机器增加到 64 台能带来什么。

# %% [markdown] slot="setup" lang="en"
# ## Set-up
#
# The graphs are made here, so nothing is downloaded. One cell starts a real job: servers and
# trainers of two machines, as processes of this computer. In all others this process plays the
# machines.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 그래프는 여기서 만들므로 아무것도 내려받지 않습니다. 실제 작업을 시작하는 셀은 하나뿐이며, 그
# 셀에서는 머신 두 대의 서버(server)와 트레이너(trainer)가 이 컴퓨터의 프로세스로 실행됩니다. 나머지
# 셀에서는 모두 노트북의 프로세스 하나가 머신들의 역할을 합니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 图都在这里生成，不需要下载任何东西。只有一个单元格会启动真实的作业：两台机器的服务器（server）和训
# 练器（trainer），都作为本机的进程运行。在其余单元格中，各台机器都由当前这个进程扮演。

# %% slot="imports"
import hashlib
import json
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import gnnlab as dgl
from gnnlab import plot
from gnnlab.dataloading import NeighborSampler
from gnnlab.distributed import DistGraph, initialize, wire
from gnnlab.distributed.messages import Pull
from gnnlab.distributed.traffic import KINDS, Traffic
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
# ## 그려 볼 수 있는 작은 그래프
#
# 노드(node) 8개가 머신 두 대에 있습니다. 0부터 3까지는 머신 0에, 4부터 7까지는 머신 1에 있습니다.
# 노드마다 수 세 개로 된 피처(feature)가 있습니다. 머신마다 트레이너가 하나씩 실행됩니다. 트레이너
# 0의 미니배치는 노드 0과 1이고, 트레이너 1의 미니배치는 노드 5 하나입니다.

# %% [markdown] slot="toy" lang="zh"
# ## 一张画得出来的小图
#
# 8 个节点（node）放在两台机器上：0 到 3 在机器 0 上，4 到 7 在机器 1 上。每个节点的特征（feature）
# 是三个数。每台机器运行一个训练器：训练器 0 的小批次是节点 0 和 1，训练器 1 的小批次只有节点 5。

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
# ones. At the end it needs the features of every node that it has met. `far` picks the nodes for
# which it has to ask.

# %% [markdown] slot="count" lang="ko"
# ## 직접 만들어 보기: 미니배치는 무엇을 요청하는가
#
# 에지(edge) 세 개가 잘렸습니다. 고리를 두른 노드는 파티션(partition) 0의 헤일로 노드(halo
# node)입니다. 머신 0은 이 노드가 있다는 것만 알고, 피처와 이웃(neighbor)은 머신 1에 있습니다.
#
# 두 계층에서 모든 이웃을 샘플링합니다. 계층마다 트레이너는 지금까지 만난 모든 노드의 이웃을
# 찾습니다. 자기 머신의 노드라면 그 자리에서 찾고, 다른 머신의 노드라면 그 머신에서 찾습니다.
# 마지막에는 만난 모든 노드의 피처가 필요합니다. `far`는 다른 머신에 요청해야 하는 노드를
# 골라냅니다.

# %% [markdown] slot="count" lang="zh"
# ## 亲手实现：一个小批次要索取什么
#
# 有三条边（edge）被切断。带圆环的节点是分区（partition）0 的 HALO 节点（halo node）：机器 0 只知道
# 它们存在，它们的特征和邻居（neighbor）都在机器 1 上。
#
# 两层都采样全部邻居。在每一层，训练器都要为迄今遇到的所有节点查找邻居：自己的节点在本机查，不属于自
# 己的节点到另一台机器上查。最后，它还需要遇到过的每一个节点的特征。`far` 挑出必须询问另一台机器的那
# 些节点。


# %% slot="count-code"
def far(me, nodes):
    return [node for node in nodes if owner[node] != me]


needed = []
for me, nodes in enumerate(batches):
    for layer in (2, 1):
        print(f"trainer {me}, layer {layer}: asks for the neighbors of {far(me, nodes)}")
        nodes = sorted({*nodes, *toy.in_edges(nodes)[0].tolist()})
    needed.append(far(me, nodes))
    print(f"trainer {me}: asks for the features of {needed[me]}")

# %% [markdown] slot="weigh" lang="en"
# A trainer begins with nodes of its own, so the first layer asks nobody. On the way trainer 0
# meets node 5, so it asks for the neighbors of that node, and in the end for three rows of
# features. Trainer 1 meets node 2 only in the last step and needs no more than its features.
#
# How many bytes is that? A request carries the numbers of the rows, 8 bytes each; a reply carries
# the rows, three numbers of 4 bytes each. Every message also has a header, with its kind, names
# and shapes. For the features we write the messages and let the library's encoder, `wire`, weigh
# them. In the matrix, row $i$, column $j$ is what machine $i$ received from machine $j$.

# %% [markdown] slot="weigh" lang="ko"
# 트레이너는 자기 노드에서 시작하므로 첫 계층에서는 아무에게도 묻지 않습니다. 트레이너 0은 도중에
# 노드 5를 만나므로 그 노드의 이웃을 요청하고, 마지막에 피처를 세 행 요청합니다. 트레이너 1은
# 마지막 단계에서야 노드 2를 만나므로 이 노드의 피처만 있으면 됩니다.
#
# 바이트로는 얼마나 될까요? 요청에는 행 번호가 하나에 8바이트씩 들어가고, 응답에는 행이 들어갑니다.
# 한 행은 4바이트짜리 수 세 개입니다. 그 밖에 모든 메시지에는 종류와 이름과 모양을 적은 헤더가
# 있습니다. 피처에 대해서는 메시지를 직접 만들고, 라이브러리의 인코더인 `wire`로 크기를 잽니다.
# 행렬의 행 $i$, 열 $j$는 머신 $i$가 머신 $j$에서 받은 양입니다.

# %% [markdown] slot="weigh" lang="zh"
# 训练器从自己的节点出发，所以第一层不必询问另一台机器。训练器 0 在途中遇到节点 5，因此要索取这个节
# 点的邻居，最后还要索取三行特征。训练器 1 直到最后一步才遇到节点 2，只需要它的特征。
#
# 这是多少字节呢？请求中是行号，每个 8 字节；应答中是这些行，每行是三个 4 字节的数。此外，每条消息都
# 有一个消息头，写明种类、名称和形状。对于特征，我们自己写出消息，再用库的编码器 `wire` 量出它们的大
# 小。在矩阵中，第 $i$ 行第 $j$ 列是机器 $i$ 从机器 $j$ 收到的字节数。

# %% slot="weigh-code"
by_hand = torch.zeros(2, 2, dtype=torch.int64)
for me, nodes in enumerate(needed):
    other, reply = 1 - me, toy.ndata["x"][nodes]
    request = Pull("node~_N~x", torch.tensor(nodes))
    by_hand[other, me] += wire.request_size(request)
    by_hand[me, other] += wire.reply_size(reply)
    print(f"trainer {me} sends {8 * len(nodes)} bytes, gets {4 * reply.numel()}")
print("with headers:", by_hand.tolist())

# %% [markdown] slot="library" lang="en"
# In messages as small as these, headers weigh more than what they carry; in real ones they hardly
# matter. A machine receives requests too, so a row of the matrix is the sum of both.
#
# ## The library does the same
#
# `simulate` cuts a graph for some machines, and `run` calls a function once for each trainer. Each
# call happens in a thread that believes it is a process of a job: `initialize` connects it, and
# `DistGraph` opens the graph. A question to another machine becomes a function call; its messages
# are weighed and not sent. The threads take turns, so a run always goes the same way.

# %% [markdown] slot="library" lang="ko"
# 이렇게 작은 메시지에서는 헤더가 내용보다 더 크지만, 실제 작업의 메시지에서는 헤더가 거의 문제가
# 되지 않습니다. 머신은 요청도 받으므로, 행렬의 한 행은 응답과 요청을 합한 것입니다.
#
# ## 라이브러리도 같은 일을 합니다
#
# `simulate`는 그래프를 머신 수만큼 나누고, `run`은 트레이너마다 함수를 한 번씩 호출합니다. 호출은
# 저마다 별도의 스레드에서 이루어지며, 이 스레드는 스스로를 작업의 프로세스로 여깁니다.
# `initialize`가 이 스레드를 작업에 연결하고, `DistGraph`가 그래프를 엽니다. 다른 머신에 보내는
# 요청은 함수 호출이 되며, 메시지는 크기만 재고 보내지 않습니다. 스레드는 번갈아 가며 실행되므로,
# 실행은 언제나 똑같이 진행됩니다.

# %% [markdown] slot="library" lang="zh"
# 消息这么小的时候，消息头比内容还大；在实际的消息中，消息头几乎可以忽略。机器也会收到请求，所以矩阵
# 的一行是应答与请求之和。
#
# ## 用库做同样的事
#
# `simulate` 把图切分给若干台机器，`run` 为每个训练器各调用一次函数。每次调用都在一个线程中进行，这
# 个线程以为自己是作业的一个进程：`initialize` 为它建立连接，`DistGraph` 打开图。向另一台机器提出的
# 询问变成一次函数调用，消息只量大小，并不发送。各个线程轮流运行，所以每次运行的过程都一样。


# %% slot="library-code"
def one_batch():
    initialize()
    g = DistGraph("graph")
    seeds = torch.tensor(batches[g.rank()])
    input_nodes, *_ = NeighborSampler([-1, -1]).sample(g, seeds)
    return g.ndata["x"][input_nodes].sum().item()


played = simulate(toy, machines=2, part_method=lambda graph, k: owner).run(one_batch)
print("sums of features:", played.returned)
for source, target, kind, count in played.traffic.items():
    print(f"machine {source} asked machine {target}: {kind}, {count.rows} rows")
assert torch.equal(played.traffic.matrix("features"), by_hand)

# %% [markdown] slot="script" lang="en"
# The simulator counts the rows that we counted, and its matrix is ours to the byte. `"structure"`
# is sampling; `"control"` is what remains, such as greeting the servers. And the features did
# come: their sums were computed.
#
# ## Play a whole job
#
# Now training, on a graph of 20,000 nodes shaped like `ogbn-products`. The script is an ordinary
# one, as it would run on a cluster. It comes in two pieces, the model and the loop. At the end
# each trainer writes into a file how long its epochs took, and what it has asked for: its
# **traffic**.

# %% [markdown] slot="script" lang="ko"
# 시뮬레이터(simulator)가 센 행의 수는 우리가 센 것과 같고, 행렬도 1바이트까지 일치합니다.
# `"structure"`는 샘플링이고, `"control"`은 서버와 주고받는 인사처럼 그 밖의 것입니다. 합이
# 계산되었으므로 피처도 실제로 도착한 것입니다.
#
# ## 작업 전체를 실행해 보기
#
# 이제 학습할 차례입니다. `ogbn-products`와 모양이 비슷하고 노드가 20,000개인 그래프를 씁니다.
# 스크립트는 클러스터에서 실행할 때와 똑같은 평범한 것이며, 모델과 루프 두 부분으로 되어 있습니다.
# 마지막에 각 트레이너는 에폭(epoch)마다 걸린 시간과 자신이 요청한 것, 곧 **트래픽**(traffic)을
# 파일에 적습니다.

# %% [markdown] slot="script" lang="zh"
# 模拟器（simulator）数出的行数与我们的相同，矩阵与我们算出的也一个字节都不差。`"structure"` 是采
# 样；`"control"` 是其余的消息，例如与服务器打招呼。特征也确实送到了，因为它们的和已经算出来了。
#
# ## 演练整个作业
#
# 现在来训练。图有 20,000 个节点，形状与 `ogbn-products` 相似。脚本很普通，与在集群上运行的没有区
# 别，分为模型和循环两段。最后，每个训练器向一个文件写入每一轮（epoch）用了多长时间，以及自己索取过
# 什么，也就是它的**流量**（traffic）。

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
# 머신 네 대에서 실행합니다. 한 번은 METIS로, 한 번은 무작위로 나눕니다. 스크립트와 모델과 학습
# 노드는 두 실행에서 같지만, 어느 트레이너가 어느 학습 노드를 맡는지는 파티션에 따라 정해집니다.

# %% [markdown] slot="matrix" lang="zh"
# 用四台机器，一次用 METIS 切分，一次随机切分。两次运行的脚本、模型和训练节点都相同；哪个训练器分到
# 哪些训练节点，则由分区决定。

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
# ## Prove it
#
# Now the claim: a real job sends exactly these bytes. On two machines we predict first, then
# measure. `launch.run` starts the same script on the same parts, with real servers, and trainers
# that ask them over TCP; with `num_machines=2` this computer is both machines. How that works is
# the subject of lesson 09.

# %% [markdown] slot="prove" lang="ko"
# 무작위로 나누면 네 행 가운데 세 행이 다른 머신에 있고, 어느 두 머신이든 비슷한 양을 주고받습니다.
# METIS는 이웃을 한곳에 모으므로, 오가는 바이트가 절반도 되지 않습니다. 색이 가장 진한 두 칸은 학습
# 노드 때문에 생깁니다. 파티션 1과 2에는 학습 노드가 적어서, 그 트레이너들은 파티션 0과 3의 학습
# 노드를 일부 나누어 받습니다.
#
# ## 증명하기
#
# 증명할 주장은 실제 작업도 정확히 이만큼의 바이트를 보낸다는 것입니다. 머신 두 대로 먼저 예측하고,
# 그다음에 측정합니다. `launch.run`은 같은 파티션에서 같은 스크립트를 시작합니다. 이번에는 진짜
# 서버가 있고, 트레이너는 TCP로 서버에 요청합니다. `num_machines=2`를 주면 이 컴퓨터가 두 머신의
# 역할을 모두 합니다. 어떻게 그렇게 되는지는 레슨 09에서 다룹니다.

# %% [markdown] slot="prove" lang="zh"
# 随机切分时，每四行特征中就有三行在别的机器上，任意两台机器之间交换的数据量都差不多。METIS 让邻居待
# 在一起：需要传送的字节不到一半。颜色最深的两格来自训练节点：分区 1 和 2 的训练节点较少，所以它们的
# 训练器会分到分区 0 和 3 的一些训练节点。
#
# ## 证明
#
# 要证明的是：真实的作业发送的字节与此完全相同。我们在两台机器上先预测，再测量。`launch.run` 在同样
# 的分区上启动同一个脚本，这次有真正的服务器，训练器通过 TCP 向它们询问；设 `num_machines=2` 时，这
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
# 두 실행은 트레이너마다 파일을 하나씩 남겼습니다. 기록된 수를 더해 트래픽의 종류별로 비교하고,
# 이어서 누가 누구에게 요청했는지, 요청과 행의 수, 오간 바이트를 한꺼번에 비교합니다.

# %% [markdown] slot="equal" lang="zh"
# 两次运行都为每个训练器留下了一个文件。我们把其中的计数加起来，先按流量的种类逐一比较，再把全部计数
# 一起比较：谁向谁索取，多少次请求，多少行，去和回各多少字节。


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
# No time passes on a network that is not there. So each piece of time has its own source:
#
# | piece | where it comes from |
# |---|---|
# | sample, compute, answer | measured while this process played |
# | questions | round trip by latency, a fixed price for each request, bytes by bandwidth |
# | all-reduce of $B$ bytes among $R$ trainers | a ring in which each sends $2B(R-1)/R$ bytes |
# | wait | whoever comes first waits for the last |
#
# What shares a link or a processor gets its share of it. One bound needs no simulator: through a
# link of $b$ bits per second, $n$ bytes take at least $8n/b$ seconds.

# %% [markdown] slot="time" lang="ko"
# 1바이트도 어긋나지 않습니다. 우연이 아닙니다. 표본은 난수 시드, 에폭, 배치, 계층, 노드의
# 함수이므로 실제 트레이너도 시뮬레이터의 트레이너와 똑같은 것을 요청하고, 양쪽의 메시지는 같은
# 인코더로 잽니다. 다만 TCP와 IP가 덧붙이는 바이트와, torch가 따로 주고받는 모델의
# 그래디언트(gradient)는 세지 않았습니다. `"gradients"`는 분산 임베딩(distributed embedding)의
# 그래디언트를 뜻하는데, 이 모델에는 분산 임베딩이 없습니다.
#
# ## 비용: 시간
#
# 있지도 않은 네트워크에서는 시간이 흐르지 않습니다. 그래서 시간을 이루는 조각마다 출처가 따로
# 있습니다.
#
# | 조각 | 출처 |
# |---|---|
# | 샘플링, 계산, 응답 | 이 프로세스가 머신의 역할을 하는 동안 측정 |
# | 요청 | 왕복에는 지연 시간(latency), 요청마다 고정 비용, 바이트에는 대역폭(bandwidth)을 적용 |
# | 트레이너 $R$개의 $B$바이트 올리듀스(all-reduce) | 저마다 $2B(R-1)/R$바이트를 보내는 링(ring) |
# | 대기 | 먼저 온 쪽이 마지막에 오는 쪽을 기다림 |
#
# 링크나 프로세서를 여럿이 함께 쓰면 저마다 제 몫만큼만 씁니다. 시뮬레이터 없이도 알 수 있는 하한이
# 하나 있습니다. 초당 $b$비트를 보내는 링크로 $n$바이트를 보내려면 적어도 $8n/b$초가 걸립니다.

# %% [markdown] slot="time" lang="zh"
# 一个字节也不差。这不是运气：样本由种子、第几轮、第几批、第几层和节点决定，所以真实的训练器索取的与
# 演练中的相同，而且双方的消息由同一个编码器量出大小。没有计入的，是 TCP 和 IP 附加的部分，以及由
# torch 自己交换的模型梯度（gradient）。`"gradients"` 指的是分布式嵌入（distributed embedding）的梯
# 度，而这个模型没有分布式嵌入。
#
# ## 代价：时间
#
# 网络并不存在，时间也就无从流逝。因此，时间的每个组成部分各有来源：
#
# | 组成部分 | 来源 |
# |---|---|
# | 采样、计算、应答 | 在这个进程演练时测量 |
# | 询问 | 往返按延迟（latency）计，每次请求有固定的开销，字节按带宽（bandwidth）计 |
# | $R$ 个训练器对 $B$ 字节做全归约（all-reduce） | 排成一个环，每个训练器发送 $2B(R-1)/R$ 字节 |
# | 等待 | 先到的等最后到的 |
#
# 共用一条链路或一个处理器的各方，各分得其中一份。有一个下界不用模拟器也能算出：链路每秒传送 $b$ 比
# 特，$n$ 个字节至少需要 $8n/b$ 秒。

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
# `retimed`는 이미 측정하고 센 것을 가지고 다른 네트워크에서 걸릴 시간을 계산합니다. 아무것도 다시
# 실행하지 않습니다. 예측은 하한보다 깁니다. 바이트가 전부는 아니기 때문입니다. 다음 타임라인은
# 무작위로 나눈 실행에서 둘째 에폭의 일부를 보여 줍니다.

# %% [markdown] slot="timeline" lang="zh"
# `retimed` 用已经测得和数出的结果，计算在另一个网络上的时间，什么都不必重新运行。预测高于下界，因
# 为花费时间的不只是字节。下面的时间线是随机切分时第二轮的一部分。

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
# 트레이너마다 줄이 둘 있습니다. 하나는 메인 스레드이고, 다른 하나는 미니배치를 미리 샘플링하는
# 스레드입니다. 주황색은 다른 머신에서 행을 가져오는 시간으로, 그동안 트레이너는 아무것도 계산하지
# 않습니다. 보라색 올리듀스는 마지막 트레이너가 와야 시작되므로, 먼저 온 트레이너는 기다립니다.
#
# 시간도 맞을까요? 실제 작업은 이 컴퓨터 안에서 실행되었습니다. 네트워크는 없는 것이나 마찬가지였고,
# 프로세서는 모두가 나누어 써야 했습니다. 이 조건에 맞추어 예측 시간을 다시 계산합니다.

# %% [markdown] slot="clock" lang="zh"
# 每个训练器有两行：主线程，以及一个提前采样小批次的线程。橙色是从其他机器取行的时间，这期间训练器
# 什么也不计算。紫色的全归约要等最后一个训练器到达才开始，先到的只能等待。
#
# 时间也准吗？真实的作业在这台计算机内部运行，几乎没有网络，处理器由大家共用。我们按这个条件重新计
# 算预测的时间。

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
# 바이트는 똑같았지만 시간까지 같으리라는 법은 없습니다. 실제 에폭은 어떤 컴퓨터에서는 예측의
# 1.5배, 다른 컴퓨터에서는 세 배 가까이 걸렸습니다. 이 모델은 프로세서의 캐시(cache)도, 함께 쓰는
# 메모리의 대역폭도, 붐비는 스위치도, 동료의 작업도 모르므로, 실제보다 짧게 예측하는 경향이
# 있습니다. 정확한 시간을 말할 때보다 여러 선택을 비교할 때 믿을 만합니다.
#
# ## 머신 한 대에서 열여섯 대까지
#
# 학습 노드는 그대로 두고 더 많은 머신이 나누어 맡습니다. 얼마나 많은 데이터가 오가고, 한 에폭은
# 얼마나 빨라질까요? 점선은 이상적인 경우의 절반과 4분의 1입니다.

# %% [markdown] slot="scale" lang="zh"
# 字节完全相等，秒数则未必。真实的一轮，在一台计算机上用了预测的一倍半，在另一台上将近三倍。这个模
# 型不考虑处理器的缓存（cache）、共用的内存带宽、繁忙的交换机，也不考虑同事的作业，所以预测往往偏
# 短。它更适合用来比较各种选择，而不是报出具体的时间。
#
# ## 从一台机器到十六台
#
# 训练节点不变，由更多的机器分担。要传送多少数据，一轮又能快多少？虚线是理想情况的一半和四分之一。

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
# 머신이 많을수록 다른 머신에 있는 노드가 많아지므로, 오가는 바이트도 모두 합하면 늘어납니다.
# 기가비트 링크에서는 두 대가 한 대보다 느릴 수도 있습니다. 한 대뿐이면 아무에게도 물을 필요가 없기
# 때문입니다.
#
# 머신의 수를 64대까지 직접 움직여 봅니다. 처음 고른 수는 그 자리에서 시뮬레이션하므로 몇 초에서
# 몇십 초가 걸립니다. 왼쪽 그림은 누가 누구에게서 얼마나 받는지, 오른쪽 그림은 시간이 얼마나
# 걸리는지를 머신 한 대일 때와 나란히 보여 줍니다. 커널이 실행되지 않는 곳에서는 조절 도구 대신 몇
# 가지 설정의 그림이 보입니다.

# %% [markdown] slot="explore" lang="zh"
# 机器越多，不在本机的节点就越多，传送的总字节数也越多。在千兆链路上，两台机器很可能比一台还慢，因为
# 单独一台机器什么都不必询问。
#
# 请亲手改变机器的数量，最多 64 台。第一次选到的数量会当场模拟，需要等上若干秒。左图是谁从谁那里收
# 到多少，右图是所需的时间，旁边是单独一台机器的时间。没有内核运行时，看到的不是控件，而是几种设置
# 的图。

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
# 3. A link carries both directions at once, each at full bandwidth. Write a function of a byte
#    matrix `matrix` and `bandwidth`, in bits per second, that returns the least seconds until all
#    machines have sent and received everything.
# 4. Write a function of `machines`, `seconds` and `share` that returns the largest number of
#    machines whose speed-up, relative to the first, is at least `share` of the ideal. The first of
#    `machines` is 1.

# %% [markdown] slot="summary" lang="ko"
# 느린 네트워크에서는 시간의 대부분이 행을 가져오는 일과 올리듀스에 쓰이며, METIS의 이득이 가장
# 큽니다. 빠른 네트워크에서는 바이트의 비용이 작아지지만, 요청마다 왕복 시간과 고정 비용은 그대로
# 듭니다. 그래서 배치가 이렇게 작으면 머신 64대라도 64배에는 한참 못 미칩니다. 이 가운데 무엇이
# 작업의 속도를 제한하는지는 레슨 10에서 다룹니다.
#
# ## 요약
#
# - 작업이 무엇을 보내는지는 그래프와 나눈 방식과 표본에 따라 정해집니다. 프로세스 하나가 이것을
#   정확히 셉니다.
# - 바이트 행렬의 행 $i$, 열 $j$는 머신 $i$가 머신 $j$에서 받은 양입니다.
# - 같은 파티션에서 실행한 실제 작업은 모든 종류의 트래픽에서 같은 바이트를 보냈습니다.
# - 시간은 측정한 작업 시간과 네트워크의 모델로 구합니다. `retimed`를 쓰면 다시 실행하지 않고 다른
#   네트워크에서 걸릴 시간을 계산할 수 있습니다.
# - 그래프를 잘 나누면 바이트가 절반 이하로 줄어듭니다. 머신을 늘리면 바이트는 언제나 조금
#   늘어납니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 판정을 확인합니다.
# [풀이](../solutions/07_cluster_on_a_laptop.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 작은 그래프에서 트레이너 0의 미니배치가 노드 2 하나라고 합시다. 머신 1에 몇 개 노드의 이웃을
#    요청하고, 몇 개 노드의 피처를 요청합니까? 수 두 개를 담은 리스트로 답합니다.
# 2. 4바이트 매개변수가 1,200만 개인 모델이 있습니다. 트레이너가 하나씩 있는 머신 여덟 대가 10
#    Gbit/s로 링 방식의 올리듀스를 합니다. 바이트를 보내는 데 적어도 몇 밀리초가 걸립니까?
#    반올림합니다.
# 3. 링크는 양방향으로 동시에, 각 방향마다 전체 대역폭으로 데이터를 보냅니다. 바이트 행렬
#    `matrix`와 초당 비트 수인 `bandwidth`를 받아, 모든 머신이 모두 보내고 받을 때까지 적어도 몇
#    초가 걸리는지 돌려주는 함수를 작성합니다.
# 4. `machines`, `seconds`, `share`를 받아, 첫 번째의 몇 배로 빨라졌는지가 이상적인 배수의 `share`
#    이상인 머신 수 가운데 가장 큰 것을 돌려주는 함수를 작성합니다. `machines`의 첫 번째는 1입니다.

# %% [markdown] slot="summary" lang="zh"
# 在慢的网络上，几乎所有时间都花在取行和全归约上，METIS 节省得最多。在快的网络上，字节的代价很小，
# 但每次询问仍要付出往返时间和固定的开销，所以批次这么小时，64 台机器远远达不到一台的 64 倍速度。
# 限制作业的究竟是哪一项，是第 10 课的内容。
#
# ## 小结
#
# - 作业传送什么，取决于图、切法和样本：一个进程就能把它数得一个字节都不差。
# - 字节矩阵的第 $i$ 行第 $j$ 列，是机器 $i$ 从机器 $j$ 收到的字节数。
# - 在同样的分区上，真实的作业传送了同样的字节，各种流量都是如此。
# - 时间由测得的工作时间和网络的模型得出；用 `retimed` 可以求出在另一个网络上的时间，而不必重新运
#   行。
# - 切得好，字节能减到一半以下；机器增多，字节总会增加一些。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看判定结果。[解
# 答](../solutions/07_cluster_on_a_laptop.ipynb)随本课提供。
#
# 1. 在小图中，假设训练器 0 的小批次只有节点 2。它向机器 1 索取多少个节点的邻居，多少个节点的特征？
#    用含两个数的列表作答。
# 2. 一个模型有 1200 万个 4 字节的参数。八台机器各有一个训练器，通过 10 Gbit/s 的网络做环形全归约。
#    传送这些字节至少需要多少毫秒？四舍五入。
# 3. 链路可以双向同时传送，每个方向都有全部带宽。写一个以字节矩阵 `matrix` 和 `bandwidth`（每秒比特
#    数）为参数的函数，返回所有机器收发完毕至少需要多少秒。
# 4. 写一个以 `machines`、`seconds` 和 `share` 为参数的函数，返回满足要求的最大机器数：相对于第一个
#    的加速比，不低于理想值的 `share` 倍。`machines` 的第一个是 1。


# %% slot="check"
def check(number, answer, is_right):
    verdict = "not answered yet"
    if answer is not None:
        verdict = "right" if is_right(answer) else "wrong"
    print(f"exercise {number}: {verdict}")


def sha(answer):
    return hashlib.sha256(str(answer).encode()).hexdigest()[:8]


def bounds(answer):
    cases = {0.5: [[0, 100], [125, 0]], 2.0: [[0, 300, 200], [40, 0, 60], [1, 2, 0]]}
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
