# %% [markdown] slot="title" lang="en"
# # Node classification with neighbor sampling
#
# A graph neural network computes a vector for every node, layer by layer: each layer combines a
# node's vector with an average, or another summary, of its neighbors' vectors. After two layers, a
# node's vector depends on every node within two hops; the last layer produces a score for each
# class. On a graph with millions of nodes, a single step on all training nodes often needs more
# vectors than fit in memory. So we train on mini-batches: a few seed nodes and a random sample of
# the nodes around them. This lesson goes all the way from a CSV file to a test accuracy. By the end
# of this lesson, you will be able to
#
# - turn a table of edges into a graph, and avoid a mistake that raises no error;
# - write a step of message passing with `update_all`;
# - explain what the `input_nodes`, `output_nodes` and `blocks` of a mini-batch are;
# - train GraphSAGE with neighbor sampling, then predict with all neighbors, layer by layer;
# - estimate the cost of a fanout.

# %% [markdown] slot="title" lang="ko"
# # 이웃 샘플링을 이용한 노드 분류
#
# 그래프 신경망(graph neural network)은 계층을 차례로 거치며 노드마다 벡터를 하나씩 계산합니다. 각
# 계층에서는 이웃들의 벡터를 평균 등의 방법으로 모아 노드 자신의 벡터와 결합합니다. 계층이 두 개이면
# 노드의 벡터는 두 홉(hop) 이내의 모든 노드에 따라 정해지며, 마지막 계층의 출력이 클래스별 점수가
# 됩니다. 노드가 수백만 개인 그래프에서는 모든 학습 노드를 한 번에 계산하기에 메모리가 모자랄 때가
# 많으므로 미니배치(mini-batch) 단위로 학습합니다. 미니배치는 시드 노드(seed node) 몇 개와 그
# 주변에서 무작위로 뽑은 노드로 이루어집니다. 이 레슨에서는 CSV 파일에서 출발하여 테스트 정확도를
# 얻기까지의 전 과정을 다룹니다. 레슨을 마치면 다음과 같은 일을 할 수 있습니다.
#
# - 에지 표로 그래프를 만들고, 오류 메시지 없이 지나가는 실수를 피하기
# - `update_all`로 메시지 전달(message passing) 한 단계를 구현하기
# - 미니배치의 `input_nodes`, `output_nodes`, `blocks`가 무엇인지 설명하기
# - 이웃 샘플링(neighbor sampling)으로 GraphSAGE를 학습하고, 모든 이웃을 써서 계층별로 예측하기
# - 팬아웃(fanout)에 따른 비용을 미리 가늠하기

# %% [markdown] slot="title" lang="zh"
# # 用邻居采样做节点分类
#
# 图神经网络（graph neural network）逐层为每个节点计算一个向量：每一层把节点自身的向量与邻居向量的汇
# 总（例如平均值）结合起来。经过两层之后，一个节点的向量就取决于两跳（两条边）以内的所有节点；最后一
# 层输出各类别的得分。如果图有上百万个节点，内存往往不足以一次算完所有训练节点，因此要分成小批次
# （mini-batch）来训练：每批只取少量种子节点（seed node），再从它们周围随机抽取邻居。本课从一个 CSV
# 文件开始，一直讲到算出测试准确率。学完之后，你能够：
#
# - 用边的表格建图，并避开一个不会报错的陷阱；
# - 用 `update_all` 写出一步消息传递（message passing）；
# - 说明小批次中的 `input_nodes`、`output_nodes` 和 `blocks` 各是什么；
# - 用邻居采样（neighbor sampling）训练 GraphSAGE，再用全部邻居逐层预测；
# - 估计扇出（fanout）带来的开销。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# gnnlab follows the interface of DGL (Deep Graph Library), so we import it as `dgl`: code from
# courses that use DGL runs with this import if gnnlab has every name the code uses. `DATASET`
# selects the graph used throughout the lesson. `"digits"` comes with the project: 1,797 images of
# handwritten digits, each joined to those that look most like it. Training on it takes seconds. The
# others are larger; `"ogbn-products"` is a 1.4 GB download, needed only once.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# gnnlab은 DGL(Deep Graph Library)과 같은 인터페이스를 제공하므로 `dgl`이라는 이름으로 불러옵니다.
# DGL용으로 작성된 강의 코드도 gnnlab에 있는 이름만 쓴다면 import 문만 바꾸어 실행할 수 있습니다.
# 레슨 전체에서 사용할 그래프는 `DATASET`으로 정합니다. `"digits"`는 프로젝트에 포함되어 있으며 몇
# 초면 학습이 끝납니다. 손글씨 숫자 이미지 1,797장을 노드로 하고, 서로 가장 비슷한 이미지끼리 에지로
# 이은 그래프입니다. 나머지 데이터셋은 더 크며, `"ogbn-products"`를 처음 사용할 때는 1.4 GB를
# 내려받아야 합니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# gnnlab 沿用 DGL（Deep Graph Library）的接口，所以导入时取别名 `dgl`：为 DGL 编写的教程代码，只要用
# 到的名称 gnnlab 都有，换成这里的导入语句就能运行。`DATASET` 决定整节课使用的图。`"digits"` 随项目
# 附带，几秒钟就能训练完；图中的节点是 1,797 张手写数字图像，每张都与最相似的若干张相连。其余数据集
# 更大；`"ogbn-products"` 首次使用时要下载 1.4 GB。

# %% slot="imports"
import time
from itertools import pairwise
from statistics import median

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import nn
from tqdm.auto import tqdm

import gnnlab as dgl
import gnnlab.nn as dglnn
from gnnlab.dataloading import MultiLayerNeighborSampler, NodeDataLoader
from gnnlab.exercises import Lesson
from gnnlab.plot import BLUE, GREEN, ORANGE

DATASET = "digits"  # or "facebook", "products-like", "ogbn-products"
lesson = Lesson("01", "en")  # exercises, and the style of figures
lesson.style()
if DATASET == "digits":
    torch.set_num_threads(1)  # batches this small are not worth splitting across cores

# %% [markdown] slot="csv" lang="en"
# ## From a CSV file to a graph
#
# Graphs often arrive as tables. The `digits` folder is laid out like an Open Graph Benchmark
# archive: `edge.csv.gz` has one edge per row, source before destination; row $i$ of
# `node-feat.csv.gz` holds the features of node $i$. Each undirected edge is listed **once**. But a
# message travels only from source to destination, so every edge needs its reverse. `load` does all
# of this; we do it by hand once and compare.

