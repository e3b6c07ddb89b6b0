# %% [markdown] slot="title" lang="en"
# # A cluster on a laptop
#
# A cluster costs money before you know whether it helps. Half of the answer needs no cluster: what
# machines request from each other depends only on the graph, its parts and the samples. So one
# computer can simulate all the machines and count every byte of it. The other half, time, also
# depends on a network that you do not have, so it is computed with a network model. By the end of
# this lesson, you will be able to
#
# - count what a mini-batch requests from another machine;
# - simulate a job on many machines in one process, and read its byte matrix and its timeline;
# - check that a real job sends the same number of bytes;
# - say what you gain by going from 1 machine to as many as 64, with METIS or random parts, on a
#   network of your choice.

# %% [markdown] slot="title" lang="ko"
# # 노트북 컴퓨터 한 대로 흉내 내는 클러스터
#
# 클러스터는 도움이 될지 알아보기도 전에 돈부터 듭니다. 그런데 도움이 될지에 대한 답의 절반은
# 클러스터 없이도 알 수 있습니다. 머신이 서로 요청하는 그래프 데이터의 양은 그래프와 그래프를 나눈
# 방식, 샘플링 결과만으로 정해지기 때문입니다. 그래서 컴퓨터 한 대로 모든 머신을 시뮬레이션하면서 이
# 요청과 응답의 바이트를 빠짐없이 셀 수 있습니다. 나머지 절반, 곧 걸리는 시간은 네트워크에 따라서도
# 달라지는데, 실제 네트워크가 없으므로 네트워크 모델로 계산합니다. 레슨을 마치면 다음과 같은 일을 할
# 수 있습니다.
#
# - 미니배치(mini-batch) 하나를 만들 때 다른 머신에 요청하는 데이터의 양 세기
# - 머신 여러 대에서 실행할 작업을 프로세스 하나로 시뮬레이션하고, 바이트 행렬과 타임라인 읽기
# - 실제 작업에서도 같은 수의 바이트가 오가는지 확인하기
# - 원하는 네트워크를 가정하고, METIS로 나눈 그래프와 무작위로 나눈 그래프에서 머신 수를 1대부터
#   64대까지 늘리면 각각 무엇이 달라지는지 설명하기

# %% [markdown] slot="title" lang="zh"
# # 笔记本电脑上的集群
#
# 集群还没派上用场就要花钱，所以先要问：它究竟有没有用？这个问题有一半不用集群就能回答：作业在机器之
# 间请求多少图数据，只取决于图、图的切分方式和采样结果，所以用一台计算机就能模拟所有机
# 器，把这些请求和响应的每一个字节都数清楚。另一半是时间，它还取决于网络；如果手头没有要考察的那种网
# 络，就只能用网络模型计算。学完之后，你能够：
#
# - 数出一个小批次（mini-batch）要向另一台机器请求多少数据；
# - 在一个进程中模拟多台机器上的作业，读懂它的字节矩阵和时间线；
# - 验证真实的作业传送同样多的字节；
# - 说明在你选定的网络上，用 METIS 切分或随机切分时，1 到 64 台机器各有什么效果。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# The graphs are generated here, so nothing is downloaded. One cell starts a real job: the servers
# and trainers of two machines, as processes on this computer. In all other cells, one process
# simulates the machines. Files are written to a temporary folder, which becomes the working
# directory and is deleted when the kernel exits.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 그래프는 이 레슨에서 생성하므로 내려받을 데이터가 없습니다. 셀 하나에서만 실제 작업을 시작하며,
# 이때 머신 두 대의 서버와 트레이너(trainer)는 이 컴퓨터의 프로세스로 실행됩니다. 나머지 셀에서는
# 프로세스 하나로 모든 머신을 시뮬레이션합니다. 파일은 임시 폴더에 저장합니다. 이 폴더가 현재
# 디렉터리가 되며, 커널을 종료하면 지워집니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 图都在本课中生成，不需要下载数据。只有一个单元格会启动真实的作业：两台机器的服务器进程和训练器
# （trainer）都作为本机的进程运行。其余单元格都在一个进程中模拟各台机器。文件都写入一个临时文件夹，
# 它就是当前目录，内核退出时自动删除。

# %% slot="imports"
import os
import time

import matplotlib.pyplot as plt
import torch
from tqdm.auto import tqdm

import gnnlab as dgl
from gnnlab import plot
from gnnlab.dataloading import NeighborSampler
from gnnlab.distributed import DistGraph, initialize
from gnnlab.exercises import Lesson
from gnnlab.helpers import dist_graph_simulator as small
from gnnlab.launch import launch
from gnnlab.plot import BLUE, ORANGE
from gnnlab.simulate import Network, simulate

lesson = Lesson("07", "en")  # exercises, and the style of figures
lesson.style()
os.chdir(lesson.folder)
torch.set_num_threads(1)

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# Eight nodes are stored on two machines: 0 to 3 on machine 0, and 4 to 7 on machine 1. Every node
# has a feature of three numbers. Each machine runs one trainer: the mini-batch of trainer 0 is
# nodes 0 and 1, and that of trainer 1 is node 5 alone.

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기
#
# 노드 8개를 머신 두 대에 나누어 저장합니다. 노드 0~3은 머신 0에, 노드 4~7은 머신 1에 있습니다.
# 노드마다 수 세 개로 된 피처(feature)가 있습니다. 트레이너는 머신마다 하나씩 실행합니다. 트레이너
# 0의 미니배치는 노드 0과 1이고, 트레이너 1의 미니배치는 노드 5 하나입니다.

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图
#
# 8 个节点分别存放在两台机器上：0 到 3 在机器 0 上，4 到 7 在机器 1 上。每个节点的特征（feature）是
# 三个数。每台机器运行一个训练器：训练器 0 的小批次是节点 0 和 1，训练器 1 的小批次只有节点 5。

# %% slot="toy-code"
src = [5, 3, 0, 6, 2, 4, 3, 7, 2, 1, 5, 6, 7]
dst = [0, 0, 2, 2, 4, 5, 1, 6, 3, 2, 7, 4, 5]
toy = dgl.graph((src, dst))
toy.ndata["x"] = torch.arange(24.0).reshape(8, 3)
owner = torch.arange(8) // 4
batches = [[0, 1], [5]]  # for trainer 0, for trainer 1

place = [(-2, 1), (-2, -1), (-1, 0), (-3, 0), (1, 0), (2, 1), (2, -1), (3, 0)]
figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
plot.partition_map(toy, owner, pos=place, ax=ax)
plt.show()

