# %% [markdown] slot="title" lang="en"
# # The distributed API
#
# When a graph does not fit in one machine's memory, or training on one machine takes too long, the
# graph is partitioned among the machines of a **cluster**, which are connected by a network and
# work on one job. Each machine stores a range of nodes, with their in-edges and features. This
# lesson covers the interface to such a graph. By the end, you will be able to
#
# - name the processes of a distributed job and say which of them communicate;
# - turn a training script into a distributed one by changing six lines, and check that both train
#   the same model;
# - read and write features that other machines store, and say what happens to duplicate IDs;
# - train embeddings for nodes without features;
# - count the feature rows that a machine requests from each of the others.

# %% [markdown] slot="title" lang="ko"
# # 분산 API
#
# 그래프가 머신 한 대의 메모리에 들어가지 않거나 한 대로는 학습이 너무 오래 걸리면, 그래프를 여러
# 파티션(partition)으로 나누어 **클러스터**의 머신들에 둡니다. 클러스터란 네트워크로 연결되어 한
# 작업을 함께 수행하는 여러 머신을 말합니다. 각 머신은 ID가 연속된 노드의 한 구간을 맡아, 그 노드의
# 피처(feature)와 그 노드로 들어오는 에지를 저장합니다. 이 레슨에서는 학습 스크립트에서 이런
# 그래프를 쓰기 위한 인터페이스를 배웁니다. 레슨을 마치면 다음과 같은 일을 할 수 있습니다.
#
# - 분산 작업을 이루는 프로세스에는 어떤 것이 있으며 서로 어떻게 통신하는지 설명하기
# - 단일 머신용 학습 스크립트에서 여섯 줄만 고치거나 더해 분산 학습(distributed training) 스크립트로
#   바꾸고, 두 스크립트가 같은 모델을 학습하는지 확인하기
# - 다른 머신에 저장된 피처를 읽고 쓰며, 중복된 ID가 있을 때 어떻게 되는지 설명하기
# - 피처가 없는 노드의 임베딩을 학습하기
# - 머신 한 대가 다른 머신에 요청하는 피처 행의 수 세기

# %% [markdown] slot="title" lang="zh"
# # 分布式 API
#
# 如果一台机器的内存装不下整张图，或者单机训练太慢，就要把图切成若干分区（partition），分别放到一个
# **集群**的各台机器上。集群就是由网络连接起来、共同完成一个作业的多台机器。其中每台机器存放一段编号
# 连续的节点，以及这些节点的入边和特征（feature）。本课介绍训练脚本访问这种图的接口。学完之后，你能
# 够：
#
# - 说出分布式作业由哪些进程组成，它们之间如何通信；
# - 只改六行，就把单机训练脚本改成分布式训练（distributed training）脚本，并验证两者训练出同样的模
#   型；
# - 读写存放在其他机器上的特征，并说明 ID 重复时会发生什么；
# - 为没有特征的节点训练嵌入；
# - 统计一台机器要向其他各台机器请求多少特征行。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# Everything here runs in **standalone mode**: one process plays all roles and opens all parts. In
# **distributed mode**, which a launcher starts, the same script runs unchanged, and requests go to
# other processes and machines. DGL's standalone mode supports only one part, gnnlab's any number.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 이 레슨의 코드는 모두 **단독 모드**(standalone mode)로 실행합니다. 단독 모드에서는 프로세스 하나가
# 모든 역할을 맡고 모든 파티션을 엽니다. 런처(launcher)로 시작하는 **분산 모드**(distributed
# mode)에서도 같은 스크립트를 한 줄도 고치지 않고 실행할 수 있습니다. 다만 이때는 요청이 다른
# 프로세스나 다른 머신으로 전송됩니다. DGL의 단독 모드에서는 파티션을 하나만 쓸 수 있지만
# gnnlab에서는 몇 개든 쓸 수 있습니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 本课全部在**独立模式**（standalone mode）下运行：一个进程承担所有角色，并打开所有分区。改用启动器
# （launcher）启动，就进入**分布式模式**（distributed mode）：训练脚本一行不改，请求则发往其他进程和
# 机器。DGL 的独立模式只支持一个分区，gnnlab 则不限分区数。

# %% slot="imports"
from contextlib import redirect_stdout
from functools import cache
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import gnnlab as dgl
import gnnlab.nn as dglnn
from gnnlab.dataloading import BlockSampler, NeighborSampler, NodeDataLoader
from gnnlab.distributed import DistDataLoader, DistEmbedding, DistGraph, DistTensor
from gnnlab.distributed import DistNodeDataLoader, SparseAdagrad, SparseAdam
from gnnlab.distributed import load_partition, node_split, partition_graph
from gnnlab.exercises import Lesson
from gnnlab.plot import BLUE, GREEN, ORANGE

DATASET, PARTS, FANOUTS = "digits", 4, [10, 10]
lesson = Lesson("06", "en")  # exercises, and the style of figures
lesson.style()
torch.set_num_threads(1)
dataset = dgl.data.load(DATASET)

# %% [markdown] slot="roles" lang="en"
# ## Servers, samplers and trainers
#
# In *fully distributed* training, both data and computation are divided among the machines. On each
# machine, a job starts processes in three roles:
#
# - A **server** keeps its machine's part in memory: edges, features and embeddings. It answers
#   requests for rows and for sampled neighbors of its nodes. Several servers on one machine share
#   the part's memory and answer more requests in parallel.
# - A **trainer** runs the training script on its share of the training nodes. It reads its own
#   machine's part directly from shared memory and requests the rest from other machines' servers.
#   Trainers average their gradients by all-reduce, as in data-parallel training.
# - A **sampler** (here a process) prepares mini-batches for one trainer ahead of time; it reads
#   data as a trainer does. Without samplers, trainers do this themselves.

# %% [markdown] slot="roles" lang="ko"
# ## 서버, 샘플러, 트레이너
#
# 데이터와 계산을 모두 여러 머신에 나누는 방식을 **완전 분산** 학습이라고 합니다. 작업을 시작하면
# 머신마다 다음 세 가지 역할의 프로세스가 실행됩니다.
#
# - **서버**(server)는 그 머신의 파티션, 곧 에지, 피처, 임베딩을 메모리에 올려 둡니다. 그리고 피처나
#   임베딩의 행을 읽고 쓰는 요청과, 담당하는 노드의 이웃을 샘플링하는 요청을 처리합니다. 한 머신에
#   서버를 여러 개 두면, 이 서버들은 파티션이 있는 메모리를 공유하면서 더 많은 요청을 동시에
#   처리합니다.
# - **트레이너**(trainer)는 학습 노드 가운데 자기가 담당하는 노드로 학습 스크립트를 실행합니다. 같은
#   머신의 파티션은 공유 메모리(shared memory)에서 바로 읽고, 나머지는 다른 머신의 서버에
#   요청합니다. 머신 한 대에서 데이터 병렬(data parallel) 학습을 할 때처럼, 트레이너끼리는
#   올리듀스(all-reduce)로 그래디언트(gradient)의 평균을 구합니다.
# - **샘플러**(sampler)는 트레이너 하나가 쓸 미니배치(mini-batch)를 미리 만드는 프로세스로, 레슨
#   03의 샘플러 객체와는 다릅니다. 데이터를 읽는 방법은 트레이너와 같습니다. 샘플러는 없어도 되며,
#   그때는 트레이너가 직접 샘플링합니다.

# %% [markdown] slot="roles" lang="zh"
# ## 服务器进程、采样器进程和训练器
#
# 数据和计算都分散到多台机器上的训练，称为**完全分布式**训练。作业启动后，每台机器上运行的进程有三种
# 角色：
#
# - **服务器**（server）进程把本机的分区，即边、特征和嵌入，保存在内存中，主要响应两类请求：读写特征
#   行，以及对归它所有的节点做邻居采样（neighbor sampling）。一台机器上可以有多个服务器进程，它们共
#   享分区所在的内存，能同时处理更多请求。
# - 每个**训练器**（trainer）运行一份训练脚本，处理分给它的训练节点。本机分区的数据直接从共享内存
#   （shared memory）中读取，其余数据则向其他机器的服务器进程请求。与单机的数据并行（data parallel）
#   训练一样，各训练器通过全归约（all-reduce）对梯度（gradient）求平均。
# - 每个**采样器**（sampler）进程只为一个训练器提前准备小批次（mini-batch），读取数据的方式与训练器
#   相同。采样器进程不是必需的：不启用时，由训练器自己采样。

# %% slot="roles-code" tags=["folded"]
place = {"server": (1.2, 0), "sampler": (0, 1), "trainer": (1.2, 2)}
kinds = {"request": {"color": ORANGE}, "shared memory": {"color": ORANGE, "ls": ":"}}
kinds |= {"mini-batches": {"color": GREEN}, "gradients (all-reduce)": {"color": BLUE}}
figure, ax = plt.subplots(figsize=(7.6, 2.9), layout="constrained")
for machine in range(2):
    near = {role: (abs(5.6 * machine - x), y) for role, (x, y) in place.items()}
    far = {role: (5.6 - x, y) for role, (x, y) in near.items()}
    arrows = [(role, far["server"], "request", 0) for role in ("sampler", "trainer")]
    arrows += [("trainer", near["server"], "request", 0.4 - 0.8 * machine)]
    for role in ("sampler", "trainer"):
        arrows += [(role, near["server"], "shared memory", 0)]
    arrows += [("sampler", near["trainer"], "mini-batches", 0)]
    arrows += [("trainer", far["trainer"], "gradients (all-reduce)", 0)]
    for role, end, kind, bend in arrows:
        style = {"arrowstyle": "-|>", "shrinkA": 30, "shrinkB": 30} | kinds[kind]
        style["connectionstyle"] = f"arc3,rad={bend}"
        ax.annotate("", end, near[role], arrowprops=style)
    for role, (x, y) in near.items():
        ax.text(x, y, role, ha="center", va="center", bbox={"fc": "white", "ec": "gray"})
    ax.text(5.6 * machine, 2.6, f"machine {machine}", ha="center")
