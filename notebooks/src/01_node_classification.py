# %% [markdown] slot="title" lang="en"
# # Node classification with neighbor sampling
#
# A graph neural network reads a node together with its neighbors. On a graph of millions of nodes,
# the neighborhoods of all training nodes do not fit into one step, so we train on mini-batches: a
# few seed nodes and a random sample of what surrounds them. This lesson goes the whole way, from a
# CSV file to a test accuracy. Afterwards you can
#
# - turn a table of edges into a graph, and avoid a mistake that no error message reports;
# - say what `input_nodes`, `output_nodes` and `blocks` of a mini-batch are;
# - train GraphSAGE with neighbor sampling, then predict with all neighbors, layer by layer;
# - judge what a fanout costs before you pay for it.

# %% [markdown] slot="title" lang="ko"
# # 이웃 샘플링으로 하는 노드 분류
#
# 그래프 신경망(graph neural network)은 노드(node)를 그 이웃(neighbor)과 함께 읽습니다. 노드가
# 수백만 개인 그래프에서는 모든 학습 노드의 주변을 한 번에 처리할 수 없으므로 미니배치(mini-batch)
# 단위로 학습합니다. 미니배치는 시드 노드(seed node) 몇 개와 그 주변에서 무작위로 뽑은 표본으로
# 이루어집니다. 이 레슨에서는 CSV 파일에서 출발하여 테스트 정확도를 얻기까지의 전 과정을 다룹니다.
# 레슨을 마치면 다음과 같은 일을 할 수 있습니다.
#
# - 에지(edge) 표를 그래프로 바꾸고, 어떤 오류 메시지도 알려 주지 않는 실수를 피하기
# - 미니배치의 `input_nodes`, `output_nodes`, `blocks`가 무엇인지 설명하기
# - 이웃 샘플링(neighbor sampling)으로 GraphSAGE를 학습하고, 모든 이웃을 써서 계층별로 예측하기
# - 팬아웃(fanout)에 따라 드는 비용을 미리 가늠하기

# %% [markdown] slot="title" lang="zh"
# # 用邻居采样做节点分类
#
# 图神经网络（graph neural network）在读取一个节点（node）时，会连同它的邻居（neighbor）一起读取。如
# 果图（graph）有上百万个节点，就无法在一步之内处理所有训练节点的邻域，因此我们按小批次
# （mini-batch）训练：每批取少量种子节点（seed node），再从它们周围随机采样。本课从一个 CSV 文件出
# 发，一直走到测试准确率。学完之后，你能够：
#
# - 把一张边（edge）的表格变成图，并避开一个不会有任何报错提示的错误；
# - 说出小批次中的 `input_nodes`、`output_nodes` 和 `blocks` 各是什么；
# - 用邻居采样（neighbor sampling）训练 GraphSAGE，再用全部邻居逐层预测；
# - 在付出代价之前，先判断扇出（fanout）的开销。

# %% [markdown] slot="setup" lang="en"
# ## Set-up
#
# gnnlab speaks the language of DGL (Deep Graph Library), hence the name `dgl`: course code written
# for DGL runs with this import. `DATASET` chooses the graph of the whole lesson. `"digits"` comes
# with the project and trains in seconds: 1,797 images of handwritten digits, each joined to those
# that look most alike. The others are larger; `"ogbn-products"` downloads 1.4 GB, once.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# gnnlab은 DGL(Deep Graph Library)과 같은 이름과 인자를 사용하므로 `dgl`이라는 이름으로 불러옵니다.
# DGL용으로 작성된 강의 코드도 이 import 문 하나로 실행됩니다. `DATASET`은 레슨 전체에서 사용할
# 그래프를 정합니다. `"digits"`는 프로젝트에 들어 있고 몇 초면 학습이 끝납니다. 손글씨 숫자 이미지
# 1,797장으로 이루어져 있으며, 각 이미지는 가장 비슷하게 생긴 이미지들과 이어져 있습니다. 나머지
# 데이터 세트는 더 크며, `"ogbn-products"`는 처음 한 번 1.4 GB를 내려받습니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# gnnlab 沿用 DGL（Deep Graph Library）的接口，所以导入时取名 `dgl`：为 DGL 编写的课程代码，换上这
# 一行导入语句就能运行。`DATASET` 决定整节课使用的图。`"digits"` 随项目附带，几秒钟就能训练完：它有
# 1,797 张手写数字图像，每张都与最相似的若干张相连。其余数据集更大；`"ogbn-products"` 首次使用时要
# 下载 1.4 GB。

# %% slot="imports"
import hashlib
import time
from itertools import pairwise
from statistics import median

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from tqdm.auto import tqdm

import gnnlab as dgl
import gnnlab.nn as dglnn
from gnnlab.dataloading import MultiLayerNeighborSampler, NodeDataLoader

DATASET = "digits"  # or "facebook", "products-like", "ogbn-products"
BLUE, ORANGE, GREEN, GRAY = "#3b6fb6", "#e07b39", "#3a9e75", "#c3c9d1"
plt.rcParams.update({"figure.dpi": 110, "font.size": 9})
plt.rcParams.update({"axes.spines.right": False, "axes.spines.top": False})
if DATASET == "digits":
    torch.set_num_threads(1)  # batches this small are not worth sharing among cores

# %% [markdown] slot="csv" lang="en"
# ## From a CSV file to a graph
#
# Graphs often arrive as tables. The folder of `digits` is laid out like an archive of the Open
# Graph Benchmark: `edge.csv.gz` has one edge a row, source before destination; row $i$ of
# `node-feat.csv.gz` holds the features of node $i$. Each undirected edge stands there **once**.
# But a message travels from source to destination only, so every edge needs its reverse. `load`
# does all of this; we do it by hand once and compare.

