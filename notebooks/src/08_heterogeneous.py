# %% [markdown] slot="title" lang="en"
# # Heterogeneous graphs
#
# Users and films, authors and papers: in most real-world graphs, nodes differ in kind. So do
# edges: a user may like or dislike a film. A graph with several **types** of nodes or edges is
# **heterogeneous**. When such a graph is partitioned, two numberings exist side by side, and code
# that confuses them reads the wrong rows without any error. By the end of this lesson, you will be
# able to
#
# - convert between homogeneous and type-wise IDs, by hand and with the partition book;
# - sample with either kind of ID, and find the types in the frontier and the block;
# - train an R-GCN on a partitioned heterogeneous graph, with embeddings for nodes without features;
# - say what each type of edge costs and how much it helps.

# %% [markdown] slot="title" lang="ko"
# # 이종 그래프
#
# 사용자와 영화, 저자와 논문처럼 현실의 그래프에는 대개 여러 종류의 노드가 있습니다. 에지도
# 마찬가지여서, 예를 들어 사용자는 영화를 좋아할 수도 있고 싫어할 수도 있습니다. 노드나 에지의
# **타입**(type)이 여럿인 그래프를 **이종 그래프**(heterogeneous graph)라고 합니다. 이런 그래프를
# 여러 파티션(partition)으로 나누면 번호 체계가 두 가지 생기는데, 이 둘을 혼동하면 오류 없이 엉뚱한
# 행을 읽게 됩니다. 레슨을 마치면 다음과 같은 일을 할 수 있습니다.
#
# - 동종 ID(homogeneous ID)와 타입별 ID(type-wise ID)를 직접 계산하거나 파티션 북(partition book)을
#   써서 서로 변환하기
# - 두 가지 ID 가운데 어느 것으로든 샘플링하고, 프런티어(frontier)와 블록(block)에서 타입을 알아내기
# - 여러 파티션으로 나눈 이종 그래프에서 R-GCN을 학습하고, 피처(feature)가 없는 노드에는 임베딩을
#   쓰기
# - 에지 타입마다 비용과 효과가 얼마나 되는지 설명하기

# %% [markdown] slot="title" lang="zh"
# # 异构图
#
# 现实中的图数据，节点大多分为不同的种类，例如用户与电影、作者与论文；边也是如此，例如一个人可以喜欢
# 一部电影，也可以不喜欢。节点或边有多种**类型**（type）的图称为**异构图**（heterogeneous graph）。
# 把它切成若干分区（partition）之后，就有两套编号并存；混淆了两者的代码不会报错，却会读到错误的行。
# 学完之后，你能够：
#
# - 在同构 ID（homogeneous ID）与类型内 ID（type-wise ID）之间转换，既会手动计算，也会使用分区簿
#   （partition book）；
# - 用其中任何一种 ID 采样，并在边界子图（frontier）和块（block）中找到类型；
# - 在切成分区的异构图上训练 R-GCN，并为没有特征（feature）的节点使用嵌入（embedding）；
# - 说明每种类型的边开销有多大，作用又有多大。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# This lesson builds on [partitions](05_partitioning.ipynb) and the [distributed
# API](06_distributed_api.ipynb). The graph is generated here. One process opens all parts of the
# graph (**standalone mode**). The parts are stored in a temporary folder, which is deleted when the
# kernel exits.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 이 레슨은 [파티션](05_partitioning.ipynb)과 [분산 API](06_distributed_api.ipynb)를 다룬 레슨에
# 이어집니다. 그래프는 이 노트북에서 직접 만듭니다. **단독 모드**(standalone mode)로 실행하므로
# 프로세스 하나가 모든 파티션을 엽니다. 파티션 파일은 임시 폴더에 저장하며, 커널을 종료하면 이
# 폴더도 지워집니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 本课以[分区](05_partitioning.ipynb)和[分布式 API](06_distributed_api.ipynb) 两课为基础。所用的图在
# 本课中生成。程序在**独立模式**（standalone mode）下运行，所有分区都由一个进程打开；分区文件写在临
# 时文件夹里，内核退出时会自动删除。

# %% slot="imports"
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn
from tqdm.auto import tqdm

import gnnlab as dgl
import gnnlab.nn as dglnn
from gnnlab.dataloading import NeighborSampler
from gnnlab.distributed import DistDataLoader, DistEmbedding, DistGraph, SparseAdam
from gnnlab.distributed import node_split, partition_graph, sample_neighbors
from gnnlab.exercises import Lesson
from gnnlab.plot import BLUE, GRAY, GREEN, ORANGE

PARTS, TOWNS, GENRES, FANOUT = 4, 12, 4, 10
colors = BLUE, ORANGE, GREEN, GRAY
lesson = Lesson("08", "en")  # exercises, and the style of figures
lesson.style()
torch.set_num_threads(1)

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# Five users like or dislike four films. The full name of an edge type, its **canonical edge type**,
# is a triple: source type, relation, destination type. Users and films are each numbered from 0, so
# `owner`, which gives the part of each node, needs a tensor for each type.
#
# The library sorts node types by name and edge types by full name: `film` is node type 0 and
# `user` is node type 1; `dislikes` is edge type 0 and `likes` is edge type 1. In the figure,
# circles are users and squares are films; part 0 is blue and part 1 is orange.

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기
#
# 사용자 5명이 영화 4편을 좋아하거나 싫어합니다. 에지 타입의 전체 이름(canonical edge type)은 출발
# 노드의 타입, 관계(relation), 도착 노드의 타입으로 이루어진 튜플입니다. 사용자와 영화의 번호는 각각
# 0부터 시작하므로, 각 노드를 어느 파티션에 둘지 나타내는 `owner`에는 타입마다 텐서가 하나씩
# 필요합니다.
#
# 라이브러리에서는 노드 타입을 이름순으로, 에지 타입을 전체 이름순으로 정렬합니다. 노드는 `film`이
# 타입 0, `user`가 타입 1이고, 에지는 `dislikes`가 타입 0, `likes`가 타입 1입니다. 그림에서 원은
# 사용자, 사각형은 영화입니다. 파티션 0은 파란색, 파티션 1은 주황색입니다.

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图
#
# 5 个用户对 4 部电影中的一些表示喜欢或不喜欢。边类型的全名（canonical edge type）是一个三元组：源节
# 点的类型、关系（relation）、目标节点的类型。用户和电影都从 0 开始编号，所以记录各节点所属分区的
# `owner` 中，每种类型各有一个张量。
#
# 库按名称对节点类型排序，按全名对边类型排序：`film` 是节点类型 0，`user` 是节点类型 1；`dislikes`
# 是边类型 0，`likes` 是边类型 1。图中圆表示用户，方块表示电影；分区 0 为蓝色，分区 1 为橙色。

# %% slot="toy-code"
likes = [0, 3, 3, 1, 4], [1, 3, 0, 0, 2]  # users, films
dislikes = [2, 0, 1, 4, 2, 1], [1, 3, 2, 0, 3, 3]
edges = {("user", "likes", "film"): likes, ("user", "dislikes", "film"): dislikes}
toy = dgl.heterograph(edges)
owner = {"film": torch.tensor([1, 0, 1, 0]), "user": torch.tensor([0, 1, 0, 0, 1])}
print(toy)

# %% slot="toy-draw" tags=["folded"]
marks, titles = {"film": "s", "user": "o"}, {"film": "films", "user": "users"}
films_at, users_at = [3, 0.5, 4, 1.5], [0, 3, 1, 2, 4]


def draw_node(ax, at, ntype, part, name):
    ax.scatter(*at, s=290, marker=marks[ntype], color=colors[part], zorder=3)
    style = {"ha": "center", "va": "center_baseline", "weight": "bold", "zorder": 4}
    ax.text(*at, name, color="white", **style)


figure, ax = plt.subplots(figsize=(5.6, 2), layout="constrained")
lines = (("likes", likes, "-", GREEN), ("dislikes", dislikes, "--", "gray"))
for name, ends, line, color in lines:
    ax.plot([], [], line, color=color, label=name)
    for u, v in zip(*ends):
        arrow = {"arrowstyle": "-|>", "lw": 1.5, "ls": line, "color": color, "shrinkB": 9}
        ax.annotate("", (films_at[v], 0), (users_at[u], 1), arrowprops=arrow)