# %% [markdown] slot="csv" lang="ko"
# ## CSV 파일에서 그래프로
#
# 그래프 데이터는 표 형태로 주어질 때가 많습니다. `digits` 폴더는 Open Graph Benchmark의 배포 파일과
# 구조가 같습니다. `edge.csv.gz`에는 한 행에 에지 하나가 출발 노드, 도착 노드 순서로 적혀 있고,
# `node-feat.csv.gz`의 $i$번째 행에는 노드 $i$의 피처(feature)가 들어 있습니다. 방향이 없는 에지는
# 이 파일에 **한 번만** 나옵니다. 그런데 메시지는 출발 노드에서 도착 노드로만 전달되므로 모든 에지에
# 역방향 에지를 추가해야 합니다. 이 과정은 `load`가 모두 처리하지만, 여기서는 한 번 직접 해 보고
# 결과를 비교합니다.

# %% [markdown] slot="csv" lang="zh"
# ## 从 CSV 文件到图
#
# 图数据常常以表格的形式给出。`digits` 文件夹的结构与 Open Graph Benchmark 的数据包相同：
# `edge.csv.gz` 每行是一条边，先源节点，后目标节点；`node-feat.csv.gz` 的第 $i$ 行是节点 $i$ 的特征
# （feature）。每条无向边在文件中只出现**一次**。但消息只从源节点传向目标节点，所以要为每条边补上反
# 向边。这些步骤 `load` 都会完成；这里先手动做一遍，再与它的结果比较。

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
# The graph we built by hand matches the one from `load`, and it has two edges for each row of the
# table. Before training, look at the data. How many neighbors does a node have? And do they help
# predict its label? On `digits` we can see this directly, because the features of a node are the 64
# pixels of an image. Collapsed cells only draw figures; click one to expand it.

# %% [markdown] slot="look" lang="ko"
# 직접 만든 그래프는 `load`로 불러온 그래프와 같고, 표의 한 행이 에지 두 개가 되었습니다. 학습하기
# 전에 데이터를 살펴봅시다. 한 노드의 이웃은 몇 개일까요? 이웃의 정보는 분류에 도움이 될까요?
# `digits`에서는 노드의 피처가 이미지의 픽셀 64개이므로 눈으로 확인할 수 있습니다. 이 레슨에서
# 그림만 그리는 셀은 접어 두었으며, 누르면 펼쳐집니다.

# %% [markdown] slot="look" lang="zh"
# 手动建的图与 `load` 载入的图相同，表格的每一行对应两条边。训练之前，先看看数据：一个节点有多少个邻
# 居？邻居的信息对分类有帮助吗？在 `digits` 上可以直接看出来，因为节点的特征就是图像的 64 个像素值。
# 本课中只负责绘图的单元格都已折叠，点击即可展开。

# %% slot="look-code"
dataset = dgl.data.load(DATASET)
graph = dataset[0]
feat, label = graph.ndata["feat"], graph.ndata["label"]
src, dst = graph.edges()
same = (label[src] == label[dst]).float().mean().item()
print(f"{same:.0%} of all edges join nodes of the same class")
degrees = graph.in_degrees()
share = (degrees <= 15).float().mean().item()
print(f"neighbors: {degrees.min()} at least; {share:.0%} of all nodes have at most 15")

# %% slot="look-draw" tags=["folded"]
figure = plt.figure(figsize=(9, 2.3), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 2])
ax = left.subplots()
ax.hist(degrees.clamp(max=30), bins=range(32), color=BLUE)
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
# On `digits` every node has at least 8 neighbors, and nine in ten nodes have at most 15. On the
# right, each row starts with the image of a node, in blue, followed by its neighbors; the number
# above an image is its label, in orange where it differs from the label of the blue image. In the
# first row, all images show the same digit; the second row shows one of the worst cases in the
# graph, a nine among threes, fives and eights. Of all edges, 96% join images of the same digit: a
# node's neighbors tell us a lot about its label, and this is what a graph neural network exploits.
#
# ## A toy graph small enough to draw
#
# To see what sampling does, we leave the real graph for a moment. Here are nine nodes and fourteen
# edges. An arrow points in the direction in which its message travels: node 0 receives messages
# from nodes 1, 2, 3 and 4.

# %% [markdown] slot="toy" lang="ko"
# `digits`에서는 모든 노드의 이웃이 8개 이상이고, 열에 아홉은 15개 이하입니다. 오른쪽 그림에서 각
# 줄의 첫 이미지(파란색)가 기준 노드이고, 이어지는 이미지가 그 이웃입니다. 이미지 위의 숫자는
# 레이블이며, 기준 노드의 레이블과 다르면 주황색입니다. 첫째 줄의 이웃은 모두 같은 숫자입니다. 둘째
# 줄은 이웃의 레이블이 가장 많이 어긋나는 예 가운데 하나로, 9의 이웃이 3, 5, 8입니다. 전체로 보면
# 에지의 96%가 같은 숫자를 잇습니다. 이처럼 이웃을 보면 노드의 레이블을 상당 부분 짐작할 수 있으며,
# 그래프 신경망은 바로 이 점을 이용합니다.
#
# ## 작은 그래프로 살펴보기
#
# 샘플링이 어떻게 이루어지는지 잠시 작은 그래프로 살펴보겠습니다. 노드 9개와 에지 14개로
# 이루어진 그래프입니다. 화살표는 메시지가 전달되는 방향을 나타냅니다. 예를 들어 노드 0은 노드 1, 2,
# 3, 4의 메시지를 받습니다.

# %% [markdown] slot="toy" lang="zh"
# 在 `digits` 上，每个节点至少有 8 个邻居，九成节点的邻居不超过 15 个。右图每行的第一张（蓝色）
# 是一个节点的图像，后面依次是它的邻居，图像上方的数字是标签，与该节点的标签不同时为橙色。第一行全是
# 同一个数字；第二行是全图中最差的例子之一：一个 9，邻居却是 3、5 和 8。从全部边来看，96% 的边连接的
# 是相同的数字：从邻居就能在很大程度上看出节点的标签，图神经网络利用的正是这一点。
#
# ## 先看一张小图
#
# 为了看清采样的过程，暂时换成一张小图。它有 9 个节点和 14 条边。箭头表示消息传递的方向：节点 0 接收
# 来自节点 1、2、3、4 的消息。