# %% [markdown] slot="csv" lang="ko"
# ## CSV 파일에서 그래프로
#
# 그래프는 표의 형태로 주어질 때가 많습니다. `digits` 폴더는 Open Graph Benchmark 아카이브와 구조가
# 같습니다. `edge.csv.gz`에는 한 행에 에지 하나가 출발 노드, 도착 노드 순서로 적혀 있고,
# `node-feat.csv.gz`의 $i$번째 행에는 노드 $i$의 피처(feature)가 들어 있습니다. 방향이 없는 에지는
# 이 파일에 **한 번만** 나옵니다. 그런데 메시지는 출발 노드에서 도착 노드로만 전달되므로 모든
# 에지에 역방향 에지를 더해야 합니다. `load`가 이 일을 모두 해 주지만, 여기서는 한 번 직접 해 보고
# 결과를 비교합니다.

# %% [markdown] slot="csv" lang="zh"
# ## 从 CSV 文件到图
#
# 图数据常常以表格的形式给出。`digits` 文件夹的结构与 Open Graph Benchmark 的数据包相同：
# `edge.csv.gz` 每行是一条边，先源节点，后目标节点；`node-feat.csv.gz` 的第 $i$ 行是节点 $i$ 的特征
# （feature）。每条无向边在文件中只出现**一次**。然而消息只从源节点传向目标节点，所以每条边都要补上
# 它的反向边。`load` 会完成这一切；这里我们亲手做一遍，再与它比较。

# %% slot="csv-code"
folder = dgl.data.digits_folder() / "raw"
table = pd.read_csv(folder / "edge.csv.gz", names=["src", "dst"])
by_hand = dgl.graph((table["src"].to_numpy(), table["dst"].to_numpy()))
by_hand = dgl.add_reverse_edges(by_hand)

loaded = dgl.data.load("digits")[0]
for mine, theirs in zip(by_hand.edges(), loaded.edges()):
    assert torch.equal(mine, theirs)
print(table.head(3))
print(f"{len(table)} rows -> {by_hand.num_nodes()} nodes, {by_hand.num_edges()} edges")

# %% [markdown] slot="look" lang="en"
# The graph made by hand equals the loaded one, and it has two edges for each row of the table.
# Before training, look at the data. How many neighbors does a node have? And do they help? On
# `digits` we can see it, because the features of a node are the 64 pixels of an image.

# %% [markdown] slot="look" lang="ko"
# 직접 만든 그래프는 불러온 그래프와 같으며, 표의 한 행마다 에지가 두 개씩 있습니다. 학습하기 전에
# 데이터를 살펴봅시다. 한 노드의 이웃은 몇 개일까요? 그리고 이웃은 도움이 될까요? `digits`에서는
# 노드의 피처가 이미지의 픽셀 64개이므로 눈으로 확인할 수 있습니다.

# %% [markdown] slot="look" lang="zh"
# 亲手建的图与载入的图相同，表格的每一行对应两条边。训练之前，先看看数据。一个节点有多少个邻居？邻
# 居有帮助吗？在 `digits` 上可以亲眼看到，因为节点的特征就是图像的 64 个像素。

# %% slot="look-code"
dataset = dgl.data.load(DATASET)
graph = dataset[0]
feat, label = graph.ndata["feat"], graph.ndata["label"]
src, dst = graph.edges()
same = (label[src] == label[dst]).float().mean().item()
print(f"{same:.0%} of all edges join nodes of one class")

figure = plt.figure(figsize=(9, 2.3), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 2])
ax = left.subplots()
ax.hist(graph.in_degrees().clamp(max=30), bins=range(32), color=BLUE)
ax.set(xlabel="neighbors", ylabel="nodes")
if DATASET == "digits":
    for row, node in zip(right.subplots(2, 9), (8, 1658)):
        for ax, i in zip(row, [node, *graph.predecessors(node).tolist()]):
            ax.imshow(feat[i].view(8, 8), cmap="Blues" if i == node else "Greys")
            color = "black" if label[i] == label[node] else ORANGE
            ax.set_title(label[i].item(), color=color)
            ax.axis("off")
plt.show()

# %% [markdown] slot="toy" lang="en"
# On `digits` every node has at least 8 neighbors, and nine in ten have at most 15. On the right,
# each blue image is followed by neighbors, with the label above each. In the first row all show the
# same digit; the second row is one of the worst in the graph, a nine among threes, fives and
# eights. Over all edges, 96% join equal digits: neighbors know something about the label, and a
# graph neural network lives on that.
#
# ## A toy graph small enough to draw
#
# To see what sampling does, we leave the real graph for a moment. Here are nine nodes and fourteen
# edges. An arrow points the way its message travels: node 0 hears from 1, 2, 3 and 4.

# %% [markdown] slot="toy" lang="ko"
# `digits`에서 모든 노드는 이웃이 8개 이상이고, 열에 아홉은 15개 이하입니다. 오른쪽에는 파란
# 이미지마다 그 이웃이 이어지고, 각 이미지 위에 레이블(label)이 적혀 있습니다. 첫째 줄의 이웃은 모두
# 같은 숫자입니다. 둘째 줄은 그래프 전체에서 가장 나쁜 예 가운데 하나로, 3, 5, 8에 둘러싸인 9입니다.
# 전체 에지의 96%는 같은 숫자를 잇습니다. 이처럼 이웃은 레이블에 관한 정보를 지니고 있으며, 그래프
# 신경망은 바로 이 정보를 이용합니다.
#
# ## 그려 볼 수 있는 작은 그래프
#
# 샘플링이 무엇을 하는지 보기 위해 잠시 실제 그래프를 떠나겠습니다. 다음은 노드 9개와 에지 14개로
# 이루어진 그래프입니다. 화살표는 메시지가 나아가는 방향을 가리킵니다. 노드 0은 노드 1, 2, 3, 4의
# 메시지를 받습니다.