# %% [markdown] slot="count" lang="en"
# ## Build it yourself: what a mini-batch requests
#
# Three edges are cut. The nodes with a ring are the HALO nodes of part 0: machine 0 stores their
# IDs, but their features and the lists of their neighbors are on machine 1.
#
# We sample all neighbors, for two layers. For each layer, a trainer looks up the neighbors of all
# nodes in the sample so far: locally for nodes on its own machine, and on the other machine for the
# rest. At the end, it reads the features of every node in the sample.
#
# The function below counts, for one trainer, the rows that it needs from each machine. "Structure"
# means lookups of neighbors.

# %% [markdown] slot="count" lang="ko"
# ## 직접 만들어 보기: 미니배치 하나에 필요한 요청
#
# 잘린 에지는 세 개입니다. 고리를 두른 노드는 파티션(partition) 0의 헤일로 노드(halo node)입니다.
# 머신 0에는 이 노드의 ID만 저장되어 있고, 피처와 이웃(neighbor) 정보는 머신 1에 있습니다.
#
# 두 계층에서 모든 이웃을 샘플링합니다. 트레이너는 계층마다 그때까지 샘플링한 모든 노드의 이웃을
# 조회합니다. 같은 머신에 있는 노드라면 그 자리에서 조회하고, 그렇지 않으면 다른 머신에 요청합니다.
# 마지막으로, 샘플링한 모든 노드의 피처를 읽습니다.
#
# 다음 함수는 트레이너 하나에 필요한 행의 수를 머신별로 셉니다. structure는 이웃 조회, features는
# 피처 읽기입니다.

# %% [markdown] slot="count" lang="zh"
# ## 亲手实现：一个小批次要请求哪些数据
#
# 有三条边被切断。带圆环的节点是分区（partition）0 的 HALO 节点（halo node）：机器 0 上只有它们的
# ID，特征和邻居（neighbor）列表都在机器 1 上。
#
# 采样共两层，每层都取全部邻居。在每一层，训练器都要查找样本中已有节点的邻居：节点在本机，就在本机
# 查；不在本机，就向另一台机器请求。最后，读取样本中每个节点的特征。
#
# 下面的函数统计一个训练器需要从每台机器读取多少行；structure 指查询邻居，features 指读取特征。


# %% slot="count-code"
def count_rows(seeds):
    nodes, lookups = torch.tensor(seeds), torch.zeros(2, dtype=torch.int64)
    for _ in range(2):  # layers
        lookups += owner[nodes].bincount(minlength=2)
        nodes = torch.cat([nodes, toy.in_edges(nodes)[0]]).unique()
    return {"structure": lookups, "features": owner[nodes].bincount(minlength=2)}


by_hand = [count_rows(seeds) for seeds in batches]
for kind in by_hand[0]:
    print(f"{kind}: rows {[rows[kind].tolist() for rows in by_hand]}")

# %% [markdown] slot="weigh" lang="en"
# `dist_graph_simulator.py` from `gnnlab.helpers` is a small simulator of all machines in one
# process. It must count the same rows, and it counts bytes, too. In a matrix of row counts, the
# entry in row $i$, column $j$ is the number of rows that machine $i$ needed from machine $j$. In a
# matrix of bytes, the corresponding entry is the number of bytes that machine $i$ received from
# machine $j$: the replies to its own requests, and the requests of the other machine.
#
# A request for neighbors takes 4 bytes per ID, because the graph stores its IDs as 32-bit integers
# if they fit; a request for features takes 8, because the IDs index a tensor, for which PyTorch
# uses 64-bit integers. A reply with neighbors takes 8 bytes per edge, for its source and its own
# ID, 8 per node, for the place where its edges begin, and 8 more, for the place where the last
# edges end.

# %% [markdown] slot="weigh" lang="ko"
# `gnnlab.helpers`의 `dist_graph_simulator.py`는 프로세스 하나로 모든 머신을 흉내 내는 작은
# 시뮬레이터(simulator)입니다. 행 수는 위에서 센 것과 같아야 하며, 시뮬레이터는 바이트도 셉니다. 행
# 수 행렬의 $i$행 $j$열은 머신 $i$가 머신 $j$에 요청한 행의 수이고, 대각 성분은 자기 머신에서 처리한
# 행의 수입니다. 바이트 행렬의 같은 자리는 머신 $i$가 머신 $j$에서 받은 바이트 수로, 이 머신이 보낸
# 요청에 대한 응답과 상대가 보낸 요청을 더한 값입니다.
#
# 이웃을 조회하는 요청에는 ID 하나당 4바이트가 듭니다. 그래프는 ID가 32비트 정수에 들어가기만 하면
# 32비트로 저장하기 때문입니다. 피처를 읽는 요청에는 ID 하나당 8바이트가 듭니다. ID가 곧 텐서의
# 인덱스이고, PyTorch는 인덱스로 64비트 정수를 쓰기 때문입니다. 이웃 조회의 응답에는 에지마다 출발
# 노드와 에지 ID로 8바이트, 노드마다 그 노드의 에지가 시작하는 위치로 8바이트, 그리고 마지막 에지가
# 끝나는 위치로 8바이트가 더 듭니다.

# %% [markdown] slot="weigh" lang="zh"
# `gnnlab.helpers` 中的 `dist_graph_simulator.py` 是一个小模拟器（simulator），在一个进程里模拟所有
# 机器。它统计的行数应当与上面相同，此外还统计字节数。在行数矩阵中，第 $i$ 行第 $j$ 列是机器 $i$ 向
# 机器 $j$ 请求的行数；在字节矩阵中，则是机器 $i$ 从机器 $j$ 收到的字节数，包括对方返回的响应和对方
# 发来的请求。
#
# 查询邻居的请求，每个 ID 占 4 字节，因为只要 ID 在 32 位整数的范围内，图就用 32 位整数存储；读取特
# 征的请求，每个 ID 占 8 字节，因为这些 ID 就是张量的索引，而 PyTorch 的索引用 64 位整数。返回邻居的
# 响应，每条边占 8 字节，即源节点和边的 ID；每个节点占 8 字节，即它的边从何处开始；最后再加 8 字节，
# 即最后一条边到何处结束。


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


two_machines = cut(toy, owner)
print("sums of features:", play(two_machines, batches))
for kind, rows in two_machines.traffic.rows.items():
    assert [row.tolist() for row in rows] == [each[kind].tolist() for each in by_hand]
    moved = two_machines.traffic.bytes(kind)
    print(f"{kind}: rows {rows.tolist()}, bytes {moved.tolist()}")

# %% [markdown] slot="library" lang="en"
# Both trainers start from nodes on their own machines. The sample of trainer 0 contains node 5, so
# the trainer requests this node's neighbors from machine 1, and at the end the features of nodes 4,
# 5 and 7. The sample of trainer 1 reaches the other machine only in the layer sampled last, at node
# 2, so the trainer requests only this node's features. For features, machine 0 thus receives three
# rows of three 4-byte numbers and a request of 8 bytes: 44 bytes. To use the small simulator in
# your own project, copy it with `gnnlab export dist_graph_simulator my_project/`.
#
# ## With the library
#
# `simulate` partitions a graph for several machines, and `run` calls a function once per trainer,
# each time in a separate thread. In this function, `initialize` connects the trainer and
# `DistGraph` opens the graph, as in a real job. The messages are also encoded as in a real job, but
# they are only measured, not sent. We compare the small simulator with the library on the toy graph
# and on a graph of 20,000 nodes. The row counts must be equal, and so must the byte counts, apart
# from the header of each message, which contains its kind, names and shapes.

