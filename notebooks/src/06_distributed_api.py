# %% [markdown] slot="title" lang="en"
# # The distributed API
#
# A graph that is cut into parts lies on several machines: each machine owns a range of the nodes,
# with their edges and features. A training loop should not care: it asks a graph for samples and a
# tensor for rows, and somebody must ask the owners. Afterwards you can
#
# - turn a training loop for one machine into a distributed one by changing four lines, and prove
#   that it learns the same;
# - read and write rows that others own, and say what happens when an ID stands twice;
# - train a model on nodes without features, with one optimizer for the model and one for the rows;
# - count the rows that a machine must ask of each owner.

# %% [markdown] slot="title" lang="ko"
# # 분산 API
#
# 여러 파티션(partition)으로 나눈 그래프(graph)는 여러 머신(machine)에 흩어져 있습니다. 머신마다
# 노드(node)의 한 구간을 소유하고, 그 노드의 에지(edge)와 피처(feature)도 함께 가집니다. 학습
# 루프는 이런 사정을 몰라도 되어야 합니다. 루프는 그래프에 표본을, 텐서에 행을 요청할 뿐이고,
# 소유자(owner)에게 묻는 일은 다른 누군가가 맡아야 합니다. 레슨을 마치면 다음과 같은 일을
# 할 수 있습니다.
#
# - 머신 한 대용 학습 루프를 네 줄만 고쳐 분산 학습(distributed training) 루프로 바꾸고, 두 루프가
#   똑같이 학습한다는 것을 증명하기
# - 다른 머신이 소유한 행을 읽고 쓰며, 같은 ID가 두 번 나오면 어떻게 되는지 설명하기
# - 모델용 옵티마이저와 행용 옵티마이저를 함께 써서, 피처가 없는 노드로 모델을 학습하기
# - 머신 한 대가 각 소유자에게 요청하는 행의 수를 세기

# %% [markdown] slot="title" lang="zh"
# # 分布式 API
#
# 切成若干分区（partition）的图（graph）放在多台机器（machine）上：每台机器拥有一段连续的节点
# （node），以及它们的边（edge）和特征（feature）。训练循环不必关心这些：它只向图要样本，向张量要
# 行；至于向各个所有者（owner）询问，则要由别的程序负责。学完之后，你能够：
#
# - 只改四行，就把单机的训练循环变成分布式训练（distributed training）的循环，并证明两者学到的相
#   同；
# - 读写归别的机器所有的行，并说出同一个 ID 出现两次时会发生什么；
# - 给模型和行各用一个优化器，在没有特征的节点上训练模型；
# - 数出一台机器要向每个所有者索取多少行。

# %% [markdown] slot="setup" lang="en"
# ## Set-up
#
# Everything here runs in **standalone mode**: one process plays all machines. Started by a
# launcher on a cluster, the same script, unchanged, asks real servers. DGL's standalone mode holds
# one part; here it holds any number. The parts go to a temporary folder, which disappears with the
# kernel.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 이 레슨은 모두 **단독 모드**(standalone mode)에서 실행됩니다. 프로세스(process) 하나가 모든
# 머신의 역할을 맡습니다. 런처가 클러스터(cluster)에서 같은 스크립트를 시작하면 실제 서버(server)에
# 요청하며, 스크립트는 한 줄도 바뀌지 않습니다. DGL의 단독 모드에는 파티션을 하나만 둘 수 있지만,
# 여기서는 몇 개든 둘 수 있습니다. 파티션은 임시 폴더에 저장되고, 이 폴더는 커널이 끝날 때
# 사라집니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 本课全部在**独立模式**（standalone mode）下运行：一个进程（process）扮演所有机器。用启动器在集
# 群（cluster）上启动同一个脚本时，它询问的就是真正的服务器（server），脚本一行也不用改。DGL 的独立
# 模式只能有一个分区，这里可以有任意多个。分区写入一个临时文件夹，内核结束时，它就会消失。

# %% slot="imports"
import hashlib
import inspect
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import gnnlab as dgl
import gnnlab.nn as dglnn
from gnnlab.dataloading import NeighborSampler, NodeDataLoader
from gnnlab.distributed import DistDataLoader, DistEmbedding, DistGraph, DistTensor
from gnnlab.distributed import DistNodeDataLoader, SparseAdagrad, SparseAdam
from gnnlab.distributed import load_partition, node_split, partition_graph

DATASET, PARTS = "digits", 4
BLUE, ORANGE, GREEN = "#3b6fb6", "#e07b39", "#3a9e75"
plt.rcParams.update({"figure.dpi": 110, "font.size": 9})
plt.rcParams.update({"axes.spines.right": False, "axes.spines.top": False})
torch.set_num_threads(1)
scratch = globals().get("scratch") or tempfile.TemporaryDirectory()  # keep it
dataset = dgl.data.load(DATASET)

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# Eight nodes on two machines: machine 0 owns the blue nodes 0 to 3, machine 1 the orange nodes 4
# to 7. Each node has two features, ten times its ID and the ID. The function that we give as
# `part_method` says which part each node belongs to.
#
# Suppose a mini-batch needs the features of nodes 6, 1, 4 and 1, in this order. On the right we
# draw who owns them.

# %% [markdown] slot="toy" lang="ko"
# ## 그려 볼 수 있는 작은 그래프
#
# 노드 8개가 머신 두 대에 있습니다. 파란 노드 0~3은 머신 0이, 주황색 노드 4~7은 머신 1이
# 소유합니다. 노드마다 피처가 두 개 있는데, 하나는 ID의 열 배이고 다른 하나는 ID입니다. 노드가 어느
# 파티션에 속하는지는 `part_method`로 넘기는 함수가 정합니다.
#
# 어떤 미니배치(mini-batch)에 노드 6, 1, 4, 1의 피처가 이 순서로 필요하다고 합시다. 그 행을 누가
# 소유하는지 오른쪽에 그립니다.

# %% [markdown] slot="toy" lang="zh"
# ## 一张画得出来的小图
#
# 8 个节点在两台机器上：机器 0 拥有蓝色节点 0 到 3，机器 1 拥有橙色节点 4 到 7。每个节点有两个特
# 征：ID 的十倍，以及 ID 本身。每个节点属于哪个分区，由传给 `part_method` 的函数决定。
#
# 假设一个小批次（mini-batch）依次需要节点 6、1、4、1 的特征。下面的右图画出它们归谁所有。