# %% [markdown] slot="toy" lang="zh"
# 在 `digits` 上，每个节点至少有 8 个邻居，九成的节点不超过 15 个。右图中，每张蓝色图像之后是它的邻
# 居，图像上方是各自的标签（label）。第一行全是同一个数字；第二行是整张图中最糟的例子之一：一个被
# 3、5 和 8 包围的 9。就全部的边而言，96% 连接相同的数字：邻居带有关于标签的信息，图神经网络利用的正
# 是这一点。
#
# ## 一张画得出来的小图
#
# 为了看清采样做了什么，我们暂时离开真实的图。这里有 9 个节点和 14 条边。箭头指向消息前进的方向：节
# 点 0 接收来自节点 1、2、3、4 的消息。

# %% slot="toy-code"
toy_src = [1, 2, 3, 4, 0, 5, 6, 6, 7, 2, 7, 8, 8, 5]
toy_dst = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4]
toy = dgl.graph((toy_src, toy_dst))
place = [(0, 0), (-1, 1), (1, 1), (1, -1), (-1, -1), (-2, 0), (0, 2), (2, 0), (0, -2)]


def draw_nodes(ax, places, names, color):
    ax.scatter(*zip(*places), s=250, color=color, zorder=3)
    for (x, y), name in zip(places, names):
        style = {"ha": "center", "va": "center_baseline", "weight": "bold", "zorder": 4}
        ax.text(x, y, name, color="white", **style)
    ax.axis("off")


def draw_edges(ax, edges, color):
    for u, v in edges:
        arrow = {"arrowstyle": "-|>", "lw": 1.5, "shrinkA": 8, "shrinkB": 8}
        ax.annotate("", place[v], place[u], arrowprops={"color": color, **arrow})


figure, ax = plt.subplots(figsize=(3.6, 2.9))
draw_edges(ax, zip(toy_src, toy_dst), "gray")
draw_nodes(ax, place, range(9), "gray")
plt.show()

# %% [markdown] slot="sample" lang="en"
# With two layers, the result at node 0 depends on its neighbors and on their neighbors: here, on
# all nine nodes. In a social network, two hops may reach half of the graph. **Neighbor sampling**
# puts a bound on this. A fanout of $k$ means: of the edges that enter a node, choose at most $k$
# at random, none twice. The list `[2, 2]` has one fanout a layer. The sampler starts at the seed
# node and works outwards.

# %% [markdown] slot="sample" lang="ko"
# 계층(layer)이 두 개이면 노드 0의 결과는 이웃과 이웃의 이웃에 따라 정해집니다. 이 그래프에서는
# 노드 9개 전부입니다. 소셜 네트워크라면 두 홉(hop) 만에 그래프의 절반에 닿을 수도 있습니다. **이웃
# 샘플링**은 이 수에 상한을 둡니다. 팬아웃이 $k$라는 것은 한 노드로 들어오는 에지 가운데 최대
# $k$개를 중복 없이 무작위로 고른다는 뜻입니다. 리스트 `[2, 2]`에는 계층마다 팬아웃이 하나씩 들어
# 있습니다. 샘플러(sampler)는 시드 노드에서 출발하여 바깥쪽으로 나아갑니다.

# %% [markdown] slot="sample" lang="zh"
# 如果有两层，节点 0 的结果就取决于它的邻居，以及邻居的邻居：在这里，是全部 9 个节点。在社交网络
# 中，两跳也许就能到达半张图。**邻居采样**为此设定上限。扇出为 $k$ 的意思是：在进入一个节点的边中，
# 随机选取至多 $k$ 条，不重复。列表 `[2, 2]` 为每一层给出一个扇出。采样器（sampler）从种子节点出
# 发，向外推进。

# %% slot="sample-code"
dgl.seed(1)
sampler = MultiLayerNeighborSampler([2, 2])
input_nodes, output_nodes, blocks = sampler.sample(toy, torch.tensor([0]))
print("output nodes:", output_nodes.tolist())
print("input nodes: ", input_nodes.tolist())
for i, block in enumerate(blocks):
    print(f"blocks[{i}]: {block.num_edges()} edges,", end=" ")
    print(f"{block.num_src_nodes()} source -> {block.num_dst_nodes()} destination nodes")

# %% [markdown] slot="blocks" lang="en"
# The sampler returns three things:
#
# - `output_nodes`: the seed nodes, for which we want predictions;
# - `input_nodes`: every node whose features are needed for that;
# - `blocks`: one bipartite graph a layer, from source nodes to destination nodes.
#
# A block numbers its nodes from 0; `srcdata[dgl.NID]` and `dstdata[dgl.NID]` hold the original
# IDs. The destinations of one block are the sources of the next. Since a layer also needs a node's
# own features, **the destination nodes come first among the source nodes**. We draw the sample in
# the graph and as blocks; a dotted line joins a node to itself.

# %% [markdown] slot="blocks" lang="ko"
# 샘플러는 세 가지를 돌려줍니다.
#
# - `output_nodes`: 예측을 얻으려는 시드 노드입니다.
# - `input_nodes`: 그 예측을 위해 피처가 필요한 모든 노드입니다.
# - `blocks`: 계층마다 하나씩 있는 이분 그래프(bipartite graph)로, 에지는 출발 노드에서 도착 노드로
#   향합니다.
#
# 블록(block)은 노드 번호를 0부터 새로 매기며, 원래 ID는 `srcdata[dgl.NID]`와 `dstdata[dgl.NID]`에
# 들어 있습니다. 한 블록의 도착 노드는 다음 블록의 출발 노드가 됩니다. 계층은 노드 자신의 피처도
# 필요로 하므로 **출발 노드 가운데 도착 노드가 맨 앞에 옵니다**. 뽑힌 표본을 그래프 위에, 그리고
# 블록으로 그려 봅시다. 점선은 노드를 자기 자신과 잇습니다.