# %% slot="toy-code"
toy_src = [1, 2, 3, 4, 0, 5, 6, 6, 7, 2, 7, 8, 8, 5]
toy_dst = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4]
toy = dgl.graph((toy_src, toy_dst))
place = [(0, 0), (-1, 1), (1, 1), (1, -1), (-1, -1), (-2, 0), (0, 2), (2, 0), (0, -2)]
dgl.plot.graph(toy, pos=place)
plt.show()

# %% [markdown] slot="sample" lang="en"
# With two layers, the result at node 0 depends on its neighbors and on their neighbors: here, on
# all nine nodes. In a social network, a few hops may reach half of the graph. **Neighbor sampling**
# limits this. With a fanout of $k$, the sampler chooses at most $k$ of the edges that enter a node,
# at random and without replacement. The list `[2, 2]` has one fanout per layer. The sampler starts
# at the seed node and works outward.

# %% [markdown] slot="sample" lang="ko"
# 계층이 두 개이면 노드 0의 결과는 이웃과 이웃의 이웃에 따라 정해집니다. 이 그래프에서는 노드 9개가
# 모두 여기에 듭니다. 소셜 네트워크라면 몇 홉 만에 그래프의 절반에 이를 수도 있습니다. **이웃
# 샘플링**은 한 단계에서 읽는 이웃의 수를 제한합니다. 팬아웃이 $k$이면 한 노드로 들어오는 에지
# 가운데 최대 $k$개를 중복 없이 무작위로 고릅니다. 리스트 `[2, 2]`는 계층별 팬아웃을 나타냅니다.
# 샘플러(sampler)는 시드 노드에서 출발하여 바깥쪽으로 나아갑니다.

# %% [markdown] slot="sample" lang="zh"
# 如果模型有两层，节点 0 的结果就取决于它的邻居，以及邻居的邻居：在这张图里就是全部 9 个节点。在社交
# 网络中，几跳可能就覆盖半张图。**邻居采样**限制了每一步读取的邻居数：扇出为 $k$，就是从每个节点的入
# 边中无放回地随机抽取至多 $k$ 条。列表 `[2, 2]` 为每一层指定扇出。采样器（sampler）从种子节点开始，
# 逐层向外采样。

# %% slot="sample-code"
dgl.seed(1)
toy_sampler = MultiLayerNeighborSampler([2, 2])
input_nodes, output_nodes, blocks = toy_sampler.sample(toy, torch.tensor([0]))
print("output nodes:", output_nodes.tolist())
print("input nodes: ", input_nodes.tolist())
for i, block in enumerate(blocks):
    print(f"blocks[{i}]: {block.num_edges()} edges,", end=" ")
    print(f"{block.num_src_nodes()} source -> {block.num_dst_nodes()} destination nodes")

# %% [markdown] slot="blocks" lang="en"
# The sampler returns three things:
#
# - `output_nodes`: the seed nodes, for which we want predictions;
# - `input_nodes`: every node whose features are needed for these predictions;
# - `blocks`: one bipartite graph per layer, from source nodes to destination nodes.
#
# A block numbers its nodes from 0; `srcdata[dgl.NID]` and `dstdata[dgl.NID]` hold the original IDs.
# The destinations of one block are the sources of the next. Since a layer also needs a node's own
# features, the destination nodes are source nodes too: **they come first among the source nodes**.
# The figure shows the sample in the graph (left) and as blocks (right); a dashed line connects two
# copies of the same node. The edge from 4 to 0 was chosen in both layers; on the left, where it can
# have only one color, it is orange.

# %% [markdown] slot="blocks" lang="ko"
# 샘플러는 세 가지를 반환합니다.
#
# - `output_nodes`: 예측 대상인 시드 노드입니다.
# - `input_nodes`: 예측에 피처가 필요한 모든 노드입니다.
# - `blocks`: 계층마다 하나씩 있는 이분 그래프(bipartite graph)이며, 에지는 출발 노드에서 도착
#   노드로 향합니다.
#
# 블록(block)에서는 노드 번호를 0부터 새로 매기며, 원래 ID는 `srcdata[dgl.NID]`와
# `dstdata[dgl.NID]`에 들어 있습니다. 한 블록의 도착 노드는 다음 블록의 출발 노드가 됩니다. 계층을
# 계산하려면 노드 자신의 피처도 필요하므로 도착 노드는 출발 노드에도 포함되며, **출발 노드 가운데 맨
# 앞에 옵니다**. 샘플링 결과를 왼쪽 그림에는 그래프에 겹쳐서, 오른쪽 그림에는 블록의 형태로 그려
# 봅시다. 점선은 같은 노드끼리 이은 것입니다. 노드 4에서 0으로 가는 에지는 두 계층에서 모두
# 뽑혔으며, 한 번만 그리는 왼쪽 그림에서는 주황색으로 나타냈습니다.

# %% [markdown] slot="blocks" lang="zh"
# 采样器返回三个结果：
#
# - `output_nodes`：种子节点，也就是要预测的节点；
# - `input_nodes`：预测时需要读取特征的所有节点；
# - `blocks`：每层一个二分图，边从源节点指向目标节点。
#
# 块（block）内的节点从 0 开始编号，原始 ID 存放在 `srcdata[dgl.NID]` 和 `dstdata[dgl.NID]` 中。一个
# 块的目标节点就是下一个块的源节点。由于每一层还需要节点自身的特征，目标节点也包含在源节点之中，而且
# **排在源节点的最前面**。下面左图把采样结果标在原图上，右图把它画成块；虚线连接的是同一节点在相邻两
# 列中的位置。从 4 到 0 的边在两层中都被抽到；左图中每条边只画一次，所以它显示为橙色。

# %% slot="blocks-code" tags=["folded"]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3), layout="constrained")
dgl.plot.graph(toy, blocks, pos=place, ax=left)
columns = [blocks[0].srcdata[dgl.NID]] + [block.dstdata[dgl.NID] for block in blocks]
colors = (GREEN, ORANGE, BLUE)[-len(columns) :]
for x, (block, color) in enumerate(zip(blocks, colors)):
    for u, v in zip(*block.edges()):
        right.plot([x, x + 1], [-u, -v], color=color)
    for v in range(block.num_dst_nodes()):
        right.plot([x, x + 1], [-v, -v], "--", color="gray")
    right.text(x + 0.5, 0.6, f"blocks[{x}]", ha="center", color=color)
for x, (ids, color) in enumerate(zip(columns, colors)):
    right.scatter([x] * len(ids), range(0, -len(ids), -1), s=250, color=color, zorder=3)
    for y, name in enumerate(ids.tolist()):
        style = {"ha": "center", "va": "center_baseline", "weight": "bold"}
        right.text(x, -y, name, color="white", **style)