# %% [markdown] slot="library" lang="ko"
# 두 트레이너의 시드 노드(seed node)는 모두 자기 머신에 있습니다. 트레이너 0은 샘플링 도중에 나온
# 노드 5의 이웃을 머신 1에 요청하고, 마지막에 노드 4, 5, 7의 피처를 요청합니다. 트레이너 1에서는
# 마지막 단계에서야 머신 0의 노드 2가 나옵니다. 따라서 피처를 읽을 때 머신 0이 받는 데이터는
# 4바이트짜리 수 세 개로 된 행 세 개와 8바이트짜리 요청 하나로, 모두 44바이트입니다. 앞에서 쓴
# 시뮬레이터 파일을 자기 프로젝트에서 쓰려면 `gnnlab export dist_graph_simulator my_project/`로
# 복사합니다.
#
# ## 라이브러리 사용하기
#
# `simulate`는 그래프를 머신 수만큼 나누고, `run`은 함수를 트레이너마다 한 번씩 별도의 스레드에서
# 호출합니다. 이 함수에서는 실제 작업과 마찬가지로 `initialize`로 트레이너를 연결하고 `DistGraph`로
# 그래프를 엽니다. 메시지도 실제 작업과 똑같이 인코딩하지만, 크기만 재고 전송하지는 않습니다. 작은
# 그래프와, 노드가 20,000개인 큰 그래프에서 각각 앞의 시뮬레이터와 라이브러리의 결과를 비교해
# 봅시다. 행 수는 같아야 하고, 바이트 수도 메시지의 헤더를 빼면 같아야 합니다. 헤더에는 메시지의
# 종류와 이름, 텐서의 모양이 들어 있습니다.

# %% [markdown] slot="library" lang="zh"
# 两个训练器都从本机的节点出发。训练器 0 的样本中出现了节点 5，于是要向机器 1 请求它的邻居，最后还要
# 请求节点 4、5、7 的特征。训练器 1 直到第二层才采样到机器 0 的节点 2。因此，读取特征时，机器 0 收到
# 三行数据，每行是三个 4 字节的数，再加上一个 8 字节的请求，共 44 字节。要在自己的项目中使用这个小模
# 拟器，可以用 `gnnlab export dist_graph_simulator my_project/` 复制一份。
#
# ## 使用库
#
# `simulate` 把图切分给若干台机器，`run` 为每个训练器在单独的线程中调用一次函数。在函数中，与真实的
# 作业一样，用 `initialize` 建立连接，用 `DistGraph` 打开图。消息也照样编码，但只计算大小，并不发
# 送。我们在这张小图和一张有 20,000 个节点的图上，比较小模拟器与库的结果：行数应当相同；除去消息头，
# 字节数也应当相同。消息头写明消息的种类，以及数据的名称和形状。


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
    print("rows and bytes agree except for headers; header bytes per request:", headers)


simulation = simulate(toy, machines=2, part_method=lambda graph, k: owner)
played = simulation.run(trainer, batches)
print("sums of features:", played.returned)
compare(two_machines, played)

# %% slot="same-code" tags=["nbval-ignore-output"]
large, parts = dgl.rand_graph(20_000, 300_000), torch.arange(20_000) // 5_000
large.ndata["x"] = torch.rand(20_000, 50)
seeds = torch.arange(20_000).view(4, -1)[:, :100].tolist()  # 100 nodes per machine
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
print(f"the small simulator takes {ours / library:.1f} times as long as the library")

# %% [markdown] slot="script" lang="en"
# The counts agree. On each graph, the headers of a request and its reply add up to the same size
# for all messages of a kind. The library's time includes encoding the messages. Besides
# `"structure"` and features, the library has two kinds of messages for distributed embeddings, not
# used here; all others, such as those that connect a trainer to the servers, count as `"control"`.
#
# ## Simulate a whole job
#
# Now we simulate training, on a graph of 20,000 nodes whose structure resembles that of
# `ogbn-products`. The script is an ordinary training script that would run unchanged on a cluster.
# It consists of two files: `model.py` has the model and the loop over mini-batches, and `train.py`
# joins the job and trains. `%%writefile` saves a cell to a file instead of running it, so you can
# open both files. At the end, each trainer writes the times of its epochs and its **traffic**, the
# counts of what it requested, to a file.

# %% [markdown] slot="script" lang="ko"
# 행 수가 일치하고, 같은 그래프에서는 요청과 응답에 붙는 헤더의 크기가 종류마다 일정합니다.
# 라이브러리의 시간에는 메시지를 인코딩하는 시간까지 들어 있습니다. 라이브러리는 메시지의 종류를
# `"structure"`와 피처 말고도 분산 임베딩(distributed embedding)용으로 두 가지 더 구별하지만,
# 여기서는 쓰이지 않습니다. 나머지 메시지, 예를 들어 트레이너를 서버에 연결할 때 주고받는 메시지는
# `"control"`로 셉니다.
#
# ## 작업 전체를 시뮬레이션하기
#
# 이제 학습할 차례입니다. `ogbn-products`와 구조가 비슷하고 노드가 20,000개인 그래프를 씁니다.
# 스크립트는 평범한 학습 스크립트여서 클러스터에서도 그대로 실행할 수 있습니다. 파일은 두 개입니다.
# `model.py`에는 모델과 미니배치 루프가 있고, `train.py`는 작업에 참여하여 모델을 학습합니다.
# `%%writefile`로 시작하는 셀은 실행되지 않고 파일로 저장되므로, 두 파일을 열어 볼 수 있습니다.
# 학습이 끝나면 트레이너마다 에폭(epoch)별로 걸린 시간과 **트래픽**(traffic), 곧 요청과 응답으로
# 오간 데이터의 양을 파일에 기록합니다.

# %% [markdown] slot="script" lang="zh"
# 行数一致；在同一张图上，每一种请求及其响应的消息头大小都固定。库的用时还包括消息编码的时间。
# `"structure"` 是采样的通信量（traffic）。库另有两类消息用于分布式嵌入（distributed embedding），这
# 里没有用到；其余的消息，例如训练器连接服务器进程时的消息，计入 `"control"`。
#
# ## 模拟整个作业
#
# 现在来模拟训练。图有 20,000 个节点，结构与 `ogbn-products` 相似。所用的就是普通的训练脚本，可以原
# 样在集群上运行。它由两个文件组成：`model.py` 中是模型和遍历小批次的循环，`train.py` 加入作业并进行
# 训练。以 `%%writefile` 开头的单元格不会执行，而是保存为文件，所以可以打开这两个文件查看。最后，每
# 个训练器把每一轮（epoch）的用时和自己的**通信量**（请求过多少数据）写入一个文件。