for y, (ntype, at) in enumerate((("film", films_at), ("user", users_at))):
    ax.text(-0.5, y, titles[ntype], ha="right", va="center")
    for i, x in enumerate(at):
        draw_node(ax, (x, y), ntype, owner[ntype][i], i)
ax.set(xlim=(-0.5, 4.5), ylim=(-0.25, 1.25))
ax.set_axis_off()
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown] slot="number" lang="en"
# ## Build it yourself: two numberings
#
# Partitioning assigns new IDs so that each part owns ranges of them. There are two ways to number
# the nodes:
#
# - **Type-wise IDs** count within a type: films are 0 to 3 and users 0 to 4, with those of part 0
#   first. They serve as the row numbers of the features.
# - **Homogeneous IDs** count across all types: the films of part 0, then its users, then the films
#   of part 1, then its users. A single number identifies any node, as if there were only one type.
#
# The nodes of type $t$ that part $p$ owns form one range in either numbering. It begins at the
# type-wise ID $f_{pt}$ and at the homogeneous ID $s_{pt}$. So converting an ID means finding its
# range and shifting the ID accordingly:
#
# $$\text{homogeneous ID} = \text{type-wise ID} - f_{pt} + s_{pt}$$
#
# For example, the films of part 1 begin at the type-wise ID 2. The two films and three users of
# part 0 come before them, so their homogeneous IDs begin at 5, and film 3 has the homogeneous ID
# $3 - 2 + 5 = 6$. We write functions for both conversions, then draw the result.

# %% [markdown] slot="number" lang="ko"
# ## 직접 만들어 보기: 두 가지 번호
#
# 그래프를 나누면 파티션마다 ID의 한 구간을 소유하도록 새 ID를 매깁니다. 번호를 매기는 방법은 두
# 가지입니다.
#
# - **타입별 ID**는 타입마다 따로 매깁니다. 영화는 0~3, 사용자는 0~4이고, 파티션 0의 노드가 먼저
#   옵니다. 이 ID가 곧 피처의 행 번호입니다.
# - **동종 ID**는 모든 타입에 걸쳐 이어서 매깁니다. 파티션 0의 영화와 사용자, 이어서 파티션 1의
#   영화와 사용자 순서입니다. 타입이 하나뿐인 것처럼 숫자 하나로 어떤 노드든 가리킬 수 있습니다.
#
# 파티션 $p$가 소유한 타입 $t$의 노드는 두 번호 체계에서 모두 하나의 구간을 이룹니다. 이 구간은
# 타입별 ID로는 $f_{pt}$에서, 동종 ID로는 $s_{pt}$에서 시작합니다. 따라서 ID를 변환하려면 ID가 속한
# 구간을 찾아 두 시작값의 차이만큼 옮기면 됩니다.
#
# $$\text{동종 ID} = \text{타입별 ID} - f_{pt} + s_{pt}$$
#
# 예를 들어 파티션 1의 영화는 타입별 ID 2에서 시작합니다. 그 앞에 파티션 0의 영화 두 편과 사용자 세
# 명이 있으므로 동종 ID는 5에서 시작하고, 영화 3의 동종 ID는 $3 - 2 + 5 = 6$입니다. 두 방향의 변환
# 함수를 작성한 다음 결과를 그림으로 그려 봅시다.

# %% [markdown] slot="number" lang="zh"
# ## 亲手实现：两套编号
#
# 切分时要重新编号，使每个分区拥有若干段连续的 ID。编号的方法有两种：
#
# - **类型内 ID** 在每种类型内部编号：电影是 0 到 3，用户是 0 到 4，分区 0 的在前。它就是特征的行
#   号。
# - **同构 ID** 对所有类型统一编号：先是分区 0 的电影和用户，再是分区 1 的电影和用户。就像只有一种类
#   型一样，用一个数就能指明任何节点。
#
# 无论用哪套编号，分区 $p$ 所拥有的类型 $t$ 的节点都是连续的一段，起点分别是类型内 ID $f_{pt}$ 和同
# 构 ID $s_{pt}$。因此，转换时先找到所在的段，再平移两个起点之差：
#
# $$\text{同构 ID} = \text{类型内 ID} - f_{pt} + s_{pt}$$
#
# 例如，分区 1 的电影从类型内 ID 2 开始；它们前面有分区 0 的两部电影和三个用户，所以同构 ID 从 5 开
# 始。于是，新编号中的电影 3 的同构 ID 是 $3 - 2 + 5 = 6$。下面写出两个方向的转换，再画成图。

# %% slot="number-code"
sizes = torch.stack([owner[t].bincount() for t in toy.ntypes], 1)  # (part, type)
first = sizes.cumsum(0) - sizes  # f: first type-wise ID of a range
start = sizes.flatten().cumsum(0).view(2, 2) - sizes  # s: its first homogeneous ID


def to_homo(ids, t):
    p = torch.searchsorted(first[:, t].contiguous(), ids, right=True) - 1
    return ids - first[p, t] + start[p, t]


def to_types(ids):
    cell = torch.searchsorted(start.flatten(), ids, right=True) - 1  # p * 2 + t
    return cell % 2, ids - start.flatten()[cell] + first.flatten()[cell]


for t, ntype in enumerate(toy.ntypes):
    ids = to_homo(torch.arange(sizes[:, t].sum()), t)
    print(f"homogeneous IDs of {ntype}s:", ids.tolist())

# %% slot="number-draw" tags=["folded"]
figure, ax = plt.subplots(figsize=(6.4, 2.1), layout="constrained")
kinds, within = to_types(torch.arange(9))
for homo, (t, i) in enumerate(zip(kinds.tolist(), within.tolist())):
    ntype, part = toy.ntypes[t], int(homo >= start[1, 0])
    above, below = homo + 0.8 * part, [-0.6, 5.4][t] + i
    ax.plot([above, below], [1, 0], color=colors[part], lw=1)
    draw_node(ax, (above, 1), ntype, part, homo)
    draw_node(ax, (below, 0), ntype, part, i)
for x, y, label in ((2, 1.4, "part 0"), (7.3, 1.4, "part 1")):
    ax.text(x, y, label, ha="center", color=colors[label == "part 1"])
for x, label in ((0.9, "films"), (7.4, "users")):
    ax.text(x, -0.5, label, ha="center")
for y, label in ((1, "homogeneous IDs"), (0, "type-wise IDs")):
    ax.text(-1.2, y, label, ha="right", va="center")
ax.set(xlim=(-1.1, 10), ylim=(-0.6, 1.6))
ax.axis("off")
plt.show()

# %% [markdown] slot="library" lang="en"
# Film 2 has the homogeneous ID 5, and film 3 has 6. Lines between markers of the same color and
# shape are parallel because each range moves as a whole. In the top row, each part is one range; in
# the bottom row, each type is.
#
# ## With the library
#
# The **partition book** converts IDs: `map_to_homo_nid(ids, ntype)` in one direction,
# `map_to_per_ntype(ids)` in the other; the latter returns type IDs and type-wise IDs.
# `map_to_homo_eid` and `map_to_per_etype` do the same for edges, each of which belongs to the part
# of its destination.

# %% [markdown] slot="library" lang="ko"
# 영화 2의 동종 ID는 5, 영화 3은 6입니다. 구간은 통째로 옮겨 가므로, 색과 모양이 같은 노드끼리는
# 선이 서로 평행합니다. 위쪽에서는 파티션이, 아래쪽에서는 타입이 하나의 구간을 이룹니다.
#
# ## 라이브러리 사용하기
#
# 라이브러리에서는 **파티션 북**으로 변환합니다. `map_to_homo_nid(ids, ntype)`은 동종 ID로,
# `map_to_per_ntype(ids)`는 그 반대로 변환하며, 후자는 타입 번호와 타입별 ID를 반환합니다. 에지에는
# `map_to_homo_eid`와 `map_to_per_etype`을 씁니다. 에지는 도착 노드의 파티션에 속합니다.