right.axis("off")
plt.show()

# %% [markdown] slot="mean" lang="en"
# The sampler worked from right to left; the model computes from left to right. Features enter at
# the green nodes; `blocks[0]` carries them to the orange ones and `blocks[1]` to the blue seed. On
# the right, node 0 appears in every column; its neighbors are sampled anew for each layer, so they
# may differ.
#
# ## Build it yourself
#
# What does a layer compute on a block? GraphSAGE multiplies the node's own features by one weight
# matrix and the mean of the neighbors' features by another, then adds both and a bias:
#
# $$h_v = W_{\text{self}} x_v + W_{\text{neigh}} \frac{1}{|N(v)|} \sum_{u \in N(v)} x_u + b$$
#
# For node 1 of the toy graph, $N(1)$ consists of nodes 0, 5 and 6: the second term is a third of
# the sum of their features, multiplied by $W_{\text{neigh}}$. For all nodes at once, an adjacency
# matrix is enough: multiply it by the features, then divide each row by the number of neighbors. A
# node without neighbors gets a mean of zero. The library's `SAGEConv` must give the same result.

# %% [markdown] slot="mean" lang="ko"
# 오른쪽 그림에서 샘플링은 오른쪽에서 왼쪽으로, 모델의 계산은 왼쪽에서 오른쪽으로 진행됩니다. 초록색
# 노드의 피처가 `blocks[0]`을 거쳐 주황색 노드로, 이어서 `blocks[1]`을 거쳐 파란색 시드 노드로
# 전달됩니다. 노드 0은 모든 열에 나타납니다. 이웃은 계층마다 새로 뽑으므로 같은 노드 0이라도 두
# 계층에서 이웃이 다를 수 있습니다.
#
# ## 직접 만들어 보기
#
# 한 계층은 블록에서 무엇을 계산할까요? GraphSAGE는 이웃의 피처를 평균으로 집계(aggregation)하여
# 노드 자신의 피처에 더합니다. 더하기 전에 두 피처에는 서로 다른 행렬을 곱합니다.
#
# $$h_v = W_{\text{self}} x_v + W_{\text{neigh}} \frac{1}{|N(v)|} \sum_{u \in N(v)} x_u + b$$
#
# 작은 그래프의 노드 1을 예로 들면 $N(1)$은 노드 0, 5, 6이므로, 둘째 항은 세 노드의 피처를 더해
# 3으로 나눈 값에 $W_{\text{neigh}}$를 곱한 것입니다. 모든 노드를 한꺼번에 계산할 때는 인접 행렬
# 하나면 됩니다. 인접 행렬에 피처 행렬을 곱한 뒤 각 행을 해당 노드의 이웃 수로 나눕니다. 이웃이 없는
# 노드의 평균은 0으로 둡니다. 라이브러리의 `SAGEConv`도 같은 값을 내야 합니다.

# %% [markdown] slot="mean" lang="zh"
# 采样从右向左进行，模型则从左向右计算：特征从绿色节点输入，经 `blocks[0]` 传到橙色节点，再经
# `blocks[1]` 传到蓝色的种子节点。在右图中，节点 0 出现在每一列；每一层都会重新抽取邻居，所以节点 0
# 在两层中的邻居可能不同。
#
# ## 亲手实现
#
# 每一层在块上做什么计算？GraphSAGE 用平均值对邻居做聚合（aggregation），把聚合结果与节点自身的特征
# 各乘一个矩阵，再相加：
#
# $$h_v = W_{\text{self}} x_v + W_{\text{neigh}} \frac{1}{|N(v)|} \sum_{u \in N(v)} x_u + b$$
#
# 以小图的节点 1 为例，$N(1)$ 是节点 0、5、6，所以第二项是这三个节点的特征之和除以 3，再乘以
# $W_{\text{neigh}}$。要同时计算所有节点，用一个邻接矩阵就够了：先与特征相乘，再把每行除以该节点的邻
# 居数。没有邻居的节点，平均值取零。库中的 `SAGEConv` 应当给出同样的结果。

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

# %% [markdown] slot="message" lang="en"
# The two agree up to rounding.
#
# ## Message passing
#
# A dense adjacency matrix for millions of nodes does not fit in memory. Graph libraries compute the
# same sum edge by edge, in two steps. A **message function** computes a message on each edge:
# `copy_u("id", "m")` copies the feature `id` of the source node $u$ and names the message `m`. A
# **reduce function** combines the messages that arrive at a node: `sum("m", "total")` adds them and
# stores the result as the feature `total`. `update_all` does both for all edges.
#
# Normally, each new feature stays on the graph. Inside a `local_scope` it does not: when the scope
# ends, the earlier features are restored. That is why layers do their computation inside one. Here
# each node sends its own ID, so node 1 receives $0 + 5 + 6 = 11$.

# %% [markdown] slot="message" lang="ko"
# 두 결과는 반올림 오차 범위 안에서 같습니다.
#
# ## 메시지 전달
#
# 노드가 수백만 개이면 이런 밀집 인접 행렬을 메모리에 올릴 수 없습니다. 그래프 라이브러리는 같은
# 합을 에지별로 두 단계에 걸쳐 계산합니다. **메시지 함수**는 에지마다 메시지를 만듭니다.
# `copy_u("id", "m")`은 출발 노드 $u$의 피처 `id`를 복사하여 `m`이라는 메시지로 만듭니다. **축약
# 함수**(reduce function)는 한 노드에 도착한 메시지를 하나로 합칩니다. `sum("m", "total")`은
# 메시지를 모두 더해 `total`이라는 피처에 저장합니다. `update_all`은 모든 에지에 대해 이 두 단계를
# 수행합니다.
#
# 이렇게 만든 피처는 그래프에 남습니다. 그러나 `local_scope` 안에서 계산하면 그 범위를 벗어날 때
# 그래프의 피처가 이전 상태로 돌아갑니다. 그래서 계층 내부의 계산은 `local_scope` 안에서 합니다.
# 다음 코드에서는 노드마다 자기 ID를 보내므로, 노드 1이 받는 값의 합은 $0 + 5 + 6 = 11$입니다.

