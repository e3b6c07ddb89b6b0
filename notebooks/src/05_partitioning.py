# %% [markdown] slot="title" lang="en"
# # Partitioning a graph
#
# A graph that does not fit on one machine is cut into parts, one for each machine. Every machine
# stores its own part, samples from it, trains on it, and requests whatever else it needs from the
# others; how the graph is cut determines how often a machine has to ask. By the end of this lesson,
# you will be able to
#
# - number the nodes and edges of a partitioned graph by hand, and say what inner nodes and HALO
#   nodes are;
# - partition a graph with METIS, and judge the result by its cut, its halo and its balance;
# - map features and predictions from original to new IDs and back;
# - check that the parts together make up the graph, and that samples do not depend on the cut.

# %% [markdown] slot="title" lang="ko"
# # 그래프를 파티션으로 나누기
#
# 머신 한 대에 담을 수 없는 그래프는 여러 파티션(partition)으로 나누어 머신마다 하나씩 둡니다. 각
# 머신은 자기 파티션을 저장하고 그 파티션으로 샘플링과 학습을 하며, 거기에 없는 데이터가 필요하면
# 다른 머신에 요청합니다. 얼마나 자주 요청해야 하는지는 그래프를 어떻게 나누었는지에 달려 있습니다.
# 레슨을 마치면 다음과 같은 일을 할 수 있습니다.
#
# - 나누어진 그래프의 노드와 에지에 직접 번호를 매기고, 내부 노드(inner node)와 헤일로 노드(halo
#   node)가 무엇인지 설명하기
# - METIS로 그래프를 나누고, 에지 컷(edge cut), 헤일로, 균형을 기준으로 결과를 평가하기
# - 피처(feature)와 예측값을 원래 ID 순서에서 새 ID 순서로 바꾸고, 다시 원래 순서로 되돌리기
# - 파티션을 모두 합하면 원래 그래프가 되고, 샘플링 결과는 그래프를 나눈 방식과 관계없이 같다는 것을
#   확인하기

# %% [markdown] slot="title" lang="zh"
# # 把图切成分区
#
# 一台机器装不下的图，要切成若干分区（partition），每台机器一个。每台机器存储自己的分区，在上面采样
# 和训练，需要其他数据时，再向其他机器请求；请求量取决于图的切分方式。学完之后，你能够：
#
# - 亲手为切分后的图中的节点和边编号，并说明内部节点（inner node）和 HALO 节点（halo node）各是什
#   么；
# - 用 METIS 切分一张图，并从被切断的边（edge cut）、HALO 节点和分区的均衡程度三方面评价结果；
# - 把特征（feature）和预测结果从原始 ID 的顺序换成新 ID 的顺序，再换回来；
# - 验证所有分区合起来正是原图，而且采样结果与切分方式无关。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# `"digits"`, the graph of handwritten digits, comes with the project. `"facebook"`, a graph of
# 22,470 pages linked by mutual likes, is a 5 MB download; it is closer to the graphs used in
# practice. The parts are stored in a temporary folder, deleted when the kernel shuts down. The
# numbers in the text are those of `"digits"` in four parts (eight in the section on balance), cut
# by METIS; with these settings, `as_told` is true and the code asserts them. Collapsed cells only
# draw figures; click to expand.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 손글씨 숫자 그래프인 `"digits"`는 프로젝트에 포함되어 있습니다. `"facebook"`은 서로 ‘좋아요’를
# 누른 페이지 22,470개의 그래프로, 5 MB를 내려받아야 하지만 실제 그래프의 특징을 더 잘 보여 줍니다.
# 파티션은 임시 폴더에 저장하며, 커널을 종료하면 이 폴더도 지워집니다. 본문의 수치는 `"digits"`를
# METIS로 파티션 네 개(균형을 다루는 절에서는 여덟 개)로 나눈 결과이며, 설정이 이와 같으면
# `as_told`가 참이어서 코드가 그 수치를 확인합니다. 그림만 그리는 셀은 접어 두었으며, 누르면
# 펼쳐집니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 由手写数字图像构成的图 `"digits"` 随项目附带。`"facebook"` 由 22,470 个互相点赞的页面组成，需要下
# 载 5 MB，更接近实际应用中的图。分区写在临时文件夹里，内核退出时会自动删除。正文中的数字是用 METIS
# 把 `"digits"` 切成四个分区（“均衡”一节是八个）的结果；采用这些设置时 `as_told` 为真，代码会用断言
# 核对这些数字。只负责绘图的单元格都已折叠，点击即可展开。

# %% slot="imports"
import json
import os
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import gnnlab as dgl
from gnnlab.dataloading import NeighborSampler
from gnnlab.distributed import DistGraph, partition_graph
from gnnlab.distributed import load_partition, load_partition_feats
from gnnlab.exercises import Lesson
from gnnlab.partition import partition_report, plan
from gnnlab.plot import BLUE, GRAY, GREEN, ORANGE

DATASET, PARTS = "digits", 4  # or "facebook"
lesson = Lesson("05", "en")  # exercises, and the style of figures
lesson.style()
torch.set_num_threads(1)

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# We divide eight nodes between two machines: the blue nodes belong to part 0, the orange ones to
# part 1. Three edges, drawn in black, lead from one part to the other. They are **cut**.

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기
#
# 노드 8개를 머신 두 대에 나눕니다. 파란색 노드는 파티션 0에, 주황색 노드는 파티션 1에 둡니다.
# 검은색 에지 세 개는 한 파티션에서 다른 파티션으로 이어집니다. 이런 에지를 **잘린** 에지라고 하고,
# 그 수나 비율을 **에지 컷**이라고 합니다.

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图
#
# 8 个节点分给两台机器：蓝色节点归分区 0，橙色节点归分区 1。黑色的三条边跨越两个分区，即**被切断的边
# **。

# %% slot="toy-code"
toy_src = [2, 6, 0, 4, 5, 1, 6, 7, 5, 3, 2, 4, 7]
toy_dst = [0, 0, 5, 5, 1, 2, 3, 4, 6, 5, 7, 1, 2]
toy = dgl.graph((toy_src, toy_dst))
owner = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1])
place = [(-2, 1), (1, 0), (2, 1), (-2, -1), (2, -1), (-1, 0), (-3, 0), (3, 0)]

figure, ax = plt.subplots(figsize=(5.2, 2.4), layout="constrained")
dgl.plot.partition_map(toy, owner, halo_of=None, pos=place, ax=ax)
plt.show()

# %% [markdown] slot="number" lang="en"
# Along a black edge, a message goes from one machine to the other. The edge belongs to the part of
# its **destination**, where the message is needed.
#
# ## Build it yourself: new IDs
#
# The blue nodes are 0, 3, 5 and 6. An ID does not show whether a node is blue or orange, so each
# machine would need a table with the owner of every node. **New IDs** replace this table: all nodes
# of part 0 are numbered first, then those of part 1, and within each part they keep the original
# order. Now each part owns a range, and a few boundaries are enough. Edges are sorted by
# destination, so they fall into ranges too.