# %% [markdown] slot="blocks" lang="zh"
# 采样器返回三样东西：
#
# - `output_nodes`：种子节点，也就是要预测的节点；
# - `input_nodes`：为此需要读取特征的所有节点；
# - `blocks`：每层一个二分图，边从源节点指向目标节点。
#
# 块（block）从 0 开始给自己的节点编号，原始 ID 存放在 `srcdata[dgl.NID]` 和 `dstdata[dgl.NID]`
# 中。一个块的目标节点就是下一个块的源节点。由于每一层还需要节点自身的特征，**目标节点排在源节点的
# 最前面**。下面把样本分别画在图上和画成块；点线把节点与它自己相连。

# %% slot="blocks-code"
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3), layout="constrained")
draw_edges(left, zip(toy_src, toy_dst), GRAY)
draw_nodes(left, place, range(9), GRAY)
columns = [blocks[0].srcdata[dgl.NID]] + [block.dstdata[dgl.NID] for block in blocks]
for x, (block, ids, color) in enumerate(zip(blocks, columns, (GREEN, ORANGE))):
    for u, v in zip(*block.edges()):
        right.plot([x, x + 1], [-u, -v], color=color)
        draw_edges(left, [(ids[u], ids[v])], color)
    for v in range(block.num_dst_nodes()):
        right.plot([x, x + 1], [-v, -v], ":", color="gray")
    right.text(x + 0.5, 0.6, f"blocks[{x}]", ha="center", color=color)
for x, (ids, color) in enumerate(zip(columns, (GREEN, ORANGE, BLUE))):
    draw_nodes(right, [(x, -y) for y in range(len(ids))], ids.tolist(), color)
    draw_nodes(left, [place[node] for node in ids], ids.tolist(), color)
plt.show()

# %% [markdown] slot="mean" lang="en"
# The sampler worked from right to left; the model computes from left to right. Features enter at
# the green nodes, `blocks[0]` carries them to the orange ones, `blocks[1]` to the blue seed. Node
# 0 stands in every column; for each layer its neighbors are drawn anew, so they may differ.
#
# ## Build it yourself
#
# What does a layer do with a block? GraphSAGE aggregates the neighbors by their mean and adds the
# node itself, each through a matrix of its own:
#
# $$h_v = W_{\text{self}} x_v + W_{\text{neigh}} \frac{1}{|N(v)|} \sum_{u \in N(v)} x_u + b$$
#
# On the toy graph an adjacency matrix is enough: divide each row by its sum, then multiply by the
# features. A node without neighbors gets a mean of zero. The library's `SAGEConv` must give the
# same.

# %% [markdown] slot="mean" lang="ko"
# 샘플러는 오른쪽에서 왼쪽으로 작업하고, 모델은 왼쪽에서 오른쪽으로 계산합니다. 피처는 초록색
# 노드로 들어와 `blocks[0]`을 거쳐 주황색 노드로, 이어서 `blocks[1]`을 거쳐 파란색 시드 노드로
# 전달됩니다. 노드 0은 모든 열에 나타납니다. 계층마다 이웃을 새로 뽑으므로 두 계층에서 노드 0의
# 이웃은 서로 다를 수 있습니다.
#
# ## 직접 만들어 보기
#
# 계층은 블록으로 무엇을 계산할까요? GraphSAGE는 이웃의 피처를 평균으로 집계(aggregation)하고 여기에
# 노드 자신의 피처를 더합니다. 더하기 전에 둘은 서로 다른 행렬을 거칩니다.
#
# $$h_v = W_{\text{self}} x_v + W_{\text{neigh}} \frac{1}{|N(v)|} \sum_{u \in N(v)} x_u + b$$
#
# 작은 그래프에서는 인접 행렬 하나로 충분합니다. 각 행을 그 합으로 나눈 뒤 피처를 곱하면 됩니다.
# 이웃이 없는 노드의 평균은 0으로 둡니다. 라이브러리의 `SAGEConv`도 같은 값을 내야 합니다.

# %% [markdown] slot="mean" lang="zh"
# 采样器从右向左工作，模型则从左向右计算：特征从绿色节点进入，经 `blocks[0]` 传到橙色节点，再经
# `blocks[1]` 传到蓝色的种子节点。节点 0 出现在每一列；每一层都会重新抽取它的邻居，所以各层抽到的可
# 能不同。
#
# ## 亲手实现
#
# 一层拿到块之后做什么？GraphSAGE 用平均值对邻居做聚合（aggregation），再加上节点自身，两者各乘一个
# 矩阵：
#
# $$h_v = W_{\text{self}} x_v + W_{\text{neigh}} \frac{1}{|N(v)|} \sum_{u \in N(v)} x_u + b$$
#
# 在小图上，一个邻接矩阵就够了：先把每行除以该行之和，再与特征相乘。没有邻居的节点，平均值为零。库
# 中的 `SAGEConv` 必须给出同样的结果。

# %% slot="mean-code"
torch.manual_seed(0)
x = torch.rand(9, 4)
adjacency = torch.zeros(9, 9)
adjacency[toy_dst, toy_src] = 1
mean = adjacency @ x / adjacency.sum(1, keepdim=True).clamp(min=1)

conv = dglnn.SAGEConv(4, 3, "mean")
by_hand = conv.fc_self(x) + conv.fc_neigh(mean)
assert torch.allclose(conv(toy, x), by_hand, atol=1e-6)
print("equal:", tuple(by_hand.shape))