lines = [plt.Line2D([], [], label=kind, **kinds[kind]) for kind in kinds]
figure.legend(handles=lines, frameon=False, loc="outside right")
ax.set(xlim=(-0.9, 6.5), ylim=(-0.4, 2.8)), ax.axis("off")
plt.show()

# %% [markdown] slot="toy" lang="en"
# Solid arrows point away from the sending process; dotted ones mark direct reads on the same
# machine. Writes always go to the server that owns the row. Servers only answer requests and never
# contact each other.
#
# ## A toy graph small enough to draw
#
# Of the eight nodes, machine 0 owns the blue ones, 0 to 3, and machine 1 the orange ones, 4 to 7.
# Each node has two features: ten times its ID, and the ID itself. The function passed as
# `part_method` assigns each node to a part.
#
# A mini-batch needs the features of nodes 6, 1, 4 and 1, in this order. The right-hand picture
# shows their owners.

# %% [markdown] slot="toy" lang="ko"
# 실선 화살표는 요청, 미니배치, 그래디언트를 보내는 프로세스에서 받는 프로세스로 향합니다. 점선
# 화살표는 같은 머신의 데이터를 공유 메모리에서 직접 읽는 것을 나타냅니다. 트레이너는 같은 머신의
# 서버에도 요청을 보내는데, 이것은 쓰기 요청입니다. 행에 값을 쓰는 일은 언제나 그 행을 소유한 서버가
# 하기 때문입니다. 서버는 요청에 응답하기만 하며, 서버끼리는 통신하지 않습니다.
#
# ## 작은 그래프로 살펴보기
#
# 노드 8개를 머신 두 대에 나누어 둡니다. 파란색 노드 0~3은 머신 0이, 주황색 노드 4~7은 머신 1이
# 소유합니다. 노드마다 피처가 두 개 있습니다. 하나는 ID에 10을 곱한 값이고 다른 하나는 ID
# 그대로입니다. 어느 노드를 어느 파티션에 둘지는 `part_method`에 넘기는 함수가 정합니다.
#
# 어떤 미니배치에 노드 6, 1, 4, 1의 피처가 이 순서로 필요하다고 합시다. 각 행을 어느 머신이
# 소유하는지는 아래 그림의 오른쪽에 나타냅니다.

# %% [markdown] slot="toy" lang="zh"
# 实线箭头从发送方指向接收方；虚线表示直接从共享内存读取本机服务器进程保存的数据。训练器发给本机服务
# 器进程的请求用于写入：一行数据只由拥有它的服务器进程写入。服务器进程只响应请求，彼此之间从不通信。
#
# ## 先看一张小图
#
# 8 个节点分布在两台机器上：机器 0 存放蓝色的节点 0 到 3，机器 1 存放橙色的节点 4 到 7。每个节点有两
# 个特征：ID 的十倍和 ID 本身。传给 `part_method` 的函数决定每个节点属于哪个分区。
#
# 假设某个小批次依次需要节点 6、1、4、1 的特征。右图画出了它们各在哪台机器上。

# %% slot="toy-code"
toy_src = [5, 3, 0, 6, 6, 4, 3, 7, 2, 1, 5, 6, 7]
toy_dst = [0, 0, 2, 2, 4, 5, 1, 6, 3, 2, 7, 4, 5]
toy = dgl.graph((toy_src, toy_dst))
toy.ndata["x"] = torch.tensor([[10.0 * node, node] for node in range(8)])
owner = [0, 0, 0, 0, 1, 1, 1, 1]
halves = {"part_method": lambda graph, num_parts: owner}
partition_graph(toy, "toy", 2, f"{lesson.folder}/toy", **halves)
toy_config = f"{lesson.folder}/toy/toy.json"
ids = torch.tensor([6, 1, 4, 1])

# %% slot="toy-draw" tags=["folded"]
place = [(-2, 1), (-2, -1), (-1, 0), (-3, 0), (1, 0), (2, 1), (2, -1), (3, 0)]
color = [(BLUE, ORANGE)[part] for part in owner]
style = {"ha": "center", "va": "center_baseline", "weight": "bold", "color": "white"}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 2.2), layout="constrained")
dgl.plot.partition_map(toy, owner, halo_of=None, pos=place, ax=left)
for node in range(8):
    right.scatter(node + (node > 3), 0, s=330, marker="s", color=color[node])
    right.text(node + (node > 3), 0, node, **style)
for i, node in enumerate(ids.tolist()):
    right.plot([i + 2.5, node + (node > 3)], [0.82, 0.18], color=color[node])
    right.scatter(i + 2.5, 1, s=330, marker="s", color=color[node])
    right.text(i + 2.5, 1, node, **style)
right.text(1.6, 1, "needed:", ha="right", va="center")
for x, part in ((1.5, 0), (6.5, 1)):
    right.text(x, -0.5, f"machine {part}", ha="center", color=color[4 * part])
right.set(xlim=(-0.8, 8.8), ylim=(-0.7, 1.4))
right.axis("off")
plt.show()

# %% [markdown] slot="ask" lang="en"
# Two of the 13 edges, the black ones, lead from one machine to the other. The lower squares show
# the feature rows as stored; the upper ones, in the order we need.
#
# ## By hand: one request per machine
#
# `load_partition` opens one machine's part; among what it returns are the features of its nodes. To
# know which machine to ask, we need only the start of each range. For each machine, find the
# positions of its nodes in the list of IDs, subtract the first ID of its range from those IDs to
# get row numbers, read these rows together, and store them at these positions.

# %% [markdown] slot="ask" lang="ko"
# 에지 13개 가운데 검은색 두 개는 한 머신에서 다른 머신으로 이어집니다. 오른쪽 그림에서 아래쪽
# 네모는 머신에 저장된 피처 행이고, 위쪽 네모는 미니배치에 필요한 순서로 늘어놓은 행입니다.
#
# ## 직접 만들어 보기: 머신마다 한 번씩 요청하기
#
# `load_partition`은 머신 한 대의 파티션을 열어, 그 머신이 소유한 노드의 피처를 비롯한 여러 정보를
# 반환합니다. 어느 머신에 요청할지는 노드 구간의 시작 ID만 알면 정할 수 있습니다. 머신마다 다음과
# 같이 합니다. ID 목록에서 그 머신이 소유한 ID의 위치를 찾고, ID에서 구간의 시작 ID를 뺀 다음,
# 필요한 행을 한꺼번에 읽어 그 위치에 넣습니다.

# %% [markdown] slot="ask" lang="zh"
# 13 条边中有两条跨机器，在图中画成黑色；从节点 6 到节点 4 的边有两条，在图中重合。右图中，下排方块
# 是存放在各机器上的特征行，上排方块是按所需顺序排列的特征行。
#
# ## 亲手实现：向每台机器只请求一次
#
# `load_partition` 读入一台机器的分区，返回值中包含这台机器上各节点的特征。要判断一个节点存放在哪台
# 机器上，只需知道各段的起始 ID。然后逐台机器处理：找出列表中属于这台机器的 ID 及其位置，用这些 ID
# 减去该段的起始 ID 得到行号，一次读出这些行，再写入结果的相应位置。

# %% slot="ask-code"
machines = [load_partition(toy_config, part) for part in range(2)]
tables = [features["_N/x"] for _, features, *_ in machines]  # shape (4, 2) each
starts = torch.tensor([0, 4, 8])  # start of each range, and the end


def fetch(ids):
    result = torch.empty(len(ids), 2)
    owners = torch.searchsorted(starts, ids, right=True) - 1
    for part in owners.unique().tolist():
        positions = (owners == part).nonzero().flatten()
        rows = ids[positions] - starts[part]
        print(f"machine {part}: rows {rows.tolist()} for positions {positions.tolist()}")
        result[positions] = tables[part][rows]
    return result


by_hand = fetch(ids)
print(by_hand.tolist())

# %% [markdown] slot="dist" lang="en"
# Four rows took two requests; the result is in the order of the IDs.
#
# ## With the library
#
# `initialize` connects the script to the job and must be called first. Its arguments are a file
# that lists the machines, and the numbers of servers per machine (`num_servers`) and of samplers
# per trainer (`num_workers`). A launcher's values take precedence; standalone mode ignores the
# arguments, so the file need not exist. `init_process_group` then creates the process group, here
# of one trainer. A **distributed graph**, `DistGraph`, stores neither edges nor features: it knows
# the ranges and sends the requests. In a distributed job, every `DistGraph` is the one graph given
# to the launcher; in standalone mode, a script may open several. Each feature is a
# **distributed tensor**, a `DistTensor`, which can be indexed in all these ways:

# %% [markdown] slot="dist" lang="ko"
# 행 네 개를 얻는 데 요청은 두 번이면 충분했고, 결과는 ID와 같은 순서로 놓였습니다.
#
# ## 라이브러리 사용하기
#
# `initialize`는 스크립트를 실행한 프로세스를 분산 작업에 연결하는 함수로, 모든 스크립트에서 가장
# 먼저 호출합니다. 인자로는 머신 목록 파일, 머신당 서버 수(`num_servers`), 트레이너당 샘플러
# 수(`num_workers`)를 받습니다. 런처로 시작한 작업에서는 런처에서 정한 값이
# 인자보다 우선합니다. 단독 모드에서는 이 인자를 쓰지 않으므로 파일이 없어도 됩니다. 이어서
# `init_process_group`을 호출하면 트레이너 그룹이 만들어지는데, 단독 모드에서는 트레이너가
# 하나뿐입니다. **분산 그래프**(distributed graph)인 `DistGraph`에는 에지도 피처도 들어 있지
# 않습니다. 노드 구간 정보만 가지고 있다가 필요할 때 요청을 보냅니다. 분산 작업 하나에서 여는
# `DistGraph`는 모두 런처에 지정한 그래프 하나를 가리키지만, 단독 모드에서는 스크립트
# 하나에서 여러 그래프를 열 수 있습니다. 분산 그래프의 피처는 하나하나가 **분산 텐서**(distributed
# tensor)인 `DistTensor`이며, 다음과 같은 여러 형식으로 인덱싱할 수 있습니다.

# %% [markdown] slot="dist" lang="zh"
# 取四行只发了两次请求，结果的顺序与 ID 列表一致。
#
# ## 使用库
#
# `initialize` 让脚本加入作业，每个脚本都要最先调用它。它的参数包括机器列表文件、每台机器的服务器进
# 程数（`num_servers`）和每个训练器的采样器进程数（`num_workers`）。如果作业由启动器启动，则以启动时
# 设定的值为准；独立模式不使用这些参数，所以机器列表文件不必存在。接着 `init_process_group` 建立只含
# 一个训练器的进程组。**分布式图**（distributed graph）`DistGraph` 本身不存边和特征，只记录节点的分
# 段方式，需要数据时再发出请求。一个分布式作业里的 `DistGraph` 都指同一张图，即启动作业时指定的那一
# 张；在独立模式下，一个脚本可以打开多张图。图的每个特征都是一个**分布式张量**（distributed tensor）
# `DistTensor`，支持下面这些索引方式：

# %% slot="dist-code"
dgl.distributed.initialize("ip_config.txt")
torch.distributed.init_process_group("gloo")
small = DistGraph("toy", part_config=toy_config)
print(small)
x, odd = small.ndata["x"], torch.arange(8) % 2 == 1
assert torch.equal(x[ids], by_hand)
for index in (6, [6, 1], slice(2, 6), np.array([6, 1]), ids, odd):
    kind, rows = type(index).__name__, x[index]
    print(f"{kind:>7}: shape {tuple(rows.shape)}, first column {rows[:, 0].tolist()}")

# %% [markdown] slot="write" lang="en"
# `x[ids]` equals the rows fetched by hand. Unlike an ordinary tensor, a distributed one returns
# shape `(1, 2)` for one ID: the first dimension counts rows. Sums, means and arithmetic need
# ordinary tensors, so read the rows first.
#
# A script can also create distributed tensors. Creation is synchronized: all trainers must call
# `DistTensor` with the same arguments. The number of rows determines what the tensor belongs to: 8
# rows mean the nodes, 13 the edges; if two types have the same number, `part_policy` must name one.
# Each part is initialized by `init_func`, or with zeros. DGL runs this function on the servers, so
# it must be defined before `initialize`; in gnnlab, one trainer per machine runs it, so it may come
# later. With a name, the tensor becomes a feature of the graph, and a second `DistTensor` with this
# name is the same tensor if shape and dtype match. The tensor is deleted with its last reference
# unless created with a name and `persistent=True`.

# %% [markdown] slot="write" lang="ko"
# `x[ids]`의 결과는 앞에서 직접 가져온 행과 같습니다. 다만 일반 텐서와 달리 ID 하나를 주어도 결과의
# 모양은 `(1, 2)`입니다. 첫 번째 차원은 언제나 행의 수이기 때문입니다. 합계나 평균을 구하거나 산술
# 연산을 하려면 먼저 행을 읽어 일반 텐서로 만들어야 합니다.
#
# 스크립트에서 분산 텐서를 새로 만들 수도 있습니다. 이때는 트레이너끼리
# 동기화(synchronization)하므로, 모든 트레이너에서 `DistTensor`를 같은 인자로 호출해야 합니다.
# 무엇에 대한 텐서인지는 행의 수로 정해집니다. 행이 8개면 노드에 대한 텐서이고 13개면 에지에 대한
# 텐서입니다. 개수가 같은 타입이 둘 이상이어서 구별할 수 없으면 `part_policy`로 지정해야 합니다.
# 초깃값은 파티션마다 `init_func`로 만들며, 지정하지 않으면 0입니다. DGL에서는 이 함수를 서버가
# 실행하므로 `initialize`보다 먼저 정의해야 합니다. gnnlab에서는 머신마다 트레이너 하나가 이 함수를
# 실행하므로, `initialize` 뒤에 정의한 함수도 쓸 수 있습니다.
#
# 텐서에 이름을 붙이면 그 이름으로 그래프의 피처가 됩니다. 같은 이름으로 `DistTensor`를 또 만들어도
# 모양과 dtype이 같으면 이미 있는 텐서를 그대로 씁니다. 텐서는 마지막 참조가 없어질 때 삭제되지만,
# 이름을 붙이고 `persistent=True`로 만든 텐서는 남습니다.

# %% [markdown] slot="write" lang="zh"
# `x[ids]` 与我们手动取得的行相同。与普通张量不同的是，只给一个 ID 时结果的形状也是 `(1, 2)`：第一维
# 始终是行数。求和、求平均以及算术运算只能对普通张量进行，所以要先把行读出来。
#
# 脚本也可以新建分布式张量。创建时需要同步（synchronization）：所有训练器都要以相同的参数调用
# `DistTensor`。张量属于节点还是边，由行数决定：例如在小图上，有 8 行就属于节点，有 13 行就属于边；
# 如果有几种类型的节点数或边数恰好相同，就要用 `part_policy` 指定。各分区的初始值由 `init_func` 生
# 成，不指定时为零。DGL 在服务器进程中运行这个函数，因此它必须在 `initialize` 之前定义；在 gnnlab
# 中，它由每台机器上的一个训练器运行，没有这个限制。如果给了名字，张量就成为图的一个特征；再用同一个
# 名字创建 `DistTensor`，只要形状和 dtype 一致，得到的就是同一份数据。最后一个引用消失时，张量随之删
# 除，除非创建时给了名字，并设 `persistent=True`。


# %% slot="write-code"
def sevens(shape, dtype):
    print("initial values of a part:", shape, dtype)
    return torch.full(shape, 7, dtype=dtype)


h = joined = None  # a second run of this cell creates them again
# new tensors belong to the graph opened last
small = DistGraph("toy", part_config=toy_config)
shape, policy = (small.num_nodes(), 2), small.get_node_partition_policy("_N")
h = DistTensor(shape, torch.float32, name="h", init_func=sevens, part_policy=policy)
h[[6, 1]] = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
h[2:5] = 0
joined = DistTensor(shape, torch.float32, name="h")
joined[7] = 9
print(small.ndata["h"][:].tolist())
print(f"full name {h.name}, {h.part_policy}")
for wrong in ((8, 3), (9, 2)):
    try:
        DistTensor(wrong, torch.float32, name="h")
    except dgl.GNNLabError as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown] slot="query" lang="en"
# `sevens` was called once per part. `h` and `joined` are the same tensor: the 9 written to
# `joined[7]` is in the last row. The tensor's full name begins with its partition policy,
# `node~_N`, where `_N` names the only node type. The errors report a row shape that differs from
# the existing one, and a number of rows that fits no type. If several trainers write the same row,
# the last write wins; before a trainer reads what others have written, all trainers must call
# `g.barrier()`.
#
# `DistGraph` also answers the queries that mini-batches need: in-degrees, edge endpoints and
# sampled edges. `sample_neighbors` returns a **frontier**: an ordinary graph with all nodes and the
# sampled edges.

# %% [markdown] slot="query" lang="ko"
# `sevens`는 파티션마다 한 번씩 호출되었습니다. `joined[7]`에 쓴 9가 `h`의 마지막 행에 나타난 데서
# 보듯이 `h`와 `joined`는 같은 텐서입니다. 텐서의 전체 이름은 파티션 정책(partition policy)을
# 나타내는 `node~_N`으로 시작합니다. `_N`은 노드 타입이 하나뿐일 때의 기본 타입 이름입니다. 행의
# 모양이나 행의 수가 맞지 않으면 오류가 발생합니다. 여러 트레이너가 한 행에 값을 쓰면 마지막에 쓴
# 값이 남습니다. 다른 트레이너가 쓴 값을 읽으려면, 읽기 전에 모든 트레이너에서 `g.barrier()`를
# 호출하여 쓰기가 끝나기를 기다려야 합니다.
#
# 입차수 조회, 에지의 양 끝 노드 조회, 이웃 샘플링(neighbor sampling)처럼 미니배치를 만드는 데
# 필요한 기능도 `DistGraph`에서 쓸 수 있습니다. `sample_neighbors`는 모든 노드와 샘플링한 에지로
# 이루어진 일반 그래프를 반환하며, 이를 **프런티어**(frontier)라고 합니다.