# %% [markdown] slot="number" lang="ko"
# 검은 에지의 메시지는 한 머신에서 다른 머신으로 전송됩니다. 에지는 메시지가 쓰이는 **도착 노드**의
# 파티션에 속합니다.
#
# ## 직접 만들어 보기: 새 ID
#
# 파란 노드는 0, 3, 5, 6입니다. ID만 보아서는 노드가 어느 파티션에 있는지 알 수 없으므로, 머신마다
# 모든 노드의 소유자(owner)를 적은 표가 있어야 합니다. **새 ID**를 쓰면 이 표가 필요 없습니다. 먼저
# 파티션 0의 모든 노드에, 이어서 파티션 1의 모든 노드에 번호를 매기고, 한 파티션 안에서는 원래
# 순서를 따릅니다. 그러면 파티션마다 ID의 한 구간을 소유하게 되므로 경계값 몇 개만 알면 됩니다.
# 에지도 도착 노드 순서로 정렬하므로 파티션마다 한 구간을 차지합니다.

# %% [markdown] slot="number" lang="zh"
# 沿着黑色的边，消息从一台机器传到另一台机器。边属于它的**目标节点**所在的分区，因为消息要在那里使
# 用。
#
# ## 亲手实现：新 ID
#
# 蓝色节点是 0、3、5、6。从 ID 看不出节点在哪个分区，所以每台机器都需要一张表，列出每个节点的所有者
# （owner）。有了**新 ID** 就不需要这张表：先给分区 0 的所有节点编号，再给分区 1 的所有节点编号，分
# 区之内保持原来的顺序。这样，每个分区拥有一段连续的 ID，只需记住几个分界值。边按目标节点排序，所以
# 边的 ID 也分成连续的几段。

# %% slot="number-code"
old_nodes = owner.argsort(stable=True)  # new ID -> original ID
new_nodes = old_nodes.argsort()  # original ID -> new ID
borders = [0, *owner.bincount().cumsum(0).tolist()]

src, dst = (new_nodes[ends] for ends in toy.edges())
old_edges = dst.argsort(stable=True)  # by destination, hence by part
src, dst = src[old_edges], dst[old_edges]
print("borders:", borders)
print("original IDs of nodes 0 to 7: ", old_nodes.tolist())
print("original IDs of edges 0 to 12:", old_edges.tolist())

# %% [markdown] slot="hold" lang="en"
# Nodes 0 to 3 now belong to part 0, the others to part 1. The lists lead back to the original IDs:
# new node 1 was node 3.
#
# A part stores more than it owns. It owns its **inner nodes** and the **inner edges**, those that
# enter inner nodes. It also stores the edges that leave, and every foreign node at either end of a
# stored edge: the **HALO nodes**. Of HALO nodes, it stores only the IDs; their features stay with
# the owner. The function `hold` returns the inner edges, the leaving edges and the HALO nodes of a
# part. In the figure, which shows new IDs, inner nodes are filled and HALO nodes outlined; dashed
# edges leave, and belong to the other part.

# %% [markdown] slot="hold" lang="ko"
# 이제 노드 0~3은 파티션 0에, 노드 4~7은 파티션 1에 속합니다. 출력된 목록에서 원래 ID를 알 수
# 있습니다. 예를 들어 새 노드 1은 원래 노드 3입니다.
#
# 파티션에는 자신이 소유한 것보다 더 많은 데이터가 저장됩니다. 파티션이 소유하는 것은 **내부
# 노드**와, 내부 노드로 들어오는 **내부 에지**입니다. 여기에 더해 다른 파티션으로 나가는 에지와,
# 들어오거나 나가는 에지의 반대쪽 끝에 있는 다른 파티션의 노드도 저장합니다. 이 노드가 **헤일로
# 노드**입니다. 헤일로 노드는 ID만 저장하며, 피처는 소유자가 가지고 있습니다. 함수 `hold`는 한
# 파티션의 내부 에지, 나가는 에지, 헤일로 노드를 차례로 반환합니다. 아래 그림의 숫자는 새 ID입니다.
# 색을 채운 노드는 내부 노드, 테두리만 있는 노드는 헤일로 노드입니다. 점선은 나가는 에지로, 다른
# 파티션이 소유합니다.

# %% [markdown] slot="hold" lang="zh"
# 新节点 0 到 3 属于分区 0，新节点 4 到 7 属于分区 1。从打印出的列表中可以查到原始 ID：例如，新节点
# 1 原来是节点 3。
#
# 分区存储的数据比它拥有的多。它拥有自己的**内部节点**，以及进入内部节点的**内部边**。此外，还要存储
# 从内部节点指向其他分区的边，以及这两种边落在其他分区的端点，即 **HALO 节点**。对 HALO 节点只存储
# ID，特征由所有者保存。函数 `hold` 依次返回一个分区的内部边、指向其他分区的边和 HALO 节点。图中标的
# 是新 ID：实心的是内部节点，空心的是 HALO 节点；虚线是指向其他分区的边，归对方所有。


# %% slot="hold-code"
def hold(p):
    def mine(ids):
        return (borders[p] <= ids) & (ids < borders[p + 1])

    inner = mine(dst).nonzero().flatten()
    leaving = (mine(src) & ~mine(dst)).nonzero().flatten()
    touched = torch.cat([src[inner], dst[leaving]]).unique()
    return inner, leaving, touched[~mine(touched)]


for p in range(2):
    inner, leaving, halo = (ids.tolist() for ids in hold(p))
    print(f"part {p}: inner edges {inner}, leaving {leaving}; HALO nodes {halo}")

# %% slot="hold-draw" tags=["folded"]
colors = [BLUE, ORANGE]
text = {"ha": "center", "va": "center_baseline", "weight": "bold", "zorder": 4}
figure, axes = plt.subplots(1, 2, figsize=(9, 2.3), layout="constrained")
for p, ax in enumerate(axes):
    inner, leaving, halo = hold(p)
    for ids, color, line in ((inner, colors[p], "-"), (leaving, "gray", "--")):
        arrow = {"arrowstyle": "-|>", "lw": 1.5, "shrinkA": 8, "shrinkB": 8, "ls": line}
        for start, end in zip(old_nodes[src[ids]], old_nodes[dst[ids]]):
            style = {"color": color, **arrow}
            ax.annotate("", place[end], place[start], arrowprops=style)
    for node in [*range(borders[p], borders[p + 1]), *halo.tolist()]:
        spot, color = place[old_nodes[node]], colors[owner[old_nodes[node]]]
        fill, ink = ("white", color) if node in halo else (color, "white")
        ax.scatter(*spot, s=250, color=fill, edgecolor=color, lw=1.5, zorder=3)
        ax.text(*spot, node, color=ink, **text)
    ax.set(title=f"part {p}", xlim=(-3.4, 3.4), ylim=(-1.4, 1.4))
    ax.axis("off")
plt.show()

# %% [markdown] slot="library" lang="en"
# A part has all in-edges of its inner nodes, so their neighbors are sampled without a request.
# Requests are needed only for features and neighbors of nodes that other parts own. The price is
# that three edges and the IDs of five nodes are stored twice.
#
# ## With the library
#
# `partition_graph` does all this and writes files. `part_method` is `"metis"`, `"ldg"`, `"random"`
# or, as here, a function that returns the part of each node. With `return_mapping=True`,
# `partition_graph` returns the original IDs of the new nodes and edges. Whatever training needs
# (features, labels, training masks) must be in `ndata` or `edata` beforehand, so that it is
# partitioned with the graph. `load_partition` opens one part and returns its graph, node features,
# edge features, the **partition book**, the graph's name, and the node and edge types. Within a
# part, nodes are numbered from 0 again, inner nodes first; `ndata[dgl.NID]` has the new IDs.