# %% slot="model-code"
# %%writefile model.py
import torch
import torch.nn.functional as F
import gnnlab.nn as dglnn


class SAGE(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        layers = dglnn.SAGEConv(inputs, 64, "mean"), dglnn.SAGEConv(64, outputs, "mean")
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, blocks, x):
        for i, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            x = layer(block, F.relu(x) if i else x)
        return x


def train_epoch(g, model, optimizer, loader):
    for input_nodes, output_nodes, blocks in loader:
        scores = model(blocks, g.ndata["feat"][input_nodes])
        loss = F.cross_entropy(scores, g.ndata["label"][output_nodes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# %% slot="loop-code"
# %%writefile train.py
import sys
import time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import gnnlab as dgl
from gnnlab.distributed import DistGraph, DistNodeDataLoader, node_split
from model import SAGE, train_epoch

dgl.distributed.initialize()
dist.init_process_group("gloo")
g, seconds = DistGraph("graph"), []
model = DistributedDataParallel(SAGE(100, 47))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
sampler = dgl.dataloading.NeighborSampler([10, 10])
seeds = node_split(g.ndata["train_mask"])
loader = DistNodeDataLoader(g, seeds, sampler, batch_size=32, shuffle=True, seed=0)
for _ in range(2):
    began = time.time()
    train_epoch(g, model, optimizer, loader)
    seconds.append(time.time() - began)
found = {"seconds": seconds, "traffic": g.traffic.to_list()}
torch.save(found, f"{sys.argv[1]}-{g.rank()}.pt")

# %% [markdown] slot="matrix" lang="en"
# We simulate four machines, first with METIS parts, then with random ones. The script, the model
# and the training nodes are the same; which training nodes a trainer gets depends on the parts.
# (METIS is the default, `best` in the code. Where the package pymetis is missing, as on Windows, it
# is LDG, and your figures differ from the text.)

# %% [markdown] slot="matrix" lang="ko"
# 머신 네 대로 두 번 실행합니다. 처음에는 그래프를 METIS로 나누고, 다음에는 무작위로 나눕니다.
# 스크립트와 모델, 학습 노드는 같지만, 각 트레이너가 담당하는 학습 노드는 파티션에 따라 달라집니다.
# (코드의 `best`는 기본 방법으로, METIS를 뜻합니다. Windows처럼 pymetis 패키지를 쓸 수 없는
# 환경에서는 LDG를 뜻하므로, 그림이 본문의 설명과 다릅니다.)

# %% [markdown] slot="matrix" lang="zh"
# 模拟四台机器，运行两次：一次用 METIS 切分，一次随机切分。两次的脚本、模型和训练节点都相同；每个训
# 练器分到哪些训练节点，则由分区决定。（METIS 是默认方法，即代码中的 `best`；如果没有 pymetis 包，例
# 如在 Windows 上，则改用 LDG，画出的图表会与正文的描述有出入。）

# %% slot="matrix-code" tags=["nbval-ignore-output"]
MACHINES = 4
dgl.seed(0)
graph = dgl.data.load("products-like", num_nodes=20_000, num_edges=300_000)[0]
best = dgl.partition.plan(graph, MACHINES).part_method
several = {}
figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), layout="constrained")
for ax, method in zip(axes, (best, "random")):
    dgl.seed(0)
    cluster = simulate(graph, machines=MACHINES, part_method=method)
    several[method] = cluster.run("train.py", "several")
    matrix = several[method].traffic.matrix()
    plot.byte_matrix(matrix, ax=ax)
    ax.set_title(f"{method}: {matrix.sum().item() / 1e6:.0f} MB")
plt.show()
pairs = matrix[~torch.eye(MACHINES, dtype=torch.bool)]  # with random parts
assert pairs.max() < 1.5 * pairs.min(), "all pairs should exchange about as much"
halved = 2 * several[best].traffic.matrix().sum() < matrix.sum()
assert halved, f"with {best} parts, less than half as much should be sent"

# %% [markdown] slot="prove" lang="en"
# With random parts, three out of four rows are on another machine, and all pairs of machines
# exchange about the same amount. METIS keeps neighbors together, so less than half as much data is
# sent. Cells of its matrix that are far darker than the others are due to the training nodes: where
# a part has few, its trainer gets some from another part.
#
# ## Check that a real job sends the same number of bytes
#
# A real job should send exactly as many bytes as the simulation counts. For two machines, we
# predict, then measure. `launch.run` starts the same script on the same parts, now with server
# processes, and with trainers that send them requests over TCP. With `num_machines=2`, this
# computer acts as both machines; lesson 09 shows how.

# %% [markdown] slot="prove" lang="ko"
# 무작위로 나누면 필요한 행의 4분의 3이 다른 머신에 있고, 어느 두 머신 사이에서나 비슷한 양이
# 오갑니다. METIS로 나누면 서로 이웃한 노드가 같은 파티션에 모이므로, 오가는 바이트가 절반 아래로
# 줄어듭니다. METIS 행렬에 색이 유난히 진한 칸이 있는 것은 학습 노드가 고르게 나뉘지 않았기
# 때문입니다. 학습 노드가 적은 파티션의 트레이너는 다른 파티션의 학습 노드를 일부 넘겨받습니다.
#
# ## 확인하기: 실제 작업의 바이트 수
#
# 실제 작업에서는 시뮬레이션에서 센 것과 정확히 같은 수의 바이트가 오가야 합니다. 머신이 두 대인
# 경우를 먼저 시뮬레이터로 예측한 다음 실제로 측정해 봅시다. `launch.run`은 같은 스크립트를 같은
# 파티션으로 실행합니다. 이번에는 서버 프로세스가 실제로 실행되고, 트레이너는 TCP로 서버에 요청을
# 보냅니다. `num_machines=2`를 지정하면 이 컴퓨터가 두 머신의 역할을 모두 합니다. 그 방법은 레슨
# 09에서 다룹니다.

# %% [markdown] slot="prove" lang="zh"
# 随机切分时，每四行特征中有三行在别的机器上，任意两台机器之间交换的数据量都差不多。METIS 尽量把相邻
# 的节点放在一起，要传送的字节不到随机切分的一半。METIS 的矩阵中，颜色特别深的格子与训练节点的分布有
# 关：有的分区训练节点较少，它的训练器就会分到其他分区的一些训练节点。
#
# ## 验证：真实的作业传送同样多的字节
#
# 真实的作业传送的字节数应当与模拟的完全相同。我们以两台机器为例，先预测，再测量。`launch.run` 在同
# 样的分区上启动同一个脚本，这次有真正的服务器进程，训练器通过 TCP 向它们发送请求。设
# `num_machines=2`，这台计算机就同时充当两台机器；具体做法见第 09 课。