# %% [markdown] slot="loader" lang="en"
# The two agree to rounding. A layer also takes a block where it takes a graph, for a block is a
# graph with two sides. So the same code learns from samples and predicts from everything.
#
# ## Mini-batches of the real graph
#
# `NodeDataLoader` cuts the training nodes into batches and calls the sampler for each. It draws
# anew in every epoch, so the model meets other neighbors each time.

# %% [markdown] slot="loader" lang="ko"
# 두 결과는 반올림 오차 안에서 같습니다. 블록은 출발 쪽과 도착 쪽으로 나뉜 그래프이므로, 계층에는
# 그래프 대신 블록을 넣을 수도 있습니다. 그래서 표본으로 학습할 때와 그래프 전체로 예측할 때 같은
# 코드를 씁니다.
#
# ## 실제 그래프의 미니배치
#
# `NodeDataLoader`는 학습 노드를 배치로 나누고 배치마다 샘플러를 호출합니다. 에폭(epoch)마다 새로
# 뽑으므로 모델은 매번 다른 이웃을 만납니다.

# %% [markdown] slot="loader" lang="zh"
# 两者在舍入误差内一致。块就是分成两侧的图，所以能接收图的层也能接收块。这样，从样本中学习和用全图
# 预测，用的是同一份代码。
#
# ## 真实图上的小批次
#
# `NodeDataLoader` 把训练节点切成若干批，并为每一批调用采样器。每一轮（epoch）都重新抽取，因此模型
# 每次遇到的邻居都不同。

# %% slot="loader-code"
FANOUTS, BATCH, EPOCHS = ([5, 5], 32, 60) if DATASET == "digits" else ([15, 10], 1024, 10)
train_ids, val_ids, test_ids = dataset.train_idx, dataset.val_idx, dataset.test_idx

dgl.seed(0)
sampler = MultiLayerNeighborSampler(FANOUTS)
loader = NodeDataLoader(graph, train_ids, sampler, batch_size=BATCH, shuffle=True)
input_nodes, output_nodes, blocks = next(iter(loader))
assert torch.equal(input_nodes[: len(output_nodes)], output_nodes)
print(f"{len(train_ids)} training nodes make {len(loader)} batches; the first one:")
print(f"{len(input_nodes)} input nodes -> {len(output_nodes)} seed nodes")

# %% [markdown] slot="model" lang="en"
# On `digits`, 32 seed nodes need the features of some 600 input nodes, a third of the graph. The
# seeds are the first of these: the rule from the toy graph holds.
#
# ## The model
#
# Two `SAGEConv` layers, each with its block, and ReLU and dropout between them; `sizes` lists the
# number of features before, between and after the layers. `step` applies one layer; we will need
# it alone later. A layer reads the features of the source nodes and returns rows for the
# destination nodes, so with every block the rows become fewer, until only the seeds are left.

# %% [markdown] slot="model" lang="ko"
# `digits`에서 시드 노드 32개를 처리하려면 그래프의 3분의 1에 이르는 600개가량의 입력 노드에서
# 피처를 읽어야 합니다. 입력 노드의 맨 앞에는 시드 노드가 옵니다. 작은 그래프에서 본 규칙
# 그대로입니다.
#
# ## 모델
#
# `SAGEConv` 계층 두 개가 블록을 하나씩 맡고, 그 사이에 ReLU와 드롭아웃(dropout)이 들어갑니다.
# `sizes`에는 계층의 앞, 사이, 뒤에서의 피처 수를 차례로 적습니다. `step`은 계층 하나만 적용하며,
# 나중에 따로 쓰입니다. 계층은 출발 노드의 피처를 읽어 도착 노드의 행을 돌려줍니다. 따라서 블록을
# 지날 때마다 행이 줄어들고, 마지막에는 시드 노드만 남습니다.

# %% [markdown] slot="model" lang="zh"
# 在 `digits` 上，32 个种子节点需要大约 600 个输入节点的特征，占整张图的三分之一。种子节点排在这些
# 节点的最前面：小图上的规则依然成立。
#
# ## 模型
#
# 两个 `SAGEConv` 层，各对应一个块，中间是 ReLU 和 dropout；`sizes` 依次列出各层之前、之间和之后的
# 特征数。`step` 只应用一层，后面会单独用到。一层读入源节点的特征，返回目标节点的行；因此每经过一个
# 块，行数就会减少，最后只剩下种子节点。