# %% [markdown] slot="library" lang="ko"
# 내부 노드로 들어오는 에지는 모두 같은 파티션에 있으므로, 내부 노드의 이웃은 다른 머신에 요청하지
# 않고 샘플링할 수 있습니다. 요청이 필요한 것은 다른 파티션에 있는 노드의 피처와 이웃뿐입니다. 그
# 대신 에지 세 개와 노드 다섯 개의 ID가 중복 저장됩니다.
#
# ## 라이브러리 사용하기
#
# `partition_graph`는 지금까지의 과정을 모두 수행하고 결과를 파일로 저장합니다. `part_method`에는
# `"metis"`, `"ldg"`, `"random"`이나, 여기서처럼 각 노드의 파티션을 반환하는 함수를 지정합니다.
# `return_mapping=True`로 지정하면 새 노드와 새 에지의 원래 ID를 반환합니다. 피처, 레이블, 학습
# 노드의 마스크처럼 학습에 필요한 데이터는 미리 `ndata`와 `edata`에 넣어 두어야 그래프와 함께
# 나뉩니다. `load_partition`은 파티션 하나를 열어 그래프, 노드 피처, 에지 피처, **파티션
# 북**(partition book), 그래프 이름, 노드와 에지의 타입을 차례로 반환합니다. 파티션 안에서는 노드
# 번호를 0부터 다시 매기며, 내부 노드가 먼저 옵니다. 새 ID는 `ndata[dgl.NID]`에 있습니다.

# %% [markdown] slot="library" lang="zh"
# 进入内部节点的边全都在本分区，所以采样内部节点的邻居时不需要发送请求；需要请求的只有属于其他分区的
# 节点的特征和邻居。代价是，三条边和五个节点的 ID 存储了两份。
#
# ## 使用库
#
# `partition_graph` 完成上述全部步骤，并把结果写入文件。`part_method` 可以是 `"metis"`、`"ldg"`、
# `"random"`，也可以像这里一样，是一个返回各节点所属分区的函数。设 `return_mapping=True`，就会返回新
# 节点和新边的原始 ID。训练需要的数据，如特征、标签和训练节点的掩码，要事先存入 `ndata` 和 `edata`，
# 才会随图一起切分。`load_partition` 打开一个分区，依次返回图、节点特征、边特征、**分区簿**
# （partition book）、图的名称，以及节点和边的类型。在分区之内，节点再次从 0 开始编号，内部节点在
# 前；新 ID 存放在 `ndata[dgl.NID]` 中。

# %% slot="library-code"
toy_folder = f"{lesson.folder}/toy"
node_map, edge_map = partition_graph(
    toy,
    "toy",
    2,
    toy_folder,
    part_method=lambda graph, num_parts: owner,
    return_mapping=True,
)
assert torch.equal(node_map, old_nodes) and torch.equal(edge_map, old_edges)
for p in range(2):
    part, _, _, toy_book, *_ = load_partition(f"{toy_folder}/toy.json", p)
    inner, leaving, halo = hold(p)
    assert torch.equal(part.edata[dgl.EID], torch.cat([inner, leaving]))
    assert torch.equal(part.ndata[dgl.NID], torch.cat([toy_book.partid2nids(p), halo]))
    print(f"part {p}: nodes {part.ndata[dgl.NID].tolist()}")
    print("  inner_node", part.ndata["inner_node"].tolist())

# %% [markdown] slot="book" lang="en"
# All IDs match those that we assigned by hand. The first line is a summary: 3 of the 13 edges are
# cut, and there are 5 HALO nodes for 8 nodes. On disk, there is one JSON file with the ranges and,
# for each part, a folder of plain arrays; a machine needs only the JSON file and its own folder.
# The partition book is built from the JSON file alone; it finds the owner of an ID by binary search
# among the boundaries. For a billion nodes it is as small as for eight.

# %% [markdown] slot="book" lang="ko"
# 라이브러리가 매긴 ID는 직접 매긴 것과 모두 같습니다. 첫 줄은 결과를 요약한 것으로, 에지 13개
# 가운데 3개가 잘렸고 노드 8개에 헤일로 노드가 5개 있습니다. 디스크에는 구간을 적은 JSON 파일
# 하나와, 배열을 담은 파티션별 폴더가 있습니다. 각 머신에는 JSON 파일과 자기 폴더만 있으면 됩니다.
# 파티션 북은 JSON 파일만으로 만들어지며, 경계값을 이진 탐색하여 ID의 소유자를 찾습니다. 노드가 10억
# 개이든 8개이든 파티션 북의 크기는 같습니다.

# %% [markdown] slot="book" lang="zh"
# 库给出的 ID 与手动编号的完全相同。第一行是概要：13 条边中有 3 条被切断；8 个节点一共带来 5 个 HALO
# 节点，平均每个节点 0.625 个（概要中显示为 0.62）。磁盘上有一个记录各段范围的 JSON 文件，每个分区另
# 有一个存放数组的文件夹；一台机器只需要 JSON 文件和自己的文件夹。分区簿是记录节点和边归属的索引，只
# 凭 JSON 文件就能建立；在分界值中做二分查找，就能得出一个 ID 的所有者。无论图有十亿个节点还是八个节
# 点，分区簿都一样小。

# %% slot="book-code"
config = json.loads(Path(f"{toy_folder}/toy.json").read_text())
for key in ("num_parts", "part_method", "halo_hops", "node_map", "edge_map"):
    print(f"{key}: {config[key]}")
print("owners of nodes 0, 3, 4, 7:", toy_book.nid2partid([0, 3, 4, 7]).tolist())
print("local IDs of nodes 4 and 7 in part 1:", toy_book.nid2localnid([4, 7], 1).tolist())

# %% [markdown] slot="plan" lang="en"
# The keys are those of DGL; `_N` and `_E` are the node type and the edge type of a graph with only
# one of each.
#
# ## METIS versus random
#
# Now for the real graph. Large graphs take a lot of time and memory to partition; `plan` estimates
# both.

# %% [markdown] slot="plan" lang="ko"
# JSON 파일의 키는 DGL에서 쓰는 키와 같습니다. `_N`과 `_E`는 타입이 하나뿐인 그래프의 노드 타입과
# 에지 타입입니다.
#
# ## METIS와 무작위 분할
#
# 이제 실제 그래프를 다룹니다. 큰 그래프를 나누는 데에는 시간과 메모리가 많이 들므로, 먼저
# `plan`으로 필요한 양을 추정합니다.

# %% [markdown] slot="plan" lang="zh"
# 这些键与 DGL 的相同；图中只有一种节点和一种边时，`_N` 和 `_E` 分别是节点类型和边类型的名称。
#
# ## METIS 与随机切分
#
# 现在来看真实的图。切分大图既耗时间又占内存，可以先用 `plan` 估算。

# %% slot="plan-code" tags=["nbval-ignore-output"]
dataset = dgl.data.load(DATASET)
graph = dataset[0]
feat, label = graph.ndata["feat"], graph.ndata["label"]
print(plan(graph, PARTS, out_path=lesson.folder))