# %% slot="toy-code"
toy_src = [5, 3, 0, 6, 6, 4, 3, 7, 2, 1, 5, 6, 7]
toy_dst = [0, 0, 2, 2, 4, 5, 1, 6, 3, 2, 7, 4, 5]
toy = dgl.graph((toy_src, toy_dst))
toy.ndata["x"] = torch.tensor([[10.0 * node, node] for node in range(8)])
halves = {"part_method": lambda graph, num_parts: [0, 0, 0, 0, 1, 1, 1, 1]}
partition_graph(toy, "toy", 2, f"{scratch.name}/toy", **halves)
toy_config = f"{scratch.name}/toy/toy.json"
ids = torch.tensor([6, 1, 4, 1])

# %% slot="toy-draw"
place = [(-2, 1), (-2, -1), (-1, 0), (-3, 0), (1, 0), (2, 1), (2, -1), (3, 0)]
color = [BLUE] * 4 + [ORANGE] * 4
style = {"ha": "center", "va": "center_baseline", "weight": "bold", "color": "white"}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 2.2), layout="constrained")
for u, v in zip(toy_src, toy_dst):
    line = color[v] if color[u] == color[v] else "black"
    arrow = {"arrowstyle": "-|>", "lw": 1.5, "shrinkA": 8, "shrinkB": 8, "color": line}
    left.annotate("", place[v], place[u], arrowprops=arrow)
for node, (x, y) in enumerate(place):
    left.scatter(x, y, s=250, color=color[node], zorder=3)
    left.text(x, y, node, zorder=4, **style)
    right.scatter(node + (node > 3), 0, s=330, marker="s", color=color[node])
    right.text(node + (node > 3), 0, node, **style)
for i, node in enumerate(ids.tolist()):
    right.plot([i + 2.5, node + (node > 3)], [0.82, 0.18], color=color[node])
    right.scatter(i + 2.5, 1, s=330, marker="s", color=color[node])
    right.text(i + 2.5, 1, node, **style)
right.text(1.6, 1, "wanted:", ha="right", va="center")
for x, part in ((1.5, 0), (6.5, 1)):
    right.text(x, -0.5, f"machine {part}", ha="center", color=color[4 * part])
left.set(xlim=(-3.5, 3.5), ylim=(-1.4, 1.4))
right.set(xlim=(-0.8, 8.8), ylim=(-0.7, 1.4))
for ax in (left, right):
    ax.axis("off")
plt.show()

# %% [markdown] slot="ask" lang="en"
# Two of the 13 edges, the black ones, lead from one machine to the other. The lower squares are
# rows as they lie with their owners, the upper ones as they are wanted.
#
# ## Build it yourself: ask the owners
#
# `load_partition` opens what one machine has, among it the features of the nodes that it owns. Of
# the ranges we need only the borders. For each owner, find the places in the question that it has
# to fill, subtract its border, ask once, and put the answer there.

# %% [markdown] slot="ask" lang="ko"
# 에지 13개 가운데 검은색 두 개는 한 머신에서 다른 머신으로 이어집니다. 아래의 네모는 각 소유자가
# 가지고 있는 행이고, 위의 네모는 필요한 순서대로 늘어놓은 행입니다.
#
# ## 직접 만들어 보기: 소유자에게 묻기
#
# `load_partition`은 머신 한 대가 가진 것을 열며, 무엇보다 그 머신이 소유한 노드의 피처를
# 돌려줍니다. 파티션에 관하여 알아야 할 것은 구간의 경계뿐입니다. 먼저 요청한 ID 가운데 소유자마다
# 채워야 할 자리를 찾습니다. 그런 다음 ID에서 그 소유자의 경계를 빼고, 한 번만 물은 뒤, 답을 그
# 자리에 넣습니다.

# %% [markdown] slot="ask" lang="zh"
# 13 条边中，黑色的两条从一台机器通向另一台机器。下排方块是存放在所有者那里的行，上排方块是按所需次
# 序排列的行。
#
# ## 亲手实现：询问所有者
#
# `load_partition` 打开一台机器所持有的内容，它返回的结果中就有这台机器所拥有的节点的特征。关于分
# 区，我们只需知道各段的分界。对每个所有者，先找出问题中应由它填写的位置，再从 ID 中减去它的分界，
# 只问一次，然后把它的回答放到这些位置上。

# %% slot="ask-code"
machines = [load_partition(toy_config, part) for part in range(2)]
tables = [features["_N/x"] for _, features, *_ in machines]  # (4, 2) each
borders = torch.tensor([0, 4, 8])


def ask(ids):
    answer = torch.empty(len(ids), 2)
    owners = torch.searchsorted(borders, ids, right=True) - 1
    for part in owners.unique().tolist():
        places = (owners == part).nonzero().flatten()
        rows = ids[places] - borders[part]
        print(f"machine {part}: rows {rows.tolist()} for places {places.tolist()}")
        answer[places] = tables[part][rows]
    return answer


by_hand = ask(ids)
print(by_hand.tolist())

# %% [markdown] slot="dist" lang="en"
# Two questions for four rows, answered in our order.
#
# ## The library does the same
#
# `initialize` joins the job and comes first in every script; in standalone mode its file need not
# exist. `init_process_group` then makes a group of one trainer. A **distributed graph**,
# `DistGraph`, holds neither edges nor features; it knows the borders, and asks. Each of its
# features is a **distributed tensor**, a `DistTensor`. It takes an index in any of these forms:

# %% [markdown] slot="dist" lang="ko"
# 행 네 개를 얻는 데 질문은 두 번으로 충분했고, 답은 우리가 요청한 순서대로 놓였습니다.
#
# ## 라이브러리로 같은 일 하기
#
# `initialize`는 작업에 참여하는 함수로, 모든 스크립트에서 맨 먼저 호출합니다. 단독 모드에서는
# 인자로 준 파일이 없어도 됩니다. 이어서 `init_process_group`이 트레이너(trainer) 하나로 된 그룹을
# 만듭니다. **분산 그래프**(distributed graph) `DistGraph`는 에지도 피처도 갖고 있지 않습니다.
# 경계를 알고 있다가 소유자에게 물을 뿐입니다. 그 피처는 하나하나가 **분산 텐서**(distributed
# tensor) `DistTensor`입니다. 인덱스는 다음 형식 가운데 어느 것이든 쓸 수 있습니다.