# %% [markdown] slot="library" lang="zh"
# 电影 2 的同构 ID 是 5，电影 3 是 6。每一段都是整体平移的，所以颜色和节点形状都相同的线互相平行。在
# 上方，一个分区是连续的一段；在下方，一种类型是连续的一段。
#
# ## 使用库
#
# 转换由**分区簿**完成：`map_to_homo_nid(ids, ntype)` 转换为同构 ID；`map_to_per_ntype(ids)` 则相
# 反，返回类型的编号和类型内 ID。对边使用 `map_to_homo_eid` 和 `map_to_per_etype`；边属于目标节点所
# 在的分区。

# %% slot="library-code"
by_owner = {"part_method": lambda graph, num_parts: owner}
partition_graph(toy, "toy", 2, f"{lesson.folder}/toy", **by_owner)
dgl.distributed.initialize()
toy_g = DistGraph("toy", part_config=f"{lesson.folder}/toy/toy.json")
toy_book = toy_g.get_partition_book()

for t, ntype in enumerate(toy_g.ntypes):
    ids = torch.arange(toy_g.num_nodes(ntype))
    assert torch.equal(toy_book.map_to_homo_nid(ids, ntype), to_homo(ids, t))
for found, wanted in zip(toy_book.map_to_per_ntype(range(9)), to_types(torch.arange(9))):
    assert torch.equal(found, wanted)

kinds, ids = toy_book.map_to_per_etype(range(11))
print("types of edges 0 to 10:", kinds.tolist())
print("their type-wise IDs:   ", ids.tolist())

# %% [markdown] slot="typed" lang="en"
# All IDs match the ones that we computed by hand. Edges are numbered the same way: the four
# dislikes and two likes of part 0, then the two dislikes and three likes of part 1.
#
# ## Sampling with types
#
# Seeds can be given as type-wise IDs, in a dictionary; these are the new IDs, not those of the
# first figure. The **frontier** (the sampled edges) then has the types of the graph. A fanout
# applies to each seed *and* each edge type: with a fanout of 1, a film gets at most one edge of
# each type.
#
# Seeds can also be homogeneous IDs. The frontier then has one node type and one edge type, and
# `edata[dgl.ETYPE]` gives the original type of each edge. With the same random seed, the sample
# must be the same.
#
# We make a block from each frontier. `to_block` keeps `dgl.ETYPE`; node types come from the
# partition book and are stored under the name `dgl.NTYPE`. The typed block needs neither.

# %% [markdown] slot="typed" lang="ko"
# ID는 직접 구한 것과 모두 같습니다. 에지에도 같은 방식으로 번호를 매깁니다. 파티션 0의 싫어요 네
# 개와 좋아요 두 개에 이어, 파티션 1의 싫어요 두 개와 좋아요 세 개가 옵니다.
#
# ## 타입이 있는 그래프에서 샘플링하기
#
# 시드는 타입별 ID(첫 그림의 번호가 아니라 그래프를 나누면서 새로 매긴 ID)의 딕셔너리로 지정할 수
# 있습니다. 그러면 **프런티어**에도 그래프와 같은 노드 타입과 에지 타입이 있습니다. 팬아웃(fanout)은
# 시드마다 따로, 또 한 시드에서도 **에지 타입마다** 따로 적용됩니다. 팬아웃이 1이면 영화 한 편에서
# 에지 타입마다 최대 하나씩 뽑습니다.
#
# 시드를 동종 ID로 지정할 수도 있습니다. 그러면 프런티어에는 노드 타입과 에지 타입이 하나씩만 있고,
# 각 에지의 원래 타입은 `edata[dgl.ETYPE]`에 들어 있습니다. 난수 시드가 같으면 샘플링 결과도 같아야
# 합니다.
#
# 두 프런티어에서 각각 블록을 만듭니다. `dgl.ETYPE`은 `to_block`을 거쳐도 유지됩니다. 노드 타입은
# 파티션 북에서 구하여 `dgl.NTYPE`이라는 이름으로 저장합니다. 타입이 있는 블록에는 둘 다 필요하지
# 않습니다.

# %% [markdown] slot="typed" lang="zh"
# 所有节点的 ID 都与手动计算的相同。边也按同样的方式编号：先是分区 0 的四条“不喜欢”和两条“喜欢”，再
# 是分区 1 的两条“不喜欢”和三条“喜欢”。
#
# ## 带类型的采样
#
# 种子可以用类型内 ID（切分时新编的 ID，不是第一幅图中的编号）的字典给出，这时**边界子图**的类型与原
# 图相同。扇出（fanout）分别限制每个种子的**每一种**边的条数：扇出为 1 时，一部电影的每种边至多采样
# 一条。
#
# 种子也可以用同构 ID 给出。这时边界子图只有一种节点类型和一种边类型，每条边原来的类型存放在
# `edata[dgl.ETYPE]` 中。随机种子相同，采样结果也应当相同。
#
# 下面用这两个边界子图各生成一个块。`to_block` 会保留 `dgl.ETYPE`；节点的类型由分区簿查出，存为
# `dgl.NTYPE`。带类型的块则不需要这两项数据。

# %% slot="typed-code"
toy_seeds = {"film": torch.tensor([1, 2])}
dgl.seed(1)
frontier = sample_neighbors(toy_g, toy_seeds, 1)
for etype in toy_g.canonical_etypes:
    eids = frontier.edges[etype].data[dgl.EID]
    for u, v, e in zip(*frontier.edges(etype=etype), eids):
        print(f"user {u} {etype[1]} film {v}: edge {e} of its type")

toy_homo = toy_book.map_to_homo_nid(toy_seeds["film"], "film")
dgl.seed(1)
homo_frontier = sample_neighbors(toy_g, toy_homo, 1)
print("homogeneous:", *(ends.tolist() for ends in homo_frontier.edges()))
print("edge types: ", homo_frontier.edata[dgl.ETYPE].tolist())
kinds, eids = toy_book.map_to_per_etype(homo_frontier.edata[dgl.EID])
for t, etype in enumerate(toy_g.canonical_etypes):
    assert torch.equal(eids[kinds == t], frontier.edges[etype].data[dgl.EID])

# %% slot="block-code"
block = dgl.to_block(homo_frontier, toy_homo)
block.srcdata[dgl.NTYPE], ids = toy_book.map_to_per_ntype(block.srcdata[dgl.NID])
names = [toy_g.ntypes[t] for t in block.srcdata[dgl.NTYPE]]
print("sources:", [f"{ntype} {i}" for ntype, i in zip(names, ids.tolist())])
print("edge types:", block.edata[dgl.ETYPE].tolist())

typed_block = dgl.to_block(frontier, toy_seeds)
print({ntype: ids.tolist() for ntype, ids in typed_block.srcdata[dgl.NID].items()})

# %% [markdown] slot="block" lang="en"
# Sources 3, 8, 4, 4 are users 1, 4, 2, 2, so the samples are equal. Both blocks hold the same
# nodes, seeds first: one block in a single list, the other in a list for each type. With
# homogeneous IDs, code written for one type works for any number of types.
#
# ## A graph whose edge types matter
#
# In each of twelve towns, a cinema shows a hundred films. Each of 3,000 users rates up to sixteen
# films, about nine in ten of them in the user's hometown. A film has one of four genres, the label
# to predict. A user has a favorite genre, **likes** films of that genre and **dislikes** all
# others, with one exception in ten. *Which* films a user rates has nothing to do with taste: only
# the type of the edge reveals it. Films have eight very noisy features; users have none. Messages
# should flow both ways, so each relation gets a reverse relation.