# %% slot="launch-code" tags=["nbval-ignore-output"]
dgl.seed(0)
pair = simulate(graph, machines=2)
predicted = pair.run("train.py", "played")
job = {"part_config": pair.part_config, "workspace": lesson.folder, "log_dir": "logs"}
runs_jobs = hasattr(os, "fork")
if runs_jobs:
    job = launch.run("python3 train.py real", num_machines=2, **job)
else:
    print("Jobs cannot be started on Windows: use WSL, or see the stored outputs")

# %% [markdown] slot="equal" lang="en"
# Both runs left one file per trainer. We add up the bytes by kind of traffic, then compare all
# counts at once: source, target, number of requests, rows, and bytes sent and received.

# %% [markdown] slot="equal" lang="ko"
# 두 실행에서 모두 트레이너마다 파일이 하나씩 생겼습니다. 먼저 트래픽의 종류별로 바이트를 합산하고,
# 이어서 요청한 머신과 요청받은 머신, 요청 수, 행 수, 양방향의 바이트 수까지 한꺼번에 비교합니다.

# %% [markdown] slot="equal" lang="zh"
# 两次运行都为每个训练器留下了一个文件。我们先按消息的种类把字节数加起来，再按发出请求的机器和接收请
# 求的机器，逐项比较请求次数、行数和收发的字节数。


# %% slot="equal-code" tags=["nbval-ignore-output"]
def read(name):
    found = [torch.load(f"{name}-{rank}.pt") for rank in range(2)]
    counts = [count for each in found for count in each["traffic"]]
    return counts, [each["seconds"] for each in found]


def add_up(counts, wanted):
    return sum(
        bytes_out + bytes_in
        for source, target, kind, requests, rows, bytes_out, bytes_in in counts
        if kind == wanted and source != target
    )


if runs_jobs:
    (counted, _), (real, measured) = read("played"), read("real")
    for kind in ("structure", "features", "control"):
        found = add_up(counted, kind), add_up(real, kind)
        print("{}: {:,} bytes predicted, {:,} measured".format(kind, *found))
    assert counted == real, "the real job should send what the simulation counts"

# %% [markdown] slot="time" lang="en"
# All counts agree to the last byte: a sample depends only on the random seed, the epoch, the batch,
# the layer and the node. So the trainers of the real job request the same data as the simulated
# ones, and the same encoder determines the size of all messages. The bytes that encryption, TCP and
# IP add are not counted, nor are the model's gradients, which torch exchanges itself. `"gradients"`
# counts only the gradients of distributed embeddings, which this model does not use.
#
# ## What it costs: time
#
# There is no real network, so the transfer times have to be computed. The function below does this
# for one step; the small simulator must agree. In each step, a trainer waits twice the latency for
# each round of requests, plus the time that its link needs to carry the data. When the slowest
# trainer is done, the gradients are averaged by an all-reduce: in a ring, each of $R$ trainers
# sends $2B(R-1)/R$ bytes to average $B$ bytes of gradients.
#
# The library is more precise: during the simulation, it measures the time spent on sampling, on
# computing and on answering requests; it adds a fixed cost for each request, and lets simultaneous
# transfers share a link and simultaneous work share the processors. One bound needs only the bytes:
# over a link of $b$ bits per second, $n$ bytes take at least $8n/b$ seconds.

# %% [markdown] slot="time" lang="ko"
# 센 값은 1바이트까지 모두 일치하며, 이는 우연이 아닙니다. 샘플링 결과는 난수 시드, 에폭, 배치,
# 계층, 노드만으로 정해집니다. 따라서 실제 작업의 트레이너도 시뮬레이션에서와 똑같은 데이터를
# 요청하고, 양쪽이 같은 인코더를 쓰므로 메시지의 크기도 같습니다. 다만 암호화와 TCP, IP에서 덧붙는
# 바이트와, torch가 따로 주고받는 모델의 그래디언트(gradient)는 세지 않았습니다. 트래픽의 종류
# `"gradients"`는 분산 임베딩의 그래디언트인데, 이 모델에는 분산 임베딩이 없습니다.
#
# ## 비용: 시간
#
# 실제 네트워크가 없으므로 전송 시간은 계산으로 구해야 합니다. 아래 함수는 학습 한 단계의 시간을
# 계산하며, 앞에서 쓴 시뮬레이터의 결과와 같아야 합니다. 한 단계에서 트레이너가 기다리는 시간은,
# 요청을 한 차례 보낼 때마다 드는 지연 시간(latency)의 두 배에, 링크로 데이터를 전송하는 시간을 더한
# 것입니다. 가장 느린 트레이너까지 끝나면 그래디언트를 올리듀스(all-reduce)합니다. 링(ring) 방식에서
# 그래디언트가 $B$바이트이면 트레이너 $R$개가 각각 $2B(R-1)/R$바이트를 보냅니다.
#
# 라이브러리의 계산은 더 정밀합니다. 시뮬레이션하는 동안 샘플링과 계산, 응답에 걸린 시간을 재고,
# 요청마다 고정 비용을 더하며, 여러 프로세스가 링크와 프로세서를 동시에 나누어 써서 느려지는 정도도
# 반영합니다. 바이트 수만 알면 구할 수 있는 하한도 있습니다. 초당 $b$비트를 보내는 링크로
# $n$바이트를 보내려면 적어도 $8n/b$초가 걸립니다.

# %% [markdown] slot="time" lang="zh"
# 各项计数完全一致，一个字节也不差。这不是巧合：采样结果只取决于随机种子、轮、批次、层和节点，所以真
# 实的训练器请求的数据与模拟中的相同；真实的消息和模拟的消息，大小也由同一个编码器决定。没有计入的，
# 是加密、TCP 和 IP 附加的字节，以及由 torch 自行交换的模型梯度（gradient）。通信量中另有一类消息名
# 为 `"gradients"`，指的是分布式嵌入的梯度，而这个模型没有分布式嵌入。
#
# ## 开销：时间
#
# 没有真实的网络，传输时间只能靠计算得出。下面的函数计算一步的时间，结果应当与小模拟器相同。在每一步
# 中，训练器每发出一组请求，就要等待两倍的延迟（latency），即一去一回，此外还要等链路传完数据。最慢
# 的训练器完成之后，再对梯度做全归约（all-reduce）：$R$ 个训练器排成一个环，梯度共 $B$ 字节，每个训
# 练器要发送 $2B(R-1)/R$ 字节，每次传送还要加上一份延迟。
#
# 库的计算更细：在模拟时实测采样、计算和响应的时间，给每次请求加上固定开销；多方同时使用链路或处理器
# 时，分摊其带宽（bandwidth）或算力。有一个下界只凭字节数就能算出：如果链路每秒传送 $b$ 比特，那么
# $n$ 个字节至少需要 $8n/b$ 秒。