# %% [markdown] slot="query" lang="zh"
# 每个分区各调用了一次 `sevens`。写入 `joined[7]` 的 9 出现在 `h` 的最后一行，可见 `h` 和 `joined`
# 是同一个张量。这个张量的全名以分区策略（partition policy）`node~_N` 开头，其中 `_N` 是唯一的节点类
# 型的名称。行的形状与已有的同名张量不同，或者行数与任何一种类型的节点数、边数都不相等，都会报错。多
# 个训练器写同一行时，以最后写入的值为准；要读到其他训练器写入的值，所有训练器须先调用
# `g.barrier()`。
#
# 准备小批次所需的信息也由 `DistGraph` 提供：节点的入度、边的端点、采样到的边。`sample_neighbors` 返
# 回一张普通的图，含有全部节点和采样到的边，称为**边界子图**（frontier）。

# %% slot="query-code"
print("in-degrees of nodes 2 and 4:", small.in_degrees([2, 4]).tolist())
print("edges 0, 4, 12:", *zip(*(ends.tolist() for ends in small.find_edges([0, 4, 12]))))
dgl.seed(0)
frontier = dgl.distributed.sample_neighbors(small, [0, 4], 1)
print("sampled edges into 0 and 4:", *zip(*(ends.tolist() for ends in frontier.edges())))
print("edge IDs:", frontier.edata[dgl.EID].tolist())
print("number of nodes:", frontier.num_nodes())

# %% [markdown] slot="sample" lang="en"
# Partitioning renumbers edges, too: those of part 0 come first.
#
# ## Sampling from a partitioned graph
#
# The caller samples in-edges of its own machine's nodes, asks servers to sample those of other
# nodes, and merges the results. Samples must not depend on the partition, so a node's random
# numbers are computed from the random seed and the node's original ID. We check this with what DGL
# calls the low-level interface: `sample_blocks` samples layer by layer, and `DistDataLoader` calls
# it for each batch. (The high-level one, `DistNodeDataLoader` with a sampler, follows. Sampler
# processes are started by `initialize`, not by the `num_workers` of a torch `DataLoader`: its
# workers are forked from the trainer, whose connections they cannot use.) The graph of handwritten
# digits is partitioned at random into 1, 2 and 4 parts. With IDs mapped back by `mapping`, every
# block must equal that of the library's sampler on the whole graph.

# %% [markdown] slot="sample" lang="ko"
# 그래프를 나누면 노드뿐 아니라 에지에도 ID를 새로 매기며, 파티션 0의 에지가 앞에 옵니다.
#
# ## 분할된 그래프에서 샘플링하기
#
# 같은 머신의 노드로 들어오는 에지는 호출한 프로세스가 직접 샘플링하고, 다른 머신의 노드로 들어오는
# 에지는 그 머신의 서버에 샘플링을 요청한 다음, 두 결과를 합칩니다. 샘플링 결과는 그래프를 나누는
# 방법에 따라 달라지면 안 됩니다. 그래서 노드별 난수는 난수 시드와, 그래프를 나누기 전의 노드 ID로
# 계산합니다. 이 성질을 DGL 사용자 가이드에서 저수준(low-level)이라고 부르는 방법으로 확인해 봅시다.
# 한 계층씩 샘플링하는 함수 `sample_blocks`를 작성하고, `DistDataLoader`가 배치마다 이 함수를
# 호출하게 합니다. 손글씨 숫자 그래프를 파티션 1개, 2개, 4개로 무작위로 나눕니다. `mapping`을 써서
# 블록(block)의 노드 ID를 원래 ID로 되돌리면, 나누지 않은 그래프에서 라이브러리의 샘플러로 만든
# 블록과 노드, 에지가 모두 같아야 합니다.
#
# 고수준(high-level) 방법에서는 `DistNodeDataLoader`에 샘플러 객체를 넘기며, 이 방법은 뒤에서
# 다룹니다. 미니배치를 미리 만드는 샘플러 프로세스는 `initialize`에서 시작합니다. torch
# `DataLoader`의 `num_workers`는 쓰지 않습니다. 트레이너에서 포크(fork)한 프로세스는 트레이너의
# 연결을 쓸 수 없기 때문입니다.

# %% [markdown] slot="sample" lang="zh"
# 切分时节点和边都会重新编号，分区 0 的边排在前面；所以这里的边 ID，无论是查找时传入的，还是打印出来
# 的，都是新 ID。
#
# ## 在切分后的图上采样
#
# 本机节点的入边由调用方自己采样，其他机器上节点的入边由那台机器的服务器进程采样，最后由调用方合并结
# 果。采样结果不应随切分方式而变，因此为每个节点采样所用的随机数，由随机种子、轮、批次、层和该节点的
# 原始 ID 算出。下面用 DGL 用户指南中的底层（low-level）接口来验证：`sample_blocks` 逐层采样，
# `DistDataLoader` 对每个批次调用它。我们把由手写数字图像构成的图分别随机切成 1、2、4 个分区。用
# `mapping` 换回原始 ID 之后，每个块（block）的节点和边都必须与库的采样器在整张图上得到的完全一致。
#
# 另有高层（high-level）接口：把采样器对象传给 `DistNodeDataLoader`，见下文。采样器进程由
# `initialize` 启动，不使用 torch `DataLoader` 的 `num_workers`：那样得到的工作进程由训练器派生而
# 来，无法使用训练器已建立的连接。


# %% slot="sample-code"
def sample_blocks(seeds):
    blocks = []
    for fanout in reversed(FANOUTS):
        frontier = dgl.distributed.sample_neighbors(parted, seeds, fanout)
        blocks.insert(0, dgl.to_block(frontier, seeds))
        seeds = blocks[0].srcdata[dgl.NID]
    return blocks


in_memory = (dataset[0], dataset.train_idx, NeighborSampler(FANOUTS))
for parts in (1, 2, 4):
    dgl.seed(0)
    wish = {"part_method": "random", "return_mapping": True}
    folder = f"{lesson.folder}/{parts}"
    mapping, _ = partition_graph(dataset[0], DATASET, parts, folder, **wish)
    parted = DistGraph(DATASET, part_config=f"{folder}/{DATASET}.json")
    seeds = mapping.argsort()[dataset.train_idx]
    through_parts = DistDataLoader(seeds, 32, collate_fn=sample_blocks, seed=0)
    whole = NodeDataLoader(*in_memory, batch_size=32, seed=0)
    for found, (*_, blocks) in zip(through_parts, whole, strict=True):
        for mine, theirs in zip(found, blocks, strict=True):
            assert torch.equal(mapping[mine.srcdata[dgl.NID]], theirs.srcdata[dgl.NID])
            assert all(map(torch.equal, mine.edges(), theirs.edges()))

# %% [markdown] slot="split" lang="en"
# No `assert` failed: all blocks match, although random partitioning into 4 parts cuts three
# quarters of the edges.
#
# ## Dividing the training nodes
#
# `node_split` gives each trainer its share of the training nodes. It prefers nodes on the trainer's
# own machine, since reading their features needs no network. Store the training mask as a node
# feature before partitioning, so that it is partitioned too.
#
# For link prediction, `edge_split` divides edges the same way. `DistEdgeDataLoader` makes the
# batches; its options are those of `EdgeDataLoader`, with new IDs in `reverse_eids`. [This
# example](../../examples/train_dist_link.py) uses both.
#
# In the toy graph, we divide the first six nodes, four on machine 0 and two on machine 1, and,
# separately, all edges. With `rank`, we see every trainer's share.

# %% [markdown] slot="split" lang="ko"
# `assert`에서 오류가 나지 않았으므로 모든 블록이 같습니다. 출력에서 보듯이 파티션 4개로 나누면
# 에지의 4분의 3이 서로 다른 파티션에 걸치는데도 결과는 같습니다.
#
# ## 학습 노드 나누기
#
# `node_split`은 학습 노드를 트레이너에 나누어 줍니다. 이를 **워크로드 분할**(workload split)이라고
# 합니다. 네트워크를 거치지 않고 피처를 읽을 수 있도록, 각 트레이너에는 같은 머신에 있는 노드를 먼저
# 배정합니다. 실제 작업에서는 그래프를 나누기 전에 학습 노드를 나타내는 마스크를 노드 피처로 저장해
# 두어, 마스크도 파티션별로 저장되게 합니다.
#
# 링크 예측(link prediction)을 할 때는 `edge_split`으로 에지를 같은 방식으로 나누고,
# `DistEdgeDataLoader`로 배치를 만듭니다. 옵션은 `EdgeDataLoader`와 같으며, `reverse_eids`에는
# 그래프를 나눈 뒤의 새 ID를 적습니다. 둘을 함께 쓰는 학습 스크립트는
# [예제](../../examples/train_dist_link.py)에서 볼 수 있습니다.
#
# 작은 그래프의 앞쪽 노드 여섯 개와 에지 전부를 학습에 쓴다고 합시다. 노드 네 개는 머신 0에, 두 개는
# 머신 1에 있습니다. 트레이너는 보통 자기가 담당할 것만 받지만, 여기서는 두 트레이너가 담당할 노드와
# 에지를 모두 보기 위해 `rank`를 지정합니다.