# %% [markdown] slot="message" lang="zh"
# 两者在舍入误差范围内一致。
#
# ## 消息传递
#
# 有上百万个节点时，这样的稠密邻接矩阵放不进内存。图神经网络库改为逐边计算，结果与之相同；计算分两步
# 进行。**消息函数**为每条边生成消息：`copy_u("id", "m")` 复制源节点 $u$ 的特征 `id`，作为名为 `m`
# 的消息。**归约函数**合并到达同一节点的消息：`sum("m", "total")` 把它们相加，结果存为特征 `total`。
# `update_all` 对所有边执行这两步。
#
# 这样得到的新特征会留在图上。如果放在 `local_scope` 中计算，退出时图的特征就恢复原样，所以各种层的
# 内部计算都放在 `local_scope` 里。下面让每个节点发送自己的 ID，于是节点 1 收到的总和是
# $0 + 5 + 6 = 11$。

# %% slot="message-code"
ids = torch.arange(9.0)
with toy.local_scope():
    toy.ndata["id"] = ids
    toy.update_all(dgl.function.copy_u("id", "m"), dgl.function.sum("m", "total"))
    total = toy.ndata["total"]
assert torch.equal(total, adjacency @ ids)
print("sum of the neighbors' IDs:", total.int().tolist())
print("features left on the graph:", list(toy.ndata))

# %% [markdown] slot="loader" lang="en"
# The sums match those computed with the adjacency matrix, and the features `id` and `total` are
# gone. A layer accepts a block wherever it accepts a graph, because a block is itself a graph, one
# that keeps source and destination nodes apart. So the same code trains on samples and predicts
# with all neighbors.
#
# ## Mini-batches of the real graph
#
# `NodeDataLoader` splits the training nodes into batches and calls the sampler for each batch.
# Neighbors are drawn again in every epoch, so the model is trained on different neighbors each
# time.

# %% [markdown] slot="loader" lang="ko"
# 합은 행렬로 계산한 것과 같고, 피처 `id`와 `total`은 그래프에 남아 있지 않습니다. 블록은 출발
# 노드와 도착 노드를 구별하는 그래프이므로, 계층에는 그래프 대신 블록을 넣을 수도 있습니다. 그래서
# 샘플링한 이웃으로 학습할 때와 그래프 전체로 예측할 때 같은 코드를 씁니다.
#
# ## 실제 그래프의 미니배치
#
# `NodeDataLoader`는 학습 노드를 배치로 나누고 배치마다 샘플러를 호출합니다. 에폭(epoch)마다 이웃을
# 새로 뽑으므로 모델은 매번 다른 이웃으로 학습합니다.

# %% [markdown] slot="loader" lang="zh"
# 总和与矩阵算出的相同，特征 `id` 和 `total` 也没有留在图上。块就是区分源节点和目标节点的图，所以能
# 以图为输入的层，也能以块为输入：用采样得到的邻居训练和用全图预测，代码是同一份。
#
# ## 真实图上的小批次
#
# `NodeDataLoader` 把训练节点分成若干批，并为每一批调用采样器。每一轮（epoch）都重新抽取邻居，因此每
# 一轮训练所用的邻居都不同。

# %% slot="loader-code"
FANOUTS, BATCH, EPOCHS = ([5, 5], 32, 60) if DATASET == "digits" else ([15, 10], 1024, 10)
train_ids, val_ids, test_ids = dataset.train_idx, dataset.val_idx, dataset.test_idx

dgl.seed(0)
sampler = MultiLayerNeighborSampler(FANOUTS)
loader = NodeDataLoader(graph, train_ids, sampler, batch_size=BATCH, shuffle=True)
inputs, seeds, _ = next(iter(loader))
assert torch.equal(inputs[: len(seeds)], seeds)
print(f"{len(train_ids)} training nodes make {len(loader)} batches; the first one:")
print(f"{len(inputs)} input nodes -> {len(seeds)} seed nodes")

# %% [markdown] slot="model" lang="en"
# On `digits`, 32 seed nodes need the features of about 600 input nodes, a third of the graph. The
# seeds come first, as in the toy graph.
#
# ## The model
#
# The model has two `SAGEConv` layers, each applied to its own block, with ReLU and dropout between
# them; `sizes` lists the numbers of input, hidden and output features. `step` applies a single
# layer; we will need it on its own later. A layer takes a row of features for each source node and
# returns one for each destination node. So the number of rows shrinks with every block, until only
# the seeds are left.

# %% [markdown] slot="model" lang="ko"
# `digits`에서 시드 노드 32개를 처리하려면 입력 노드 600개가량, 즉 그래프 전체 노드의 3분의 1에
# 해당하는 노드의 피처를 읽어야 합니다. 작은 그래프에서 본 대로 시드 노드가 입력 노드의 맨 앞에
# 옵니다.
#
# ## 모델
#
# 모델은 `SAGEConv` 계층 두 개로 이루어집니다. 계층마다 블록을 하나씩 쓰며, 계층 사이에는 ReLU와
# 드롭아웃(dropout)을 둡니다. `sizes`에는 입력, 은닉, 출력의 피처 수를 차례로 적습니다. `step`은
# 계층 하나만 적용하는 메서드로, 나중에 따로 쓰입니다. 계층은 출발 노드마다 한 행씩 피처를 받아 도착
# 노드마다 한 행씩 내보냅니다. 따라서 블록을 지날 때마다 행이 줄어들고, 마지막에는 시드 노드의 행만
# 남습니다.

# %% [markdown] slot="model" lang="zh"
# 在 `digits` 上，32 个种子节点需要大约 600 个输入节点的特征，这些输入节点占全图节点的三分之一。与小
# 图中一样，种子节点排在最前面。
#
# ## 模型
#
# 模型由两个 `SAGEConv` 层组成，每层使用一个块，中间是 ReLU 和 dropout；`sizes` 依次列出输入、隐藏和
# 输出的特征数。`step` 只计算一层，后面会单独用到。每一层为每个源节点读入一行特征，为每个目标节点输
# 出一行；因此每经过一个块，行数就会减少，最后只剩下种子节点。


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
        for i, block in zip(range(len(self.layers)), blocks, strict=True):
            h = self.step(i, block, h)
        return h


# %% [markdown] slot="train" lang="en"
# ## Training
#
# In each epoch, every training node serves as a seed exactly once. After each epoch we measure the
# accuracy on the validation set, again with sampled neighbors, because that is quick. The rest is
# an ordinary PyTorch loop: `feat[input_nodes]` gathers the features of a batch,
# `label[output_nodes]` its labels.