# %% slot="time-code"
def step_seconds(moved, rounds, gradient_bytes, bandwidth, latency):
    link = 8 * torch.maximum(moved.sum(0), moved.sum(1)) / bandwidth
    waiting = (link + 2 * latency * rounds).max().item()
    sent = gradient_bytes / len(moved)  # in each round of the all-reduce
    return waiting + 2 * (len(moved) - 1) * (8 * sent / bandwidth + latency)


step = cut(toy, owner)
play(step, batches)
moved, rounds = step.traffic.bytes(), torch.tensor(step.rounds)
seconds = step_seconds(moved, rounds, 10_000, step.bandwidth, step.latency)
assert abs(seconds - step.end_step(gradient_bytes=10_000)) < 1e-9
print(f"rounds of requests: {rounds.tolist()}; {1000 * seconds:.2f} ms for the step")

# %% slot="least-code" tags=["nbval-ignore-output"]
gigabit = Network(bandwidth=1e9, latency=1e-4)
for method, result in several.items():
    incoming = result.traffic.matrix().sum(1) / 2  # bytes per machine in an epoch
    least = 8 * incoming.max().item() / gigabit.bandwidth
    seconds = result.retimed(gigabit).epochs[1].seconds
    print(f"{method}: {least:.2f} s at least, {seconds:.2f} s predicted")
    assert least < seconds, "a prediction below what the links allow"

# %% [markdown] slot="timeline" lang="en"
# From the earlier measurements and counts, `retimed` computes the time on a different network,
# without running anything again. The predictions are above the bound because not all of the time is
# spent transferring bytes. The timeline shows part of the second epoch with random parts.

# %% [markdown] slot="timeline" lang="ko"
# `retimed`는 작업을 다시 실행하지 않고, 이미 측정하거나 센 값으로 다른 네트워크에서 걸릴 시간을
# 계산합니다. 예측한 시간은 하한보다 깁니다. 바이트를 보내는 일 말고도 시간이 드는 일이 있기
# 때문입니다. 다음 타임라인은 그래프를 무작위로 나누었을 때 둘째 에폭의 일부를 나타냅니다.

# %% [markdown] slot="timeline" lang="zh"
# `retimed` 根据已有的测量和计数结果，算出在另一个网络上的时间，不必重新运行。预测的时间高于下界，因
# 为除了传送字节，还有其他环节要花时间。下面的时间线是随机切分时第二轮的一部分。

# %% slot="timeline-code" tags=["nbval-ignore-output"]
result = several["random"]
epoch = result.epochs[1]
figure, ax = plt.subplots(figsize=(8.6, 3), layout="constrained")
plot.timeline(result.events, start=epoch.start, seconds=epoch.seconds / 6, ax=ax)
plt.show()

# %% [markdown] slot="clock" lang="en"
# Each trainer has two lanes: its main thread, and a thread that samples mini-batches ahead of time.
# Orange is the time spent fetching rows from other machines, during which a trainer computes
# nothing. The purple all-reduce begins when the last trainer is ready; until then, the others wait
# (gray).
#
# Is the time right as well? The real job ran on this one computer: transfers took almost no time,
# and all processes shared the processors. We compute the prediction for these conditions.

# %% [markdown] slot="clock" lang="ko"
# 트레이너마다 두 줄씩 있습니다. 하나는 메인 스레드이고, 다른 하나는 미니배치를 미리 샘플링하는
# 스레드입니다. 주황색은 다른 머신에서 행을 가져오는 시간으로, 그동안 메인 스레드는 아무 계산도 하지
# 못합니다. 보라색 올리듀스는 마지막 트레이너까지 준비되어야 시작되며, 먼저 끝난 트레이너는 회색으로
# 표시된 시간 동안 기다립니다.
#
# 예측한 시간도 실제와 맞을까요? 실제 작업은 이 컴퓨터 한 대에서 실행되었습니다. 네트워크에는 시간이
# 거의 들지 않았고, 모든 프로세스가 프로세서를 나누어 썼습니다. 이 조건에서 걸릴 시간을 예측해
# 봅시다.

# %% [markdown] slot="clock" lang="zh"
# 每个训练器占两行：主线程，以及提前采样小批次的线程。橙色是从其他机器获取特征行的时间，这期间训练器
# 不做任何计算。紫色的全归约要等最后一个训练器就绪才开始，其余训练器在灰色时段等待。
#
# 时间也准吗？真实的作业全部在这一台计算机上运行：网络几乎不花时间，处理器由所有进程共用。我们按这些
# 条件来预测时间。

# %% slot="clock-code" tags=["nbval-ignore-output"]
inside = Network(bandwidth=20e9, latency=5e-5)
here = predicted.retimed(inside, shared_cores=os.cpu_count())
slowest = f"{max(seconds[1] for seconds in measured):.2f} s" if runs_jobs else "nothing"
print(f"second epoch: {here.epochs[1].seconds:.2f} s predicted, {slowest} measured")

# %% [markdown] slot="scale" lang="en"
# The byte counts are equal; the seconds need not be. The ratio varies: the real epoch took 1.5
# times as long as predicted on one idle computer, and about 3 times as long on another; when other
# programs are running, it may take even longer. The timing model leaves out processor caches,
# contention for memory bandwidth, network congestion and other users' jobs, so its times tend to be
# too short. Use it to compare choices rather than to predict a time.
#
# ## From 1 to 64 machines
#
# The training nodes stay the same and are divided among more machines. First we go up to 16
# machines: how much is sent, and how much faster is an epoch? Dotted lines mark half and a quarter
# of the ideal speedup.

# %% [markdown] slot="scale" lang="ko"
# 바이트 수는 같지만 시간은 다를 수 있습니다. 다른 작업이 없는 컴퓨터 두 대에서 따로 재어 보니, 한
# 에폭에 걸린 시간이 한 대에서는 예측의 1.5배였고 다른 한 대에서는 3배쯤이었습니다. 다른 프로그램이
# 함께 실행되면 차이가 더 커지기도 합니다. 시간을 예측하는 이 모델은 프로세서의 캐시(cache), 함께
# 쓰는 메모리의 대역폭(bandwidth), 붐비는 스위치, 다른 사람의 작업을 반영하지 않으므로 실제보다 짧게
# 예측하는 경향이 있습니다. 따라서 정확한 시간을 예측하기보다 여러 선택지를 비교하는 데 알맞습니다.
#
# ## 머신 1대에서 64대까지
#
# 학습 노드는 그대로 두고 머신을 늘려 나누어 맡깁니다. 먼저 16대까지 늘리면서, 오가는 데이터가
# 얼마나 늘어나고 한 에폭이 얼마나 빨라지는지 봅시다. 점선은 이상적인 속도 향상의 절반과 4분의 1을
# 나타냅니다.