# %% [markdown] slot="dist" lang="zh"
# 四行只问了两次，回答按提问的次序排列。
#
# ## 用库做同样的事
#
# `initialize` 使脚本加入作业，在每个脚本中最先调用；在独立模式下，它所指的文件不必存在。随后
# `init_process_group` 建立只有一个训练器（trainer）的组。**分布式图**（distributed graph）
# `DistGraph` 既不含边，也不含特征；它只知道分界，并去询问所有者。它的每个特征都是一个**分布式张
# 量**（distributed tensor）`DistTensor`，可以使用下列任何一种形式的索引：

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
# The rows equal ours. Unlike an ordinary tensor, it gives shape `(1, 2)` for a single ID: the
# first dimension always counts rows.
#
# You can create distributed tensors. The number of rows tells whose they are: 8 rows belong to the
# nodes, 13 would belong to the edges. If two types are equally many, say which by `part_policy`.
# Each owner gets its first values from `init_func`, or zeros. The name makes the tensor a feature
# of the graph. Whoever asks for the same name gets the same rows, if shape and dtype agree.

# %% [markdown] slot="write" lang="ko"
# 행은 우리가 얻은 것과 같습니다. 보통 텐서와 다른 점이 하나 있습니다. ID 하나를 주어도 모양이
# `(1, 2)`이므로 첫째 차원은 언제나 행의 수입니다.
#
# 분산 텐서를 새로 만들 수도 있습니다. 행의 수를 보면 누구의 행인지 알 수 있습니다. 8행이면 노드의
# 것이고, 13행이면 에지의 것입니다. 두 타입의 수가 같으면 어느 쪽인지를 `part_policy`로 알려
# 줍니다. 소유자마다 첫 값은 `init_func`가 만들며, 이 함수가 없으면 0으로 채워집니다. 이름을 붙이면
# 텐서는 그래프의 피처가 됩니다. 같은 이름의 텐서를 요청하면 모양과 dtype이 일치하는 한 같은 행을
# 얻습니다.

# %% [markdown] slot="write" lang="zh"
# 这些行与我们得到的相同。与普通张量有一点不同：只给一个 ID 时，形状也是 `(1, 2)`，所以第一维永远是
# 行数。
#
# 也可以新建分布式张量。从行数可以看出行归谁：8 行属于节点，13 行则属于边。如果两种类型的数目相同，
# 就用 `part_policy` 说明是哪一种。每个所有者的初始值由 `init_func` 给出，不写则为零。有了名字，张量
# 就成为图的一个特征；谁再要同名的张量，只要形状和 dtype 一致，得到的就是同样的行。


# %% slot="write-code"
def sevens(shape, dtype):
    print("first values for a machine:", shape, dtype)
    return torch.full(shape, 7, dtype=dtype)


shape, policy = (small.num_nodes(), 2), small.get_node_partition_policy("_N")
h = DistTensor(shape, torch.float32, name="h", init_func=sevens, part_policy=policy)
h[[6, 1]] = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
h[2:5] = 0
joined = DistTensor(shape, torch.float32, name="h")
joined[7] = 9
print(small.ndata["h"][:].tolist())
print(h.name, "of", h.part_policy.policy_str)
for wrong in ((8, 3), (9, 2)):
    try:
        DistTensor(wrong, torch.float32, name="h")
    except dgl.GNNLabError as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown] slot="query" lang="en"
# `sevens` was called once a machine. `h` and `joined` are one tensor, as its last row shows; its
# full name begins with its policy, `node~_N`: nodes, of the only type. Misfits are refused.
#
# The graph itself answers what a mini-batch asks: how many edges reach a node, where edges begin
# and end, which edges to sample. `sample_neighbors` returns an ordinary graph with all nodes and a
# few edges, a **frontier**.

# %% [markdown] slot="query" lang="ko"
# `sevens`는 머신마다 한 번씩 호출되었습니다. 텐서의 마지막 행에서 보듯이 `h`와 `joined`는 같은
# 텐서입니다. 텐서의 전체 이름은 파티션 정책(partition policy) `node~_N`으로 시작하는데, 하나뿐인
# 타입의 노드라는 뜻입니다. 출력의 마지막 두 줄에서 보듯이, 맞지 않는 요청은 거절됩니다.
#
# 미니배치에 필요한 질문에는 그래프가 직접 답합니다. 노드에 들어오는 에지가 몇 개인지, 에지가
# 어디서 시작하고 끝나는지, 어떤 에지를 뽑을지와 같은 질문입니다. `sample_neighbors`의 결과는 모든
# 노드와 에지 몇 개로 된 보통 그래프이며, 이를 **프런티어**(frontier)라고 합니다.

# %% [markdown] slot="query" lang="zh"
# `sevens` 在每台机器上各调用了一次。从张量的最后一行可以看出，`h` 和 `joined` 是同一个张量。它的全
# 名以分区策略（partition policy）`node~_N` 开头，意思是：唯一类型的节点。输出的最后两行表明，不相符
# 的请求会被拒绝。
#
# 小批次要问的事情，由图自己回答：有多少条边进入一个节点，边从哪里到哪里，采样哪些边。
# `sample_neighbors` 的结果是一个普通的图，包含所有节点和少数几条边，称为**边界子图**（frontier）。

# %% slot="query-code"
print("in-degrees of 2, 4:", small.in_degrees([2, 4]).tolist())
print("edges 0, 4, 12:", *zip(*(ends.tolist() for ends in small.find_edges([0, 4, 12]))))
frontier = dgl.distributed.sample_neighbors(small, [0, 4], 1)
print("one in-edge each of 0, 4:", *zip(*(ends.tolist() for ends in frontier.edges())))
print("edge IDs:", frontier.edata[dgl.EID].tolist(), "on", frontier.num_nodes(), "nodes")