# %% [markdown] slot="train" lang="ko"
# ## 학습
#
# 한 에폭 동안 모든 학습 노드가 한 번씩 시드 노드가 됩니다. 에폭이 끝날 때마다 검증 세트(validation
# set)에서 정확도를 측정하는데, 시간을 줄이기 위해 이때도 이웃을 샘플링합니다. 나머지는 평범한
# PyTorch 학습 루프입니다. `feat[input_nodes]`로 배치에 필요한 피처를, `label[output_nodes]`로
# 레이블을 가져옵니다.

# %% [markdown] slot="train" lang="zh"
# ## 训练
#
# 在一轮之中，每个训练节点都充当一次种子节点。每轮结束后，在验证集（validation set）上评估准确率；为
# 了节省时间，这时也只用采样到的邻居。其余就是普通的 PyTorch 训练循环：`feat[input_nodes]` 取出这一
# 批所需的特征，`label[output_nodes]` 取出标签。


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
    hidden = [128] * (len(FANOUTS) - 1)
    model = SAGE([feat.shape[1], *hidden, dataset.num_classes])
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
# A prediction should not depend on chance, so inference uses **all** neighbors. If each batch went
# through both layers, the vectors of intermediate nodes would be recomputed for every batch that
# reaches them. **Layer-wise inference** swaps the loops: it applies the first layer to all nodes,
# then the second layer to the results. Each node's vector is computed once per layer. The fanout
# `None` takes all neighbors.

# %% [markdown] slot="inference" lang="ko"
# 이 검증 정확도는 어떤 이웃이 뽑혔는지에 따라 조금씩 달라집니다.
#
# ## 모든 이웃으로 예측하기
#
# 예측이 우연에 좌우되어서는 안 되므로 추론에는 **모든** 이웃을 사용합니다. 그런데 배치마다 두
# 계층을 모두 계산하면, 여러 배치에 공통으로 필요한 중간 계층의 노드 벡터는 배치마다 다시
# 계산됩니다. **계층별 추론**(layer-wise inference)에서는 안쪽 반복문과 바깥쪽 반복문의 순서를
# 바꾸어, 먼저 모든 노드에 첫째 계층을 적용하고 그 결과에 둘째 계층을 적용합니다. 그러면 각 노드의
# 벡터를 계층마다 한 번만 계산합니다. 팬아웃 `None`은 모든 이웃을 쓴다는 뜻입니다.

# %% [markdown] slot="inference" lang="zh"
# 抽到的邻居不同，验证准确率也会略有不同。
#
# ## 用全部邻居预测
#
# 预测不应受随机性影响，所以推理使用**全部**邻居。但如果每一批都依次计算两层，一个节点出现在多少批
# 里，它的第一层结果就要计算多少次。**逐层推理**（layer-wise inference）把两重循环对调：先为所有节点
# 计算第一层，再用其结果计算第二层。这样，每个节点的向量在每一层只计算一次。扇出 `None` 表示取全部邻
# 居。


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
expected = {"digits": 0.96, "facebook": 0.92}.get(DATASET, 0)
assert test > expected, "too low: train for more EPOCHS, or with larger FANOUTS"

# %% [markdown] slot="baseline" lang="en"
# On `digits`, 179 labels, one for every ten nodes, are enough to classify about 97% of the test set
# correctly.
#
# ## Compared with what?
#
# Is that due to the graph, or would the pixels have been enough? A logistic regression gets the
# same features and the same labels, but no edges.

# %% [markdown] slot="baseline" lang="ko"
# `digits`에서는 전체의 10분의 1인 레이블 179개만으로 학습해도 테스트 세트의 약 97%를 맞힙니다.
#
# ## 무엇과 비교할까?
#
# 이 정확도는 그래프 덕분일까요, 아니면 픽셀만으로도 충분했을까요? 로지스틱 회귀에 같은 피처와 같은
# 레이블을 주되 에지는 주지 않고 비교해 봅시다.

# %% [markdown] slot="baseline" lang="zh"
# 在 `digits` 上，只用十分之一的标签（179 个）训练，测试准确率就能达到约 97%。
#
# ## 与什么相比？
#
# 这样的准确率是图带来的，还是只看像素就够了？下面让逻辑回归使用同样的特征和标签，但不给它任何边。

# %% slot="baseline-code" tags=["nbval-ignore-output"]
x, y = feat.cpu().numpy(), label.cpu().numpy()
no_graph = LogisticRegression(max_iter=1000).fit(x[train_ids], y[train_ids])
pixels = no_graph.score(x[test_ids], y[test_ids])
print(f"test accuracy: {test:.3f} with the graph, {pixels:.3f} without")
if DATASET == "digits":
    assert test > pixels + 0.02, "no gain: train for more EPOCHS, or with larger FANOUTS"

# %% [markdown] slot="prove" lang="en"
# Without edges, about 93% are correct: on `digits`, the graph adds about four points.
#
# ## Check that batched and full inference agree
#
# Does inference in batches give the same result as processing the whole graph at once? Here the
# graph is small enough to try. We pass the graph to each `SAGEConv` in place of its block; this
# full forward pass must give every node the same logits as before.

# %% [markdown] slot="prove" lang="ko"
# 에지 없이는 약 93%를 맞힙니다. `digits`에서는 그래프를 쓰면 정확도가 약 4%포인트 오릅니다.
#
# ## 확인하기
#
# 배치로 나누어 계산한 결과는 그래프 전체를 한꺼번에 계산한 결과와 같을까요? 이 그래프는 작으므로
# 직접 확인할 수 있습니다. `SAGEConv`에 블록 대신 그래프를 넣어 한 번에 순전파하여 얻은
# 로짓(logit)이 모든 노드에서 앞의 결과와 같아야 합니다.

# %% [markdown] slot="prove" lang="zh"
# 没有边时，准确率约为 93%：在 `digits` 上，图带来了约四个百分点的提升。
#
# ## 验证
#
# 分批计算的结果，与对全图一次算完的结果相同吗？这张图足够小，可以直接检验。把整张图（而不是块）传给
# 各个 `SAGEConv` 层，做一次完整的前向计算；这样得到的每个节点的 logits，都应当与分批计算的结果相
# 同。

# %% slot="prove-code"
with torch.no_grad():
    at_once = model([graph] * len(model.layers), feat)
assert torch.allclose(at_once, logits, atol=1e-4)
print("layer-wise inference equals the full forward pass:", tuple(logits.shape))

# %% [markdown] slot="trap" lang="en"
# They agree up to rounding, so inference in batches is exact. Sampling is used only during
# training, for the mini-batches and for the validation after each epoch.
#
# ## The trap: forgotten reverse edges
#
# If the edges in the file are used as they are, there is no error: the shapes match and the loss
# falls. But each row of the file has the smaller ID first, so each node then receives messages only
# from neighbors with smaller IDs. We train the same model on that graph and compare.