# %% [markdown] slot="scale" lang="zh"
# 字节数完全相等，秒数则未必。我们在两台空闲的计算机上各测过一次，真实的一轮所用的时间分别是预测的
# 1.5 倍和约 3 倍；有其他程序同时运行时，还可能更长。这个预测时间的模型不考虑处理器的缓存（cache）、
# 共用的内存带宽、繁忙的交换机，也不考虑其他人的作业，所以预测的时间往往偏短。它更适合用来比较各种选
# 择，而不是预测具体的时间。
#
# ## 从 1 台到 64 台机器
#
# 训练节点不变，由更多的机器分担。先增加到 16 台：要传送多少数据，一轮又能快多少？右图中，虚线是理想
# 加速比，两条点线分别是它的一半和四分之一。

# %% slot="scale-code" tags=["nbval-ignore-output"]
counts, methods = [1, 2, 4, 8, 16], [best, "random"]
results, seconds = {}, {}
figure, axes = plt.subplots(1, 2, figsize=(8.6, 2.9), layout="constrained")
alone = simulate(graph, machines=1).run("train.py", "many")
for method, color in zip(methods, (BLUE, ORANGE)):
    results[1, method] = alone
    for machines in tqdm(counts[1:], desc=method, leave=False):
        dgl.seed(0)
        cluster = simulate(graph, machines, network=gigabit, part_method=method)
        results[machines, method] = cluster.run("train.py", "many")
    runs = [results[machines, method] for machines in counts]
    moved = [run.traffic.matrix().sum().item() / 1e6 for run in runs]
    assert moved == sorted(moved), "the more machines in counts, the more should be sent"
    seconds[method] = [run.epochs[1].seconds for run in runs]
    axes[0].plot(counts, moved, "o-", color=color, label=method)
axes[0].set(xlabel="machines", ylabel="MB between machines", xticks=counts)
axes[0].legend(frameon=False)
plot.speedup(counts, seconds, ax=axes[1])
plt.show()

# %% [markdown] slot="explore" lang="en"
# With more machines, more of the needed nodes are on other machines, so more bytes are sent in
# total. On gigabit links, two machines are hardly faster than one, or even slower, because a single
# machine needs no network.
#
# Choose the network, the method and the number of machines, up to 64. Each new number takes several
# seconds to simulate. Left: what each machine receives from each of the others; right: the time of
# an epoch, next to that on one machine. Without a running kernel, you see four of the settings
# instead. The last cell of this section compares the networks for the largest number in `counts`.

# %% [markdown] slot="explore" lang="ko"
# 머신이 많을수록 필요한 노드가 다른 머신에 있는 경우가 많아지므로, 오가는 바이트의 총량도
# 늘어납니다. 기가비트 링크에서는 머신 두 대가 한 대보다 거의 빠르지 않거나, 오히려 느릴 수도
# 있습니다. 머신이 한 대뿐이면 네트워크를 쓸 필요가 없기 때문입니다.
#
# 이번에는 머신 수를 64대까지 직접 바꾸어 봅시다. 아직 시뮬레이션하지 않은 머신 수를 고르면 적어도
# 몇 초는 걸립니다. 왼쪽은 각 머신이 다른 머신에서 받는 데이터의 양이고, 오른쪽은 한 에폭에 걸리는
# 시간을 머신이 한 대일 때와 나란히 나타낸 것입니다. 커널이 실행되고 있지 않으면 네 가지 설정의
# 그림이 표시됩니다. 그다음 셀에서는 `counts`의 가장 큰 머신 수로 네트워크들을 비교합니다.

# %% [markdown] slot="explore" lang="zh"
# 机器越多，所需的节点中落在其他机器上的就越多，传送的总字节数也越多。在千兆链路上，两台机器比一台快
# 不了多少，甚至可能更慢，因为单独一台机器不需要网络。
#
# 请亲手改变机器数，最多 64 台。如果选择的机器数还没有模拟过，需要等待几秒。左图是每台机器从其他各台
# 机器接收的数据量；右图是一轮的时间，旁边是单独一台机器的时间，供对照。没有启动内核时，显示的是四种
# 设置的图。再下一个单元格取 `counts` 中最大的机器数，比较各个网络。

# %% slot="explore-code" tags=["nbval-ignore-output"]
networks = {f"{gbit} Gbit/s": Network(bandwidth=gbit * 1e9) for gbit in (0.1, 1, 10)}


def show(network, method, machines=counts[-1]):
    if (machines, method) not in results:
        dgl.seed(0)
        cluster = simulate(graph, machines, network=gigabit, part_method=method)
        results[machines, method] = cluster.run("train.py", "many")
    result = results[machines, method].retimed(networks[network])
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    plot.byte_matrix(result.traffic.matrix(), ax=left)
    left.set_title(f"{result.traffic.matrix().sum().item() / 1e6:.0f} MB")
    parts = {1: alone.epochs[1].parts, machines: result.epochs[1].parts}
    plot.time_parts(parts, ax=right)
    right.set_xlabel("machines")
    return figure


plot.explore(show, network=list(networks), method=methods, machines=[*counts, 32, 64])

# %% slot="networks-code" tags=["nbval-ignore-output"]
most, saved, busy = counts[-1], [], []
for name, network in networks.items():
    one, *runs = (
        results[key].retimed(network).epochs[1]
        for key in ((1, best), (most, best), (most, "random"))
    )
    times = ", ".join(f"{run.seconds:.2f} s ({m})" for m, run in zip(methods, runs))
    print(f"{name}: {one.seconds:.2f} s on 1 machine; on {most}: {times}")
    saved.append(runs[1].seconds - runs[0].seconds)
    busy.append((runs[1].parts["sample"] + runs[1].parts["compute"]) / runs[1].seconds)
assert saved[0] == max(saved), "METIS should save the most on the slowest network"
assert most < 16 or busy[0] < 0.5, "most of the time should be lost on it"
is_far = most < 16 or one.seconds < most / 2 * runs[0].seconds
assert is_far, "far from the ideal speedup"