# %% [markdown] slot="sample" lang="en"
# Edges have new IDs as well, those of machine 0 first.
#
# ## Sampling through the parts
#
# Each owner samples in-edges for its own nodes, and the graph puts the answers together. Does the
# cut change what is drawn? It must not: an owner names the randomness of a node by its ID before
# the cut. To prove it, we write `sample_blocks` as the guide does, layer by layer, and let
# `DistDataLoader` call it for each batch. The graph of digits is cut into 1, 2 and 4 parts at
# random. Translated back by `old_ids`, every block must equal that of the library's sampler on the
# whole graph, node for node and edge for edge.

# %% [markdown] slot="sample" lang="ko"
# 에지에도 새 ID가 있으며, 머신 0의 에지가 먼저 옵니다.
#
# ## 파티션을 거쳐 샘플링하기
#
# 소유자마다 자기 노드로 들어오는 에지를 뽑고, 그래프는 그 답을 모읍니다. 그래프를 어떻게 나누느냐에
# 따라 뽑히는 에지가 달라질까요? 달라져서는 안 됩니다. 소유자는 그래프를 나누기 전의 노드 ID로 그
# 노드의 난수를 정하기 때문입니다. 이를 증명하기 위해 DGL 사용자 가이드에서처럼 `sample_blocks`를
# 계층마다 하나씩 블록(block)을 만들도록 작성하고, `DistDataLoader`가 배치마다 이 함수를 호출하게
# 합니다. 숫자 그래프를 파티션 1개, 2개, 4개로 무작위로 나눕니다. 모든 블록을 `old_ids`로 되돌리면,
# 라이브러리의 샘플러(sampler)가 그래프 전체에서 만든 블록과 노드 하나, 에지 하나까지 같아야 합니다.

# %% [markdown] slot="sample" lang="zh"
# 边也有新的 ID，机器 0 的边排在前面。
#
# ## 通过各个分区采样
#
# 每个所有者为自己的节点采样入边，由图把各个回答合在一起。切分会改变抽取的结果吗？绝不能：所有者用节
# 点在切分之前的 ID 来决定该节点的随机数。为了证明这一点，我们像 DGL 用户指南那样逐层写出
# `sample_blocks`，由 `DistDataLoader` 对每一批调用它。手写数字图被随机切成 1、2、4 个分区。用
# `old_ids` 换回原来的 ID 之后，每个块（block）都必须与库中的采样器（sampler）在整张图上得到的块相
# 同，每个节点、每条边都相同。


# %% slot="sample-code"
def sample_blocks(seeds):
    blocks = []
    for fanout in (5, 5):
        frontier = dgl.distributed.sample_neighbors(g, seeds, fanout)
        blocks.insert(0, dgl.to_block(frontier, seeds))
        seeds = blocks[0].srcdata[dgl.NID]
    return blocks


in_memory = (dataset[0], dataset.train_idx, NeighborSampler([5, 5]))
for parts in (1, 2, 4):
    dgl.seed(0)
    wish = {"part_method": "random", "return_mapping": True}
    folder = f"{scratch.name}/{parts}"
    old_ids, _ = partition_graph(dataset[0], DATASET, parts, folder, **wish)
    g = DistGraph(DATASET, part_config=f"{folder}/{DATASET}.json")
    seeds = old_ids.argsort()[dataset.train_idx]
    through_parts = DistDataLoader(seeds, 32, collate_fn=sample_blocks, seed=0)
    whole = NodeDataLoader(*in_memory, batch_size=32, seed=0)
    for found, (*_, blocks) in zip(through_parts, whole, strict=True):
        for mine, theirs in zip(found, blocks, strict=True):
            assert torch.equal(old_ids[mine.srcdata[dgl.NID]], theirs.srcdata[dgl.NID])
            assert all(map(torch.equal, mine.edges(), theirs.edges()))

# %% [markdown] slot="split" lang="en"
# No assertion failed: all blocks are equal, although 4 random parts cut three quarters of the
# edges.
#
# ## Who trains with which nodes
#
# Every machine runs a trainer, and `node_split` gives each its share of the training nodes: nodes
# of its own machine first, because their rows are near. Say that the first six nodes of the toy
# are for training, four on machine 0 and two on machine 1. A trainer normally asks for its own;
# to see all, we name the `rank`.

# %% [markdown] slot="split" lang="ko"
# 실패한 단언(assertion)이 없으므로 모든 블록이 같습니다. 위에 출력된 수치를 보면, 무작위로 나눈
# 파티션 4개에서는 에지의 4분의 3이 잘렸는데도 그렇습니다.
#
# ## 누가 어느 노드로 학습하는가
#
# 머신마다 트레이너가 실행되고, `node_split`은 각 트레이너에 학습 노드의 몫을 나누어 줍니다.
# 이를 **워크로드 분할**(workload split)이라고 합니다. 자기 머신의 노드는 행이 가까이 있으므로 먼저
# 받습니다. 작은 그래프의 앞쪽 노드 여섯 개가 학습용이라고 합시다. 넷은 머신 0에, 둘은 머신 1에
# 있습니다. 트레이너는 보통 자기 몫만 요청하지만, 여기서는 모두 보기 위해 `rank`를 지정합니다.

# %% [markdown] slot="split" lang="zh"
# 所有断言都成立，也就是说，所有的块都相同，尽管随机切成 4 个分区时，四分之三的边是割边（edge
# cut）。
#
# ## 谁用哪些节点训练
#
# 每台机器运行一个训练器，`node_split` 把训练节点分给它们各一份，这就是**工作负载划分**（workload
# split）：先分本机的节点，因为它们的行就在近处。假设小图的前六个节点用于训练，四个在机器 0 上，两
# 个在机器 1 上。训练器通常只要自己的那一份；这里为了看到全部，我们指定 `rank`。

# %% slot="split-code"
mask, book = torch.arange(8) < 6, small.get_partition_book()
for even in (False, True):
    for rank in range(2):
        share = node_split(mask, book, rank=rank, num_trainers=2, force_even=even)
        print(f"force_even={even}, trainer {rank}: {share.tolist()}")