# %% [markdown] slot="block" lang="ko"
# 출발 노드 3, 8, 4, 4는 사용자 1, 4, 2, 2이므로 두 샘플링 결과는 같습니다. 두 블록의 노드도 같으며
# 시드가 먼저 옵니다. 다만 한쪽은 리스트 하나에, 다른 쪽은 타입별 리스트에 들어 있습니다. 동종 ID를
# 쓰면 타입이 하나일 때 작성한 코드를 타입이 몇 개이든 그대로 쓸 수 있습니다.
#
# ## 에지 타입이 중요한 그래프
#
# 도시 열두 곳에 영화관이 하나씩 있고, 영화관마다 영화를 백 편 상영합니다. 사용자 3,000명은 각자
# 최대 열여섯 편을 평가하는데, 열에 아홉쯤은 자기 도시에서 상영하는 영화입니다. 영화는 네 장르
# 가운데 하나에 속하며, 예측할 레이블이 바로 이 장르입니다. 사용자는 자신이 선호하는 장르의 영화는
# **좋아하고** 나머지는 모두 **싫어하지만**, 열 번에 한 번은 반대로 평가합니다. **어느** 영화를
# 평가하는지는 취향과 관계가 없고, 취향은 에지 타입에만 나타납니다. 영화에는 잡음이 심한 피처가 여덟
# 개 있고, 사용자에게는 피처가 없습니다. 메시지가 양쪽으로 전달되도록 관계마다 역방향 관계를
# 추가합니다.

# %% [markdown] slot="block" lang="zh"
# 源节点 3、8、4、4 就是用户 1、4、2、2，所以两次采样的结果相同。两个块含有相同的节点，种子都排在前
# 面；不同的是，一个块把所有节点放在同一个列表里，另一个块则按类型分成几个列表。使用同构 ID，为一种
# 类型编写的代码就能用于任意多种类型。
#
# ## 必须区分边类型的图
#
# 十二座城市各有一家影院，每家放映一百部电影。3,000 个用户每人至多评价十六部，其中九成左右是在自己所
# 在城市放映的。每部电影属于四个类别之一，类别就是要预测的标签。每个用户有一种偏爱的类别，**喜欢**这
# 一类电影，**不喜欢**其他所有电影，但有十分之一的例外。用户评价**哪些**电影与口味无关，口味只体现在
# 边的类型上。电影有八个特征，但噪声很大；用户没有特征。消息应当双向传递，所以为每种关系加上反向关
# 系。

# %% slot="data-code"
num_films, num_users, ratings = 1200, 3000, 16
random = torch.Generator().manual_seed(0)


def draw(n, size):
    return torch.randint(n, (size,), generator=random)