# %% [markdown] slot="summary" lang="en"
# On a slow network, most of the time is spent fetching rows, performing the all-reduce and waiting;
# there METIS saves the most time. On a fast one, the bytes cost little, but each request still
# costs a round trip and a fixed amount of processor time. So with batches this small, 16 machines
# are far from 16 times as fast as one even then. Lesson 10 examines which of these limits a job.
#
# ## Summary
#
# - What a job sends depends on the graph, its parts and the samples; one process can count it
#   exactly.
# - Row $i$, column $j$ of the byte matrix is what machine $i$ received from machine $j$.
# - A real job on the same parts sent the same number of bytes, for all kinds of traffic.
# - Time is computed from measured work and a model of the network; `retimed` computes it for a
#   different network without another run.
# - On four machines, a good partition saved more than half of the bytes compared with random parts;
#   additional machines add to the total.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, running *Setup* is enough to check an answer. The
# [solutions](../solutions/07_cluster_on_a_laptop_solution.ipynb) are in a separate notebook.
#
# 1. In the toy graph, let the mini-batch of trainer 0 be node 2 alone. For how many nodes does the
#    trainer request neighbors from machine 1, and for how many does it request features? Answer
#    with a list of two numbers.
# 2. A model has 12 million parameters of 4 bytes each. Eight machines, each with one trainer,
#    average the model's gradients with a ring all-reduce over 10 Gbit/s links. At least how many
#    milliseconds does the transfer take? Round to a whole number.
# 3. Suppose that each machine has a wireless link whose two directions share its bandwidth. Write a
#    function of a byte matrix `matrix` and of `bandwidth`, in bits per second, that returns the
#    minimum number of seconds in which all machines can send and receive everything.
# 4. Write a function of `machines`, `seconds` (the epoch time for each entry of `machines`) and
#    `share` that returns the largest number of machines whose speedup is at least `share` times the
#    ideal. The first entry of `machines` is 1.

# %% [markdown] slot="summary" lang="ko"
# 느린 네트워크에서는 행을 가져오고 올리듀스를 하고 다른 트레이너를 기다리는 데 대부분의 시간이
# 들며, METIS로 나누는 이득이 가장 큽니다. 빠른 네트워크에서는 바이트를 보내는 시간이 짧아지지만,
# 요청마다 왕복 시간과 고정 비용이 듭니다. 그래서 배치가 이렇게 작으면 머신을 16대 써도 속도 향상은
# 16배에 한참 못 미칩니다. 이 가운데 무엇이 병목(bottleneck)인지는 레슨 10에서 다룹니다.
#
# ## 요약
#
# - 머신 사이에 오가는 데이터는 그래프와 그래프를 나눈 방식, 샘플링 결과로 정해지며, 프로세스 하나로
#   그 양을 정확히 셀 수 있습니다.
# - 바이트 행렬의 $i$행 $j$열은 머신 $i$가 머신 $j$에서 받은 바이트 수입니다.
# - 같은 파티션으로 실행한 실제 작업에서도 트래픽의 종류마다 바이트 수가 똑같았습니다.
# - 시간은 실제로 잰 샘플링, 계산, 응답 시간과 네트워크 모델로 계산합니다. `retimed`를 쓰면 다시
#   실행하지 않고 다른 네트워크에서 걸릴 시간을 계산할 수 있습니다.
# - 오가는 바이트는 머신이 네 대일 때 그래프를 잘 나누면 절반 아래로 줄고, 머신을 늘리면 늘어납니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 셀만 실행해도 채점할 수 있습니다.
# [풀이](../solutions/ko/07_cluster_on_a_laptop_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 작은 그래프에서 트레이너 0의 미니배치가 노드 2 하나라고 합시다. 트레이너 0은 머신 1에 노드 몇
#    개의 이웃을 요청하고, 노드 몇 개의 피처를 요청합니까? 수 두 개를 담은 리스트로 답합니다.
# 2. 4바이트 매개변수가 1,200만 개인 모델이 있습니다. 트레이너가 하나씩 있는 머신 여덟 대가 10
#    Gbit/s 링크로 링 방식의 올리듀스를 합니다. 데이터를 보내는 데만 적어도 몇 밀리초가 걸립니까?
#    반올림하여 정수로 답합니다.
# 3. 머신마다 무선 링크가 하나씩 있고, 송신과 수신이 이 링크의 대역폭을 나누어 쓴다고 합시다. 바이트
#    행렬 `matrix`와 초당 비트 수인 `bandwidth`를 받아, 모든 머신이 송수신을 마칠 때까지 적어도 몇
#    초가 걸리는지 반환하는 함수를 작성합니다.
# 4. `machines`, `seconds`(머신 수가 각각 `machines`의 값일 때 한 에폭에 걸린 초 단위 시간),
#    `share`를 받아, 속도 향상이 머신 수의 `share`배 이상인 머신 수 가운데 최댓값을 반환하는 함수를
#    작성합니다. `machines`의 첫 번째 값은 1입니다.

# %% [markdown] slot="summary" lang="zh"
# 在慢速网络上，大部分时间花在获取远程特征行、全归约和等待上，这时用 METIS 节省的时间也最多。在高速
# 网络上，传送字节的开销很小，但每次请求仍有往返时间和固定开销。所以在批次这么小的情况下，16 台机器
# 的速度也远远达不到一台的 16 倍。作业究竟受哪一项限制，是第 10 课的内容。
#
# ## 小结
#
# - 作业传送多少数据，取决于图、切分方式和采样结果；用一个进程就能精确地数出来。
# - 字节矩阵的第 $i$ 行第 $j$ 列，是机器 $i$ 从机器 $j$ 收到的字节数。
# - 在同样的分区上，真实的作业传送的字节数与模拟的相同，各种消息都是如此。
# - 时间由实测的处理时间和网络模型算出；用 `retimed` 可以算出在另一个网络上的时间，不必重新运行。
# - 四台机器时，切得好能省下一半以上的字节；机器越多，传送的字节也越多。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的单元格就能评判。
# [解答](../solutions/zh/07_cluster_on_a_laptop_solution.ipynb)随本课提
# 供。
#
# 1. 在小图中，假设训练器 0 的小批次只有节点 2。它要向机器 1 请求多少个节点的邻居、多少个节点的特
#    征？用含两个数的列表作答。
# 2. 一个模型有 1200 万个 4 字节的参数。八台机器各有一个训练器，通过 10 Gbit/s 的网络做环形全归约。
#    只计传送梯度的时间，一次全归约至少需要多少毫秒？结果四舍五入到整数。
# 3. 假设每台机器各有一条无线链路，收发两个方向共用这条链路的带宽。写一个以字节矩阵 `matrix` 和带宽
#    `bandwidth`（单位为比特每秒）为参数的函数，返回所有机器收发完毕至少需要多少秒。
# 4. 写一个以 `machines`、`seconds`（机器数依次为 `machines` 中各值时，一轮所用的秒数）和 `share` 为
#    参数的函数，返回加速比不低于理想值的 `share` 倍的最大机器数。`machines` 的第一个元素是 1。

# %% slot="answers"
answer_1 = None  # a list of two numbers
answer_2 = None  # a whole number
answer_3 = None  # a function of matrix and bandwidth
answer_4 = None  # a function of machines, seconds and share
lesson.check(1, answer_1)
lesson.check(2, answer_2)
lesson.check(3, answer_3)
lesson.check(4, answer_4)