# %% [markdown] slot="split" lang="zh"
# `assert` 全部通过：随机切成 4 个分区时，约有四分之三的边跨分区，采样得到的块仍然完全一致。
#
# ## 划分训练节点
#
# `node_split` 把训练节点分给各个训练器，这叫作**工作负载划分**（workload split）。优先分配训练器所
# 在机器上的节点，因为读取它们的特征不经过网络。标记训练节点的掩码要在切分之前存为图的特征，这样它也
# 会按分区存放。
#
# 做链接预测（link prediction）时，用 `edge_split` 以同样的方式划分边，再由 `DistEdgeDataLoader` 生
# 成批次。它的选项与 `EdgeDataLoader` 相同，但 `reverse_eids` 中要用切分之后的新 ID。完整的训练脚本
# 见[示例](../../examples/train_dist_link.py)。
#
# 假设小图的前六个节点和全部边用于训练；六个节点中，四个在机器 0 上，两个在机器 1 上。训练器通常只取
# 自己的那一份；这里为了看到全部，我们指定 `rank`。

# %% slot="split-code"
mask, book = torch.arange(8) < 6, small.get_partition_book()
for even in (False, True):
    for rank in range(2):
        share = node_split(mask, book, rank=rank, num_trainers=2, force_even=even)
        print(f"force_even={even}, trainer {rank}: {share.tolist()}")
for rank in range(2):
    share = dgl.distributed.edge_split(torch.arange(13), book, rank=rank, num_trainers=2)
    print(f"edges of trainer {rank}: {share.tolist()}")

# %% [markdown] slot="loop" lang="en"
# With `force_even=False`, trainer 0 takes twice as many steps; in data-parallel training, it would
# then wait for gradients from a trainer that has finished. The default, `True`, moves one node to
# the other trainer, which requests its features from machine 0. If the number is odd, as with the
# 13 edges, one goes to both trainers.
#
# ## From one machine to many: six lines
#
# Here are a model and the familiar loop for one machine. The graph is partitioned once, by METIS
# (without pymetis, as on Windows, by LDG: more rows are remote); we keep the original IDs,
# `old_ids`.

# %% [markdown] slot="loop" lang="ko"
# `force_even=False`이면 트레이너 0의 단계 수가 트레이너 1의 두 배가 됩니다. 그러면 데이터 병렬
# 학습에서는 트레이너 1이 먼저 끝나고, 트레이너 0은 오지 않을 트레이너 1의 그래디언트를 계속
# 기다리게 됩니다. 기본값인 `True`에서는 노드 하나를 다른 트레이너로 옮깁니다. 그 트레이너는 이
# 노드의 피처를 머신 0에 요청해야 합니다. 에지 13개를 나눌 때처럼 개수가 홀수이면 그중 하나는 두
# 트레이너가 모두 담당합니다.
#
# ## 머신 한 대에서 여러 대로: 여섯 줄
#
# 다음은 계층이 두 개인 모델과, 앞의 레슨들에서 익힌 단일 머신용 학습 루프입니다. 그래프는 분산
# 작업을 시작하기 전에 한 번만 나누면 됩니다. 여기서는 기본값인 METIS로 나누고, 새 ID를 받은
# 노드들의 원래 ID를 담은 `old_ids`를 보관합니다. (Windows처럼 pymetis 패키지를 쓸 수 없는
# 환경에서는 METIS 대신 LDG를 쓰며, 이때는 원격 행의 수가 본문의 수치보다 많습니다.)

# %% [markdown] slot="loop" lang="zh"
# 如果 `force_even=False`，训练器 0 的步数就是训练器 1 的两倍；在数据并行训练中，它会一直等待已经结
# 束的训练器 1 的梯度。默认值是 `True`，这时训练器 0 的一个节点改分给训练器 1，训练器 1 要向机器 0
# 请求它的特征。如果总数是奇数，例如这里的 13 条边，就有一条边会同时分给两个训练器。
#
# ## 从单机到多机：改六行
#
# 下面是一个两层的模型，以及大家熟悉的单机训练循环。图只需在作业开始之前切分一次；这里用默认的 METIS
# 切分，并把各节点的原始 ID 存入 `old_ids`。（如果没有 pymetis 包，例如在 Windows 上，则改用 LDG，要
# 从其他机器读取的行会比正文所说的多。）