taste, genre = draw(GENRES, num_users), draw(GENRES, num_films)
home = draw(TOWNS, num_users).maximum(draw(TOWNS, num_users))  # town sizes differ
user = torch.arange(num_users).repeat_interleave(ratings)
town = torch.where(draw(10, len(user)) > 0, home[user], draw(TOWNS, len(user)))
film = town + TOWNS * draw(num_films // TOWNS, len(user))  # films t, t + 12, ...
user, film = torch.stack([user, film]).unique(dim=1)
agrees = (taste[user] == genre[film]) ^ (draw(10, len(user)) == 0)
edges = {}
for verb, some in (("like", agrees), ("dislike", ~agrees)):
    edges["user", f"{verb}s", "film"] = user[some], film[some]
    edges["film", f"{verb}d_by", "user"] = film[some], user[some]
cinema = dgl.heterograph(edges, {"film": num_films, "user": num_users})
feat = F.one_hot(genre, 8) + 1.5 * torch.randn(num_films, 8, generator=random)
train_mask = draw(2, num_films) == 0
cinema.nodes["film"].data.update(feat=feat, label=genre, train_mask=train_mask)
cinema.nodes["user"].data.update(town=home, taste=taste)  # only for plots
print({etype[1]: cinema.num_edges(etype) for etype in cinema.canonical_etypes})

# %% [markdown] slot="metis" lang="en"
# The edge types are numbered 0 to 3 in this order. There are more than twice as many dislikes as
# likes.
#
# ## Partition
#
# Even if all parts have the same number of nodes, one part may have mostly films and another mostly
# users. `partition_graph` therefore divides **each type** equally, unless `balance_ntypes` says
# otherwise. We try both: all nodes in one category, then the default.

# %% [markdown] slot="metis" lang="ko"
# 에지 타입의 번호는 이 순서대로 0~3입니다. 싫어요는 좋아요의 두 배가 넘습니다.
#
# ## 파티션으로 나누기
#
# 파티션마다 노드 수가 같더라도 한쪽에는 영화가, 다른 쪽에는 사용자가 몰려 있을 수 있습니다. 그래서
# `partition_graph`는 `balance_ntypes`로 달리 지정하지 않는 한 **타입마다** 고르게 나눕니다. 모든
# 노드를 한 부류로 지정할 때와 기본값을 쓸 때를 비교해 봅시다.

# %% [markdown] slot="metis" lang="zh"
# 边类型按这个顺序编号为 0 到 3。“不喜欢”的边数是“喜欢”的两倍以上。
#
# ## 切分
#
# 即使每个分区的节点数相等，也可能有的分区电影多，有的分区用户多。所以，除非用 `balance_ntypes` 另行
# 指定，`partition_graph` 会把**每种类型**都均匀地分给各个分区。下面比较两种做法：把所有节点归为一
# 类，以及默认的方式。

# %% slot="metis-code" tags=["nbval-ignore-output"]
one_class = torch.zeros(cinema.num_nodes(), dtype=torch.int64)
wishes = {"types ignored": one_class, "types balanced": None}
multiples = {}  # of the average: (part, type)
for name, wish in wishes.items():
    dgl.seed(2)
    folder = f"{lesson.folder}/{name}"
    partition_graph(cinema, "cinema", PARTS, folder, balance_ntypes=wish)
    cut = DistGraph("cinema", part_config=f"{folder}/cinema.json")
    book = cut.get_partition_book()
    owned = [[len(book.partid2nids(p, t)) for t in cut.ntypes] for p in range(PARTS)]
    multiples[name] = torch.tensor(owned) / torch.tensor(owned).float().mean(0)
ignored, balanced = multiples.values()
assert PARTS != 4 or ignored.max() > balanced.max() + 0.1, "types should be spread evenly"

g = cut  # with types balanced
part = book.nid2partid(range(g.num_nodes("user")), "user")
cell = part * TOWNS + g.nodes["user"].data["town"][:]
lived = cell.bincount(minlength=PARTS * TOWNS).view(PARTS, TOWNS)
lived = lived / lived.sum(0)  # share of a town's users in each part
assert lived.max(0).values.mean() > 1.5 / PARTS, "towns should stay together"

# %% slot="metis-draw" tags=["folded", "nbval-ignore-output"]
figure, axes = plt.subplots(1, 3, figsize=(9, 2.4), layout="constrained")
for (name, multiple), color, shift in zip(multiples.items(), (GRAY, BLUE), (-0.2, 0.2)):
    for ax, ntype, heights in zip(axes, g.ntypes, multiple.T):
        ax.bar(torch.arange(PARTS) + shift, heights, 0.4, color=color, label=name)
        ax.set(title=titles[ntype], xlabel="part", xticks=range(PARTS), ylim=(0, 1.9))
axes[0].set_ylabel("multiple of the average")
axes[1].legend()
axes[2].imshow(lived, "Blues", vmin=0, vmax=1, aspect="auto")
axes[2].set(title="where each town's users ended up", xlabel="towns", ylabel="part")
axes[2].set(xticks=range(TOWNS), yticks=range(PARTS))
plt.show()

# %% [markdown] slot="relations" lang="en"
# If types are ignored, one part holds far more films than the average. If they are balanced, each
# type is spread more evenly; the two shares of cut edges in the output show the price. The
# right-hand plot shows that METIS (LDG where the package pymetis is missing, as on Windows) has
# gathered the users of each town, although it was not given the towns.
#
# ## R-GCN with homogeneous IDs
#
# Each layer of a relational graph convolutional network (R-GCN) has a matrix $W_r$ for each
# relation $r$, a separate matrix $W_0$ for the node itself (not that of relation 0) and a bias $b$.
# It takes the mean over $N_r(v)$, the neighbors of $v$ under $r$:
#
# $$h_v = W_0 x_v + \sum_r \frac{1}{|N_r(v)|} \sum_{u \in N_r(v)} W_r x_u + b$$
#
# `RelGraphConv` takes the relation of each edge and the factor $1/|N_r(v)|$; `relations` computes
# both. The argument `sees` of `relations` maps edge types to relations, so a model can be trained
# without distinguishing certain types. `sample_blocks` is the loop from DGL's guide, for
# homogeneous IDs.
#
# Users have no features, so each gets a row of a **distributed embedding**, a table of learnable
# parameters whose rows are stored by their owners. The partition policy puts each row in the part
# that owns its user. `rows` uses both numberings: the partition book splits the homogeneous IDs of
# the input nodes by type; features and embeddings are read with type-wise IDs; the results are
# written to the positions of the nodes in the block.

# %% [markdown] slot="relations" lang="ko"
# 타입을 고려하지 않으면 영화가 평균보다 훨씬 많은 파티션이 생깁니다. 타입을 고려하면 타입마다 더
# 고르게 나뉩니다. 그 대가로 에지가 얼마나 더 잘리는지는 출력의 두 비율에서 알 수 있습니다. 오른쪽
# 그림을 보면, METIS에 도시 정보를 주지 않았는데도 같은 도시의 사용자끼리 모였습니다. (Windows처럼
# pymetis 패키지를 쓸 수 없는 환경에서는 METIS 대신 LDG를 씁니다.)
#
# ## 동종 ID로 R-GCN 학습하기
#
# 관계형 그래프 합성곱 신경망(relational graph convolutional network, R-GCN)의 계층은 관계 $r$마다
# 행렬 $W_r$을 두고, 노드 자신을 위한 행렬 $W_0$(관계 0의 행렬이 아님)과 편향 $b$도 둡니다. 평균은
# 관계 $r$로 이어진 $v$의 이웃 $N_r(v)$에 대해 구합니다.
#
# $$h_v = W_0 x_v + \sum_r \frac{1}{|N_r(v)|} \sum_{u \in N_r(v)} W_r x_u + b$$
#
# `RelGraphConv`에는 각 에지의 관계와 계수 $1/|N_r(v)|$을 넘기며, 이 둘은 `relations`에서
# 계산합니다. 인자 `sees`는 에지 타입을 관계에 대응시킵니다. 두 타입을 같은 관계로 지정하면 둘을
# 구별하지 않는 모델을 학습할 수 있습니다. `sample_blocks`는 DGL 사용자 가이드에서처럼 계층마다 동종
# ID로 샘플링하는 함수입니다.
#
# 사용자에게는 피처가 없으므로 사용자마다 학습할 행을 하나씩 둡니다. 이 행들을 모은 표가 **분산
# 임베딩**(distributed embedding)이며, 각 행은 소유자(owner)가 저장합니다. 이 행이 사용자 타입에
# 속한다는 것은 파티션 정책(partition policy)으로 지정합니다. `rows`에서는 두 번호 체계를 함께
# 씁니다. 입력 노드의 동종 ID를 파티션 북으로 타입별로 나누고, 피처와 임베딩을 타입별 ID로 읽은
# 다음, 그 결과를 블록의 노드 순서에 맞게 넣습니다.

# %% [markdown] slot="relations" lang="zh"
# 如果不考虑类型，就会有一个分区的电影数远高于平均值。考虑类型之后，每种类型都分得更均匀；为此多切断
# 了多少边，可以比较输出中的两个比例。METIS 没有用到城市信息，但从右图可以看到，它仍把同一城市的用户
# 分到了一起。（如果没有 pymetis 包，例如在 Windows 上，则改用 LDG。）
#
# ## 用同构 ID 训练 R-GCN
#
# 关系图卷积网络（R-GCN）的每一层为每种关系 $r$ 设一个矩阵 $W_r$，另为节点自身设一个矩阵 $W_0$（不是
# 关系 0 的矩阵），此外还有一个偏置 $b$。计算节点 $v$ 的输出时，对每种关系 $r$，都求该关系下的邻居集
# 合 $N_r(v)$ 中各节点输入向量的平均：
#
# $$h_v = W_0 x_v + \sum_r \frac{1}{|N_r(v)|} \sum_{u \in N_r(v)} W_r x_u + b$$
#
# `RelGraphConv` 需要每条边的关系和系数 $1/|N_r(v)|$，两者都由 `relations` 算出。参数 `sees` 把边类
# 型映射到关系；把两种类型映射到同一关系，就能训练一个不区分它们的模型。`sample_blocks` 是 DGL 用户
# 指南中逐层采样的循环，使用同构 ID。
#
# 用户没有特征，所以为每个用户设一行可学习的参数：这些行组成**分布式嵌入**（distributed
# embedding），每一行由所有者（owner）保存。分区策略（partition policy）指明这些行对应用户节点，随用
# 户节点一起分布在各个分区。`rows` 同时用到两套编号：先用分区簿把输入节点的同构 ID 按类型拆开，再用
# 类型内 ID 读取特征和嵌入，最后把结果放到这些节点在块中的位置上。


# %% slot="relations-code"
def sample_blocks(seeds, fanouts):
    blocks = []
    for fanout in fanouts:
        block = dgl.to_block(sample_neighbors(g, seeds, fanout), seeds)
        seeds = block.srcdata[dgl.NID]
        blocks.insert(0, block)
    return blocks


def relations(block, sees):
    kind = torch.tensor(sees)[block.edata[dgl.ETYPE]]
    pair = block.edges()[1] * 4 + kind  # destination and relation
    return kind, 1 / pair.bincount()[pair]


def small(shape, dtype):
    return 0.01 * torch.randn(shape, dtype=dtype)


# %% slot="rgcn-code"
class RGCN(nn.Module):
    def __init__(self, sees, dim=16, hidden=32):
        super().__init__()
        num, policy = g.num_nodes("user"), g.get_node_partition_policy("user")
        self.users = DistEmbedding(num, dim, init_func=small, part_policy=policy)
        self.films, self.sees, num_rels = nn.Linear(8, dim), sees, max(sees) + 1
        first = dglnn.RelGraphConv(dim, hidden, num_rels, activation=F.relu)
        last = dglnn.RelGraphConv(hidden, GENRES, num_rels)
        self.layers = nn.ModuleList([first, last])

    def rows(self, nodes):
        kind, ids = book.map_to_per_ntype(nodes)
        x = torch.empty(len(nodes), self.users.embedding_dim)
        x[kind == 0] = self.films(g.nodes["film"].data["feat"][ids[kind == 0]])
        x[kind == 1] = self.users(ids[kind == 1])
        return x

    def forward(self, blocks):
        x = self.rows(blocks[0].srcdata[dgl.NID])
        for layer, block in zip(self.layers, blocks, strict=True):
            x = layer(block, x, *relations(block, self.sees))
        return x


# %% [markdown] slot="train" lang="en"
# ## Training
#
# Half of the films are used for training. `node_split` returns their type-wise IDs, the loader gets
# homogeneous IDs, and labels are again read with type-wise IDs. Adam updates the weights, and the
# **sparse optimizer** `SparseAdam` updates the users' embedding rows. For several trainers, wrap
# the model in `DistributedDataParallel`, as you would on one machine.
#
# One model is given all four types. The other is *blind*: it does not distinguish likes from
# dislikes, and everything else is the same. What has each learned about users? The figures show how
# similar the embeddings are for every pair from a sample of users, sorted by taste, which neither
# model was given.

# %% [markdown] slot="train" lang="ko"
# ## 학습
#
# 영화의 절반을 학습에 씁니다. 학습에 쓸 영화의 타입별 ID는 `node_split`으로 얻고, 로더에는 동종
# ID를 넘기며, 레이블은 다시 타입별 ID로 읽습니다. 가중치는 Adam으로, 사용자의 임베딩 행은 **희소
# 옵티마이저**(sparse optimizer) `SparseAdam`으로 갱신합니다. 트레이너(trainer)가 여럿이면 머신 한
# 대에서 학습할 때처럼 모델을 `DistributedDataParallel`로 감싸면 됩니다.
#
# 한 모델은 네 타입을 모두 구별합니다. 다른 모델은 좋아요와 싫어요를 **구별하지 않으며**, 나머지는
# 모두 같습니다. 두 모델은 사용자에 관해 무엇을 학습할까요? 그림은 사용자 일부를 취향순으로 늘어놓고
# 두 사용자의 임베딩이 얼마나 비슷한지 나타낸 것입니다. 취향은 어느 모델의 학습에도 쓰지 않았습니다.

# %% [markdown] slot="train" lang="zh"
# ## 训练
#
# 一半的电影用于训练。它们的类型内 ID 由 `node_split` 给出，传给加载器的是同构 ID，标签又按类型内 ID
# 读取。权重用 Adam 更新，用户的嵌入行用**稀疏优化器**（sparse optimizer）`SparseAdam` 更新。如果有
# 多个训练器（trainer），就像在一台机器上训练时那样，用 `DistributedDataParallel` 包装模型。
#
# 一个模型区分全部四种类型；另一个模型**不区分**“喜欢”和“不喜欢”，其余完全相同。两个模型学到的用户嵌
# 入有何不同？下图取一部分用户，按口味排序，显示其中任意两人的嵌入有多相似；训练两个模型时都没有用到
# 口味。

# %% slot="train-code"
films = g.nodes["film"].data
train_ids = node_split(films["train_mask"], ntype="film")
test_ids = (~films["train_mask"][:]).nonzero().flatten()


def train(sees, fanouts, epochs=8):
    torch.manual_seed(0)
    model = RGCN(sees)
    dense = torch.optim.Adam(model.parameters(), lr=0.02)
    sparse = SparseAdam([model.users], lr=0.02)
    seeds = book.map_to_homo_nid(train_ids, "film")
    loader = DistDataLoader(seeds, 64, True, lambda s: sample_blocks(s, fanouts), seed=0)
    for _ in tqdm(range(epochs), desc="epochs", leave=False):
        for blocks in loader:
            _, ids = book.map_to_per_ntype(blocks[-1].dstdata[dgl.NID])
            loss = F.cross_entropy(model(blocks), films["label"][ids])
            dense.zero_grad()
            sparse.zero_grad()
            loss.backward()
            dense.step()
            sparse.step()
    with torch.no_grad():
        guess = model(sample_blocks(book.map_to_homo_nid(test_ids, "film"), fanouts))
    return model, (guess.argmax(1) == films["label"][test_ids]).float().mean().item()


# %% slot="blind-code" tags=["nbval-ignore-output"]
sights = {"all types": [0, 1, 2, 3], "blind": [0, 0, 1, 1]}
taste_of = g.nodes["user"].data["taste"][:]
order = taste_of.argsort(stable=True)[::12]  # some users
is_same = taste_of[order, None] == taste_of[order]
figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.1), layout="constrained")
results, gaps = {}, {}
for ax, (name, sees) in zip(axes, sights.items()):
    model, results[name] = train(sees, [FANOUT, FANOUT])
    print(f"{name}: accuracy {results[name]:.2f} on the test films")
    x = F.normalize(model.users.weight[order] - model.users.weight[:].mean(0))
    alike = x @ x.T
    gaps[name] = alike[is_same].mean() - alike[~is_same].mean()
    ax.imshow(alike, "Blues", vmin=0, vmax=1)
    ax.set(title=name, xticks=[], yticks=[], xlabel="users, by taste", ylabel="users")