# %% [markdown] slot="methods" lang="en"
# For `digits`, both are negligible. Which method should choose the parts?
#
# - `random` divides the nodes at random into parts of equal size.
# - **METIS** merges neighbors until the graph is tiny, partitions this tiny graph, and undoes the
#   merging step by step, moving nodes across the boundary where that reduces the cut.
# - **LDG** assigns one node after another to the part with the largest number of its neighbors,
#   weighted by the share of the part that is still free. It needs less memory than METIS.
#
# The default, `best` in the code, is METIS. Where the package pymetis is missing, as on Windows, it
# is LDG, which cuts more edges than the text says.
#
# `partition_report` gives more detail than the summary line.

# %% [markdown] slot="methods" lang="ko"
# `digits`라면 시간도 메모리도 거의 들지 않습니다. 그렇다면 어떤 방법으로 나누는 것이 좋을까요?
#
# - `random`은 노드를 무작위로 골라 크기가 같은 파티션으로 나눕니다.
# - **METIS**는 그래프가 아주 작아질 때까지 이웃끼리 합치고, 그 작은 그래프를 나눈 다음, 합친 것을
#   한 단계씩 되돌립니다. 단계마다 잘리는 에지가 줄어들도록 경계의 노드를 옮깁니다.
# - **LDG**는 노드를 하나씩 차례로, 이웃이 가장 많이 들어 있는 파티션에 배정합니다. 이때 이웃의 수에
#   그 파티션의 남은 자리 비율을 곱하여 비교합니다. METIS보다 메모리를 적게 씁니다.
#
# 기본값(코드의 `best`)은 METIS입니다. Windows처럼 pymetis 패키지를 쓸 수 없는 환경에서는 LDG가
# 기본값이 되며, 이때는 잘리는 에지가 본문의 수치보다 많습니다.
#
# `partition_report`는 앞에서 본 한 줄짜리 요약보다 많은 항목을 보여 줍니다.

# %% [markdown] slot="methods" lang="zh"
# 对 `digits` 来说，时间和内存都几乎可以忽略。该用哪种方法来切分呢？
#
# - `random` 把节点随机分到大小相等的各个分区。
# - **METIS** 不断合并相邻的节点，直到图变得很小；然后切分这张缩小后的图，再一步步撤销合并，每一步都
#   移动分界处的一些节点，使被切断的边减少。
# - **LDG** 依次处理每个节点，把它分到得分最高的未满分区；得分是该节点在这个分区中的邻居数与剩余容量
#   比例之积。它占用的内存比 METIS 少。
#
# 默认方法（代码中的 `best`）是 METIS；如果没有 pymetis 包，例如在 Windows 上，则改用 LDG，这时被切
# 断的边会比正文所说的多。
#
# `partition_report` 的统计比那一行概要更详细。

# %% slot="methods-code" tags=["nbval-ignore-output"]
best = plan(graph, PARTS).part_method
methods = {"random": ORANGE, "ldg": GREEN, best: BLUE}
as_told = (DATASET, PARTS, best) == ("digits", 4, "metis")
configs, maps = {}, {}
for method in methods:
    dgl.seed(0)
    folder = f"{lesson.folder}/{method}"
    wanted = {"part_method": method, "return_mapping": True}
    maps[method], _ = partition_graph(graph, DATASET, PARTS, folder, **wanted)
    configs[method] = f"{folder}/{DATASET}.json"
print(partition_report(configs[best]))

# %% [markdown] slot="look" lang="en"
# With $K$ parts, `random` leaves an edge uncut with probability $1/K$, so with four parts it cuts
# 75%, and on average a node is a HALO node of 2.8 of the 3 other parts. METIS cuts less than 5%;
# LDG lies in between. The table lists the parts produced by METIS, one per row; `cut edges` are
# inner edges that come from another part, `halo edges` the stored edges that leave. The parts
# differ in size because METIS may make one up to 3% larger than the average where that saves cut
# edges.
#
# The adjacency matrix, in the order of the new IDs, shows the difference: blue edges stay in their
# part, orange ones are cut. The shades below show how many nodes of each class a part has.

# %% [markdown] slot="look" lang="ko"
# 파티션이 $K$개이면 `random`에서 에지가 잘리지 않을 확률은 $1/K$입니다. 따라서 파티션이 네 개이면
# 75%가 잘리고, 노드 하나가 나머지 세 파티션 가운데 평균 2.8개에서 헤일로 노드가 됩니다. METIS에서는
# 잘리는 에지가 5%도 되지 않으며, LDG는 그 사이에 있습니다. 표는 METIS로 나눈 파티션을 한 줄에
# 하나씩 보여 줍니다. `cut edges`는 내부 에지 가운데 다른 파티션에서 들어오는 에지입니다.
# `halo edges`는 헤일로 노드로 나가는 에지로, 다른 파티션에 속하지만 함께 저장합니다. METIS는 잘리는
# 에지를 줄일 수 있다면 평균보다 최대 3% 큰 파티션도 허용하므로 파티션의 크기가 조금씩 다릅니다.
#
# 새 ID 순서로 인접 행렬을 그려 보면 이를 눈으로 확인할 수 있습니다. 파란색 점은 파티션 안의
# 에지이고, 주황색 점은 잘린 에지입니다. 아래쪽 그림은 파티션별 클래스 분포로, 색이 진할수록 그
# 클래스의 노드가 많습니다.

# %% [markdown] slot="look" lang="zh"
# 有 $K$ 个分区时，用 `random` 切分，一条边不被切断的概率是 $1/K$；有四个分区时，75% 的边会被切断，
# 而且平均每个节点是另外三个分区中 2.8 个分区的 HALO 节点。METIS 切断的不到 5%，LDG 介于两者之间。表
# 中逐行列出 METIS 的各个分区：`cut edges` 是本分区拥有的边中，源节点属于其他分区的边数；
# `halo edges` 是因为指向 HALO 节点而附带存储的边数，这些边归其他分区所有。各分区大小略有差别，因为
# 只要能少切断一些边，METIS 就允许分区比平均值大，但最多大 3%。
#
# 按新 ID 的顺序画出邻接矩阵，就能直接看到：蓝色的边在分区之内，橙色的边被切断。下方的图中，颜色越
# 深，表示分区中该类别的节点越多。


# %% slot="look-code"
def owners(config, node_map):  # the part of each node, by original ID
    book = load_partition(config, 0)[3]
    return book.nid2partid(node_map.argsort())


num_nodes, (u, v) = graph.num_nodes(), graph.edges()
parts = {method: owners(configs[method], maps[method]) for method in methods}
cut = {}
for method, part in parts.items():
    cut[method] = share = (part[u] != part[v]).float().mean().item()
    halo = partition_report(configs[method]).halo_share
    print(f"{method}: {share:.1%} cut, a node is a HALO node of {halo:.1f} parts")
assert abs(cut["random"] - (1 - 1 / PARTS)) < 0.02
assert not as_told or cut["metis"] < 0.05 < cut["ldg"] < cut["random"]