# %% slot="model-code"
class SAGE(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        layers = [dglnn.SAGEConv(fan_in, out, "mean") for fan_in, out in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)

    def step(self, i, block, h):
        h = self.layers[i](block, h)
        last = i + 1 == len(self.layers)
        return h if last else F.dropout(F.relu(h), 0.5, self.training)

    def forward(self, blocks, h):
        for i, block in enumerate(blocks):
            h = self.step(i, block, h)
        return h


# %% [markdown] slot="train" lang="en"
# ## Training
#
# In one epoch every training node is a seed once. After each epoch we measure the accuracy on the
# validation set, with sampled neighbors too, because that is quick. The rest is an ordinary
# PyTorch loop: `feat[input_nodes]` gathers the features of a batch, `label[output_nodes]` its
# labels.

# %% [markdown] slot="train" lang="ko"
# ## 학습
#
# 한 에폭 동안 모든 학습 노드는 한 번씩 시드 노드가 됩니다. 에폭이 끝날 때마다 검증 세트(validation
# set)에서 정확도를 재는데, 이때도 빠르게 끝내기 위해 이웃을 샘플링합니다. 나머지는 평범한 PyTorch
# 루프입니다. `feat[input_nodes]`는 배치에 필요한 피처를, `label[output_nodes]`는 배치의 레이블을
# 모읍니다.

# %% [markdown] slot="train" lang="zh"
# ## 训练
#
# 在一轮之中，每个训练节点都当一次种子节点。每轮结束后，我们在验证集（validation set）上测量准确率；
# 为了节省时间，这时同样只用采样到的邻居。其余就是普通的 PyTorch 循环：`feat[input_nodes]` 取出一批
# 所需的特征，`label[output_nodes]` 取出它的标签。


# %% slot="train-code"
def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = [model(blocks, feat[i]).argmax(1) == label[o] for i, o, blocks in loader]
    return torch.cat(hits).float().mean().item()


def train(graph):
    torch.manual_seed(0)
    dgl.seed(0)
    loader = NodeDataLoader(graph, train_ids, sampler, batch_size=BATCH, shuffle=True)
    val_loader = NodeDataLoader(graph, val_ids, sampler, batch_size=BATCH)
    model = SAGE([feat.shape[1], 128, dataset.num_classes])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    history = []
    for _ in tqdm(range(EPOCHS), desc="epochs"):
        model.train()
        for input_nodes, output_nodes, blocks in loader:
            loss = F.cross_entropy(model(blocks, feat[input_nodes]), label[output_nodes])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        history.append(accuracy(model, val_loader))
    return model, history


# %% slot="train-run" tags=["nbval-ignore-output"]
model, history = train(graph)
print(f"validation accuracy after {EPOCHS} epochs: {history[-1]:.2f}")

# %% [markdown] slot="inference" lang="en"
# The validation accuracy still depends a little on which neighbors were drawn.
#
# ## Predict with all neighbors
#
# A prediction should not depend on luck, so inference uses **all** neighbors. If each batch went
# through both layers, inner nodes would be computed again for every batch that reaches
# them. **Layer-wise inference** swaps the loops: the first layer for all nodes, then the second
# layer from its results. Every node is computed once per layer. The fanout `None` takes all
# neighbors.

# %% [markdown] slot="inference" lang="ko"
# 이 검증 정확도는 어떤 이웃이 뽑혔는지에 따라 조금씩 달라집니다.
#
# ## 모든 이웃으로 예측하기
#
# 예측이 운에 좌우되어서는 안 되므로 추론(inference)에는 **모든** 이웃을 사용합니다. 배치마다 두
# 계층을 모두 통과시키면 안쪽 노드는 그 노드에 닿는 배치마다 되풀이하여 계산됩니다. **계층별
# 추론**(layer-wise inference)은 이중 반복문의 안팎을 맞바꿉니다. 먼저 모든 노드에 첫째 계층을
# 적용하고, 그 결과에 둘째 계층을 적용합니다. 그러면 모든 노드를 계층마다 한 번만 계산합니다. 팬아웃
# `None`은 모든 이웃을 가져온다는 뜻입니다.

# %% [markdown] slot="inference" lang="zh"
# 验证准确率还会因抽到哪些邻居而略有不同。
#
# ## 用全部邻居预测
#
# 预测不应取决于运气，所以推理（inference）使用**全部**邻居。如果每一批都走完两层，内部的节点就会被
# 每个到达它的批次重复计算。**逐层推理**（layer-wise inference）把两重循环对调：先为所有节点计算第
# 一层，再由其结果计算第二层。这样，每个节点在每一层只计算一次。扇出 `None` 表示取全部邻居。


# %% slot="inference-code" tags=["nbval-ignore-output"]
@torch.no_grad()
def inference(model, graph, batch_size=1024):
    model.eval()
    everyone, h = torch.arange(graph.num_nodes()), feat
    loader = NodeDataLoader(
        graph, everyone, MultiLayerNeighborSampler([None]), batch_size=batch_size
    )
    for i in range(len(model.layers)):
        rows = [model.step(i, block, h[inputs]) for inputs, _, (block,) in loader]
        h = torch.cat(rows)
    return h


logits = inference(model, graph)
test = (logits.argmax(1) == label)[test_ids].float().mean().item()
print(f"test accuracy: {test:.3f}")
assert test > {"digits": 0.96, "facebook": 0.92}.get(DATASET, 0)

# %% [markdown] slot="prove" lang="en"
# On `digits`, 179 labels, one in ten, are enough for about 97% of the test set.
#
# ## Prove it
#
# Does batch after batch really give what the whole graph would give at once? Here the graph is
# small enough to ask. `SAGEConv` takes the graph in place of each block, and this full forward
# pass must give the same logits for every node.

# %% [markdown] slot="prove" lang="ko"
# `digits`에서는 레이블 179개, 곧 열 개 가운데 하나만으로 테스트 세트(test set)의 약 97%를
# 맞힙니다.
#
# ## 증명하기
#
# 배치를 차례로 처리한 결과가 정말 그래프 전체를 한꺼번에 처리한 결과와 같을까요? 이 그래프는
# 작으므로 직접 확인할 수 있습니다. `SAGEConv`에 블록 대신 그래프를 넣어 한 번에 계산하면 모든
# 노드에서 같은 로짓(logit)이 나와야 합니다.

# %% [markdown] slot="prove" lang="zh"
# 在 `digits` 上，179 个标签，即每十张中一张，就足以答对测试集（test set）的约 97%。
#
# ## 证明
#
# 一批接一批的计算，真的与一次算完整张图相同吗？这里的图足够小，可以直接检验。用整张图代替每个块，交
# 给 `SAGEConv`，就是一次完整的前向计算；它必须对每个节点给出相同的 logits。

# %% slot="prove-code"
with torch.no_grad():
    at_once = model([graph, graph], feat)
assert torch.allclose(at_once, logits, atol=1e-4)
print("layer-wise inference equals the full forward pass:", tuple(logits.shape))

# %% [markdown] slot="trap" lang="en"
# They agree to rounding, so inference in batches has nothing approximate about it; only training
# samples.
#
# ## The trap: forgotten reverse edges
#
# If the edges of the file are used as they are, nothing complains: shapes fit, the loss falls. But
# each node then hears only from neighbors with smaller IDs. We train the same model on that graph
# and compare.

# %% [markdown] slot="trap" lang="ko"
# 두 결과는 반올림 오차 안에서 같습니다. 배치 단위의 추론에는 근사가 전혀 없으며, 표본을 쓰는 것은
# 학습뿐입니다.
#
# ## 함정: 빠뜨린 역방향 에지
#
# 파일의 에지를 그대로 사용해도 오류는 나지 않습니다. 텐서의 모양도 맞고 손실도 줄어듭니다. 그러나
# 이때 각 노드는 자신보다 ID가 작은 이웃의 메시지만 받습니다. 이 그래프로 같은 모델을 학습하여
# 비교해 봅시다.

# %% [markdown] slot="trap" lang="zh"
# 两者在舍入误差内一致：分批推理没有任何近似，只有训练才采样。
#
# ## 陷阱：忘了反向边
#
# 如果直接使用文件中的边，什么错误也不会报：形状吻合，损失下降。但这时每个节点只能收到 ID 更小的邻居
# 的消息。我们在这样的图上训练同一个模型，加以比较。

# %% slot="trap-code" tags=["nbval-ignore-output"]
one_way = dgl.graph((src[src < dst], dst[src < dst]), num_nodes=graph.num_nodes())
trapped, trapped_history = train(one_way)
trapped_logits = inference(trapped, one_way)
trapped_test = (trapped_logits.argmax(1) == label)[test_ids].float().mean().item()
print(f"nodes that hear from nobody: {(one_way.in_degrees() == 0).sum()}")
print(f"test accuracy: {test:.3f} with reverse edges, {trapped_test:.3f} without")

figure, ax = plt.subplots(figsize=(5, 2.5))
ax.plot(history, color=BLUE, label="both directions")
ax.plot(trapped_history, color=ORANGE, label="edges as in the file")
ax.set(xlabel="epoch", ylabel="validation accuracy", ylim=(0.5, 1))
ax.legend(frameon=False)
plt.show()

# %% [markdown] slot="cost" lang="en"
# On `digits`, 111 nodes hear from nobody, and about four points of accuracy are lost. Most changes
# to a model win back less, and no message says so. Look at `in_degrees()` of every new graph before
# training.
#
# ## What it costs
#
# Fanout and depth decide how much a batch reads. For batches of 16 seed nodes and one to three
# layers, we count the input nodes and time a training step: sample, forward, backward.

# %% [markdown] slot="cost" lang="ko"
# `digits`에서는 노드 111개가 아무 메시지도 받지 못하며, 정확도가 약 4%포인트 떨어집니다. 모델을
# 고쳐서 얻는 이득보다 대개 더 큰 손실이지만, 이를 알려 주는 메시지는 없습니다. 새로운 그래프를
# 받으면 학습하기 전에 `in_degrees()`부터 확인하는 것이 좋습니다.
#
# ## 비용
#
# 배치 하나가 읽는 양은 팬아웃과 깊이에 따라 정해집니다. 시드 노드 16개짜리 배치에 대해 계층 수를
# 1에서 3까지 바꾸어 가며 입력 노드의 수를 세고, 샘플링부터 순전파와 역전파까지 학습 한 단계에
# 걸리는 시간을 잽니다.

# %% [markdown] slot="cost" lang="zh"
# 在 `digits` 上，有 111 个节点收不到任何消息，准确率损失了大约四个百分点。对模型的大多数改动都挽回
# 不了这么多，而且没有任何信息提示这一点。拿到一张新图，训练之前请先看一看 `in_degrees()`。
#
# ## 代价
#
# 扇出和深度决定一批要读取多少数据。我们以 16 个种子节点为一批，分别用一到三层，统计输入节点的数
# 目，并测量一个训练步所用的时间：采样、前向、反向。

# %% slot="cost-code" tags=["nbval-ignore-output"]
fanouts, repeats, seeds = [1, 2, 4, 8, 16], 20, train_ids[:16]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 2.8), layout="constrained")
for layers, color in zip((1, 2, 3), (GREEN, ORANGE, BLUE)):
    net = SAGE([feat.shape[1], *[128] * (layers - 1), dataset.num_classes])
    nodes, milliseconds = [], []
    for fanout in fanouts:
        sampler = MultiLayerNeighborSampler([fanout] * layers)
        sizes, times = [], []
        for _ in range(repeats):
            start = time.perf_counter()
            input_nodes, _, blocks = sampler.sample(graph, seeds)
            F.cross_entropy(net(blocks, feat[input_nodes]), label[seeds]).backward()
            times.append(1000 * (time.perf_counter() - start))
            sizes.append(len(input_nodes))
        nodes.append(median(sizes))
        milliseconds.append(median(times))
    for ax, values in ((left, nodes), (right, milliseconds)):
        ax.plot(fanouts, values, "o-", color=color)
        ax.text(16.6, values[-1], f"{layers}-layer", color=color, va="center")