plt.show()
assert results["all types"] > results["blind"] + 0.2, "types should matter"
assert gaps["all types"] > gaps["blind"] + 0.2, "tastes should show in embeddings"

# %% [markdown] slot="hetero" lang="en"
# Types matter: about nine films in ten are classified correctly, compared with about four in ten
# without types; random guessing gets one in four right. In the left-hand figure, the four squares
# on the diagonal correspond to the four tastes. Users with the same taste have similar embeddings,
# although the only labels were the genres of films.
#
# ## The other way: typed blocks
#
# If the seeds are a dictionary, `NeighborSampler` makes blocks with types. `HeteroGraphConv` has a
# separate module for each relation, so the modules may differ in kind and input size; it adds up
# the results at each node, so all outputs must have the same size. The computation is that of
# `RelGraphConv`: with equal weights, one layer must give equal results.

# %% [markdown] slot="hetero" lang="ko"
# 타입을 구별하는지에 따라 결과가 크게 달라집니다. 타입을 구별하면 열 편 가운데 아홉 편쯤 맞히지만,
# 구별하지 않으면 네 편쯤밖에 맞히지 못합니다. 무작위로 고르면 네 편에 한 편을 맞힙니다. 왼쪽
# 그림에서 대각선에 늘어선 정사각형 네 개는 네 가지 취향을 나타냅니다. 영화의 장르만 레이블로
# 썼는데도 취향이 같은 사용자끼리는 임베딩이 비슷합니다.
#
# ## 다른 방법: 타입이 있는 블록
#
# 시드를 딕셔너리로 지정하면 `NeighborSampler`는 타입이 있는 블록을 만듭니다. `HeteroGraphConv`는
# 관계마다 모듈을 하나씩 두고 그 결과를 노드별로 더합니다. 출력의 크기만 같다면 모듈의 종류나 입력의
# 크기는 관계마다 달라도 됩니다. 계산 자체는 앞의 `RelGraphConv`와 같으므로, 가중치가 같다면 한
# 계층의 결과도 같아야 합니다.

# %% [markdown] slot="hetero" lang="zh"
# 是否区分类型，结果相差很大：区分类型的模型每十部电影能猜对九部左右，不区分的只能猜对四部左右；随机
# 猜测的准确率则只有四分之一。左图对角线上的四个方块就是四种口味。虽然训练时的标签只有电影的类别，口
# 味相同的用户仍然得到了相似的嵌入。
#
# ## 另一种做法：带类型的块
#
# 种子是字典时，`NeighborSampler` 生成带类型的块。`HeteroGraphConv` 为每种关系设一个模块，因此各个模
# 块的种类和输入大小可以不同；在每个节点上，各模块的结果相加，所以输出大小必须相同。它与前面的
# `RelGraphConv` 做的是同一种计算：权重相同时，一层的结果也应当相同。

# %% slot="hetero-code"
homo = dglnn.RelGraphConv(8, 3, 4, self_loop=False, bias=False)
mods = {  # "right": the mean over neighbors
    etype: dglnn.GraphConv(8, 3, norm="right", bias=False) for etype in g.canonical_etypes
}
for weight, module in zip(homo.linear_r.W, mods.values()):
    module.weight = nn.Parameter(weight)
hetero = dglnn.HeteroGraphConv(mods)

seeds = {"film": torch.arange(30), "user": torch.arange(50)}
homo_seeds = torch.cat([book.map_to_homo_nid(ids, t) for t, ids in seeds.items()])
x = torch.rand(g.num_nodes(), 8)  # rows by homogeneous IDs
(block,) = sample_blocks(homo_seeds, [-1])
one = homo(block, x[block.srcdata[dgl.NID]], *relations(block, [0, 1, 2, 3]))

_, _, (block,) = NeighborSampler([-1]).sample(g, seeds)
sources = block.srcdata[dgl.NID].items()
other = hetero(block, {t: x[book.map_to_homo_nid(ids, t)] for t, ids in sources})
assert torch.allclose(one, torch.cat([other["film"], other["user"]]), atol=1e-5)
print("equal rows, shapes:", {ntype: tuple(rows.shape) for ntype, rows in other.items()})

# %% [markdown] slot="invert" lang="en"
# Both ways give the same result.
#
# ## Check IDs and samples
#
# First, with 1, 2 and 4 parts, we check that the conversions are inverses of each other and that,
# for every node and every edge, both IDs have the same owner.
#
# Second, we check that typed mini-batches do not depend on the partition. We sample the whole graph
# in memory, then the parts, and map the IDs of the blocks back to the original ones. For each type,
# the IDs from the parts must be the same as those from the whole graph, in the same order.

# %% [markdown] slot="invert" lang="ko"
# 두 방법의 결과는 같습니다.
#
# ## 확인하기: ID 변환과 샘플링
#
# 첫째, 파티션이 1개, 2개, 4개일 때 모든 노드와 에지에서 두 변환이 서로 역변환인지, 또 두 가지 ID의
# 소유자가 같은지 확인합니다.
#
# 둘째, 타입이 있는 미니배치(mini-batch)가 그래프를 나눈 방식과 관계없이 같은지 확인합니다. 메모리에
# 있는 그래프 전체에서 샘플링한 다음, 나눈 그래프에서 샘플링하여 블록의 ID를 원래 ID로 되돌립니다.
# 두 결과의 노드 ID와 에지 ID는 타입마다 순서까지 모두 같아야 합니다.