# %% [markdown] slot="loop" lang="en"
# With `force_even=False` trainer 0 makes twice as many steps; in data parallel training it waits
# in vain for trainer 1. The default, `True`, moves a node to the other trainer, which reads its
# row from afar; a leftover node goes to both.
#
# ## From one machine to many: four lines
#
# Here is a model with two layers, and the familiar training loop of a single machine. Before a
# distributed job, the graph is cut once; we let METIS do it, and keep `old_ids`.

# %% [markdown] slot="loop" lang="ko"
# `force_even=False`이면 트레이너 0의 단계 수가 두 배가 되고, 데이터 병렬(data parallel) 학습에서는
# 이미 끝난 트레이너 1을 하염없이 기다리게 됩니다. 기본값인 `True`는 노드 하나를 다른 트레이너로
# 옮깁니다. 그 트레이너는 이 노드의 행을 다른 머신에서 읽게 됩니다. 노드 수가 홀수여서 하나가
# 남으면, 그 노드는 양쪽에 모두 줍니다.
#
# ## 머신 한 대에서 여러 대로: 네 줄
#
# 다음은 계층이 두 개인 모델과, 이미 익숙한 머신 한 대용 학습 루프입니다. 분산 작업을 시작하기 전에
# 그래프를 한 번 나누어 둡니다. 여기서는 METIS로 나누고 `old_ids`를 보관해 둡니다.

# %% [markdown] slot="loop" lang="zh"
# 如果 `force_even=False`，训练器 0 的步数就是两倍，而在数据并行（data parallel）训练中，它会白白等
# 待已经结束的训练器 1。默认值 `True` 把一个节点移给另一个训练器，后者就要从远处读取它的行；如果节点
# 数是奇数，多出的那个节点会同时分给两者。
#
# ## 从一台机器到多台：四行
#
# 下面是一个两层的模型，以及大家熟悉的单机训练循环。在分布式作业之前，图要先切分一次；我们用 METIS
# 来切，并保留 `old_ids`。