# %% [markdown] slot="trap" lang="ko"
# 두 결과는 반올림 오차 범위 안에서 같습니다. 배치로 나누어도 추론 결과는 정확하며, 샘플링은
# 학습과 학습 도중의 검증에만 쓰였습니다.
#
# ## 함정: 빠뜨린 역방향 에지
#
# 파일의 에지를 그대로 사용해도 오류는 나지 않습니다. 텐서의 모양이 맞고 손실도 줄어듭니다. 그러나
# 이때 각 노드는 자신보다 ID가 작은 이웃의 메시지만 받습니다. 이런 그래프로 같은 모델을 학습하여
# 비교해 봅시다.

# %% [markdown] slot="trap" lang="zh"
# 两者在舍入误差范围内一致：分批推理是精确的，只有训练过程（包括每轮之后的验证）才采样。
#
# ## 陷阱：忘了反向边
#
# 直接使用文件中的边也不会报错：张量形状吻合，损失照样下降。但这时每个节点只能收到 ID 比自己小的邻居
# 的消息。下面在这样的图上训练同一个模型，加以比较。

# %% slot="trap-code" tags=["nbval-ignore-output"]
one_way = dgl.graph((src[src < dst], dst[src < dst]), num_nodes=graph.num_nodes())
trapped, trapped_history = train(one_way)
trapped_logits = inference(trapped, one_way)
trapped_test = (trapped_logits.argmax(1) == label)[test_ids].float().mean().item()
print(f"nodes that receive no message: {(one_way.in_degrees() == 0).sum()}")
print(f"test accuracy: {test:.3f} with reverse edges, {trapped_test:.3f} without")
if DATASET == "digits":
    said = "FANOUTS, BATCH or EPOCHS differ: so may the comparison below"
    assert test > trapped_test + 0.02 and abs(trapped_test - pixels) < 0.02, said

figure, ax = plt.subplots(figsize=(5, 2.5))
ax.plot(history, color=BLUE, label="both directions")
ax.plot(trapped_history, color=ORANGE, label="edges as in the file")
ax.set(xlabel="epoch", ylabel="validation accuracy", ylim=(0.5, 1))
ax.legend(frameon=False)
plt.show()

# %% [markdown] slot="cost" lang="en"
# On `digits`, 111 nodes receive no message, and about four points of accuracy are lost: the model
# is no better than the logistic regression, which has no edges at all. Most changes to a model gain
# less than that, and nothing warns you. Check the `in_degrees()` of every new graph before
# training.
#
# ## What it costs
#
# Fanout and depth determine how much a batch reads. For batches of 16 seed nodes, fanouts from 1 to
# 16 and one to three layers, we count the input nodes and time a training step: sampling, forward
# pass and backward pass.

# %% [markdown] slot="cost" lang="ko"
# `digits`에서는 노드 111개가 메시지를 전혀 받지 못하며, 정확도가 약 4%포인트 떨어집니다. 에지를
# 전혀 쓰지 않는 로지스틱 회귀와 다를 바 없습니다. 모델을 개선해서 얻는 이득보다 대개 더 큰
# 차이인데도, 아무 경고도 나오지 않습니다. 새로운 그래프를 쓸 때는 학습하기 전에 `in_degrees()`부터
# 확인하는 것이 좋습니다.
#
# ## 비용
#
# 배치 하나를 처리할 때 읽는 데이터의 양은 팬아웃과 계층 수에 따라 정해집니다. 시드 노드가 16개인
# 배치에서 팬아웃을 1에서 16까지, 계층 수를 1에서 3까지 바꾸어 가며 입력 노드를 세고, 샘플링부터
# 순전파와 역전파까지 학습 한 단계에 걸리는 시간을 측정합니다.

# %% [markdown] slot="cost" lang="zh"
# 在 `digits` 上，有 111 个节点收不到任何消息，准确率下降了约四个百分点，与完全不用边的逻辑回归不相
# 上下。改进模型带来的提升往往还不到这个数，而程序不会给出任何警告。拿到一张新图，训练之前请先检查
# `in_degrees()`。
#
# ## 开销
#
# 一批要读取多少数据，取决于扇出和层数。下面以 16 个种子节点为一批，扇出从 1 到 16，层数从 1 到 3，
# 统计输入节点数，并测量一个训练步（采样、前向、反向）所用的时间。

# %% slot="cost-code"
fanouts, repeats, few = [1, 2, 4, 8, 16], 20, train_ids[:16]


def measure(layers, fanout):
    net = SAGE([feat.shape[1], *[128] * (layers - 1), dataset.num_classes])
    trial = MultiLayerNeighborSampler([fanout] * layers)
    sizes, times = [], []
    for _ in range(repeats):
        start = time.process_time()
        input_nodes, _, blocks = trial.sample(graph, few)
        F.cross_entropy(net(blocks, feat[input_nodes]), label[few]).backward()
        times.append(1000 * (time.process_time() - start))
        sizes.append(len(input_nodes))
    return median(sizes), min(times)


costs = {layers: [measure(layers, k) for k in fanouts] for layers in (1, 2, 3)}
if DATASET == "digits":
    most = costs[3][-1][0] / graph.num_nodes()
    assert most > 2 / 3, f"with other fanouts, a batch reads {most:.0%} of the graph"

# %% slot="cost-draw" tags=["folded", "nbval-ignore-output"]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 2.8), layout="constrained")
for (layers, measured), color in zip(costs.items(), (GREEN, ORANGE, BLUE)):
    for ax, values in zip((left, right), zip(*measured)):
        ax.plot(fanouts, values, "o-", color=color)
        end = 1.04 * fanouts[-1], values[-1]
        ax.text(*end, f"{layers}-layer", color=color, va="center")
left.axhline(graph.num_nodes(), color="gray", ls=":")
left.set(xlabel="fanout", xticks=fanouts, ylabel="input nodes per batch", ylim=0)
right.set(xlabel="fanout", xticks=fanouts, ylabel="CPU time (ms), fastest step", ylim=0)
plt.show()