# %% [markdown] slot="invert" lang="zh"
# 两种做法的结果相同。
#
# ## 验证：ID 转换与采样
#
# 第一，分别切成 1、2、4 个分区，检查每个节点和每条边：两个方向的转换应当互为逆变换，用两种 ID 查到
# 的所有者也应当相同。
#
# 第二，带类型的小批次（mini-batch）应当与切分无关。先在内存中的整张图上采样，再在各个分区上采样，并
# 把块中的 ID 换回原始 ID。每种类型的节点和边都应当完全相同，连顺序也相同。


# %% slot="invert-code" tags=["nbval-ignore-output"]
def invert(number, split, join, owner_of, types):
    everything = torch.arange(number)
    kinds, ids = split(everything)
    for t, name in enumerate(types):
        homo, within = everything[kinds == t], ids[kinds == t]
        assert torch.equal(join(within, name), homo)
        assert torch.equal(within.sort().values, torch.arange(len(within)))
        assert torch.equal(owner_of(within, name), owner_of(homo))


cuts = {}
for k in (1, 2, 4):
    where = f"{lesson.folder}/{k}"
    maps = partition_graph(cinema, "cinema", k, where, return_mapping=True)
    cuts[k] = DistGraph("cinema", part_config=f"{where}/cinema.json"), maps
    b = cuts[k][0].get_partition_book()
    nodes = b.map_to_per_ntype, b.map_to_homo_nid, b.nid2partid, b.ntypes
    edges = b.map_to_per_etype, b.map_to_homo_eid, b.eid2partid, b.canonical_etypes
    invert(cinema.num_nodes(), *nodes)
    invert(cinema.num_edges(), *edges)
number = cinema.num_nodes() + cinema.num_edges()
print(f"all {number} IDs are recovered")

# %% slot="same-code"
sampler, seeds = NeighborSampler([5, 5]), torch.arange(64)
dgl.seed(7)
_, _, whole = sampler.sample(cinema, {"film": seeds})
for k, (dist_graph, (node_map, edge_map)) in cuts.items():
    new_ids = node_map["film"].argsort()  # original ID -> new ID
    dgl.seed(7)
    _, _, blocks = sampler.sample(dist_graph, {"film": new_ids[seeds]})
    for block, wanted in zip(blocks, whole):
        for ntype, ids in block.srcdata[dgl.NID].items():
            assert torch.equal(node_map[ntype][ids], wanted.srcdata[dgl.NID][ntype])
        for etype, ids in block.edata[dgl.EID].items():
            assert torch.equal(edge_map[etype][ids], wanted.edata[dgl.EID][etype])
    each = [block.num_edges() for block in blocks]
    print(f"parts: {k}; all edges equal; edges per block: {each}")

# %% [markdown] slot="cost" lang="en"
# Blocks do not depend on how the graph was partitioned. So if the order of the training nodes and
# the initial parameters, including embeddings, are the same, a model learns the same parameters
# from any number of parts.
#
# ## What it costs
#
# In each step, every input row that another part owns is transferred: 32 bytes for a film's
# features, 64 for a user's embedding (the gradient that is sent back is not counted). For four
# trainers, each with 64 seeds from its own part, `traffic` counts edges by type and bytes by owner.
# A fanout may be a dictionary, so we train three more times: twice with a smaller fanout for
# dislikes, once without likes.

# %% [markdown] slot="cost" lang="ko"
# 블록의 내용은 그래프를 나눈 방식과 관계가 없습니다. 따라서 학습 노드의 순서와 매개변수(임베딩
# 포함)의 초깃값이 같으면 파티션이 몇 개이든 학습 결과도 같습니다.
#
# ## 비용
#
# 학습 단계마다 다른 파티션이 소유한 입력 행을 모두 가져와야 합니다. 영화의 피처는 32바이트,
# 사용자의 임베딩은 64바이트입니다. 임베딩의 그래디언트(gradient)도 되돌려 보내야 하지만 여기서는
# 세지 않습니다. 트레이너 네 개가 각각 자기 파티션의 시드 64개를 처리할 때, `traffic`은 타입별 에지
# 수와, 읽는 행의 소유자별 바이트 수를 셉니다. 팬아웃은 딕셔너리로도 지정할 수 있으므로, 싫어요의
# 팬아웃을 2와 0으로 줄여서 한 번씩, 좋아요를 빼고 한 번, 모두 세 번 더 학습해 봅니다.

# %% [markdown] slot="cost" lang="zh"
# 块的内容与图的切分方式无关，所以无论有几个分区，只要训练节点的顺序和初始参数（包括嵌入）相同，训练
# 结果就相同。
#
# ## 开销
#
# 每一步都要传输属于其他分区的输入行：电影的特征是 32 字节，用户的嵌入是 64 字节，嵌入的梯度
# （gradient）还要传回去。设有四个训练器，每个处理自己分区的 64 个种子，`traffic` 按类型统计边数，按
# 所有者统计读取的字节数，传回的梯度不计在内。扇出也可以用字典给出。下面借此再训练三次，两次减少“不
# 喜欢”的边，一次去掉“喜欢”的边，并比较训练结果。


# %% slot="cost-code" tags=["nbval-ignore-output"]
def traffic(fanouts):
    edges, sent = torch.zeros(4, 2), torch.zeros(PARTS, PARTS)
    for p in range(PARTS):
        share = {"ntype": "film", "rank": p, "num_trainers": PARTS}
        mine = node_split(films["train_mask"], **share)[:64]
        blocks = sample_blocks(book.map_to_homo_nid(mine, "film"), fanouts)
        for block in blocks:
            away = book.nid2partid(block.srcdata[dgl.NID]) != p
            cell = block.edata[dgl.ETYPE] * 2 + away[block.edges()[0]]
            edges += cell.bincount(minlength=8).view(4, 2) / PARTS
        nodes = blocks[0].srcdata[dgl.NID]
        size = torch.tensor([32.0, 64.0])[book.map_to_per_ntype(nodes)[0]]
        sent[p].index_add_(0, book.nid2partid(nodes), size / 1000)
    return edges, sent


ways = {(FANOUT, m): results["all types"] if m == FANOUT else 0 for m in (FANOUT, 2, 0)}
ways[0, FANOUT] = 0
counted, remote = {}, {}
for n, m in ways:
    fanout = {"likes": n, "liked_by": n, "dislikes": m, "disliked_by": m}
    counted[n, m] = _, sent = traffic([fanout, fanout])
    remote[n, m] = (sent.sum() - sent.trace()).item() / PARTS
    ways[n, m] = ways[n, m] or train([0, 1, 2, 3], [fanout, fanout])[1]
    print(f"{n} likes, {m} dislikes: {remote[n, m]:.0f} kB, accuracy {ways[n, m]:.2f}")

# %% slot="claims-code" tags=["nbval-ignore-output"]
edges, sent = counted[FANOUT, FANOUT]
away = 1 - (sent.trace() / sent.sum()).item()
print(f"{away:.0%} of the bytes come from other parts")
both, likes, dislikes = (FANOUT, FANOUT), (FANOUT, 0), (0, FANOUT)
if (PARTS, GENRES, FANOUT) == (4, 4, 10):  # what the text describes
    assert edges.sum(1).argmax() == 0, "disliked_by should be the largest group"
    assert edges[[0, 2]].sum() > edges.sum() / 2, "most edges should be dislikes"
    assert abs(away - 0.4) < 0.08, "about four bytes in ten should be remote"
    assert remote[likes] < 0.45 * remote[both], "likes should cost little"
    assert remote[likes] < 0.65 * remote[dislikes], "dislikes should cost more"
    assert ways[likes] > ways[both] - 0.15, "likes alone should nearly do"
    assert ways[likes] > ways[dislikes] + 0.2, "dislikes alone should not"