# %% slot="model-code" tags=["nbval-ignore-output"]
class SAGE(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = dglnn.SAGEConv(inputs, 64, "mean")
        self.second = dglnn.SAGEConv(64, outputs, "mean")

    def forward(self, blocks, x):
        return self.second(blocks[1], F.relu(self.first(blocks[0], x)))


num_features, num_classes = dataset[0].ndata["feat"].shape[1], dataset.num_classes
dgl.seed(0)
folder = f"{scratch.name}/metis"
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
    sampler = NeighborSampler([10, 10])
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
# The distributed loop opens the graph elsewhere, takes its share of the training nodes, averages
# gradients with the other trainers, and samples through the owners. We write it out and let Python
# print the lines that differ.

# %% [markdown] slot="four" lang="ko"
# 분산 루프는 그래프를 다른 곳에서 열고, 학습 노드 가운데 자기 몫을 받고, 다른 트레이너와
# 그래디언트(gradient)의 평균을 내고, 소유자를 거쳐 샘플링합니다. 루프 전체를 적은 뒤, 서로 다른
# 줄만 파이썬으로 출력해 봅시다.

# %% [markdown] slot="four" lang="zh"
# 分布式的循环从别处打开图，领取自己的一份训练节点，与其他训练器求梯度（gradient）的平均，并通过所有
# 者采样。我们把它完整写出来，再让 Python 打印不同的行。


# %% slot="four-code"
def train_distributed():
    g = DistGraph(DATASET, part_config=config)
    train_ids = node_split(g.ndata["train_mask"])
    torch.manual_seed(0)
    model = DistributedDataParallel(SAGE(num_features, num_classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sampler = NeighborSampler([10, 10])
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

loops = (train_alone, train_distributed)
lines = [inspect.getsource(loop).splitlines()[1:] for loop in loops]
print(*(line for line in difflib.ndiff(*lines) if line[0] in "+-"), sep="\n")

# %% [markdown] slot="prove" lang="en"
# Four lines; the loop itself reads rows as before. With `initialize` and `init_process_group` at
# its beginning, this is a script for a cluster.
#
# ## Prove it
#
# Does it learn the same? Both must see the same nodes in the same order, so we give the loop of
# one machine the distributed order, translated by `old_ids`. After ten epochs we compare all
# parameters, then the accuracy on the validation set with all neighbors.

# %% [markdown] slot="prove" lang="ko"
# 네 줄이 다르고, 루프 자체는 전과 똑같이 행을 읽습니다. 맨 앞에 `initialize`와
# `init_process_group`을 넣으면 이것이 클러스터용 스크립트입니다.
#
# ## 증명하기
#
# 똑같이 학습할까요? 두 루프가 같은 노드를 같은 순서로 보아야 하므로, 분산 루프의 순서를
# `old_ids`로 옮겨 머신 한 대용 루프에 줍니다. 열 에폭(epoch) 뒤에 모든 매개변수를 비교하고, 이어서
# 모든 이웃(neighbor)을 써서 검증 세트(validation set)의 정확도를 비교합니다.

# %% [markdown] slot="prove" lang="zh"
# 四行不同，循环本身照旧读取行。在开头加上 `initialize` 和 `init_process_group`，这就是一个用于集群
# 的脚本。
#
# ## 证明
#
# 两者学到的相同吗？为此，它们必须以相同的次序看到相同的节点，所以我们把分布式循环的次序用 `old_ids`
# 换算之后，交给单机循环。十轮（epoch）之后比较所有参数，再用全部邻居（neighbor）比较验证集
# （validation set）上的准确率。


# %% slot="prove-code" tags=["nbval-ignore-output"]
def accuracy(g, model, x):
    ids, hits = g.ndata["val_mask"][:].nonzero().flatten(), []
    sampler = NeighborSampler([None, None])
    with torch.no_grad():
        for i, o, blocks in DistNodeDataLoader(g, ids, sampler, batch_size=1000):
            hits.append(model(blocks, x[i]).argmax(1) == g.ndata["label"][o])
    return torch.cat(hits).float().mean().item()


g, there = train_distributed()
dataset.train_idx = old_ids[node_split(g.ndata["train_mask"])]
whole, here = train_alone()
for mine, theirs in zip(here.parameters(), there.parameters(), strict=True):
    assert torch.allclose(mine, theirs, atol=1e-6)
for name, each, model in (("alone", whole, here), ("distributed", g, there)):
    print(f"{name}: validation accuracy {accuracy(each, model, each.ndata['feat']):.3f}")

# %% [markdown] slot="twice" lang="en"
# The parameters agree, and so do the accuracies.
#
# ## When an ID stands twice
#
# Reading a repeated ID is harmless: the row comes twice. Writing keeps the last value; so `+= 1`,
# which reads, adds and writes, counts a repeated ID once. Gradients are different. Each use of a
# row adds to the loss, hence its gradients must be **summed**.
#
# For rows that shall learn there is the **distributed embedding**, `DistEmbedding`. A call looks
# rows up and remembers them; a **sparse optimizer** then sends their gradients to the owners,
# which sum those of equal IDs and update only these rows. Does one step of `SparseAdagrad` equal
# that of `torch.optim.Adagrad`?

# %% [markdown] slot="twice" lang="ko"
# 매개변수가 일치하고, 정확도도 일치합니다.
#
# ## 같은 ID가 두 번 나올 때
#
# 되풀이된 ID를 읽을 때는 문제가 없습니다. 행이 두 번 올 뿐입니다. 쓸 때는 마지막 값이 남습니다.
# 따라서 읽고 더하고 쓰는 `+= 1`은 되풀이된 ID를 한 번만 셉니다. 그래디언트는 다릅니다. 행은 쓰일
# 때마다 손실에 영향을 주므로, 그 그래디언트는 **더해야** 합니다.
#
# 학습할 행에는 **분산 임베딩**(distributed embedding) `DistEmbedding`을 씁니다. 호출하면 행을 찾아
# 돌려주고, 어느 행이었는지 기억해 둡니다. 그러면 **희소 옵티마이저**(sparse optimizer)가
# 그래디언트를 소유자에게 보내고, 소유자는 같은 ID의 그래디언트를 더하여 해당하는 행에만 갱신 규칙을
# 적용합니다. `SparseAdagrad`의 한 단계는 `torch.optim.Adagrad`의 한 단계와 같을까요?

# %% [markdown] slot="twice" lang="zh"
# 参数一致，准确率也一致。
#
# ## 同一个 ID 出现两次时
#
# 读取重复的 ID 没有问题：这一行会出现两次。写入时保留最后一个值；因此先读、再加、后写的 `+= 1` 对重
# 复的 ID 只计一次。梯度则不同：一行每用一次，都会影响损失，所以它的各个梯度必须**相加**。
#
# 需要学习的行用**分布式嵌入**（distributed embedding）`DistEmbedding`。调用它会查出各行，并记住查
# 了哪些行；随后**稀疏优化器**（sparse optimizer）把梯度送给所有者，所有者把相同 ID 的梯度相加，只
# 对有关的行应用更新规则。`SparseAdagrad` 的一步等于 `torch.optim.Adagrad` 的一步吗？

# %% slot="twice-code"
count = DistTensor((8,), torch.int64, part_policy=policy)
print("read:", x[[3, 3]].tolist())
count[[3, 3, 5]] = torch.tensor([1, 2, 9])
print("written 1, then 2:", count[3].item())
count[[3, 3, 5]] += 1
print("after += 1:", count[[3, 5]].tolist())

emb, dense = DistEmbedding(8, 2, part_policy=policy), nn.Embedding(8, 2)
nn.init.zeros_(dense.weight)  # as the rows of emb are
ours = SparseAdagrad([emb], lr=0.1)
theirs = torch.optim.Adagrad(dense.parameters(), lr=0.1)
twice, gradients = torch.tensor([3, 3, 5]), torch.tensor([[1.0], [3.0], [2.0]])
for table, optimizer in ((emb, ours), (dense, theirs)):
    (gradients * table(twice)).sum().backward()
    optimizer.step()
assert torch.allclose(emb.weight[:], dense.weight)
print("sum of squares of rows 3, 5:", emb.optm_state[0][[3, 5]][:, 0].tolist())

# %% [markdown] slot="trans" lang="en"
# They are equal. Adagrad divides by the root of a sum of squares, which lies beside each row: 16
# is $(1 + 3)^2$, not $1^2 + 3^2$, so the gradients were summed first.
#
# ## Nodes without features
#
# Many nodes have no features: users, products, anything that is only an ID. Then every node gets a
# row to learn. This is called *transductive*, since nothing is learned for nodes that come later.
# The rows are by far the largest parameter, so they are spread like the graph, and each batch
# updates few of them.
#
# We hide the pixels of the digits and train with **two optimizers**: torch's `Adam` for the
# layers, which every trainer has, and `SparseAdam` or `SparseAdagrad` for the rows. For
# comparison, rows that stay as they were drawn.

# %% [markdown] slot="trans" lang="ko"
# 두 결과는 같습니다. Adagrad는 행 옆에 둔 제곱합의 제곱근으로 나눕니다. 출력된 16은 $1^2 + 3^2$이
# 아니라 $(1 + 3)^2$이므로, 그래디언트를 먼저 더했음을 알 수 있습니다.
#
# ## 피처가 없는 노드
#
# 사용자나 상품처럼 ID만 있고 피처가 없는 노드가 많습니다. 이때는 모든 노드에 학습할 행을 하나씩
# 줍니다. 나중에 추가되는 노드에 대해서는 아무것도 배우지 못하므로 이런 모델을
# **변환적**(transductive) 모델이라고 합니다. 행은 모델에서 단연 가장 큰 매개변수입니다. 그래서
# 그래프처럼 여러 머신에 나누어 두며, 배치마다 그 가운데 일부만 갱신합니다.
#
# 숫자 이미지의 픽셀을 감추고 **옵티마이저 두 개**로 학습합니다. 모든 트레이너가 갖고 있는 계층에는
# torch의 `Adam`을, 행에는 `SparseAdam`이나 `SparseAdagrad`를 씁니다. 비교를 위해 처음 뽑은 값
# 그대로 둔 행으로도 학습합니다.

# %% [markdown] slot="trans" lang="zh"
# 两者相等。Adagrad 要除以平方和的平方根，平方和就存放在每一行旁边：16 是 $(1 + 3)^2$，而不是
# $1^2 + 3^2$，可见梯度是先相加的。
#
# ## 没有特征的节点
#
# 许多节点没有特征：用户、商品，以及一切只有 ID 的东西。这时给每个节点一行可以学习的参数。这样的模型
# 称为**直推式**（transductive）模型，因为对以后才出现的节点，它什么也没有学到。这些行占参数的绝大部
# 分，所以像图一样分散存放，而每一批只更新其中少数几行。
#
# 我们把手写数字的像素藏起来，用**两个优化器**训练：各层由每个训练器持有，用 torch 的 `Adam`；行用
# `SparseAdam` 或 `SparseAdagrad`。作为对照，再用一组随机抽取之后保持不变的行。


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
train_ids, sampler = node_split(g.ndata["train_mask"]), NeighborSampler([10, 10])
choices = {
    "SparseAdam": (BLUE, lambda rows: [SparseAdam(rows, lr=0.05)]),
    "SparseAdagrad": (GREEN, lambda rows: [SparseAdagrad(rows, lr=0.2)]),
    "rows stay": ("gray", lambda rows: []),
}
figure, ax = plt.subplots(figsize=(5.6, 2.6), layout="constrained")
for name, (line, make_optimizer) in choices.items():
    history = learn_rows(make_optimizer)
    ax.plot(range(1, 16), history, "o-", ms=3, color=line, label=name)
ax.set(xlabel="epoch", ylabel="validation accuracy", ylim=(0, 1), xticks=range(1, 16, 2))
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown] slot="cost" lang="en"
# The layers alone learn next to nothing from random rows. Learned rows reach about eight in ten,
# without a single pixel: a row gathers what it knows from the labels around it.
#
# ## What it costs
#
# Each row that another machine owns travels through the network. So we count: for the share of
# each of four trainers, the input nodes of its batches, by owner. `nid2partid` of the partition
# book says who owns a node. We compare METIS with the random parts from before.

# %% [markdown] slot="cost" lang="ko"
# 무작위 행을 그대로 두면 계층은 거의 아무것도 배우지 못합니다. 행을 학습하면 픽셀을 하나도 쓰지
# 않고도 열에 여덟가량을 맞힙니다. 행이 주변 노드의 레이블(label)에서 정보를 모으기 때문입니다.
#
# ## 비용
#
# 다른 머신이 소유한 행은 모두 네트워크를 거쳐 옵니다. 그러므로 그 수를 세어 봅시다. 트레이너 네
# 개가 받은 몫에 대해, 배치에 필요한 입력 노드를 소유자별로 셉니다. 노드를 누가 소유하는지는 파티션
# 북(partition book)의 `nid2partid`가 알려 줍니다. METIS로 나눈 것과 앞에서 무작위로 나눈 것을
# 비교합니다.

# %% [markdown] slot="cost" lang="zh"
# 面对随机的行，单靠各层几乎什么也学不到。行参与学习之后，一个像素也不用，就能答对大约八成：每一行
# 从周围的标签（label）中积累信息。
#
# ## 代价
#
# 归别的机器所有的行都要经过网络。因此我们来数一数：四个训练器各取自己的一份训练节点，我们按所有者统
# 计各批的输入节点。节点归谁所有，由分区簿（partition book）的 `nid2partid` 给出。我们把 METIS 与前
# 面的随机切分作比较。


# %% slot="cost-code" tags=["nbval-ignore-output"]
def rows_per_batch(config):
    g = DistGraph(DATASET, part_config=config)
    book, rows = g.get_partition_book(), torch.zeros(PARTS, PARTS)
    for rank in range(PARTS):
        share = node_split(g.ndata["train_mask"], rank=rank, num_trainers=PARTS)
        loader = DistNodeDataLoader(g, share, sampler, batch_size=16, seed=0)
        for input_nodes, _, _ in loader:
            owners = book.nid2partid(input_nodes)
            rows[rank] += owners.bincount(minlength=PARTS) / len(loader)
    return rows


paths = {"METIS": config, "random": f"{scratch.name}/4/{DATASET}.json"}
figure, axes = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
for i, (name, color) in enumerate(zip(paths, (BLUE, ORANGE))):
    rows = rows_per_batch(paths[name])
    far = (rows.sum(1) - rows.diagonal()) * num_features * 4  # bytes
    axes[i].imshow(rows, "Blues", vmin=0, vmax=1.6 * rows.sum(1).max())
    for (y, x), count in np.ndenumerate(rows.numpy()):
        axes[i].text(x, y, f"{count:.0f}", ha="center", va="center")
    axes[i].set_title(f"{name}: {1 - rows.trace() / rows.sum():.0%} remote", color=color)
    axes[i].set(xlabel="owner of the rows", ylabel="trainer")
    axes[2].bar(np.arange(PARTS) + 0.4 * i - 0.2, far / 1000, 0.4, color=color)
axes[2].set(xlabel="trainer", ylabel="kB from others per batch")
plt.show()

# %% [markdown] slot="summary" lang="en"
# Each row of a table is a trainer, each column an owner; the diagonal costs no network. With METIS
# a trainer finds about five rows in six at home, with random parts one in four, as chance has it.
# On the right the same in kilobytes, a row being 64 numbers of 4 bytes. The samples did not depend
# on the cut; their cost does.
#
# ## Summary
#
# - Rows are asked of their owners, one question for each; the answers are put back in order.
# - `DistGraph` and `DistTensor` do so behind the face of a graph and a tensor; four lines make a
#   training loop distributed.
# - Samples do not depend on the cut; given the same order of nodes, both loops learn the same.
# - Repeated IDs: reading repeats, writing keeps the last, gradients are summed.
# - The model has torch's optimizer; rows to learn have a sparse one, whose state lies with the
#   rows.
# - What a batch costs is the rows of others; a good cut makes them few.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict. The
# [solutions](../solutions/06_distributed_api.ipynb) are beside the lesson.
#
# 1. The ranges of four parts begin at 0, 450, 899 and 1348. Who owns node 1000, and which of its
#    rows is it? Answer with a list of two numbers.
# 2. A row starts at 0. One batch uses it twice, with gradients 1 and 3, and Adagrad has a learning
#    rate of 0.1. Where would the row be if its owner took two steps, one for each gradient,
#    instead of summing? Round to three digits.
# 3. Write a function of `tensor`, `ids` and `values` that adds `values[i]` to row `ids[i]` of a
#    `DistTensor`, so that repeated IDs count each time.
# 4. Write a function of `g`, `ids` and `part` that returns how many of the rows `ids` the machine
#    `part` must ask of others, a row that stands twice counted once.

# %% [markdown] slot="summary" lang="ko"
# 표의 행은 트레이너, 열은 소유자이며, 대각선에는 네트워크 비용이 들지 않습니다. METIS로 나누면
# 트레이너는 여섯 행 가운데 다섯 행가량을 자기 머신에서 찾고, 무작위로 나누면 확률대로 네 행 가운데
# 한 행만 찾습니다. 오른쪽은 같은 내용을 킬로바이트로 나타낸 것으로, 한 행은 4바이트짜리 수
# 64개입니다. 표본은 그래프를 어떻게 나누든 같았지만, 표본의 비용은 어떻게 나누느냐에 달려 있습니다.
#
# ## 요약
#
# - 행은 소유자에게 요청합니다. 소유자마다 한 번씩 묻고, 답을 원래 순서대로 놓습니다.
# - `DistGraph`와 `DistTensor`는 그래프와 텐서의 모습을 하고 그 일을 대신합니다. 네 줄만 고치면
#   학습 루프가 분산 학습 루프가 됩니다.
# - 표본은 그래프를 어떻게 나누든 달라지지 않습니다. 학습 노드의 순서가 같으면 두 루프는 똑같이
#   학습합니다.
# - 되풀이된 ID를 읽으면 행이 되풀이되고, 쓰면 마지막 값이 남으며, 그래디언트는 더해집니다.
# - 모델에는 torch의 옵티마이저를, 학습할 행에는 희소 옵티마이저를 씁니다. 희소 옵티마이저의 상태는
#   행과 함께 있습니다.
# - 배치의 비용은 다른 머신이 소유한 행의 수이며, 그래프를 잘 나누면 줄어듭니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 판정을 확인합니다.
# [풀이](../solutions/06_distributed_api.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 파티션 네 개의 구간이 0, 450, 899, 1348에서 시작합니다. 노드 1000은 누가 소유하며, 그 소유자의
#    몇 번째 행입니까? 행은 0부터 셉니다. 수 두 개를 담은 리스트로 답합니다.
# 2. 0에서 시작하는 행이 있습니다. 한 배치가 이 행을 두 번 쓰며 그래디언트는 1과 3이고, Adagrad의
#    학습률은 0.1입니다. 소유자가 그래디언트를 더하지 않고 하나마다 한 단계씩, 모두 두 단계를
#    수행한다면 행의 값은 얼마가 됩니까? 소수점 아래 셋째 자리까지 반올림합니다.
# 3. `tensor`, `ids`, `values`를 받아 `DistTensor`의 행 `ids[i]`에 `values[i]`를 더하는 함수를
#    작성합니다. 되풀이된 ID는 나올 때마다 더해야 합니다.
# 4. `g`, `ids`, `part`를 받아, 행 `ids` 가운데 머신 `part`가 다른 머신에 요청해야 하는 행의 수를
#    돌려주는 함수를 작성합니다. 두 번 나오는 행은 한 번만 셉니다.

# %% [markdown] slot="summary" lang="zh"
# 表的每一行是一个训练器，每一列是一个所有者；对角线上的行不经过网络。用 METIS 切分时，训练器约有六
# 分之五的行就在本机；随机切分时只有四分之一，正是概率所预期的。右图用千字节表示同样的内容，每一行是
# 64 个 4 字节的数。样本与图的切法无关，样本的代价却取决于切法。
#
# ## 小结
#
# - 行要向它的所有者索取：每个所有者只问一次，回答按原来的次序放好。
# - `DistGraph` 和 `DistTensor` 在图和张量的外表之下完成这些事；改四行，训练循环就成为分布式的。
# - 样本与切法无关；训练节点的次序相同时，两个循环学到的相同。
# - 重复的 ID：读取时行会重复，写入时保留最后一个值，梯度则相加。
# - 模型用 torch 的优化器；要学习的行用稀疏优化器，它的状态与行放在一起。
# - 一批的代价，就是归其他机器所有的行；切得好，这样的行就少。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看判定结果。[解答](../solutions/06_distributed_api.ipynb)随
# 本课提供。
#
# 1. 四个分区的各段从 0、450、899、1348 开始。节点 1000 归谁所有，是它的第几行？行从 0 数起。用含两
#    个数的列表作答。
# 2. 一行从 0 开始。一个批次两次用到它，梯度为 1 和 3，Adagrad 的学习率是 0.1。如果所有者不把梯度相
#    加，而是每个梯度各走一步，共走两步，这一行的值会是多少？四舍五入到小数点后三位。
# 3. 写一个以 `tensor`、`ids` 和 `values` 为参数的函数，把 `values[i]` 加到 `DistTensor` 的第
#    `ids[i]` 行，重复的 ID 每出现一次都要加一次。
# 4. 写一个以 `g`、`ids` 和 `part` 为参数的函数，返回在 `ids` 这些行中，机器 `part` 要向别的机器索
#    取多少行；出现两次的行只计一次。


# %% slot="check"
def check(number, answer, is_right):
    verdict = "not answered yet"
    if answer is not None:
        verdict = "right" if is_right(answer) else "wrong"
    print(f"exercise {number}: {verdict}")


def sha(answer):
    return hashlib.sha256(str(answer).encode()).hexdigest()[:8]


# %% slot="answers"
answer_1 = None  # a list of two numbers: machine, row
answer_2 = None  # a number
answer_3 = None  # a function of tensor, ids and values
answer_4 = None  # a function of g, ids and part


def adds_each(answer):
    total = DistTensor((8,), torch.int64, part_policy=policy)
    for _ in range(2):
        answer(total, torch.tensor([5, 3, 5]), torch.tensor([1, 2, 3]))
    return total[:].tolist() == [0, 0, 0, 4, 0, 8, 0, 0]


check(1, answer_1, lambda answer: sha(answer) == "dd336f6b")
check(2, answer_2, lambda answer: sha(round(answer, 3)) == "3ab26903")
check(3, answer_3, adds_each)
check(4, answer_4, lambda answer: [int(answer(small, ids, p)) for p in (0, 1)] == [2, 1])