left.axhline(graph.num_nodes(), color="gray", ls=":")
left.set(xlabel="fanout", xticks=fanouts, ylabel="input nodes per batch", ylim=0)
right.set(xlabel="fanout", xticks=fanouts, ylabel="ms per training step", ylim=0)
plt.show()

# %% [markdown] slot="summary" lang="en"
# Each further layer multiplies the input nodes by up to the fanout plus one, until the whole
# graph (dotted) bounds them: with three layers and a fanout of 16, sixteen seeds read more than
# two thirds of `digits`. The more nodes a step reads, the longer it takes as a rule. Larger
# graphs leave more room, but the law is the same: depth costs more than width.
#
# ## Summary
#
# - A graph is built from two columns; every undirected edge needs both directions.
# - A mini-batch is `input_nodes`, `output_nodes` and one block a layer; destination nodes come
#   first among the source nodes.
# - The same layers run on blocks for training and on all neighbors for inference.
# - Layer-wise inference equals a forward pass over the full graph.
# - The fanout trades time for randomness; the number of layers costs most.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict. The
# [solutions](../solutions/01_node_classification.ipynb) are beside the lesson.
#
# 1. In a large directed graph, exactly four edges enter every node. One seed node, three layers,
#    all neighbors: how many input nodes can there be at most?
# 2. Which input nodes does node 3 of the toy graph need, with two layers and all neighbors? Answer
#    with a sorted list.
# 3. Write a function of `graph` and `x` that returns the mean over neighbors by message passing:
#    `update_all` with `copy_u` and `mean` from `dgl.function`, in a `local_scope`.
# 4. Write a function of `graph` that returns how many of its edges have no reverse edge. It would
#    have found the trap.