# %% slot="look-draw" tags=["folded"]
style = {"height_ratios": [3, 1.3], "layout": "constrained"}
figure, axes = plt.subplots(2, len(methods), figsize=(9, 4.7), **style)
for (method, part), (top, bottom) in zip(parts.items(), axes.T):
    new_ids = maps[method].argsort()
    x, y, inside = new_ids[u], new_ids[v], part[u] == part[v]
    for some, color in ((inside, BLUE), (~inside, ORANGE)):
        top.scatter(x[some], y[some], s=3000 / len(x), color=color, linewidths=0)
    for border in part.bincount().cumsum(0)[:-1]:
        top.axhline(border, color="black", lw=0.5)
        top.axvline(border, color="black", lw=0.5)
    top.set(title=f"{method}: {cut[method]:.0%} cut", xticks=[], yticks=[])
    top.set(xlim=(0, num_nodes), ylim=(num_nodes, 0), aspect="equal")
    counts = torch.zeros(PARTS, dataset.num_classes)
    counts.index_put_((part, label), torch.ones(num_nodes), accumulate=True)
    bottom.imshow(counts, "Blues", vmin=0, vmax=label.bincount().max(), aspect="auto")
    bottom.set(xlabel="class", xticks=range(dataset.num_classes), yticks=range(PARTS))
axes[0, 0].set(xlabel="source", ylabel="destination")
axes[1, 0].set_ylabel("part")
plt.show()

# %% [markdown] slot="balance" lang="en"
# Without using labels, METIS has grouped images of the same digit, because they are neighbors. So a
# machine that takes its seeds from its own part sees only some of the classes; the averaged
# gradients of all machines cover all of them.
#
# ## Balance
#
# In every step, all machines wait for the slowest, so the parts should have equal loads. METIS
# gives them roughly equal numbers of nodes, but the load also depends on the **training nodes**,
# where sampling starts, and on the in-edges, which take up memory. In `digits`, the training nodes
# were drawn at random; in ogbn-products, they are the best-selling products. We imitate that by
# using the nodes with the most neighbors (14%, because of ties) as training nodes. `balance_ntypes`
# takes a category for each node, here this mask, and divides each category equally among the parts;
# `balance_edges` does the same for in-edges.

# %% [markdown] slot="balance" lang="ko"
# METIS에서는 레이블을 쓰지 않았는데도 같은 숫자끼리 모였습니다. 같은 숫자의 이미지는 대개 서로
# 이웃이기 때문입니다. 그래서 학습을 수행하는 프로세스인 트레이너(trainer)가 자기 파티션에서만
# 시드를 고르면 일부 클래스의 노드만 쓰게 되지만, 모든 트레이너의 그래디언트(gradient)를 평균하면
# 모든 클래스가 반영됩니다.
#
# ## 균형
#
# 학습 단계마다 모든 머신이 가장 느린 머신을 기다리므로, 파티션마다 부담이 같아야 합니다. METIS는
# 노드 수를 고르게 나눕니다. 그러나 각 머신의 부담은 **학습 노드**와 들어오는 에지의 수에 달려
# 있습니다. 머신마다 자기 학습 노드만 쓴다면 그 수에 따라 학습 단계의 수가 정해지고, 들어오는 에지는
# 메모리를 차지합니다. `digits`의 학습 노드는 무작위로 뽑은 것이지만, ogbn-products의 학습 노드는
# 가장 많이 팔린 상품입니다. 이를 흉내 내어 이웃 수가 상위 10%(수가 같은 노드까지 14%)에 드는 노드를
# 학습 노드로 삼아 봅시다. `balance_ntypes`에는 노드의 부류를 지정합니다. 여기서처럼 학습 노드를
# 나타내는 마스크를 지정하면, 학습 노드와 나머지 노드가 각각 모든 파티션에 고르게 나뉩니다.
# `balance_edges`는 들어오는 에지를 고르게 나눕니다.

# %% [markdown] slot="balance" lang="zh"
# METIS 没有用到标签，却把相同的数字聚到了一起，因为它们互为邻居。所以，如果训练器（trainer，即运行
# 训练脚本的进程）只从自己的分区取种子节点（seed node），就只会用到部分类别；不过，所有训练器的梯度
# （gradient）取平均之后，结果仍然涵盖所有类别。
#
# ## 均衡
#
# 每一步，所有机器都要等待最慢的那一台，所以各分区的负载应当相等。METIS 使各分区的节点数大致相等，但
# 负载取决于**训练节点**和入边：前者充当种子节点，后者占用内存。`digits` 的训练节点是随机抽取的；而
# 在 ogbn-products 中，训练节点是销量最高的商品。这里模仿这种情况，把邻居数居前 10% 的节点（连同并列
# 的约占 14%）当作训练节点，并把图切成 8 个分区。`balance_ntypes` 接收每个节点所属的组，这里就是训练
# 节点的掩码，使每一组节点都均匀地分到各个分区；`balance_edges` 则均匀地分配入边。

# %% slot="balance-code" tags=["nbval-ignore-output"]
degree = graph.in_degrees()
graph.ndata["popular"] = popular = degree >= degree.float().quantile(0.9)
wishes = {"plain": {}, "balanced": {"balance_ntypes": popular, "balance_edges": True}}
reports = {}
for name, wish in wishes.items():
    dgl.seed(0)
    partition_graph(graph, DATASET, 8, f"{lesson.folder}/{name}", **wish)
    found = partition_report(f"{lesson.folder}/{name}/{DATASET}.json", mask="popular")
    print(f"{name}: balance of training nodes {found.balance['popular']:.2f}")
    reports[name] = found

if as_told:
    plain, balanced = reports.values()
    assert plain.balance["popular"] > 1.5 and plain.balance["edges"] < 1.05
    assert max(balanced.balance[load] for load in ("nodes", "popular", "edges")) < 1.04
    assert balanced.cut < plain.cut + 0.01

# %% slot="balance-draw" tags=["folded", "nbval-ignore-output"]
loads = {"nodes": "all nodes", "edges": "in-edges", "popular": "training nodes"}
figure, axes = plt.subplots(1, 3, figsize=(9, 2.4), sharey=True, layout="constrained")
for ax, (load, title) in zip(axes, loads.items()):
    for (name, found), color, shift in zip(reports.items(), (GRAY, BLUE), (-0.2, 0.2)):
        share = torch.tensor(found.counts[load]) * 8 / sum(found.counts[load])
        ax.bar(torch.arange(8) + shift, share, 0.4, color=color, label=name)
    ax.set(title=title, xlabel="part", xticks=range(8))
    ax.axhline(1, color="black", lw=0.5)
axes[0].set_ylabel("multiple of the average")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
plt.show()

# %% [markdown] slot="back" lang="en"
# By default, METIS gives one part more than 1.5 times the average number of training nodes. If
# every machine trained only on its own training nodes, the machines with fewer would wait, on
# average, for more than a third of every epoch. (The next lesson divides training nodes equally;
# some seeds are then remote.) After balancing, no part is more than 4% above the average in any of
# the three counts, and the cut hardly grows. The in-edges were already balanced, since degrees in
# `digits` are similar; on `facebook`, without balancing, one of the 8 parts has twice the average.
#
# ## Back to the original IDs
#
# All distributed data uses new IDs; your own tables and your users know only the original ones.
# `node_map` translates: `feat[node_map]` brings rows from the original order into the new one, and
# `rows[node_map] = values` brings them back.
#
# To try it, we predict the digit of each inner node of each part: we choose the class whose average
# training image is nearest to the mean of the node's neighbors. In a real job, a machine must fetch
# the features of its part's HALO nodes. Here we concatenate the rows of all parts, which puts them
# in the order of the new IDs.