# %% slot="model-code" tags=["nbval-ignore-output"]
class SAGE(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        sizes = [inputs, *[64] * (len(FANOUTS) - 1), outputs]
        layers = [dglnn.SAGEConv(*ends, "mean") for ends in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)

    def forward(self, blocks, x):
        for layer, block in zip(self.layers, blocks, strict=True):
            x = layer(block, x if layer is self.layers[0] else F.relu(x))
        return x


num_features, num_classes = dataset[0].ndata["feat"].shape[1], dataset.num_classes
best = dgl.partition.plan(dataset[0], PARTS).part_method
as_told = (DATASET, PARTS, FANOUTS, best) == ("digits", 4, [10, 10], "metis")
dgl.seed(0)
folder = f"{lesson.folder}/whole"
old_ids, _ = partition_graph(dataset[0], DATASET, PARTS, folder, return_mapping=True)
config = f"{folder}/{DATASET}.json"
batches = {"batch_size": 32, "shuffle": True, "seed": 0}


# %% slot="loop-code"
def train_alone():
    g = dataset[0]
    train_ids = dataset.train_idx
    torch.manual_seed(0)
    model = SAGE(num_features, num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sampler = NeighborSampler(FANOUTS)
    loader = NodeDataLoader(g, train_ids, sampler, **batches)
    for _ in range(10):
        for input_nodes, output_nodes, blocks in loader:
            scores = model(blocks, g.ndata["feat"][input_nodes])
            loss = F.cross_entropy(scores, g.ndata["label"][output_nodes])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return g, model


# %% [markdown] slot="four" lang="en"
# The distributed version opens the graph as a `DistGraph`, takes its share of the training nodes,
# wraps the model so that gradients are averaged, and loads batches with `DistNodeDataLoader`. These
# lines differ:

# %% [markdown] slot="four" lang="ko"
# 분산 학습용 루프에서는 그래프를 `DistGraph`로 열고, 담당할 학습 노드를 받고, 그래디언트의 평균을
# 구하도록 모델을 감싸고, `DistNodeDataLoader`로 배치를 읽습니다. 루프 전체를 적은 다음, 서로 다른
# 줄만 Python으로 출력해 봅시다.

# %% [markdown] slot="four" lang="zh"
# 分布式版本用 `DistGraph` 打开图，取得自己的那份训练节点，包装模型以便对梯度求平均，并用
# `DistNodeDataLoader` 读取批次。我们把它完整写出来，再让 Python 打印出不同的行。


# %% slot="four-code"
def train_distributed():
    g = DistGraph(DATASET, part_config=config)
    train_ids = node_split(g.ndata["train_mask"])
    torch.manual_seed(0)
    model = DistributedDataParallel(SAGE(num_features, num_classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sampler = NeighborSampler(FANOUTS)
    loader = DistNodeDataLoader(g, train_ids, sampler, **batches)
    for _ in range(10):
        for input_nodes, output_nodes, blocks in loader:
            scores = model(blocks, g.ndata["feat"][input_nodes])
            loss = F.cross_entropy(scores, g.ndata["label"][output_nodes])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return g, model


import difflib
import inspect

loops = (train_alone, train_distributed)
lines = [inspect.getsource(loop).splitlines()[1:] for loop in loops]
print(*(line for line in difflib.ndiff(*lines) if line[0] in "+-"), sep="\n")

# %% [markdown] slot="prove" lang="en"
# Four lines differ; `initialize` and `init_process_group` at the beginning of the script make six.
# For other code from DGL's guide, see [this table](../../docs/from_the_guide.md).
#
# ## Check that they agree
#
# Do both train the same model? To compare, we give the single-machine loop the training nodes of
# the distributed one, in the same order, mapped back by `old_ids`. After ten epochs, we compare all
# parameters and the validation accuracy, computed from all neighbors with our own sampler, which
# runs on both graphs.

# %% [markdown] slot="prove" lang="ko"
# 루프에서는 네 줄이 다르고, 스크립트 첫머리에 `initialize`와 `init_process_group`을 더하면 모두
# 여섯 줄입니다. DGL 사용자 가이드에 나오는 그 밖의 코드는 [이
# 표](../../docs/from_the_guide.ko.md)에서 찾아볼 수 있습니다.
#
# ## 결과가 같은지 확인하기
#
# 두 루프는 같은 모델을 학습할까요? 그러려면 같은 노드를 같은 순서로 써야 합니다. 그래서 분산 학습에
# 쓴 학습 노드를 `old_ids`를 써서 원래 ID로 바꾼 뒤, 같은 순서로 단일 머신용 루프에 넘깁니다.
# 10에폭(epoch) 동안 학습한 뒤 모든 매개변수를 비교하고, 이어서 모든 이웃을 써서 구한 검증
# 세트(validation set)의 정확도를 비교합니다. 정확도를 구할 때는 직접 작성한 샘플러 하나를 두
# 그래프에 똑같이 사용합니다.

# %% [markdown] slot="prove" lang="zh"
# 两个函数有四行不同，再加上脚本开头的 `initialize` 和 `init_process_group`，一共六行。DGL 用户指南
# 中的其他代码对应本课程的哪些位置，可查[这张表](../../docs/from_the_guide.zh.md)。
#
# ## 验证两者一致
#
# 两者训练出的模型相同吗？为了便于比较，两个循环必须按相同的顺序使用相同的训练节点，所以我们用
# `old_ids` 把分布式循环的训练节点换算成原始 ID，再交给单机循环。训练十轮（epoch）之后，先比较所有参
# 数，再比较验证集（validation set）上的准确率；计算准确率时使用全部邻居，采样器由我们自己来写，同一
# 个采样器在两种图上都能运行。


# %% slot="prove-code" tags=["nbval-ignore-output"]
class AllNeighbors(BlockSampler):
    def sample_frontier(self, layer_id, g, nodes):
        return dgl.in_subgraph(g, nodes)


def accuracy(g, model, x):
    ids, hits = g.ndata["val_mask"][:].nonzero().flatten(), []
    sampler = AllNeighbors(len(FANOUTS), return_eids=False)
    with torch.no_grad():
        for i, o, blocks in DistNodeDataLoader(g, ids, sampler, batch_size=1000):
            hits.append(model(blocks, x[i]).argmax(1) == g.ndata["label"][o])
    return torch.cat(hits).float().mean().item()


g, there = train_distributed()
dataset.train_idx = old_ids[node_split(g.ndata["train_mask"])]
whole, here = train_alone()
for mine, theirs in zip(here.parameters(), there.parameters(), strict=True):
    assert torch.allclose(mine, theirs, atol=1e-6)
rates = []
for name, each, model in (("alone", whole, here), ("distributed", g, there)):
    rates.append(accuracy(each, model, each.ndata["feat"]))
    print(f"{name}: validation accuracy {rates[-1]:.3f}")
assert abs(rates[0] - rates[1]) < 0.002

# %% [markdown] slot="twice" lang="en"
# Parameters and accuracies agree.
#
# ## Duplicate IDs
#
# Reading a duplicate ID repeats the row. Writing keeps the last value, so `+= 1`, which reads, adds
# and writes back, adds 1 only once. Gradients are different: each use of a row contributes to the
# loss, so its gradients must be **summed**.
#
# Learned rows belong to a **distributed embedding**, `DistEmbedding`. It is not an `nn.Module`: its
# rows stay on their machines, and `DistributedDataParallel` does not average their gradients.
# Calling it reads embedding rows and records which ones; after `backward`, all trainers call the
# `step` method of a **sparse optimizer**. Each trainer sums its gradients for duplicate IDs and
# sends the sums to the rows' owners. The owners add up all trainers' sums, divide by the number of
# trainers, as in data-parallel training, and update only these rows. Does one step of
# `SparseAdagrad` equal one of `torch.optim.Adagrad`?

# %% [markdown] slot="twice" lang="ko"
# 매개변수는 반올림 오차 범위에서 일치하고, 정확도도 같습니다.
#
# ## 중복된 ID
#
# ID가 중복되어도 읽을 때는 문제가 없습니다. 같은 행이 여러 번 나올 뿐입니다. 쓸 때는 마지막 값이
# 남습니다. `+= 1`은 값을 읽어 1을 더한 뒤 다시 쓰므로, 중복된 ID에도 1이 한 번만 더해집니다.
# 그래디언트는 다릅니다. 행은 계산에 사용될 때마다 손실에 영향을 주므로 그래디언트를 **모두 더해야**
# 합니다.
#
# 학습할 행에는 **분산 임베딩**(distributed embedding)인 `DistEmbedding`을 씁니다. `DistEmbedding`은
# `nn.Module`이 아닙니다. 임베딩 행은 각 머신에 그대로 있으며, 그 그래디언트의 평균은
# `DistributedDataParallel`이 구하지 않습니다. 임베딩을 호출하면 그 행을 읽어 오고 어느 행을
# 읽었는지 기록합니다. `backward` 다음에는 모든 트레이너에서 **희소 옵티마이저**(sparse optimizer)의
# `step`을 호출합니다. 각 트레이너는 중복된 ID의 그래디언트를 먼저 더한 다음 그 행의
# 소유자(owner)에게 보냅니다. 소유자는 여러 트레이너에서 온 값을 더하여, 데이터 병렬 학습에서처럼
# 트레이너 수로 나누고, 해당하는 행만 갱신합니다. `SparseAdagrad`의 한 단계는
# `torch.optim.Adagrad`의 한 단계와 결과가 같을까요?

# %% [markdown] slot="twice" lang="zh"
# 参数一致，准确率也一致。
#
# ## 重复的 ID
#
# 读取重复的 ID 没有问题，同一行会出现多次。写入时，最后写入的值生效；因此 `+= 1`（先读、再加、后写
# 回）对重复的 ID 也只加一次 1。梯度则不同：一行每用一次都会影响损失，所以它的各个梯度必须**相加**。
#
# 需要学习的行用**分布式嵌入**（distributed embedding）`DistEmbedding`。它不是 `nn.Module`：嵌入行留
# 在各自的机器上，`DistributedDataParallel` 不会对它们的梯度求平均。调用 `DistEmbedding` 对象会读出
# 嵌入行，并记录读了哪些行；`backward` 之后，所有训练器都要调用**稀疏优化器**（sparse optimizer）的
# `step`。每个训练器先把自己的重复 ID 的梯度相加，再发送给这些行的所有者（owner）；所有者把各训练器
# 发来的梯度相加，像数据并行训练那样除以训练器的个数，并且只更新这些行。`SparseAdagrad` 更新一步的结
# 果，与 `torch.optim.Adagrad` 相同吗？

# %% slot="twice-code"
count = DistTensor((8,), torch.int64, part_policy=policy)
print("read:", x[[3, 3]].tolist())
count[[3, 3, 5]] = torch.tensor([1, 2, 9])
print("after writing 1, then 2:", count[3].item())
count[[3, 3, 5]] += 1
print("after += 1:", count[[3, 5]].tolist())

emb, dense = DistEmbedding(8, 2, part_policy=policy), nn.Embedding(8, 2)
nn.init.zeros_(dense.weight)  # like the rows of emb
ours = SparseAdagrad([emb], lr=0.1)
theirs = torch.optim.Adagrad(dense.parameters(), lr=0.1)
twice, gradients = torch.tensor([3, 3, 5]), torch.tensor([[1.0], [3.0], [2.0]])
for table, optimizer in ((emb, ours), (dense, theirs)):
    (gradients * table(twice)).sum().backward()
    optimizer.step()
assert torch.allclose(emb.weight[:], dense.weight)
moved = emb.weight[[3]][0, 0].item()
print(f"row 3 changed by {moved:.3f}")
assert abs(moved + 0.1 * (1 + 3) / (1 + 3)) < 1e-6

# %% [markdown] slot="trans" lang="en"
# They are equal. Adagrad divides by the square root of the sum of squared gradients; the sum is
# stored with each row. Row 3 moved by $0.1 \cdot 4 / \sqrt{(1 + 3)^2} = 0.1$: the gradients were
# summed first. With $\sqrt{1^2 + 3^2}$, it would be 0.126.
#
# ## Nodes without features
#
# Many nodes, such as users and products, have no features. Each then gets a learned embedding row.
# A model with such embeddings is called *transductive*: it has learned nothing for nodes added
# later. Most parameters are embeddings, so they are partitioned like the graph, and each batch
# updates only a few.
#
# We leave out the pixels and train with **two optimizers**: torch's `Adam` for the layers, and
# `SparseAdam` or `SparseAdagrad` for the embeddings. For comparison, we also train with fixed
# random embeddings.

# %% [markdown] slot="trans" lang="ko"
# 두 결과는 같습니다. Adagrad는 지금까지 누적한 그래디언트 제곱합의 제곱근으로 그래디언트를
# 나누는데, 이 제곱합은 행마다 따로 저장됩니다. 행 3은 $0.1 \cdot 4 / \sqrt{(1 + 3)^2} = 0.1$만큼
# 움직였으므로 그래디언트를 먼저 더했음을 알 수 있습니다. 따로 제곱하여 $\sqrt{1^2 + 3^2}$으로
# 나누었다면 0.126만큼 움직였을 것입니다.
#
# ## 피처가 없는 노드
#
# 사용자나 상품처럼 ID만 있고 피처가 없는 노드가 많습니다. 이럴 때는 노드마다 학습할 임베딩 행을
# 하나씩 둡니다. 나중에 추가된 노드에는 학습된 임베딩이 없어 이런 모델을 쓸 수 없습니다. 그래서 이런
# 모델을 **변환적**(transductive) 모델이라고 합니다. 임베딩은 전체 매개변수의 대부분을 차지합니다.
# 그래서 그래프처럼 여러 머신에 나누어 저장하고, 배치마다 그중 일부만 갱신합니다.
#
# 손글씨 숫자의 픽셀을 쓰지 않고 **옵티마이저 두 개**로 학습합니다. 트레이너마다 복사본이 있는
# 계층에는 torch의 `Adam`을, 임베딩에는 `SparseAdam`이나 `SparseAdagrad`를 씁니다. 비교를 위해,
# 임베딩을 무작위 초깃값으로 고정하고 계층만 학습하는 실험도 합니다.

# %% [markdown] slot="trans" lang="zh"
# 两者相同。Adagrad 更新时要把梯度除以历史梯度平方和的平方根，这个平方和与嵌入行存放在一起。第 3 行
# 移动了 $0.1 \cdot 4 / \sqrt{(1 + 3)^2} = 0.1$，可见梯度是先相加的；如果分别平方，即用
# $\sqrt{1^2 + 3^2}$，就会移动 0.126。
#
# ## 没有特征的节点
#
# 许多节点没有特征，例如用户和商品，它们只有 ID。这时给每个节点一个可学习的嵌入行。依靠这种嵌入的模
# 型称为**直推式**（transductive）模型：训练后新加入的节点没有训练过的嵌入，模型无法处理。嵌入占了参
# 数的绝大部分，所以与图一样分区存放，每个批次只更新其中一部分。
#
# 下面不使用手写数字的像素，只训练嵌入和网络层，为此需要**两个优化器**：网络层在每个训练器上各有一
# 份，用 torch 的 `Adam`；嵌入用 `SparseAdam` 或 `SparseAdagrad`。作为对照，再训练一个嵌入固定为随机
# 值的模型。


# %% slot="trans-code"
def normal(shape, dtype):
    return torch.randn(shape, dtype=dtype)


def learn_rows(make_optimizer):
    torch.manual_seed(0)
    emb = DistEmbedding(g.num_nodes(), 32, init_func=normal, part_policy=per_node)
    model = DistributedDataParallel(SAGE(32, num_classes))
    optimizers = [torch.optim.Adam(model.parameters(), lr=0.01), *make_optimizer([emb])]
    loader = DistNodeDataLoader(g, train_ids, sampler, **batches)
    history = []
    for _ in range(15):
        for input_nodes, output_nodes, blocks in loader:
            scores = model(blocks, emb(input_nodes))
            loss = F.cross_entropy(scores, g.ndata["label"][output_nodes])
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
        history.append(accuracy(g, model, emb.weight))
    return history


# %% slot="trans-draw" tags=["nbval-ignore-output"]
per_node = g.get_node_partition_policy("_N")
train_ids, sampler = node_split(g.ndata["train_mask"]), NeighborSampler(FANOUTS)
choices = {
    "SparseAdam": (BLUE, lambda rows: [SparseAdam(rows, lr=0.05)]),
    "SparseAdagrad": (GREEN, lambda rows: [SparseAdagrad(rows, lr=0.2)]),
    "fixed": ("gray", lambda rows: []),
}
figure, ax = plt.subplots(figsize=(5.6, 2.6), layout="constrained")
for name, (line, make_optimizer) in choices.items():
    history = learn_rows(make_optimizer)
    low, high = (0, 0.3) if name == "fixed" else (0.7, 0.9)
    assert not as_told or low < history[-1] < high
    ax.plot(range(1, 16), history, "o-", ms=3, color=line, label=name)
ax.set(xlabel="epoch", ylabel="validation accuracy", ylim=(0, 1), xticks=range(1, 16, 2))
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown] slot="cost" lang="en"
# With fixed embeddings, the layers learn almost nothing that carries over to the validation nodes.
# With learned ones, the accuracy reaches about 0.8 without a single pixel: each embedding picks up
# the labels in its neighborhood.
#
# ## Communication
#
# A **remote row**, one that another machine owns, is sent over the network. For four trainers, each
# with its share of the training nodes, we count the input nodes of batches by owner. `nid2partid`
# of the partition book maps a node to the part that owns it. We compare METIS with random parts.

# %% [markdown] slot="cost" lang="ko"
# 임베딩을 무작위 값으로 고정하면 계층이 검증 노드에까지 일반화되는 규칙을 거의 배우지 못하여,
# 정확도가 0.3에도 미치지 못합니다. 임베딩을 함께 학습하면 픽셀을 하나도 쓰지 않고도 정확도가
# 0.8가량까지 올라갑니다. 임베딩에 주변 노드의 레이블(label) 정보가 쌓이기 때문입니다.
#
# ## 통신량
#
# 배치에 필요한 행 가운데 다른 머신이 소유한 행, 곧 **원격 행**(remote row)은 모두 네트워크로 받아야
# 합니다. 이런 행이 몇 개나 되는지 세어 봅시다. 트레이너 네 개가 각자 담당하는 노드로 배치를 만들
# 때, 입력 노드를 소유자별로 셉니다. 파티션 북(partition book)의 `nid2partid`는 노드를 어느 파티션이
# 소유하는지 알려 줍니다. METIS로 나눈 경우와 무작위로 나눈 경우를 비교합니다.

# %% [markdown] slot="cost" lang="zh"
# 嵌入固定为随机值时，网络层几乎学不到对验证节点也适用的规律。让嵌入也参与学习，不用任何像素，准确率
# 也能达到 0.8 左右：嵌入吸收了周围节点的标签信息。
#
# ## 通信量
#
# 存放在其他机器上的行，即**远程行**（remote row），都要通过网络传输。下面让四个训练器各用自己的训练
# 节点，统计每个批次的输入节点分别存放在哪台机器上。分区簿（partition book）是记录节点和边归属的索
# 引，它的 `nid2partid` 给出节点所属的分区。我们比较 METIS 和随机切分。


# %% slot="cost-code" tags=["nbval-ignore-output"]
@cache
def rows_per_batch(method, machines):
    dgl.seed(0)
    folder = f"{lesson.folder}/{method}-{machines}"
    with redirect_stdout(None):  # print no summary
        partition_graph(dataset[0], DATASET, machines, folder, part_method=method)
    g = DistGraph(DATASET, part_config=f"{folder}/{DATASET}.json")
    book, rows = g.get_partition_book(), torch.zeros(machines, machines)
    for rank in range(machines):
        share = node_split(g.ndata["train_mask"], rank=rank, num_trainers=machines)
        loader = DistNodeDataLoader(g, share, sampler, batch_size=16, seed=0)
        for input_nodes, _, _ in loader:
            owners = book.nid2partid(input_nodes)
            rows[rank] += owners.bincount(minlength=machines) / len(loader)
    return rows


# %% slot="cost-run" tags=["nbval-ignore-output"]
def remote_share(method, machines):
    rows = rows_per_batch(method, machines)
    return 1 - (rows.trace() / rows.sum()).item()


for method in (best, "random"):
    print(f"{method}: {remote_share(method, PARTS):.0%} of the rows are remote")
for machines in (2, PARTS, 8):
    least, most = (remote_share(method, machines) for method in (best, "random"))
    assert least <= most and (not as_told or abs(most - (1 - 1 / machines)) < 0.05)
if as_told:
    grown = [remote_share(best, machines) for machines in (2, 4, 8)]
    assert all(abs(a - b) < 0.02 for a, b in zip(grown, (0.06, 0.17, 0.35)))

# %% [markdown] slot="hand" lang="en"
# With METIS, a trainer finds about five in six rows locally; with random parts, one in four. Choose
# the number of machines and the method (without a running kernel, you see four settings). Left: the
# rows that each trainer reads per batch, by owner; the diagonal is not sent. Right: the data
# received from other machines; a feature row is 64 numbers of 4 bytes.

# %% [markdown] slot="hand" lang="ko"
# METIS로 나누면 트레이너에 필요한 행이 여섯 개 가운데 다섯 개꼴로 같은 머신에 있고, 무작위로 나누면
# 예상대로 네 개 가운데 한 개꼴로만 같은 머신에 있습니다. 머신 수가 달라지면 어떻게 될까요? 머신
# 수와 분할 방법을 직접 바꾸어 봅시다. 커널이 실행되고 있지 않으면 그 가운데 네 가지 설정의 그림만
# 표시됩니다. 왼쪽은 각 트레이너가 배치마다 읽는 행의 수를 소유자별로 나타낸 것으로, 대각선 칸의
# 행은 네트워크를 거치지 않습니다. 오른쪽은 다른 머신에서 받는 데이터의 양입니다. 피처 한 행은
# 4바이트 실수 64개입니다.

# %% [markdown] slot="hand" lang="zh"
# 用 METIS 切分时，训练器所需的行大约六分之五在本机；随机切分时只有四分之一，与预期相符。机器数改变
# 时，情况如何？请亲手改变机器数和切分方法；没有启动内核时，只显示其中四种设置的图。左图是每个训练器
# 每个批次读取的特征行数，按所有者列出；对角线上的格子是本机的特征行，不经过网络。右图是从其他机器接
# 收的数据量：每个特征行有 64 个数，每个数占 4 字节。


# %% slot="cost-draw" tags=["folded"]
def show(method, machines=PARTS):
    rows = rows_per_batch(method, machines)
    figure, (left, right) = plt.subplots(1, 2, figsize=(5.7, 2.6), layout="constrained")
    left.imshow(rows, "Blues", vmin=0, vmax=1.6 * rows.sum(1).max())
    for (y, x), count in np.ndenumerate(rows.numpy()):
        left.text(x, y, f"{count:.0f}", ha="center", va="center", fontsize=7)
    numbers = range(machines)
    left.set(xlabel="owner of the rows", ylabel="trainer", xticks=numbers, yticks=numbers)
    far = (rows.sum(1) - rows.diagonal()) * num_features * 4  # bytes
    right.bar(numbers, far / 1000, color=BLUE if method == best else ORANGE)
    right.set(xlabel="trainer", ylabel="kB from others per batch", ylim=(0, 150))
    share = remote_share(method, machines)
    right.set(xticks=numbers, title=f"{share:.0%} remote")
    return figure


# %% slot="cost-explore" tags=["nbval-ignore-output"]
dgl.plot.explore(show, method=[best, "random"], machines=[2, 4, 8])

# %% [markdown] slot="pyg" lang="en"
# More machines make more rows remote: from 2 to 8, the share grows from 6% to 35% with METIS, and
# from half to 86% with random parts.
#
# ## From PyG
#
# `gnnlab.pyg` has counterparts of PyG's loaders that also accept a `DistGraph`; models and training
# loops stay as they are. These lines, which need `torch_geometric`, are not run:
#
# ```python
# from gnnlab.pyg import NeighborLoader
#
# partition_graph(data, "digits", 2, "parts")  # a Data or HeteroData; once, before the job
# g = DistGraph("digits", part_config="parts/digits.json")
# loader = NeighborLoader(g, [10, 5], g.ndata["train_mask"], batch_size=32, shuffle=True)
# ```
#
# The [page for PyG users](../../docs/pyg.md) lists what changes.

# %% [markdown] slot="pyg" lang="ko"
# 머신이 많을수록 다른 머신에 있는 행의 비율이 커집니다. 머신이 2대에서 8대로 늘면 이 비율은 METIS로
# 나눌 때 6%에서 35%로, 무작위로 나눌 때 49%에서 86%로 높아집니다.
#
# ## PyG 프로그램에서 쓰기
#
# PyG로 작성한 프로그램에서도 분할된 그래프를 쓸 수 있습니다. `gnnlab.pyg`에는 메모리에 있는
# 그래프와 `DistGraph`에 모두 쓸 수 있는 PyG 형식의 로더가 있습니다. 모델과 학습 루프는 고치지
# 않아도 됩니다. 다음 코드를 실행하려면 `torch_geometric` 패키지가 필요하므로 여기서는 보여 주기만
# 합니다.
#
# ```python
# from gnnlab.pyg import NeighborLoader
#
# partition_graph(data, "digits", 2, "parts")  # Data나 HeteroData. 작업을 시작하기 전에 한 번만
# g = DistGraph("digits", part_config="parts/digits.json")
# loader = NeighborLoader(g, [10, 5], g.ndata["train_mask"], batch_size=32, shuffle=True)
# ```
#
# 무엇을 고쳐야 하는지는 [PyG 사용자를 위한 문서](../../docs/pyg.md)(영어)에 정리되어 있습니다.

# %% [markdown] slot="pyg" lang="zh"
# 机器越多，远程行所占的比例越大：从 2 台增加到 8 台，METIS 从 6% 升到 35%，随机切分则从一半升到
# 86%，通信量（traffic）也随之增加。
#
# ## 在 PyG 程序中使用
#
# 用 PyG 写的程序也能使用切分后的图。`gnnlab.pyg` 提供用法与 PyG 相同的加载器，既可用于内存中的图，
# 也可用于 `DistGraph`；模型和训练循环都不用改。下面的代码需要 `torch_geometric` 包，所以这里只展
# 示，不运行：
#
# ```python
# from gnnlab.pyg import NeighborLoader
#
# partition_graph(data, "digits", 2, "parts")  # Data 或 HeteroData；只需在作业开始前做一次
# g = DistGraph("digits", part_config="parts/digits.json")
# loader = NeighborLoader(g, [10, 5], g.ndata["train_mask"], batch_size=32, shuffle=True)
# ```
#
# 程序其余部分的改动见[给 PyG 用户的说明](../../docs/pyg.md)（英文）。

# %% [markdown] slot="summary" lang="en"
# ## Summary
#
# - A job has servers, which store parts and answer requests; trainers; and optional samplers.
# - `DistGraph` and `DistTensor` are used like a graph and a tensor; they send one request to each
#   remote owner and put the results in order. Six lines make a training script distributed.
# - Samples do not depend on the partition; both loops train the same model.
# - Duplicate IDs: reading repeats rows, writing keeps the last value, and gradients are summed.
# - Layers use torch's optimizers; embeddings use sparse ones, whose state is stored with the rows.
# - Communication grows with the remote rows per batch; a good partition reduces it.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, running *Setup* is enough to check an answer. The
# [solutions](../solutions/06_distributed_api_solution.ipynb) are in a separate notebook.
#
# 1. The ranges of four parts begin at 0, 450, 899 and 1348. Which part owns node 1000, and which
#    row of that part is it, counting from 0? Answer with a list of two numbers.
# 2. An embedding row starts at 0. One batch uses it twice, with gradients 1 and then 3; Adagrad has
#    a learning rate of 0.1. What would the row be after two steps, one for each gradient, instead
#    of one step with their sum? Round to three decimal places.
# 3. Write a function of `tensor`, `ids` and `values` that adds `values[i]` to row `ids[i]` of a
#    `DistTensor`. Each occurrence of a duplicate ID must count.
# 4. Write a function of `g`, `ids` and `part` that returns how many of the rows `ids` the machine
#    of `part` must request from others, counting duplicates once.

# %% [markdown] slot="summary" lang="ko"
# ## 요약
#
# - 분산 작업은 파티션을 저장하고 요청에 응답하는 서버, 학습하는 트레이너, 그리고 필요할 때 두는
#   샘플러로 이루어집니다.
# - `DistGraph`와 `DistTensor`는 일반 그래프, 텐서와 비슷한 방법으로 쓸 수 있습니다. 필요한 데이터가
#   있는 다른 머신마다 요청을 한 번씩 보내고, 받은 결과를 요청한 ID 순서대로 놓습니다. 여섯 줄만
#   고치거나 더하면 학습 스크립트가 분산 학습용이 됩니다.
# - 샘플링 결과는 그래프를 나누는 방법에 따라 달라지지 않습니다. 학습 노드의 순서가 같으면 두
#   스크립트는 같은 모델을 학습합니다.
# - 중복된 ID를 읽으면 행이 여러 번 나오고, 쓰면 마지막 값이 남으며, 그래디언트는 더해집니다.
# - 계층에는 torch의 옵티마이저를, 임베딩에는 희소 옵티마이저를 씁니다. 희소 옵티마이저의 상태는
#   행과 함께 저장됩니다.
# - 통신량은 배치에 필요한 행 가운데 다른 머신이 소유한 행이 많을수록 늘어나며, 그래프를 잘 나누면
#   줄어듭니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 셀만 실행해도 채점할 수 있습니다.
# [풀이](../solutions/ko/06_distributed_api_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 파티션 네 개의 구간이 0, 450, 899, 1348에서 시작합니다. 노드 1000은 어느 파티션이 소유하며, 그
#    파티션의 몇 번째 행입니까? 행은 0부터 셉니다. 수 두 개를 담은 리스트로 답합니다.
# 2. 값이 0인 임베딩 행이 있습니다. 한 배치에서 이 행을 두 번 사용하여 그래디언트가 각각 1과 3으로
#    나왔고, Adagrad의 학습률은 0.1입니다. 그래디언트를 더해 한 단계를 수행하는 대신 1, 3의 순서로
#    한 단계씩 두 단계를 수행한다면 행의 값은 얼마가 됩니까? 반올림하여 소수점 아래 셋째 자리까지
#    답합니다.
# 3. `tensor`, `ids`, `values`를 받아 `DistTensor`의 행 `ids[i]`에 `values[i]`를 더하는 함수를
#    작성합니다. ID가 중복되면 나올 때마다 값을 더해야 합니다.
# 4. `g`, `ids`, `part`를 받아, 행 `ids` 가운데 파티션 `part`의 머신이 다른 머신에 요청해야 하는
#    행의 수를 반환하는 함수를 작성합니다. 중복된 행은 한 번만 셉니다.

# %% [markdown] slot="summary" lang="zh"
# ## 小结
#
# - 分布式作业由三种进程组成：服务器进程存放分区并响应请求，训练器负责训练，采样器进程是可选的，负责
#   提前准备小批次。
# - `DistGraph` 和 `DistTensor` 的用法与普通的图和张量相近；它们向存有所需数据的其他机器各发一次请
#   求，再把结果按顺序放好。改六行，单机训练脚本就成了分布式训练脚本。
# - 采样结果与切分方式无关；训练节点的顺序相同时，两个脚本训练出同样的模型。
# - 重复的 ID：读取时行会重复，写入时保留最后的值，梯度则相加。
# - 网络层用 torch 的优化器，嵌入用稀疏优化器，它的状态与嵌入行存放在一起。
# - 批次所需的行中不在本机的越多，通信量就越大；切分得好，通信量就小。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的单元格就能评判。
# [解答](../solutions/zh/06_distributed_api_solution.ipynb)随本课提供。
#
# 1. 四个分区的 ID 段分别从 0、450、899、1348 开始。节点 1000 在哪个分区，是该分区的第几行？行从 0
#    数起。用含两个数的列表作答。
# 2. 一个嵌入行的初始值为 0。一个批次两次用到它，梯度先后为 1 和 3，Adagrad 的学习率是 0.1。如果不是
#    把梯度相加后走一步，而是每个梯度各走一步，共走两步，这一行的值会是多少？四舍五入到小数点后三
#    位。
# 3. 写一个以 `tensor`、`ids` 和 `values` 为参数的函数，把 `values[i]` 加到 `DistTensor` 的第
#    `ids[i]` 行，重复的 ID 每出现一次都要加一次。
# 4. 写一个以 `g`、`ids` 和 `part` 为参数的函数：分区 `part` 所在的机器要读取 `ids` 对应的特征行，返
#    回其中需要向其他机器请求的行数；重复的 ID 只计一次。

# %% slot="answers"
answer_1 = None  # a list of two numbers: part, row
answer_2 = None  # a number
answer_3 = None  # a function of tensor, ids and values
answer_4 = None  # a function of g, ids and part
lesson.check(1, answer_1)
lesson.check(2, answer_2)
lesson.check(3, answer_3)
lesson.check(4, answer_4)