# %% slot="cost-plot" tags=["folded", "nbval-ignore-output"]
style = {"layout": "constrained", "width_ratios": [1.1, 1, 1.3]}
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.5, 2.7), **style)
left.barh(g.etypes, edges[:, 0], color=BLUE, label="own part")
left.barh(g.etypes, edges[:, 1], left=edges[:, 0], color=ORANGE, label="other parts")
left.set(xlabel="edges per step", title="sampled edges, by type")
left.legend(loc="upper right")
middle.imshow(sent, "Blues", vmin=0)
for p in range(PARTS):
    for q in range(PARTS):
        color = "white" if p == q else "black"
        middle.text(q, p, f"{sent[p, q]:.0f}", ha="center", va="center", color=color)
middle.set(xlabel="owner", ylabel="trainer", title="kB per step, by owner")
middle.set(xticks=range(PARTS), yticks=range(PARTS))
for (n, m), accuracy in ways.items():
    right.plot(remote[n, m], accuracy, "o", color=GREEN)
    right.text(remote[n, m], accuracy + 0.03, f"{n}+{m}", ha="center")
right.set(xlabel="kB from other parts, per step", ylabel="test accuracy", ylim=(0.4, 1))
right.set_xlim(0, 1.15 * max(remote.values()))
right.set_title("fanout: likes+dislikes")
plt.show()

# %% [markdown] slot="summary" lang="en"
# Most of the sampled edges are dislikes; the largest group, "disliked_by", consists of the dislikes
# that lead into users, which are sampled one layer farther from the seeds. About four bytes in ten
# come from other parts. In the right-hand plot, likes alone need about a third of the traffic of
# both, and seven points of accuracy are lost. Dislikes alone cost about twice as much as likes
# alone, and the accuracy is far lower. A like and a dislike cost the same to fetch; how much an
# edge helps depends on its type.
#
# ## Summary
#
# - Type-wise IDs number the rows of the features; a homogeneous ID identifies any node by a single
#   number. The partition book converts between them, using the ranges.
# - Seeds in a dictionary give typed frontiers; homogeneous seeds give frontiers with one node type
#   and one edge type, plus `dgl.ETYPE`. The samples are equal.
# - `RelGraphConv` and `HeteroGraphConv` are two forms of the same computation.
# - Nodes without features get a distributed embedding with the partition policy of their type.
# - Balance each node type when you partition, and choose a fanout for each edge type.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, running *Setup* is enough to check an answer. The
# [solutions](../solutions/08_heterogeneous_solution.ipynb) are in a separate notebook.
#
# 1. Three parts own 4, 2 and 3 films and 10, 20 and 30 users, respectively. Films are type 0. What
#    is the homogeneous ID of film 5?
# 2. In the same graph, which node has the homogeneous ID 30? Answer with a pair: its type and its
#    type-wise ID.
# 3. Write a function of `g`, any partitioned graph, and `frontier`, sampled from it with
#    homogeneous IDs. It should return a dictionary that gives, for each relation in `g.etypes`, the
#    number of edges that lead from one part to another.
# 4. Which fanout samples all likes and at most 3 dislikes for each film, and at most 2 edges of
#    each type for each user? Answer with a dictionary.

# %% [markdown] slot="summary" lang="ko"
# 에지의 대부분은 싫어요이며, 그중에서도 “disliked_by”, 곧 두 번째로 샘플링하는 계층에서 사용자로
# 들어오는 싫어요가 가장 많습니다. 읽는 데이터의 약 40%는 다른 파티션에서 가져옵니다. 오른쪽 그림을
# 보면 좋아요만 쓸 때는 트래픽(traffic)이 둘 다 쓸 때의 3분의 1쯤으로 줄어도 정확도는 7%포인트쯤
# 낮아지는 데 그치지만, 싫어요만 쓸 때는 트래픽이 그 두 배쯤인데도 정확도가 훨씬 낮습니다. 좋아요든
# 싫어요든 에지 하나의 비용은 같지만 효과는 타입에 따라 다릅니다.
#
# ## 요약
#
# - 타입별 ID는 피처의 행 번호이고, 동종 ID는 숫자 하나로 어떤 노드든 가리킵니다. 파티션 북은 구간을
#   이용하여 두 ID를 서로 변환합니다.
# - 시드를 딕셔너리로 지정하면 프런티어에 타입이 있고, 동종 ID로 지정하면 노드 타입과 에지 타입이
#   하나씩뿐이며 원래 에지 타입은 `dgl.ETYPE`에 있습니다. 두 샘플링 결과는 같습니다.
# - `RelGraphConv`와 `HeteroGraphConv`는 같은 계산을 두 가지 방식으로 구현한 것입니다.
# - 피처가 없는 노드에는 그 타입의 파티션 정책을 따르는 분산 임베딩을 씁니다.
# - 그래프를 나눌 때는 노드 타입마다 균형을 맞추고, 팬아웃은 에지 타입마다 정합니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 셀만 실행해도 채점할 수 있습니다.
# [풀이](../solutions/ko/08_heterogeneous_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 세 파티션이 영화는 각각 4편, 2편, 3편을, 사용자는 각각 10명, 20명, 30명을 소유합니다. 영화가
#    타입 0입니다. 영화 5의 동종 ID는 무엇입니까?
# 2. 같은 그래프에서 동종 ID가 30인 노드는 무엇입니까? 타입과 타입별 ID의 쌍으로 답합니다.
# 3. 파티션으로 나눈 임의의 그래프 `g`와 `g`에서 동종 ID로 샘플링한 `frontier`를 받아, `g.etypes`의
#    관계마다 한 파티션에서 다른 파티션으로 이어지는 에지의 수를 딕셔너리로 반환하는 함수를
#    작성합니다.
# 4. 영화마다 좋아요는 모두, 싫어요는 최대 3개 뽑고, 사용자마다 타입별로 에지를 최대 2개 뽑으려면
#    팬아웃을 어떻게 정해야 합니까? 딕셔너리로 답합니다.

# %% [markdown] slot="summary" lang="zh"
# 大多数边是“不喜欢”，其中最多的是采样第二跳时指向用户的边。读取的数据约有四成来自其他分区。从右图
# 看，只用“喜欢”，通信量（traffic）约为两种都用时的三分之一，准确率只下降约七个百分点；只用“不喜
# 欢”，通信量约为只用“喜欢”时的两倍，准确率却低得多。一条“喜欢”和一条“不喜欢”的开销相同，作用则取决
# 于类型。
#
# ## 小结
#
# - 类型内 ID 是特征的行号；同构 ID 用一个数就能指明任何节点。分区簿利用各段的分界在两者之间转换。
# - 以字典给出种子，得到带类型的边界子图；以同构 ID 给出种子，得到的图只有一种节点类型和一种边类
#   型，原来的边类型在 `dgl.ETYPE` 中。两者的采样结果相同。
# - `RelGraphConv` 和 `HeteroGraphConv` 是同一种计算的两种形式。
# - 没有特征的节点使用分布式嵌入，并采用其类型的分区策略。
# - 切分时使每种节点类型都均衡，采样时为每种边类型分别选择扇出。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的单元格就能评判。
# [解答](../solutions/zh/08_heterogeneous_solution.ipynb)随本课提供。
#
# 1. 三个分区分别拥有 4、2、3 部电影和 10、20、30 个用户。电影是类型 0。电影 5 的同构 ID 是多少？
# 2. 在同一张图中，同构 ID 为 30 的是哪个节点？用由类型和类型内 ID 组成的一对值作答。
# 3. 写一个以 `g` 和 `frontier` 为参数的函数：`g` 是任意一张切分好的图，`frontier` 是用同构 ID 从
#    `g` 中采样得到的。返回一个字典：对 `g.etypes` 中的每种关系，给出跨分区的边数。
# 4. 要为每部电影采样全部“喜欢”和至多 3 条“不喜欢”，为每个用户的每种边至多采样 2 条，扇出应当怎样设
#    定？用一个字典作答。

# %% slot="check"
answer_1 = None  # a number
answer_2 = None  # a pair, such as ("film", 0)
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% slot="answers"
answer_3 = None  # a function of g and frontier
answer_4 = None  # a dictionary
lesson.check(3, answer_3)
lesson.check(4, answer_4)