# %% [markdown] slot="back" lang="ko"
# 균형을 지정하지 않으면 METIS는 한 파티션에 학습 노드를 평균의 1.5배 넘게 배정합니다. 머신마다 자기
# 학습 노드만 쓴다면 다른 머신은 에폭(epoch)마다 평균적으로 3분의 1이 넘는 시간을 기다리게 됩니다.
# 다음 레슨에서는 모든 트레이너에 학습 노드를 같은 수만큼 나누어 주므로 기다리지 않지만, 그 대신
# 다른 파티션의 노드를 시드로 쓰는 트레이너가 생깁니다. 균형을 지정하면 어느 항목에서도 평균을 4%
# 넘게 웃도는 파티션이 없고, 에지 컷은 거의 늘지 않습니다. 들어오는 에지는 처음부터 고르게 나뉘어
# 있었습니다. `digits`의 노드는 차수가 비슷하기 때문입니다. `facebook`에서는 파티션 8개 가운데
# 하나에 들어오는 에지가 평균의 두 배나 몰립니다.
#
# ## 원래 ID로 되돌리기
#
# 분산된 데이터에는 모두 새 ID를 쓰지만, 원본 데이터의 표와, 사용자에게 보여 줄 결과에는 원래 ID를
# 씁니다. `node_map`을 쓰면 두 ID를 서로 변환할 수 있으며, 이를 ID 매핑(ID mapping)이라고 합니다.
# `feat[node_map]`은 행을 원래 순서에서 새 순서로 바꾸고, `rows[node_map] = values`는 다시 원래
# 순서로 되돌립니다.
#
# 시험 삼아 파티션마다 내부 노드가 어떤 숫자의 이미지인지 예측해 봅시다. 이웃 이미지의 평균을 구한
# 다음, 학습 이미지의 평균이 이와 가장 가까운 클래스를 고릅니다. 헤일로 노드의 피처는 다른
# 파티션에서 가져와야 합니다. 여기서는 모든 파티션의 행을 차례로 이어 붙입니다. 이렇게 이은 순서가
# 바로 새 ID 순서입니다.

# %% [markdown] slot="back" lang="zh"
# 默认情况下，METIS 分给某个分区的训练节点超过平均值的 1.5 倍：如果每台机器只用自己的训练节点，其他
# 机器在每一轮（epoch）中平均有三分之一以上的时间在等待。（下一课把训练节点平均分给各个训练器，这样
# 不必等待，但有些种子节点在别的机器上。）均衡之后，各分区的节点数、训练节点数和入边数最多都只比平均
# 值多 4%，被切断的边也只是略有增加。入边本来就是均匀的，因为 `digits` 中各节点的度数相近；而在
# `facebook` 上，8 个分区中有一个的入边是平均值的两倍。
#
# ## 换回原始 ID
#
# 分布式数据一律使用新 ID，而原来的数据表和使用者用的仍是原始 ID。两者用 `node_map` 转换，这就是 ID
# 映射（ID mapping）。`feat[node_map]` 把各行从原来的顺序换到新的顺序；`rows[node_map] = values` 则
# 换回原来的顺序。
#
# 下面试着预测各分区的内部节点是哪个数字：先求邻居图像的平均值，再看它与哪个类别的训练图像的平均值最
# 接近。HALO 节点的特征要从其他分区获取。这里把所有分区的行依次接在一起，正好就是新 ID 的顺序。

# %% slot="back-code" tags=["nbval-ignore-output"]
train = graph.ndata["train_mask"].bool()
classes = range(dataset.num_classes)
centers = torch.stack([feat[train & (label == c)].mean(0) for c in classes])
x = [load_partition_feats(configs[best], p)[0]["_N/feat"] for p in range(PARTS)]
x = torch.cat(x)  # rows in the order of new IDs

guess = torch.empty(num_nodes, dtype=torch.int64)
for p in range(PARTS):
    part = load_partition(configs[best], p)[0]
    ids, inner = part.ndata[dgl.NID], part.ndata["inner_node"].bool()
    mean = dgl.ops.copy_u_mean(part, x[ids])
    guess[ids[inner]] = torch.cdist(mean[inner], centers).argmin(1)

restored = torch.empty_like(guess)
restored[maps[best]] = guess
for name, values in (("as they are", guess), ("mapped back", restored)):
    rate = (values == label).float().mean().item()
    print(f"{name}: {rate:.0%} right")
    assert DATASET != "digits" or (rate > 0.92 if values is restored else rate < 0.15)
whole = torch.cdist(dgl.ops.copy_u_mean(graph, feat), centers).argmin(1)
assert torch.equal(x, feat[maps[best]]) and torch.equal(restored, whole)

# %% [markdown] slot="prove" lang="en"
# Without the mapping, one prediction in ten is right, no better than chance, and no error is
# raised. Mapped back, 93% are right, and every prediction equals the one made on the whole graph.
#
# ## Check that nothing is lost
#
# First: the inner nodes of all parts are the nodes of the graph, each exactly once; the same holds
# for the edges, including their endpoints. `orig_id`, which each part has for all its nodes and
# edges, gives their original IDs.

# %% [markdown] slot="prove" lang="ko"
# 그대로 비교하면 무작위로 고른 것처럼 열에 하나만 맞는데도 오류는 나지 않습니다. 원래 ID로 되돌리면
# 93%가 맞고, 모든 예측이 그래프 전체에서 구한 것과 같습니다.
#
# ## 확인하기: 파티션을 합하면 원래 그래프가 되는가
#
# 모든 파티션의 내부 노드를 모으면 그래프의 노드가 정확히 한 번씩 나와야 합니다. 에지도
# 마찬가지이며, 각 에지의 양 끝 노드도 원래 그래프와 같아야 합니다. 각 파티션의 모든 노드와 에지에는
# 원래 ID인 `orig_id`가 있습니다.

# %% [markdown] slot="prove" lang="zh"
# 直接比较时，只有十分之一预测正确，与随机猜测无异，却不会报错。映射回去之后，93% 预测正确，而且每个
# 预测都与用整张图得到的相同。
#
# ## 验证：分区合起来就是原图
#
# 把所有分区的内部节点收集起来，图中的每个节点应当恰好出现一次；边也是如此，并且两端节点与原图一致。
# 每个分区的所有节点和边都带有原始 ID，存放在 `orig_id` 中。

# %% slot="prove-code"
nodes, edges, ends = [], [], []
for p in range(PARTS):
    part = load_partition(configs[best], p)[0]
    ids = part.ndata["orig_id"]
    inner = part.edata["inner_edge"].bool()
    nodes.append(ids[part.ndata["inner_node"].bool()])
    edges.append(part.edata["orig_id"][inner])
    ends.append(ids[torch.stack(part.edges())[:, inner]])
nodes, edges, ends = torch.cat(nodes), torch.cat(edges), torch.cat(ends, 1)

assert torch.equal(nodes.sort().values, graph.nodes())
assert torch.equal(edges.sort().values, torch.arange(graph.num_edges()))
assert torch.equal(ends, torch.stack(graph.find_edges(edges)))
print(f"{len(nodes)} nodes and {len(edges)} edges, each exactly once")