# %% [markdown] slot="summary" lang="en"
# Each additional layer multiplies the number of input nodes by up to the fanout plus one, until the
# size of the whole graph (dotted) caps it: with three layers and a fanout of 16, sixteen seeds read
# more than two thirds of `digits`. In general, the more nodes a step reads, the longer it takes. In
# larger graphs the numbers grow further before they reach that cap, but one rule of thumb holds for
# graphs of any size: an additional layer usually costs more than a somewhat larger fanout.
#
# ## Summary
#
# - A graph is built from two columns; every undirected edge needs both directions.
# - `update_all` computes a message on each edge and reduces those that arrive at a node; a
#   `local_scope` removes temporary features.
# - A mini-batch consists of `input_nodes`, `output_nodes` and one block per layer; destination
#   nodes come first among the source nodes.
# - The same layers run on sampled neighbors for training and on all neighbors for inference.
# - Layer-wise inference gives the same result as a forward pass over the full graph.
# - A smaller fanout saves time and adds randomness; the number of layers usually affects the cost
#   most.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, running *Setup* is enough to check an answer. The
# [solutions](../solutions/01_node_classification_solution.ipynb) are in a separate notebook.
#
# 1. In a large directed graph, exactly four edges enter every node. With one seed node, three
#    layers and all neighbors, how many input nodes can there be at most?
# 2. Which input nodes does node 3 of the toy graph need, with two layers and all neighbors? Answer
#    with a sorted list.
# 3. Write a function of `graph` and `x` that returns the mean of each node's neighbor features,
#    computed by message passing: use `update_all` with `copy_u` and `mean` from `dgl.function`, in
#    a `local_scope`.
# 4. Write a function of `graph` that returns how many of its edges have no reverse edge. It would
#    have caught the mistake above.

# %% [markdown] slot="summary" lang="ko"
# 계층을 하나 더할 때마다 입력 노드는 최대 (팬아웃 + 1)배로 늘어나지만, 그래프 전체의 노드
# 수(점선)를 넘지는 못합니다. `digits`에서 계층이 3개이고 팬아웃이 16이면 시드 노드 16개를 처리하는
# 데 전체 노드의 3분의 2가 넘는 노드를 읽습니다. 읽는 노드가 많을수록 대체로 시간도 더 걸립니다.
# 그래프가 더 크면 입력 노드가 상한에 이르기까지 더 많이 늘어나지만, 팬아웃을 조금 키울 때보다
# 계층을 하나 더할 때 비용이 대개 더 크게 늘어난다는 점은 같습니다.
#
# ## 요약
#
# - 그래프는 출발 노드와 도착 노드를 담은 두 열로 만듭니다. 방향이 없는 에지에는 양쪽 방향이 모두
#   필요합니다.
# - `update_all`은 에지마다 메시지를 만들고, 노드에 도착한 메시지를 하나로 합칩니다. `local_scope`를
#   쓰면 임시 피처가 그래프에 남지 않습니다.
# - 미니배치는 `input_nodes`, `output_nodes`, 그리고 계층마다 하나씩 있는 블록으로 이루어집니다.
#   출발 노드 가운데 도착 노드가 맨 앞에 옵니다.
# - 학습할 때는 샘플링한 이웃에, 추론할 때는 모든 이웃에 같은 계층을 적용합니다.
# - 계층별 추론의 결과는 그래프 전체를 한 번에 계산한 결과와 같습니다.
# - 팬아웃을 줄이면 시간이 절약되는 대신 무작위성이 커집니다. 비용에 가장 큰 영향을 주는 것은 대개
#   계층 수입니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 셀만 실행해도 채점할 수 있습니다.
# [풀이](../solutions/ko/01_node_classification_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 어떤 큰 방향 그래프에서 모든 노드에 에지가 정확히 네 개씩 들어옵니다. 시드 노드가 1개, 계층이
#    3개이고 모든 이웃을 쓸 때 입력 노드는 최대 몇 개입니까?
# 2. 계층이 두 개이고 모든 이웃을 쓸 때, 작은 그래프의 노드 3을 예측하는 데 필요한 입력 노드는
#    무엇입니까? 정렬된 리스트로 답합니다.
# 3. 메시지 전달로 이웃의 평균을 구하여 반환하는 함수를 작성합니다. 인자는 `graph`와 `x`이며,
#    `local_scope` 안에서 `dgl.function`의 `copy_u`와 `mean`으로 `update_all`을 호출합니다.
# 4. `graph`를 받아 역방향 에지가 없는 에지의 수를 반환하는 함수를 작성합니다. 이 함수로 미리
#    확인했다면 앞의 함정을 피할 수 있었을 것입니다.

# %% [markdown] slot="summary" lang="zh"
# 每增加一层，输入节点数至多变为原来的（扇出 + 1）倍，但不会超过整张图的节点数（虚线）。在 `digits`
# 上，用三层、扇出 16 时，仅仅为 16 个种子节点，就要读取三分之二以上的节点。读取的节点越多，所用时间
# 一般也越长。图更大时，上限也更高，输入节点数还会继续增长，但大体规律不变：与略微增大扇出相比，增加
# 一层带来的开销通常更大。
#
# ## 小结
#
# - 用两列数据就能建图；每条无向边都要存成方向相反的两条边。
# - `update_all` 为每条边生成消息，再归约到达各节点的消息；在 `local_scope` 中，临时特征不会留在图
#   上。
# - 小批次由 `input_nodes`、`output_nodes` 和各层的块（每层一个）组成；目标节点排在源节点的最前面。
# - 同样的层，训练时使用采样得到的邻居，推理时使用全部邻居。
# - 逐层推理与在全图上做一次前向计算，结果相同。
# - 减小扇出能节省时间，但会增大随机性；对开销影响最大的通常是层数。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的单元格就能评判。
# [解答](../solutions/zh/01_node_classification_solution.ipynb)随本课提
# 供。
#
# 1. 在一张很大的有向图中，每个节点恰好有四条入边。如果用 1 个种子节点、三层，并取全部邻居，输入节点
#    最多有多少个？
# 2. 两层、取全部邻居时，预测小图的节点 3 需要哪些输入节点？用排好序的列表作答。
# 3. 写一个以 `graph` 和 `x` 为参数的函数，用消息传递求出每个节点的邻居特征的平均值并返回：在
#    `local_scope` 中，用 `dgl.function` 的 `copy_u` 和 `mean` 调用 `update_all`。
# 4. 写一个以 `graph` 为参数的函数，返回图中有多少条边没有反向边。用它就能发现上面的陷阱。

# %% slot="answer-1-2"
answer_1 = None  # a number
answer_2 = None  # a sorted list
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% slot="answer-3"
answer_3 = None  # a function of graph and x
lesson.check(3, answer_3)

# %% slot="answer-4"
answer_4 = None  # a function of graph
lesson.check(4, answer_4)