# %% [markdown] slot="summary" lang="ko"
# 계층을 하나 더할 때마다 입력 노드는 최대 (팬아웃 + 1)배로 늘어나며, 그래프 전체의 크기(점선)에서
# 멈춥니다. `digits`에서는 계층이 3개이고 팬아웃이 16이면 시드 노드 16개를 위해 전체 노드의 3분의
# 2가 넘게 읽습니다. 읽는 노드가 많을수록 대체로 시간도 더 걸립니다. 더 큰 그래프에서는 한계에
# 닿기까지 여유가 있지만 법칙은 같습니다. 너비보다 깊이에 더 큰 비용이 듭니다.
#
# ## 요약
#
# - 그래프는 두 열로 만듭니다. 방향이 없는 에지에는 양쪽 방향이 모두 필요합니다.
# - 미니배치는 `input_nodes`, `output_nodes`, 그리고 계층마다 하나씩 있는 블록으로 이루어집니다.
#   출발 노드 가운데 도착 노드가 맨 앞에 옵니다.
# - 같은 계층을 학습할 때는 블록에, 추론할 때는 모든 이웃에 적용합니다.
# - 계층별 추론의 결과는 그래프 전체를 한 번에 계산한 결과와 같습니다.
# - 팬아웃을 줄이면 시간을 아끼는 대신 무작위성이 커집니다. 비용에 가장 큰 영향을 주는 것은 계층의
#   수입니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 판정을 확인합니다.
# [풀이](../solutions/01_node_classification.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 어떤 큰 방향 그래프에서는 모든 노드에 에지가 정확히 네 개씩 들어옵니다. 시드 노드가 1개, 계층이
#    3개이고 모든 이웃을 쓸 때 입력 노드는 최대 몇 개입니까?
# 2. 계층이 두 개이고 모든 이웃을 쓸 때, 작은 그래프의 노드 3에 필요한 입력 노드는 무엇입니까?
#    정렬된 리스트로 답합니다.
# 3. 메시지 전달(message passing)로 이웃의 평균을 구하여 돌려주는 함수를 작성합니다. 인자는
#    `graph`와 `x`이며, `local_scope` 안에서 `dgl.function`의 `copy_u`와 `mean`으로 `update_all`을
#    호출합니다.
# 4. `graph`를 받아 역방향 에지가 없는 에지의 수를 돌려주는 함수를 작성합니다. 이 함수가 있었다면
#    함정을 찾아냈을 것입니다.

# %% [markdown] slot="summary" lang="zh"
# 每增加一层，输入节点至多变为原来的（扇出 + 1）倍，直到受整张图的大小（点线）限制：在 `digits`
# 上，用三层、扇出 16 时，16 个种子节点就要读取三分之二以上的节点。读取的节点越多，所用时间一般也
# 越长。更大的图余地更多，但规律不变：增加深度比增加宽度代价更大。
#
# ## 小结
#
# - 用两列数据就能建图；每条无向边都需要两个方向。
# - 小批次由 `input_nodes`、`output_nodes` 和每层一个块组成；目标节点排在源节点的最前面。
# - 同样的层，训练时作用于块，推理时作用于全部邻居。
# - 逐层推理等于在全图上做一次前向计算。
# - 减小扇出节省时间，却增加随机性；代价最大的是层数。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看判定结果。[解
# 答](../solutions/01_node_classification.ipynb)随本课提供。
#
# 1. 在一张很大的有向图中，每个节点恰好有四条边进入。1 个种子节点、三层、取全部邻居：输入节点最多有
#    多少个？
# 2. 在两层、取全部邻居时，小图的节点 3 需要哪些输入节点？用排好序的列表作答。
# 3. 写一个以 `graph` 和 `x` 为参数的函数，用消息传递（message passing）求邻居的平均值并返回：在
#    `local_scope` 中，用 `dgl.function` 的 `copy_u` 和 `mean` 调用 `update_all`。
# 4. 写一个以 `graph` 为参数的函数，返回图中有多少条边没有反向边。有了它，就能发现那个陷阱。


# %% slot="check"
def check(number, answer, is_right):
    verdict = "not answered yet"
    if answer is not None:
        verdict = "right" if is_right(answer) else "wrong"
    print(f"exercise {number}: {verdict}")


def sha(answer):
    return hashlib.sha256(str(answer).encode()).hexdigest()[:8]


# %% slot="answer-1-2"
answer_1 = None  # a number
answer_2 = None  # a list
check(1, answer_1, lambda answer: sha(answer) == "b4944c6f")
check(2, answer_2, lambda answer: sha(answer) == "b6d8f3f1")

# %% slot="answer-3"
answer_3 = None  # a function of graph and x
check(3, answer_3, lambda answer: torch.allclose(answer(toy, x), mean))

# %% slot="answer-4"
answer_4 = None  # a function of graph
check(4, answer_4, lambda answer: int(answer(toy)) == 12 and int(answer(graph)) == 0)