# %% [markdown] slot="same" lang="en"
# Second: samples do not depend on the cut. `DistGraph`, the subject of the next lesson, gives
# access to the whole graph through its parts; here, a single process opens all of them. We sample
# neighbors of all training nodes in the whole graph, then, with the same random seed, in the graph
# cut at random into 1, 2 and 4 parts, and compare the original IDs of the edges.

# %% [markdown] slot="same" lang="ko"
# 이번에는 그래프를 어떻게 나누든 샘플링 결과가 같은지 확인합니다. 다음 레슨의 주제인 `DistGraph`를
# 쓰면 파티션으로 나눈 그래프 전체에 접근할 수 있으며, 프로세스가 하나일 때는 모든 파티션을 직접
# 엽니다. 먼저 그래프 전체에서 모든 학습 노드의 이웃을 샘플링합니다. 이어서 그래프를 무작위로 파티션
# 1개, 2개, 4개로 나누고 각각 같은 난수 시드로 샘플링하여, 뽑힌 에지의 원래 ID를 비교합니다.

# %% [markdown] slot="same" lang="zh"
# 此外，采样结果也应当与切分无关。下一课的主题 `DistGraph` 通过各个分区访问整张图；只有一个进程时，
# 它会打开所有分区。先在整张图上采样所有训练节点的邻居，再用相同的随机种子，分别在随机切分的 1、2、4
# 个分区上采样，然后比较抽到的边的原始 ID。

# %% slot="same-code" tags=["nbval-ignore-output"]
seeds, fanout = dataset.train_idx, 5
dgl.seed(7)
drawn = dgl.sampling.sample_neighbors(graph, seeds, fanout).edata[dgl.EID]

dgl.distributed.initialize()
for k in (1, 2, 4):
    folder = f"{lesson.folder}/same{k}"
    wanted = {"part_method": "random", "return_mapping": True}
    node_map, edge_map = partition_graph(graph, DATASET, k, folder, **wanted)
    dist_graph = DistGraph(DATASET, part_config=f"{folder}/{DATASET}.json")
    new_seeds = node_map.argsort()[seeds]
    dgl.seed(7)
    frontier = dgl.sampling.sample_neighbors(dist_graph, new_seeds, fanout)
    assert torch.equal(edge_map[frontier.edata[dgl.EID]], drawn)
    print(f"parts: {k}; the same {len(drawn)} edges")

# %% [markdown] slot="cost" lang="en"
# All sampled edges match: a draw depends on the random seed and on a node's original ID, not on
# where the node is stored. The cut changes only where the data is stored and how much is
# transferred.
#
# ## What it costs
#
# Every step causes network **traffic**. To estimate it, we sample two layers for up to 16 training
# nodes of each part; the plot on the left shows what share of the input nodes belongs to other
# parts. Partitioning is done only once; the plot on the right shows the CPU seconds needed to
# partition random graphs with ten edges per node.

# %% [markdown] slot="cost" lang="ko"
# 뽑힌 에지가 모두 같습니다. 샘플링 결과는 난수 시드와 노드의 원래 ID에 달려 있고, 노드가 어디에
# 저장되어 있는지와는 관계가 없습니다. 그래프를 나누는 방식에 따라 달라지는 것은 데이터의 위치와
# 전송량뿐입니다.
#
# ## 비용
#
# 학습 단계마다 **트래픽**(traffic)이 발생합니다. 왼쪽 그림에서는 파티션마다 자기 학습 노드를 최대
# 16개까지 시드로 삼아 두 계층에 걸쳐 이웃을 샘플링하고, 입력 노드 가운데 다른 파티션에 있는 노드의
# 비율을 구합니다. 그래프를 나누는 비용은 한 번만 듭니다. 오른쪽 그림은 노드당 에지가 열 개인 무작위
# 그래프를 파티션으로 나누는 데 걸린 CPU 시간(초)입니다.

# %% [markdown] slot="cost" lang="zh"
# 每一条边都相同：采样结果取决于随机种子和节点的原始 ID，与节点存放在哪里无关。切分只会改变数据的
# 位置和需要传输的数据量。
#
# ## 开销
#
# 每一步都需要通信，传输的数据量称为**通信量**（traffic），它取决于有多少输入节点属于其他分区。左图
# 中，每个分区从自己的训练节点里取至多 16 个，采样两层邻居；纵轴是所得的输入节点中属于其他分区的比
# 例。切分的开销则只需付出一次：右图是切分随机图所用的 CPU 时间，这些图平均每个节点有十条边。


# %% slot="cost-code"
def remote_share(part, fanouts=(10, 5), seeds=16):
    sampler, read, remote = NeighborSampler(fanouts), 0, 0
    for p in part.unique():
        mine = dataset.train_idx[part[dataset.train_idx] == p][:seeds]
        input_nodes, _, _ = sampler.sample(graph, mine)
        read, remote = read + len(input_nodes), remote + (part[input_nodes] != p).sum()
    return remote / read


# %% slot="cost-run" tags=["nbval-ignore-output"]
def divide(g, k, method):
    dgl.seed(0)
    wanted = {"part_method": method, "return_mapping": True}
    folder, start = f"{lesson.folder}/divided", sum(os.times()[:4])
    with redirect_stdout(None):  # print no summary
        node_map, _ = partition_graph(g, "g", k, folder, **wanted)
    seconds = sum(os.times()[:4]) - start  # METIS runs in a child process
    return owners(f"{folder}/g.json", node_map), seconds


counts, sizes = [2, 4, 8, 16], [20, 40, 80]
randoms = [dgl.rand_graph(1000 * size, 10_000 * size) for size in sizes]
shares, seconds = {}, {}
for method in methods:
    shares[method] = [remote_share(divide(graph, k, method)[0]).item() for k in counts]
    seconds[method] = [divide(large, PARTS, method)[1] for large in randoms]
    print(f"{method}: {shares[method][1]:.0%} of the inputs are remote with 4 parts")
if as_told:
    assert 0.08 < shares["metis"][1] < 0.12 and 0.7 < shares["random"][1] < 0.75
    assert shares["metis"] == sorted(shares["metis"])
    assert seconds["metis"][-1] > seconds["ldg"][-1]

# %% slot="cost-draw" tags=["folded", "nbval-ignore-output"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.7), layout="constrained")
for method, color in methods.items():
    for ax, x, y in ((left, counts, shares[method]), (right, sizes, seconds[method])):
        ax.plot(x, y, "o-", color=color)
        ax.text(x[-1] * 1.06, y[-1], method, color=color, va="center")
left.set_xscale("log", base=2)
left.set(xlabel="parts", xticks=counts, xticklabels=counts)
left.set(ylabel="share of remote inputs", ylim=(0, 1))
right.set(xlabel="nodes (thousands)", ylabel="CPU time (s)", xticks=sizes, ylim=0)
plt.show()

# %% [markdown] slot="summary" lang="en"
# With 4 parts, METIS cuts less than 5% of the edges, yet a tenth of the input nodes are remote,
# since each layer reaches farther across the boundary. More parts mean a longer boundary. With the
# remote shares for 4 parts, a step that reads 100,000 rows of 400 bytes fetches 29 MB from other
# machines with `random` and 4 MB with METIS: over a 1 Gbit/s network, that takes 0.23 and 0.03
# seconds per step. METIS takes longer than LDG on large graphs, but a graph is partitioned only
# once.
#
# ## Summary
#
# - Each part owns a range of new node IDs and a range of new edge IDs; an edge belongs to the part
#   of its destination.
# - A part also stores the edges that leave it and the IDs of its HALO nodes; the features of HALO
#   nodes stay with their owner.
# - METIS cuts the fewest edges. Also balance the training nodes, so that seeds are local, and the
#   in-edges, which take up memory.
# - `node_map` and `orig_id` lead back to the original IDs; a forgotten mapping raises no error.
# - Every node and edge is owned by exactly one part; samples do not depend on the number of parts.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, running *Setup* is enough to check an answer. The
# [solutions](../solutions/05_partitioning_solution.ipynb) are in a separate notebook.
#
# 1. What share of the edges does `random` cut with 10 parts, on average? Answer with a number from
#    0 to 1.
# 2. Node 5 of the toy graph (its original ID) moves to part 1. How many edges are cut then, and how
#    many HALO nodes do the two parts have together? Answer with a list.
# 3. Write a function of `borders` and `ids` that returns the part of each new ID, without a table
#    of all nodes.
# 4. Write a function of `values` and `node_map` that takes rows in the new order and returns them
#    in the original one.
# 5. Write a `part_method` of your own, a function of `graph` and `num_parts`, without METIS or LDG.
#    It must cut at most half as many edges as `random`, and no part may exceed the average number
#    of nodes by more than 5%.

# %% [markdown] slot="summary" lang="ko"
# 파티션이 4개일 때 METIS에서 잘리는 에지는 5%도 되지 않지만, 입력 노드는 10분의 1이 다른 파티션에
# 있습니다. 계층마다 이웃을 한 홉씩 더 찾아가면서 경계를 거듭 넘기 때문입니다. 파티션이 늘어나면
# 경계도 늘어납니다.
# 파티션이 4개일 때의 비율대로라면, 400바이트짜리 행 100,000개를 읽는 학습 단계마다 `random`으로
# 나누었을 때는 29 MB를, METIS로 나누었을 때는 4 MB를 다른 머신에서 가져와야 합니다. 1 Gbit/s
# 네트워크에서는 단계마다 각각 0.23초와 0.03초가 걸립니다. 큰 그래프에서 METIS는 LDG보다 오래
# 걸리지만, 그 시간은 한 번만 듭니다.
#
# ## 요약
#
# - 각 파티션은 새 노드 ID의 한 구간과 새 에지 ID의 한 구간을 소유합니다. 에지는 도착 노드의
#   파티션에 속합니다.
# - 파티션에는 헤일로 노드의 ID와 나가는 에지도 저장되지만, 헤일로 노드의 피처는 소유자가 가지고
#   있습니다.
# - 에지가 가장 적게 잘리는 방법은 METIS입니다. METIS로 나눌 때는 학습 노드와 들어오는 에지의 균형도
#   지정합니다. 그러지 않으면 다른 파티션의 노드를 시드로 써야 하거나, 일부 머신의 메모리가 모자랄
#   수 있습니다.
# - 원래 ID는 `node_map`과 `orig_id`로 찾습니다. 매핑을 빠뜨려도 오류는 나지 않습니다.
# - 모든 노드와 에지는 각각 정확히 한 파티션에 속하며, 파티션이 몇 개이든 샘플링 결과는 같습니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 셀만 실행해도 채점할 수 있습니다.
# [풀이](../solutions/ko/05_partitioning_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 파티션이 10개이면 `random`에서 잘리는 에지의 비율은 평균적으로 얼마입니까? 0에서 1
#    사이의 수로 답합니다.
# 2. 작은 그래프의 노드 5(원래 ID)를 파티션 1로 옮깁니다. 이때 잘리는 에지는 몇 개이고, 두 파티션의
#    헤일로 노드는 모두 몇 개입니까? 두 수를 이 순서대로 리스트에 담아 답합니다.
# 3. `borders`와 `ids`를 받아 각 새 ID가 속한 파티션을 반환하는 함수를 작성합니다. 모든 노드를 적은
#    표는 쓰지 않습니다.
# 4. `values`와 `node_map`을 받아, 새 순서로 놓인 행을 원래 순서로 바꾸어 반환하는 함수를
#    작성합니다.
# 5. METIS와 LDG를 쓰지 않고, `graph`와 `num_parts`를 받는 `part_method`를 직접 작성합니다. 잘리는
#    에지가 `random`의 절반 이하여야 하고, 노드가 평균보다 5% 넘게 많은 파티션이 있으면 안 됩니다.

# %% [markdown] slot="summary" lang="zh"
# 有 4 个分区时，METIS 切断的边不到 5%，输入节点却有十分之一在其他分区，因为每多一层，采样的范围就更
# 大，也就更容易越过分界线。分区越多，分界线也越多。按 4 个分区时的比例，如果一步要读取 100,000 行、
# 每行 400 字节，`random` 需要从其他机器获取 29 MB，METIS 需要 4 MB；在 1 Gbit/s 的网络上，每一步的
# 传输时间分别是 0.23 秒和 0.03 秒。在大图上，METIS 比 LDG 用时更长，但只需切分一次。
#
# ## 小结
#
# - 每个分区拥有一段新的节点 ID 和一段新的边 ID；边属于目标节点所在的分区。
# - 分区还存储 HALO 节点的 ID 和指向其他分区的边；HALO 节点的特征由其所有者保存。
# - METIS 切断的边最少。训练节点和入边也要均衡：训练节点不均衡，就有更多种子节点在别的机器上；入边不
#   均衡，各台机器占用的内存就相差很大。
# - 用 `node_map` 和 `orig_id` 换回原始 ID；忘了映射也不会报错。
# - 每个节点和每条边都恰好归一个分区所有，不重不漏；无论有多少个分区，采样结果都相同。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的单元格就能评判。
# [解答](../solutions/zh/05_partitioning_solution.ipynb)随本课提供。
#
# 1. 有 10 个分区时，`random` 平均会切断多大比例的边？用 0 到 1 之间的一个数作答。
# 2. 把小图的节点 5（原始 ID）移到分区 1。这时有多少条边被切断？两个分区一共有多少个 HALO 节点？用列
#    表作答。
# 3. 写一个以 `borders` 和 `ids`（一组新 ID）为参数的函数，返回每个 ID 所属的分区；不得使用列出所有
#    节点的表。
# 4. 写一个以 `values` 和 `node_map` 为参数的函数，把按新顺序排列的各行换成原来的顺序后返回。
# 5. 不用 METIS 和 LDG，自己写一个 `part_method`，即以 `graph` 和 `num_parts` 为参数的函数。切断的边
#    不得超过 `random` 的一半，任何分区的节点数都不得比平均值多出 5% 以上。


# %% slot="answers-1-2"
answer_1 = None  # a number from 0 to 1
answer_2 = None  # a list of two numbers
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% slot="answers-3-5"
answer_3 = None  # a function of borders and ids
answer_4 = None  # a function of values and node_map
answer_5 = None  # a function of graph and num_parts
lesson.check(3, answer_3)
lesson.check(4, answer_4)
lesson.check(5, answer_5)
