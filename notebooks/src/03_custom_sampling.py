# %% [markdown] slot="title" lang="en"
# # Writing your own samplers
#
# A sampler chooses the nodes that a model reads. That choice determines what training costs and how
# noisy each step is. The library provides the common samplers; research papers propose dozens more.
# In this lesson you read the code of one sampler and write three, none longer than 25 lines, and
# two more in the exercises. By the end, you will be able to
#
# - write a sampler by overriding `sample_frontier`, `sample_blocks` or `sample`;
# - explain when importance sampling helps and when it hurts, and remove the bias it introduces;
# - check that a sampler is correct before you train with it;
# - compare samplers by accuracy, number of nodes read and time;
# - run a sampler unchanged in a loader, in data-parallel loaders and on a partitioned graph.

# %% [markdown] slot="title" lang="ko"
# # 직접 만드는 샘플러
#
# 모델이 어떤 노드를 읽을지는 샘플러(sampler)에 달려 있습니다. 학습에 드는 비용도, 학습 단계마다
# 생기는 잡음도 샘플러에 따라 달라집니다. 라이브러리에는 널리 쓰이는 샘플러가 들어 있지만, 논문에서
# 제안된 샘플러는 수십 가지에 이릅니다. 이 레슨에서는 먼저 샘플러 하나의 코드를 읽고, 세 가지를 각각
# 25줄 이내로 직접 작성합니다. 연습 문제에서 두 가지를 더 작성합니다. 레슨을 마치면 다음과 같은 일을
# 할 수 있습니다.
#
# - `sample_frontier`, `sample_blocks`, `sample` 가운데 하나를 재정의하여 샘플러 작성하기
# - 중요도 샘플링(importance sampling)이 언제 도움이 되고 언제 해가 되는지 설명하고, 그로 인한
#   편향(bias) 없애기
# - 학습에 쓰기 전에 샘플러가 올바른지 확인하기
# - 정확도, 읽은 노드 수, 시간을 기준으로 샘플러 비교하기
# - 같은 샘플러를 일반 로더, 데이터 병렬(data parallel) 학습용 로더, 파티션(partition)으로 나눈
#   그래프에서 고치지 않고 사용하기

# %% [markdown] slot="title" lang="zh"
# # 编写自己的采样器
#
# 模型读取哪些节点，由采样器（sampler）决定；训练的开销和每一步的噪声也随之而定。库里有常用的几种采
# 样器，而论文里提出的有几十种。本课先带你读懂一个采样器的代码，再一起写三个，每个不超过 25 行；练习
# 中还有两个由你来写。学完之后，你能够：
#
# - 通过重写 `sample_frontier`、`sample_blocks` 或 `sample` 来编写采样器；
# - 说明重要性采样（importance sampling）何时有益、何时有害，并消除它带来的偏差；
# - 在训练之前验证采样器是否正确；
# - 从准确率、读取的节点数和时间三方面比较采样器；
# - 把同一个采样器原样用于单个进程的加载器、多个进程各自的加载器和切分后的图。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# `DATASET` selects the graph used in this lesson. `"digits"` comes with the project: 1,797 images
# of handwritten digits, each joined to those that look most like it. The others are larger;
# `"facebook"` and `"ogbn-products"` are downloaded once.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 레슨에서 사용할 그래프는 `DATASET`으로 정합니다. `"digits"`는 프로젝트에 포함되어 있으며, 손글씨
# 숫자 이미지 1,797장을 노드로 하고 서로 가장 비슷한 이미지끼리 에지로 이은 그래프입니다. 나머지
# 데이터셋은 더 크며, `"facebook"`과 `"ogbn-products"`는 처음 사용할 때 한 번 내려받습니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# `DATASET` 决定本课使用的图。`"digits"` 随项目附带，图中的节点是 1,797 张手写数字图像，每张都与最相
# 似的若干张相连。其余数据集更大；`"facebook"` 和 `"ogbn-products"` 首次使用时需要下载。

# %% slot="imports"
import time
import warnings
from contextlib import redirect_stdout
from itertools import pairwise

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn
from tqdm.auto import tqdm

import gnnlab as dgl
import gnnlab.nn as dglnn
from gnnlab.dataloading import BlockSampler, Sampler
from gnnlab.dataloading import MultiLayerNeighborSampler, NodeDataLoader
from gnnlab.distributed import DistGraph, DistNodeDataLoader, partition_graph
from gnnlab.exercises import Lesson
from gnnlab.helpers import block_sampler as small, source
from gnnlab.parallel import create_dataloader
from gnnlab.plot import BLUE, GRAY, GREEN, ORANGE

lesson = Lesson("03", "en")  # exercises, and the style of figures
lesson.style()

# %% slot="data"
DATASET = "digits"  # or "facebook", "products-like", "ogbn-products"
if DATASET == "digits":
    torch.set_num_threads(1)  # batches this small are not worth splitting across cores
dataset = dgl.data.load(DATASET)
graph = dataset[0]
feat, label, train_ids = graph.ndata["feat"], graph.ndata["label"], dataset.train_idx

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# This graph has nine nodes and fifteen edges. Messages travel along the edges, from source to
# destination, so node 0 receives messages from nodes 1 to 5; the graph is drawn below, after the
# first sample. Node 1 sends messages to four nodes, more than any other node; 4 is its
# **out-degree**. Collapsed cells only draw figures; click one to expand it.

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기
#
# 노드 9개와 에지 15개로 이루어진 그래프입니다. 메시지는 출발 노드에서 도착 노드로 전달되므로 노드
# 0은 노드 1~5의 메시지를 받습니다. 그래프는 뒤에서 첫 샘플과 함께 그립니다. 모든 노드 가운데
# 메시지를 가장 많이 보내는 것은 노드 1로, 노드 네 개에 보냅니다. 즉, 노드 1의
# **출차수**(out-degree)는 4입니다. 이 레슨에서 그림만 그리는 셀은 접어 두었으며, 누르면 펼쳐집니다.

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图
#
# 这张图有 9 个节点和 15 条边。消息沿着边从源节点传向目标节点，所以节点 0 接收节点 1 到 5 的消息；第
# 一次采样之后会画出这张图。节点 1 向四个节点发送消息，比其他节点都多：它的**出度**（out-degree）为
# 4。本课中只负责绘图的单元格都已折叠，点击即可展开。

# %% slot="toy-code"
toy_src = [1, 2, 3, 4, 5, 7, 1, 3, 6, 8, 8, 1, 4, 7, 1]
toy_dst = [0, 0, 0, 0, 0, 1, 2, 2, 2, 3, 4, 5, 5, 5, 6]
toy = dgl.graph((toy_src, toy_dst))
print("out-degrees of nodes 0 to 8:", toy.out_degrees().tolist())

# %% slot="draw" tags=["folded"]
place = [(0, 0), (0, 1.2), (1.3, 0.2), (0.8, -1), (-0.8, -1), (-1.3, 0.2)]
place += [(1.3, 1.5), (-1.3, 1.5), (0, -2)]


def draw_nodes(ax, places, names, color):
    ax.scatter(*zip(*places), s=230, color=color, zorder=3)
    for (x, y), name in zip(places, names):
        style = {"ha": "center", "va": "center_baseline", "weight": "bold", "zorder": 3}
        ax.text(x, y, name, color="black" if color == GRAY else "white", **style)
    ax.margins(0.12)
    ax.axis("off")


def draw_edges(ax, edges, color):
    for u, v in edges:
        arrow = {"arrowstyle": "-|>", "color": color, "lw": 1.5}
        arrow |= {"shrinkA": 8, "shrinkB": 8}
        ax.annotate("", place[v], place[u], arrowprops=arrow)


# %% [markdown] slot="frontier" lang="en"
# ## Build it yourself
#
# A layer is sampled in two steps. First choose the edges along which the seed nodes receive
# messages; the graph of all nodes with only these edges is the **frontier**. Then `to_block` drops
# the nodes that take no part and renumbers the rest: the result is the **block**. Both steps need
# only torch. Their code is in `block_sampler.py` of `gnnlab.helpers`, imported here as `small`.
# With it we sample two edges for each of the seed nodes 0 and 2.

# %% [markdown] slot="frontier" lang="ko"
# ## 직접 만들어 보기
#
# 계층 하나를 샘플링하는 과정은 두 단계입니다. 먼저 시드 노드(seed node)로 메시지를 전달할 에지를
# 고릅니다. 노드는 모두 그대로 두고 이 에지만 남긴 그래프를 **프런티어**(frontier)라고 합니다.
# 그다음 `to_block`으로 계산에 쓰이지 않는 노드를 빼고 나머지 노드에 번호를 새로 매기면
# **블록**(block)이 됩니다. 두 단계 모두 torch만으로 작성할 수 있습니다. 코드는 `gnnlab.helpers`의
# `block_sampler.py`에 있으며, 이 레슨에서는 `small`이라는 이름으로 불러왔습니다. 이 코드로 시드
# 노드 0과 2에 들어오는 에지를 두 개씩 뽑아 봅시다.

# %% [markdown] slot="frontier" lang="zh"
# ## 亲手实现
#
# 每一层的采样分两步。第一步，选出向种子节点（seed node）传递消息的边；保留全部节点、只含这些边的图
# 称为**边界子图**（frontier）。第二步，用 `to_block` 去掉没有用到的节点，给其余节点重新编号，得
# 到**块**（block）。这两步只用 torch 就能写出来，代码在 `gnnlab.helpers` 的 `block_sampler.py` 中，
# 本课以 `small` 为名导入。下面用它为种子节点 0 和 2 各采样两条边。

# %% slot="frontier-code"
small.seed(0)
toy_seeds = torch.tensor([0, 2])
frontier = small.sample_neighbors(small.Graph(toy_src, toy_dst), toy_seeds, 2)
toy_block = small.to_block(frontier, toy_seeds)
sources = toy_block.srcdata[small.NID]
chosen = frontier.edata[small.EID]
print(f"frontier: {frontier.num_nodes()} nodes, edges {chosen.tolist()}")
print(f"block: {sources.tolist()} -> {toy_block.dstdata[small.NID].tolist()}")

# %% slot="frontier-draw" tags=["folded"]
figure, axes = plt.subplots(1, 3, figsize=(9, 2.7), layout="constrained")
few_edges = toy.find_edges(chosen)
for ax, ends, color in zip(axes, (toy.edges(), few_edges), ("gray", ORANGE)):
    draw_edges(ax, zip(*ends), color)
    draw_nodes(ax, place, range(9), "gray")
    draw_nodes(ax, [place[0], place[2]], [0, 2], BLUE)
for u, v in zip(*toy_block.edges()):
    axes[2].plot([0, 1], [-u, -v], color=ORANGE)
for x, (ids, color) in enumerate(((sources, ORANGE), (toy_seeds, BLUE))):
    draw_nodes(axes[2], [(x, -y) for y in range(len(ids))], ids.tolist(), color)
for ax, title in zip(axes, ("graph", "frontier", "block")):
    ax.set_title(title)
axes[2].margins(0.3, 0.1)
plt.show()

# %% [markdown] slot="own" lang="en"
# The frontier still has nine nodes; `edata[small.EID]` says which edges of the graph were chosen.
# The block keeps six source nodes; the seeds, which are its destinations, come first among them.
#
# `number_nodes` shows how `to_block` numbers nodes: destinations first, then the other sources in
# order of appearance. Below its result are two methods, read from the file. `sample_blocks` repeats
# both steps for each layer, from the last to the first: the sources of one block are the seeds of
# the next block to be sampled. Only `sample_frontier` decides which edges are chosen.

# %% [markdown] slot="own" lang="ko"
# 프런티어에는 여전히 노드 9개가 모두 있으며, 그래프의 어떤 에지를 뽑았는지는 `edata[small.EID]`에서
# 알 수 있습니다. 블록에는 출발 노드 6개만 남고, 그 가운데 도착 노드이기도 한 시드 노드가 맨 앞에
# 옵니다.
#
# `number_nodes`는 `to_block`이 번호를 매기는 방법을 보여 줍니다. 도착 노드에 먼저 번호를 매기고,
# 이어서 나머지 출발 노드에는 처음 나타나는 순서대로 번호를 매깁니다. 출력의 둘째 줄부터는 앞에서
# 불러온 파일의 메서드 두 개가 표시됩니다. `sample_blocks`는 마지막 계층부터 첫 계층까지 계층마다 두
# 단계를 반복합니다. 한 블록의 출발 노드가 그다음에 샘플링할 블록의 시드 노드가 됩니다. 어떤 에지를
# 뽑을지는 `sample_frontier`에서만 정합니다.

# %% [markdown] slot="own" lang="zh"
# 边界子图仍有 9 个节点，`edata[small.EID]` 记录了它选中的是原图的哪些边。块只保留 6 个源节点；种子
# 节点是块的目标节点，同时排在源节点的最前面。
#
# `number_nodes` 演示了 `to_block` 如何编号：先给目标节点编号，再按出现的次序给其余的源节点编号。编
# 号结果的下方是两个方法的源代码，取自前面导入的文件。`sample_blocks` 从最后一层到第一层，每层都重
# 复选边和 `to_block` 这两步：一个块的源节点，就是接下来要采样的块的种子节点。选哪些边，只由
# `sample_frontier` 决定。


# %% slot="own-code"
def number_nodes(frontier, dst_nodes):
    new = {node: i for i, node in enumerate(dst_nodes.tolist())}
    for node in frontier.edges()[0].tolist():
        new.setdefault(node, len(new))
    return new


numbers = number_nodes(frontier, toy_seeds)
assert list(numbers) == sources.tolist()
print("node: its number in the block =", numbers)
source(small.BlockSampler.sample_blocks, small.NeighborSampler.sample_frontier)

# %% [markdown] slot="library" lang="en"
# `gnnlab export block_sampler my_project/` copies the file, which needs only torch, into your own
# project.
#
# ## With the library
#
# The library has the same base class: you write `sample_frontier`, and it makes the blocks.
# `OwnNeighborSampler` does what `small.NeighborSampler` does. A fanout of `-1` takes all neighbors;
# `prob` will be used below.

# %% [markdown] slot="library" lang="ko"
# 이 파일은 torch만 있으면 동작합니다. `gnnlab export block_sampler my_project/`를 실행하면 자신의
# 프로젝트로 복사할 수 있습니다.
#
# ## 라이브러리 사용하기
#
# 라이브러리에도 같은 기반 클래스가 있습니다. `sample_frontier`만 작성하면 블록은 기반 클래스의
# 코드로 만들어집니다. `OwnNeighborSampler`는 `small.NeighborSampler`와 똑같이 동작합니다.
# 팬아웃(fanout)을 `-1`로 지정하면 모든 이웃을 가져오며, `prob`은 뒤에서 사용합니다.

# %% [markdown] slot="library" lang="zh"
# 这个文件只依赖 torch。运行 `gnnlab export block_sampler my_project/`，就能把它复制到自己的项目中。
#
# ## 使用库
#
# 库里也有这样一个基类：只需写出 `sample_frontier`，块由基类生成。`OwnNeighborSampler` 与
# `small.NeighborSampler` 的行为相同。扇出（fanout）取 `-1` 表示取全部邻居；参数 `prob` 后面会用到。


# %% slot="library-code"
class OwnNeighborSampler(BlockSampler):
    def __init__(self, fanouts, prob=None):
        super().__init__(len(fanouts), return_eids=False)
        self.fanouts, self.prob = fanouts, prob

    def sample_frontier(self, layer_id, g, seed_nodes):
        fanout = self.fanouts[layer_id]
        return dgl.sampling.sample_neighbors(g, seed_nodes, fanout, prob=self.prob)


FANOUTS, BATCH, EPOCHS = ([5, 5], 32, 40) if DATASET == "digits" else ([15, 10], 1024, 5)
assert len(FANOUTS) == 2, "FANOUTS: give two numbers, the models below have two layers"
unchanged = [DATASET, FANOUTS, BATCH, EPOCHS] == ["digits", [5, 5], 32, 40]
for fanouts in ([-1, -1], [2, 2]):
    dgl.seed(0)
    sampler = OwnNeighborSampler(fanouts)
    input_nodes, output_nodes, blocks = sampler.sample(toy, torch.tensor([0]))
    sizes = [blocks[0].num_src_nodes(), *(block.num_dst_nodes() for block in blocks)]
    print(f"fanouts {fanouts}: nodes", " -> ".join(map(str, sizes)))

# %% [markdown] slot="prove" lang="en"
# With all neighbors, two layers for node 0 read the whole graph; with two neighbors per node, they
# read seven nodes.
#
# ## Check that the samplers agree
#
# The library's `MultiLayerNeighborSampler` samples all layers in one compiled pass, without a
# frontier. Yet a sample depends only on the random seed, the batch, the layer and the node, so with
# the same random seed all three samplers must choose the same edges. We make all batches of an
# epoch on the real graph, compare nodes, edges and edge IDs, and measure the time.

# %% [markdown] slot="prove" lang="ko"
# 계층이 두 개이고 모든 이웃을 쓰면, 노드 0을 계산하는 데 그래프 전체를 읽어야 합니다. 노드마다
# 이웃을 두 개씩만 뽑으면 노드 7개를 읽습니다.
#
# ## 확인하기
#
# 라이브러리의 `MultiLayerNeighborSampler`는 프런티어를 만들지 않고, 컴파일된 코드로 모든 계층을
# 한꺼번에 샘플링합니다. 그래도 샘플링 결과는 난수 시드, 배치, 계층, 노드에만 달려 있으므로, 난수
# 시드가 같으면 세 샘플러가 고르는 에지는 모두 같아야 합니다. 실제 그래프에서 한 에폭(epoch)의
# 배치를 모두 만들어 노드, 에지, 에지 ID를 비교하고 시간도 재어 봅시다.

# %% [markdown] slot="prove" lang="zh"
# 取全部邻居时，为节点 0 计算两层就要读取整张图；每个节点只取两个邻居时，只需读取 7 个节点。
#
# ## 验证
#
# 库中的 `MultiLayerNeighborSampler` 用编译好的代码一次采完所有层，不生成边界子图。但采样结果只取决
# 于随机种子、批次、层和节点，所以随机种子相同时，三个采样器选中的边应当完全相同。我们在真实的图上生
# 成一轮（epoch）的全部批次，比较节点、边和边的 ID，同时计时。


# %% slot="prove-code" tags=["nbval-ignore-output"]
def tensors(input_nodes, output_nodes, blocks):
    edges = [part for b in blocks for part in (*b.edges(), b.edata[dgl.EID])]
    return [input_nodes, output_nodes, *edges]


def one_epoch(g, sampler):
    dgl.seed(7)
    small.seed(7)
    start = time.process_time()
    batches = [sampler.sample(g, seeds) for seeds in train_ids.split(BATCH)]
    seconds.append(time.process_time() - start)
    return [part for batch in batches for part in tensors(*batch)]


plain = small.Graph(*graph.edges(), graph.num_nodes())
runs = [(plain, small.NeighborSampler(FANOUTS)), (graph, OwnNeighborSampler(FANOUTS))]
runs, seconds = [*runs, (graph, MultiLayerNeighborSampler(FANOUTS))], []
for _ in range(20):
    first, *others = [one_epoch(*run) for run in runs]
    assert all(all(map(torch.equal, first, other)) for other in others)
print(f"{len(first)} tensors: equal bit for bit")
ratios = [min(seconds[k::3]) / min(seconds[2::3]) for k in range(3)]
print("time (library = 1): small {:.1f}, ours {:.1f}, library {:.1f}".format(*ratios))
if min(ratios[:2]) <= 1:
    warnings.warn("the library was not the fastest: other programs may be busy")

# %% [markdown] slot="estimate" lang="en"
# Not one bit differs, but the library's sampler takes less time.
#
# ## Importance sampling
#
# A layer needs the mean $m$ of the features $x_u$ of $n$ neighbors, and a sample estimates it. If
# each of $k$ independent draws picks neighbor $u$ with probability $p_u$, the plain mean of the
# draws has the expected value $\sum_u p_u x_u$. Unless all $p_u$ are equal, this is in general not
# $m$: the plain mean is **biased**. Dividing each draw by $n p_u$ removes the bias:
#
# $$\hat m = \frac{1}{k} \sum_{i=1}^{k} \frac{x_{u_i}}{n\, p_{u_i}}$$
#
# $$\mathbb{E}[\hat m] = \sum_u p_u\, \frac{x_u}{n\, p_u} = m$$
#
# $$\mathrm{Var}[\hat m] = \frac1k \Big( \frac{1}{n^2} \sum_u \frac{x_u^2}{p_u} - m^2 \Big)$$
#
# The $1/n^2$ comes from squaring $x_u / (n p_u)$; one of its two factors $1/p_u$ cancels against
# the probability $p_u$ of the draw.
#
# In the toy graph, the neighbors of node 0 have the values 6, 1, 3, 2 and 1, so $m = 2.6$. We draw
# $k = 4$ neighbors 20,000 times in each of three ways: uniformly, in proportion to the out-degree,
# and in proportion to the out-degree with the correction. The weight and its correction, `undo`
# $= 1 / (n p_u)$, are edge features; each edge carries them into the frontier and the block.

# %% [markdown] slot="estimate" lang="ko"
# 결과는 한 비트도 다르지 않습니다. 라이브러리의 샘플러는 시간이 덜 걸릴 뿐입니다. 출력된 시간은
# 라이브러리에서 걸린 시간을 1로 놓았을 때의 배수입니다.
#
# ## 중요도 샘플링
#
# 계층을 계산하려면 이웃 $n$개의 피처(feature) $x_u$의 평균 $m$이 필요한데, 샘플링에서는 뽑은
# 이웃만으로 이 값을 추정합니다. 이웃 $u$가 뽑힐 확률을 $p_u$로 하여 독립적으로 $k$번 뽑으면, 뽑은
# 값의 단순 평균의 기댓값은 $\sum_u p_u x_u$입니다. $p_u$가 모두 같지 않으면 이 값은 일반적으로
# $m$이 아닙니다. 즉, 단순 평균에는 **편향**이 있습니다. 뽑은 값을 각각 $n p_u$로 나누면 편향이
# 사라집니다.
#
# $$\hat m = \frac{1}{k} \sum_{i=1}^{k} \frac{x_{u_i}}{n\, p_{u_i}}$$
#
# $$\mathbb{E}[\hat m] = \sum_u p_u\, \frac{x_u}{n\, p_u} = m$$
#
# $$\mathrm{Var}[\hat m] = \frac1k \Big( \frac{1}{n^2} \sum_u \frac{x_u^2}{p_u} - m^2 \Big)$$
#
# $1/n^2$은 $x_u / (n p_u)$를 제곱해서 나온 것입니다. 제곱에 들어 있는 두 $1/p_u$ 가운데 하나는 뽑힐
# 확률 $p_u$와 약분됩니다.
#
# 작은 그래프에서 노드 0의 이웃 다섯 개의 값은 6, 1, 3, 2, 1이므로 $m = 2.6$입니다. 이웃을 $k = 4$개
# 뽑는 실험을 20,000번씩, 세 가지 방법으로 해 봅시다. 세 방법은 균등하게 뽑기, 출차수에 비례하여
# 뽑기, 출차수에 비례하여 뽑은 뒤 보정하기입니다. 가중치와 보정값 `undo` $= 1 / (n p_u)$는 에지
# 피처로 저장합니다. 에지 피처는 에지와 함께 프런티어로, 다시 블록으로 전달됩니다.

# %% [markdown] slot="estimate" lang="zh"
# 结果逐位相同，库的采样器只是用时更短。输出最后一行的数字是各采样器的用时与库的用时之比。
#
# ## 重要性采样
#
# 在每一层，每个节点都需要它的 $n$ 个邻居的特征（feature）$x_u$ 的平均值 $m$，采样得到的只是这个平均
# 值的估计。如果独立地抽取 $k$ 次，每次以概率 $p_u$ 抽到邻居 $u$，那么抽到的各个值的简单平均，其期望
# 为 $\sum_u p_u x_u$。只要各个 $p_u$ 不全相等，它一般就不等于 $m$：简单平均是**有偏**的。把抽到的每
# 个值除以 $n p_u$，就消除了偏差：
#
# $$\hat m = \frac{1}{k} \sum_{i=1}^{k} \frac{x_{u_i}}{n\, p_{u_i}}$$
#
# $$\mathbb{E}[\hat m] = \sum_u p_u\, \frac{x_u}{n\, p_u} = m$$
#
# $$\mathrm{Var}[\hat m] = \frac1k \Big( \frac{1}{n^2} \sum_u \frac{x_u^2}{p_u} - m^2 \Big)$$
#
# 其中 $1/n^2$ 来自 $x_u / (n p_u)$ 的平方；平方中的两个因子 $1/p_u$，有一个与抽到它的概率 $p_u$ 约
# 去。
#
# 在小图上，节点 0 的邻居的值为 6、1、3、2 和 1，所以 $m = 2.6$。我们用三种做法各试 20,000 次，每次
# 抽取 $k = 4$ 个邻居：均匀抽取；以正比于出度的概率抽取；按出度抽取后再校正。抽取用的权重和校正系数
# `undo` $= 1 / (n p_u)$ 都是边特征，会随边进入边界子图，再进入块。


# %% slot="estimate-code"
def set_importance(g, weight):
    dst = g.edges()[1]
    p = weight / dgl.ops.copy_e_sum(g, weight)[dst]
    g.edata["weight"], g.edata["undo"] = weight, 1 / (g.in_degrees(dst) * p)


def means(prob, undo, k=4, repeats=20_000):
    draws = dgl.sampling.sample_neighbors(toy, [0], k * repeats, prob=prob, replace=True)
    x = value[draws.edges()[0]] * (draws.edata["undo"] if undo else 1)
    return x.view(repeats, k).mean(1)


value = torch.tensor([0.0, 6, 1, 3, 2, 1, 0, 0, 0])
toy_degrees = toy.out_degrees(toy.edges()[0]).float()
set_importance(toy, toy_degrees)
dgl.seed(0)
rules = {"uniform": (None, False), "by degree": ("weight", False)}
rules["reweighted"] = "weight", True
measured = []
for name, rule in rules.items():
    found = means(*rule)
    print(f"{name}: mean {found.mean():.1f}, variance {found.var():.2f}")
    measured.append([found.mean(), found.var()])
theory = torch.tensor([[2.6, 0.86], [3.6, 1.06], [2.6, 0.06]])
assert torch.allclose(torch.tensor(measured), theory, rtol=0.1), "value or k differs"

# %% [markdown] slot="hand" lang="en"
# Drawing by degree alone estimates 3.6 instead of 2.6. With the correction, the estimate is right
# on average, and its variance is a fourteenth of that of uniform sampling, because in this graph
# nodes of high degree also have large values. The variances agree with theory, which gives 0.86,
# 1.06 and 0.06.
#
# How much weight should the degree get? Vary the exponent $a$ with the slider: each neighbor is
# drawn in proportion to its out-degree to the power of $a$. The dotted line marks 2.6. Without a
# running kernel, you see four settings.

# %% [markdown] slot="hand" lang="ko"
# 출차수에 비례하여 뽑기만 하면 추정값의 평균이 2.6이 아니라 3.6이 됩니다. 보정하면 평균이 참값과
# 같아지고, 분산은 균등하게 뽑을 때의 14분의 1로 줄어듭니다. 이 그래프에서는 출차수가 큰 노드가 값도
# 크기 때문입니다. 측정한 분산은 계산으로 구한 값 0.86, 1.06, 0.06과 거의 같습니다.
#
# 그렇다면 출차수를 얼마나 강하게 반영하는 것이 좋을까요? 지수 $a$를 직접 바꾸어 봅시다. 각 이웃은
# 출차수의 $a$제곱에 비례하는 확률로 뽑힙니다. 점선은 참값 2.6입니다. 커널이 실행되지 않는
# 환경에서는 네 가지 설정의 그림이 표시됩니다.

# %% [markdown] slot="hand" lang="zh"
# 只按出度抽取，估计值的平均是 3.6，而不是 2.6。校正之后，平均值正确，方差也只有均匀抽取的十四分之
# 一，因为在这张图里，出度大的节点，值也大。测得的方差与理论值 0.86、1.06 和 0.06 相符。
#
# 那么，出度应当占多大的分量？请亲手调节指数 $a$：每个邻居被抽到的概率与其出度的 $a$ 次方成正比。虚
# 线标出真值 2.6。没有启动内核时，显示的是预先保存的四张图，对应四个指数值。


# %% slot="hand-draw" tags=["folded"]
def draw_estimates(exponent=1):
    set_importance(toy, toy_degrees**exponent)
    dgl.seed(0)
    options = {"figsize": (5.6, 1.9), "sharey": True, "layout": "constrained"}
    figure, axes = plt.subplots(1, 2, **options)
    kinds = {"plain mean": (False, ORANGE), "reweighted": (True, GREEN)}
    for ax, (name, (undo, color)) in zip(axes, kinds.items()):
        found = means("weight", undo)
        ax.hist(found, bins=[i / 4 for i in range(2, 27)], color=color)
        ax.axvline(2.6, color="black", ls=":")
        ax.set(xlabel="estimate at node 0", yticks=[])
        text = f"{name}: mean {found.mean():.1f}, variance {found.var():.2f}"
        ax.set_title(text, size=9)
    return figure


def variance(exponent):
    set_importance(toy, toy_degrees**exponent)
    dgl.seed(0)
    return means("weight", True).var()


found = torch.tensor([variance(a) for a in (0, 0.5, 1, 1.5, 2, 2.5, 3)])
assert (found.diff() < 0).tolist() == [True] * 3 + [False] * 3, "value differs"
assert 1.5 < found[-1] / found[0] < 2.5, "value differs"


# %% slot="hand-code"
powers = [0, 0.5, 1, 1.5, 2, 2.5, 3]
dgl.plot.explore(draw_estimates, exponent=("exponent a", powers))

# %% [markdown] slot="error" lang="en"
# At an exponent of 0, both panels show uniform sampling. From one slider setting to the next, the
# variance of the reweighted estimate falls until the exponent is 1.5, then rises: at 3 the estimate
# is still right on average, but its variance is twice that of uniform sampling. Nodes 2 and 5 are
# then rarely drawn, but count heavily when they are; some estimates lie outside the plot.
#
# Does this hold on real data? We estimate the neighbor means of up to 2,000 nodes, sum the squared
# error over all features, and average it over the nodes: a single number that reflects both bias
# and variance. We add one more rule: uniform without replacement, the default for neighbor
# sampling.

# %% [markdown] slot="error" lang="ko"
# 지수가 0이면 두 방법 모두 균등 추출입니다. 슬라이더를 한 칸씩 옮기면 보정한 추정값의 분산은 지수가
# 1.5일 때까지 줄었다가 다시 늘어납니다. 지수가 3이면 평균은 여전히 참값과 같지만 분산은 균등 추출의
# 두 배입니다. 노드 2와 5가 드물게 뽑히는 대신 한 번 뽑힐 때마다 크게 반영되기 때문이며, 그림의
# 범위를 벗어나는 추정값도 있습니다.
#
# 실제 데이터에서도 중요도 샘플링이 도움이 될까요? 노드를 최대 2,000개 골라 이웃의 평균을 추정하고,
# 모든 피처의 제곱 오차를 더한 뒤 노드에 대해 평균을 냅니다. 이 값 하나에 편향과 분산이 모두
# 반영됩니다. 비교할 방법도 하나 추가합니다. 같은 이웃을 두 번 뽑지 않는 균등 **비복원 추출**로,
# 이웃 샘플링(neighbor sampling)의 기본 방식입니다.

# %% [markdown] slot="error" lang="zh"
# 指数为 0 时，左右两图都是均匀抽取的结果。在可选的指数中，从 0 到 1.5，校正后估计值的方差逐级减小，
# 之后又增大：指数为 3 时，平均值依然正确，方差却是均匀抽取的两倍。这时节点 2 和 5 很少被抽到，可一
# 旦抽到就占很大的分量；有些估计值甚至超出了直方图横轴的范围。
#
# 在真实数据上也是这样吗？我们取至多 2,000 个节点，估计每个节点的邻居特征的平均值，把所有特征的平方
# 误差相加，再对节点求平均；这个数同时反映了偏差和方差。这里再加一种做法：均匀抽取，且不重复抽取同一
# 个邻居，这也是邻居采样（neighbor sampling）的默认做法。

# %% slot="error-code"
set_importance(graph, graph.out_degrees(graph.edges()[0]).float())
nodes, fanouts, repeats = graph.nodes()[:2000], [1, 2, 4, 8, 16], 10


def mean_of_neighbors(frontier, weight=None):
    block = dgl.to_block(frontier, nodes)
    weight = block.edata[weight] if weight else torch.ones(block.num_edges())
    return dgl.ops.u_mul_e_mean(block, feat[block.srcdata[dgl.NID]], weight)


dgl.seed(0)
exact = mean_of_neighbors(dgl.in_subgraph(graph, nodes))
ways = {"reweighted": ("weight", True, "undo"), "uniform": (None, True, None)}
ways |= {"by degree": ("weight", True, None)}
ways["uniform, without replacement"] = None, False, None
errors = {name: torch.zeros(len(fanouts)) for name in ways}
for name, (prob, replace, undo) in ways.items():
    for i, k in [*enumerate(fanouts)] * repeats:
        drawn = dgl.sampling.sample_neighbors(graph, nodes, k, prob=prob, replace=replace)
        error = mean_of_neighbors(drawn, undo) - exact
        errors[name][i] += error.square().sum(1).mean() / repeats

# %% slot="error-draw" tags=["folded"]
figure, ax = plt.subplots(figsize=(5.5, 3), layout="constrained")
for (name, values), color in zip(errors.items(), (GREEN, BLUE, ORANGE, "gray")):
    ax.loglog(fanouts, values, "o-", color=color, label=name)
ax.set(xlabel="fanout", ylabel="mean squared error", xticks=fanouts, xticklabels=fanouts)
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
ratios = [errors[name] / errors["uniform"] for name in ("reweighted", "by degree")]
best = errors["uniform, without replacement"]
others = torch.stack([values for values in errors.values() if values is not best])
if DATASET == "digits" and fanouts == [1, 2, 4, 8, 16]:
    said = "the text is about the original fanouts"
    assert ratios[0].min() > 1.7 and ratios[0].max() < 2.3, said
    assert (ratios[1][:4] - 1).abs().max() < 0.1 and ratios[1][-1] > 1.05, said
    assert (best < others)[:, 1:].all(), said

# %% [markdown] slot="layer" lang="en"
# On `digits` it is the other way around. The degrees are far from proportional to the pixel values,
# so drawing by degree with the correction gives twice the error of uniform sampling. Without the
# correction, the error is about that of uniform sampling until, at a fanout of 16, the bias shows;
# it is small, because neighbors look so much alike here. From a fanout of 2 on, sampling without
# replacement is best. Importance sampling **pays off only if the weights are roughly proportional
# to the magnitudes of the values**.
#
# ## A budget per layer
#
# In neighbor sampling, the number of nodes multiplies from layer to layer. LADIES (Zou et al.,
# 2019) gives each *layer* a budget instead: it draws a fixed number of neighbors of the seeds $S$,
# favoring those that matter to many seeds:
#
# $$p_u \propto \sum_{v \in S,\; u \to v} \frac{1}{n_v^2}$$
#
# where $n_v$ is the in-degree of $v$. The edge weights that approximately correct for this choice
# must be stored on the blocks, so we override `sample_blocks`. Each edge that is kept gets
# $1 / p_u$, divided by the mean of these values over the kept edges that enter the same
# destination. So the weights at each destination have a mean of one. Note that `dgl.to_block`,
# unlike `small.to_block` above, renumbers the edges, so we store the original IDs again. Also,
# `torch.multinomial` uses torch's generator, so `torch.manual_seed` makes it reproducible.

# %% [markdown] slot="layer" lang="ko"
# `digits`에서는 결과가 반대입니다. 출차수는 이웃의 픽셀값에 비례하지 않으므로, 출차수에 비례하여
# 뽑은 뒤 보정하면 오차가 균등 추출의 두 배가 됩니다. 보정하지 않으면 오차가 균등 추출의 오차와
# 비슷하다가 팬아웃이 16일 때 편향이 드러납니다. 이 그래프에서는 이웃끼리 매우 비슷하므로 편향이
# 작습니다. 팬아웃이 2 이상이면 오차가 가장 작은 것은 같은 이웃을 두 번 뽑지 않는 방법입니다.
# **중요도 샘플링은 가중치가 이웃 값의 크기에 대체로 비례할 때에만 도움이 됩니다.**
#
# ## 계층별 예산
#
# 이웃 샘플링에서는 계층을 거칠 때마다 노드 수가 몇 배로 늘어납니다. LADIES(Zou 외, 2019)에서는 그
# 대신 **계층**마다 예산을 둡니다. 시드 노드 집합 $S$의 모든 이웃 가운데 정해진 수만 뽑되, 여러 시드
# 노드에 중요한 이웃일수록 높은 확률로 뽑습니다.
#
# $$p_u \propto \sum_{v \in S,\; u \to v} \frac{1}{n_v^2}$$
#
# $n_v$는 $v$의 입차수(in-degree)입니다. 뽑힐 확률의 차이를 근사적으로 보정하는 에지 가중치는 블록에
# 저장해야 하므로 `sample_blocks`를 재정의합니다. 남은 에지마다 $1 / p_u$를 구한 뒤, 도착 노드가
# 같은 에지끼리 낸 평균으로 나누어 가중치로 삼습니다. 그러면 한 노드로 들어오는 에지의 가중치는
# 평균이 1이 됩니다. 두 가지를 눈여겨보십시오. `dgl.to_block`은 앞의 `small.to_block`과 달리 에지
# 번호를 새로 매기므로 원래 ID를 다시 저장해야 합니다. 그리고 `torch.multinomial`은 torch의 난수
# 생성기를 쓰므로, 결과를 재현하려면 `torch.manual_seed`를 호출해야 합니다.

# %% [markdown] slot="layer" lang="zh"
# 在 `digits` 上，情形正好相反。出度与像素值的大小远不成正比，所以按出度抽取再校正，误差反而是均匀抽
# 取的两倍。不校正时，误差与均匀抽取相近，到扇出为 16 时才显出偏差；偏差很小，是因为这里的邻居彼此十
# 分相似。扇出不小于 2 时，误差最小的做法是不重复抽取。**只有当权重与邻居数值的大小（绝对值或范数）
# 大致成正比时，重要性采样才有好处**，并不是用了就一定更好。
#
# ## 每层一个预算
#
# 邻居采样时，节点数会逐层成倍增长。LADIES（Zou 等，2019）改为给每一**层**设定预算：从种子节点集合
# $S$ 的全部邻居中只抽取固定数目的节点，并优先抽取对许多种子节点都重要的邻居：
#
# $$p_u \propto \sum_{v \in S,\; u \to v} \frac{1}{n_v^2}$$
#
# 其中 $n_v$ 是 $v$ 的入度（in-degree）。这种抽取方式会带来偏差，需要用边的权重来近似校正，而权重必
# 须存放在块上，所以我们重写 `sample_blocks`。保留下来的每条边先取值 $1 / p_u$；对指向同一目标节点的
# 各条保留边，求出这个值的平均值，再把每条边的值除以这个平均值，就得到边的权重。这样，指向同一个节点
# 的各条边，权重的平均值为 1。有两点要注意：与前面的 `small.to_block` 不同，`dgl.to_block` 会给边重
# 新编号，所以要重新存入原来的边 ID；`torch.multinomial` 使用 torch 的随机数生成器，所以要用
# `torch.manual_seed` 才能复现结果。


# %% slot="layer-code"
class LayerSampler(BlockSampler):
    def __init__(self, budgets):
        super().__init__()
        self.budgets = budgets

    def sample_blocks(self, g, seed_nodes, exclude_eids=None):
        blocks = []
        for budget in reversed(self.budgets):
            frontier = dgl.in_subgraph(g, seed_nodes)
            src, dst = frontier.edges()
            nodes, at = src.unique(return_inverse=True)
            share = 1 / g.in_degrees(dst).float() ** 2
            importance = torch.zeros(len(nodes)).index_add_(0, at, share)
            drawn = torch.multinomial(importance, min(budget, len(nodes)))
            kept = torch.isin(at, drawn).nonzero().flatten()
            frontier = frontier.edge_subgraph(kept, relabel_nodes=False, store_ids=False)
            block = dgl.to_block(frontier, seed_nodes)
            block.edata[dgl.EID] = frontier.edata[dgl.EID]
            undo = 1 / importance[at[kept]]
            block.edata["w"] = undo / dgl.ops.copy_e_mean(block, undo)[block.edges()[1]]
            blocks.insert(0, block)
            seed_nodes = block.srcdata[dgl.NID]
        return blocks


# %% [markdown] slot="cluster" lang="en"
# ## Clusters as batches
#
# Cluster-GCN (Chiang et al., 2019) goes further: a batch is a few clusters of nodes, and every
# layer uses the subgraph of these nodes. Nothing is sampled and no node is read twice in an epoch,
# but edges between the clusters of a batch and the rest are lost. We find clusters without labels:
# they grow along the edges from random centers until they meet; nodes that no center reaches stay
# in cluster 0. The loader's `indices` are cluster numbers, so we override `sample` of the base
# class `Sampler`. The training nodes come first in the subgraph, as seeds do in a block.

# %% [markdown] slot="cluster" lang="ko"
# ## 클러스터를 배치로 쓰기
#
# Cluster-GCN(Chiang 외, 2019)은 한 걸음 더 나아갑니다. 노드 클러스터 몇 개를 묶어 배치 하나로 삼고,
# 모든 계층에서 이 노드들의 서브그래프(subgraph)를 씁니다. 샘플링이 필요 없고 한 에폭에 같은 노드를
# 두 번 읽지도 않지만, 배치에 든 클러스터와 나머지를 잇는 에지는 빠집니다. 클러스터는 레이블 없이
# 만듭니다. 무작위로 고른 중심에서 시작하여 다른 클러스터와 만날 때까지 에지를 따라 클러스터를 넓혀
# 가며, 어느 중심에서도 닿지 않는 노드는 클러스터 0에 남습니다. 여기서 `indices`는 클러스터
# 번호이므로 기반 클래스 `Sampler`의 `sample`을 재정의합니다. 블록에서 시드 노드가 맨 앞에 오듯이
# 서브그래프에서는 학습 노드가 맨 앞에 옵니다.

# %% [markdown] slot="cluster" lang="zh"
# ## 以簇为批次
#
# Cluster-GCN（Chiang 等，2019）更进一步：一个批次由若干个节点簇组成，每一层都使用由这些节点导出的子
# 图（subgraph）。它不做采样，一轮之内也不会重复读取任何节点，但批次内的簇与其余部分之间的边会丢失。
# 划分簇不需要标签：从随机选出的中心出发，沿着边向外扩张，直到与其他簇相遇；任何中心都到达不了的节点
# 留在簇 0 中。传给采样器的 `indices` 是簇的编号，所以我们重写基类 `Sampler` 的 `sample`。在子图中，
# 训练节点排在最前面，就像块中的种子节点一样。


# %% slot="cluster-code"
def grow_clusters(g, centers):
    cluster = torch.zeros(g.num_nodes())
    cluster[centers] = torch.arange(1.0, len(centers) + 1)
    while True:
        grown = torch.where(cluster == 0, dgl.ops.copy_u_max(g, cluster), cluster)
        if torch.equal(grown, cluster):
            return cluster.long()
        cluster = grown


class ClusterSampler(Sampler):
    def __init__(self, cluster, wanted):
        self.cluster, self.wanted = cluster, wanted

    def sample(self, g, indices):
        inside = torch.isin(self.cluster, indices)
        seeds = (inside & self.wanted).nonzero().flatten()
        others = (inside & ~self.wanted).nonzero().flatten()
        part = g.subgraph(torch.cat([seeds, others]))
        return part.ndata[dgl.NID], seeds, [part, part]


# %% [markdown] slot="look" lang="en"
# We try the samplers on the toy graph. Node 0 is the seed or, for clusters, the training node of
# its cluster. Orange edges belong to the last layer, green ones to the first; the number in the
# title is the number of input nodes.

# %% [markdown] slot="look" lang="ko"
# 작은 그래프에서 각 샘플러를 시험해 봅시다. 노드 0이 시드 노드이며, 클러스터를 쓸 때는 노드 0이
# 클러스터의 학습 노드입니다. 주황색 에지는 마지막 계층에, 초록색 에지는 첫 계층에 속합니다. 제목의
# 숫자는 입력 노드 수입니다.

# %% [markdown] slot="look" lang="zh"
# 下面在小图上试用这几个采样器。节点 0 是种子节点；以簇为批次时，它是所在簇中唯一的训练节点。橙色的
# 边属于最后一层，绿色的边属于第一层；标题中的数字是输入节点数。

# %% slot="look-code"
dgl.seed(0)
torch.manual_seed(0)
toy_clusters = grow_clusters(dgl.to_bidirected(toy), [1, 8])
is_seed = torch.arange(9) == 0
samplers = {"all neighbors": OwnNeighborSampler([-1, -1])}
samplers["two neighbors"] = OwnNeighborSampler([2, 2])
samplers["layer budget"] = LayerSampler([2, 2])
samplers["clusters"] = ClusterSampler(toy_clusters, is_seed)
samples = {}
for name, sampler in samplers.items():
    indices = torch.tensor([1 if name == "clusters" else 0])
    samples[name] = sampler.sample(toy, indices)

# %% slot="look-draw" tags=["folded"]
figure, axes = plt.subplots(1, 4, figsize=(11, 2.6), layout="constrained")
for ax, (name, (input_nodes, output_nodes, blocks)) in zip(axes, samples.items()):
    draw_edges(ax, zip(toy_src, toy_dst), GRAY)
    for block, color in zip(blocks, (GREEN, ORANGE)):
        u, v = toy.find_edges(block.edata[dgl.EID])
        draw_edges(ax, zip(u, v), color)
    draw_nodes(ax, place, range(9), GRAY)
    columns = (input_nodes, blocks[1].srcdata[dgl.NID], output_nodes)
    for ids, color in zip(columns, (GREEN, ORANGE, BLUE)):
        draw_nodes(ax, [place[node] for node in ids], ids.tolist(), color)
    ax.set_title(f"{name}: {len(input_nodes)}")
plt.show()

# %% [markdown] slot="plans" lang="en"
# The first sampler takes all neighbors. `LayerSampler` adds at most two nodes per layer, however
# many seeds there are. `ClusterSampler` uses the same edges in both layers, so orange covers green;
# the edges from nodes 3 and 4, which belong to the other cluster, are lost.
#
# For the real graph we grow forty clusters (more on larger graphs), with eight clusters per batch,
# and prepare six plans, each consisting of a sampler, the IDs to split into batches, and the batch
# size.

# %% [markdown] slot="plans" lang="ko"
# 첫째 샘플러는 모든 이웃을 가져옵니다. `LayerSampler`는 시드 노드가 몇 개이든 계층마다 노드를 최대
# 두 개만 추가합니다. `ClusterSampler`는 두 계층에서 같은 에지를 쓰므로 초록색이 주황색에 가려
# 보이지 않으며, 다른 클러스터에 속한 노드 3과 4에서 오는 에지는 빠집니다.
#
# 실제 그래프에서는 클러스터를 40개 만들어 8개씩 한 배치로 묶고(더 큰 그래프에서는 수를 늘립니다),
# 실험 설정 여섯 가지를 준비합니다. 설정마다 샘플러, 배치로 나눌 ID, 배치 크기를 정합니다.

# %% [markdown] slot="plans" lang="zh"
# 第一个采样器取全部邻居。`LayerSampler` 不论有多少种子节点，每层至多增加两个节点。`ClusterSampler`
# 在两层中使用相同的边，所以橙色盖住了绿色；节点 3 和 4 属于另一个簇，从它们出发的边丢失了。
#
# 在真实的图上，我们生成 40 个簇（更大的图则更多），每批 8 个，并准备六种方案。每种方案包括采样器、
# 要分成批次的 ID 和批次大小。

# %% slot="plans-code"
torch.manual_seed(0)
count, per_batch = (40, 8) if DATASET == "digits" else (1000, 50)
cluster = grow_clusters(graph, torch.randperm(graph.num_nodes())[:count])
is_train = torch.zeros(graph.num_nodes(), dtype=torch.bool)
is_train[train_ids] = True
u, v = graph.edges()
inside = (cluster[u] == cluster[v]).float().mean()
print(f"{inside:.0%} of the edges stay inside clusters")

budgets = [256, 128] if DATASET == "digits" else [8192, 4096]
plans = {
    "neighbor, library": (MultiLayerNeighborSampler(FANOUTS), train_ids, BATCH),
    "neighbor, own": (OwnNeighborSampler(FANOUTS), train_ids, BATCH),
    "all neighbors": (OwnNeighborSampler([-1, -1]), train_ids, BATCH),
    "by degree": (OwnNeighborSampler(FANOUTS, prob="weight"), train_ids, BATCH),
    "layer budget": (LayerSampler(budgets), train_ids, BATCH),
    "clusters": (ClusterSampler(cluster, is_train), cluster.unique(), per_batch),
}

# %% [markdown] slot="real" lang="en"
# About two thirds of the edges stay inside a cluster, although there are forty clusters and no
# labels were used.
#
# ## Check before you train
#
# One check suits every sampler: **no block contains an edge that the graph lacks**. We ask for
# more: each edge must be the very edge whose ID it carries. If `LayerSampler` did not store the IDs
# again, this check would fail.

# %% [markdown] slot="real" lang="ko"
# 클러스터가 40개나 되고 레이블도 쓰지 않았지만, 에지의 약 3분의 2는 양 끝 노드가 같은 클러스터에
# 속합니다.
#
# ## 학습하기 전에 확인하기
#
# 어떤 샘플러에나 적용할 수 있는 검사가 있습니다. **블록에는 원래 그래프에 있는 에지만 있어야
# 합니다.** 여기서는 더 엄격하게, 블록의 각 에지가 저장된 ID에 해당하는 바로 그 에지인지 확인합니다.
# `LayerSampler`에서 원래 ID를 다시 저장하지 않았다면 이 검사를 통과하지 못했을 것입니다.

# %% [markdown] slot="real" lang="zh"
# 虽然有 40 个簇，又没有用到标签，仍有约三分之二的边留在簇内。
#
# ## 训练之前先验证
#
# 有一项检验适用于所有采样器：**块中不能有原图没有的边**。这里的要求更严格：块中的每条边，必须正是它
# 的 ID 在原图中对应的那条边。如果 `LayerSampler` 没有重新存入 ID，这项检验就通不过。

# %% slot="real-code"
checked = 0
for sampler, ids, size in plans.values():
    for batch in NodeDataLoader(graph, ids, sampler, batch_size=size):
        for block in batch[2]:
            src, dst = block.edges()
            ends = block.srcdata[dgl.NID][src], block.dstdata[dgl.NID][dst]
            assert all(map(torch.equal, ends, graph.find_edges(block.edata[dgl.EID])))
            checked += len(src)
print(f"{checked} sampled edges, all of them edges of the graph")

# %% [markdown] slot="model" lang="en"
# All samplers pass. This check says nothing about *which* edges are chosen; for neighbor sampling,
# the comparison with the library and the estimates on the toy graph tested that.
#
# ## Train with each sampler
#
# The model is GraphSAGE with two layers. If a block has weights `w`, the mean uses them. In the
# loop, `[: len(output_nodes)]` keeps the rows of the training nodes: all rows with blocks, only the
# first ones with clusters. Accuracy is always measured with all neighbors, so the plans differ only
# in training.

# %% [markdown] slot="model" lang="ko"
# 모든 샘플러가 검사를 통과합니다. 그러나 이 검사로는 에지가 **알맞은 확률로** 뽑히는지까지는 알 수
# 없습니다. 이웃 샘플링에 대해서는 앞에서 라이브러리의 결과와 비교하고 작은 그래프에서 평균을
# 추정하여 그 점을 확인했습니다.
#
# ## 샘플러별로 학습하기
#
# 모델은 계층이 두 개인 GraphSAGE입니다. 블록에 가중치 `w`가 있으면 가중 평균을 구합니다. 학습
# 루프의 `[: len(output_nodes)]`는 학습 노드의 행만 남깁니다. 배치가 블록으로 이루어져 있으면 모든
# 행이 남고, 클러스터로 이루어져 있으면 앞쪽 행만 남습니다. 정확도는 언제나 모든 이웃을 써서 재므로,
# 설정에 따라 다른 것은 학습 과정뿐입니다.

# %% [markdown] slot="model" lang="zh"
# 所有采样器都通过了检验。这项检验并不涉及选中了**哪些**边：邻居采样选得对不对，前面已与库比较过；按
# 出度抽取，则已用小图上的估计验证过。
#
# ## 用各个采样器训练
#
# 模型是两层的 GraphSAGE。如果块带有权重 `w`，就按权重求平均。循环中的 `[: len(output_nodes)]` 只保
# 留训练节点对应的行：批次由块构成时是所有行，由簇构成时是最前面的若干行。准确率一律用全部邻居计算，
# 所以各方案只在训练上有差别。


# %% slot="model-code"
class SAGE(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        layers = [dglnn.SAGEConv(i, o, "mean") for i, o in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)

    def forward(self, blocks, h):
        for layer, block in zip(self.layers, blocks, strict=True):
            h = layer(block, h, edge_weight=block.edata.get("w"))
            if layer is not self.layers[-1]:
                h = F.dropout(F.relu(h), 0.5, self.training)
        return h


# %% slot="train-code"
def train(sampler, ids, size):
    torch.manual_seed(0)
    dgl.seed(0)
    options = {"batch_size": size, "shuffle": True, "drop_last": True}
    loader = NodeDataLoader(graph, ids, sampler, **options)
    model = SAGE([feat.shape[1], 128, dataset.num_classes])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    read, times = 0, []
    for _ in range(EPOCHS):
        start = time.process_time()
        for input_nodes, output_nodes, blocks in loader:
            scores = model(blocks, feat[input_nodes])[: len(output_nodes)]
            loss = F.cross_entropy(scores, label[output_nodes])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            read += len(input_nodes)
        times.append(1000 * (time.process_time() - start))
    with torch.no_grad():
        hits = model.eval()([graph, graph], feat).argmax(1) == label
    accuracy = hits[dataset.test_idx].float().mean().item()
    return accuracy, read / EPOCHS, min(times)


# %% [markdown] slot="cost" lang="en"
# ## What it costs
#
# All six runs start from the same initial weights. We measure CPU time, on which other programs
# have little effect, and take the fastest epoch. In the figure, the gray bars are the library's
# sampler; the samplers in blue override `sample_frontier`, the one in orange `sample_blocks`, and
# the one in green `sample`.

# %% [markdown] slot="cost" lang="ko"
# ## 비용
#
# 여섯 가지 설정마다 같은 초깃값에서 시작하여 한 번씩 학습합니다. 시간은 다른 프로그램의 영향을 거의
# 받지 않는 CPU 시간으로 재고, 가장 빠른 에폭의 값을 씁니다. 그림에서 회색은 라이브러리의
# 샘플러입니다. 파란색은 `sample_frontier`를, 주황색은 `sample_blocks`를, 초록색은 `sample`을
# 재정의한 샘플러입니다.

# %% [markdown] slot="cost" lang="zh"
# ## 开销
#
# 六种方案都从相同的初始权重出发，各训练一次。这里测的是 CPU 时间，它几乎不受其他程序的影响；取最快
# 的一轮。图中灰色的是库的采样器，蓝色的重写了 `sample_frontier`，橙色的重写了 `sample_blocks`，绿色
# 的重写了 `sample`。

# %% slot="train-run" tags=["nbval-ignore-output"]
results = [train(*plan) for plan in tqdm(plans.values(), desc="samplers")]
assert results[0][:2] == results[1][:2]
lowest, wanted = min(results)[0], {"digits": 0.95}.get(DATASET, 0)
assert lowest > wanted, f"accuracy {lowest:.3f}: raise EPOCHS, FANOUTS or budgets"
for name, (_, read, _) in zip(plans, results):
    print(f"{name}: {read / results[2][1]:.2f} times as many nodes as 'all neighbors'")

# %% slot="cost-draw" tags=["folded", "nbval-ignore-output"]
figure, axes = plt.subplots(1, 3, figsize=(9, 2.4), sharey=True, layout="constrained")
titles = ("test accuracy", "input nodes per epoch", "CPU time (ms), fastest epoch")
forms = ("{:.3f}", "{:,.0f}", "{:.0f}")
for ax, values, title, form in zip(axes, zip(*results), titles, forms):
    bars = ax.barh(list(plans), values, color=["gray", BLUE, BLUE, BLUE, ORANGE, GREEN])
    ax.bar_label(bars, fmt=form, padding=3)
    ax.set(title=title, xlim=(0, 1.25 * max(values)), xticks=[])
    ax.spines.bottom.set_visible(False)
axes[0].invert_yaxis()
plt.show()

accuracies, reads, times = zip(*results)
if unchanged:
    said = "the text is about the original clusters and budgets"
    assert max(accuracies) - min(accuracies) < 0.01, said
    assert 3 * max(reads[4:]) < reads[2], said
    if min(times[4:]) < times[0]:
        warnings.warn("the library was not the fastest: other programs may be busy")

# %% [markdown] slot="elsewhere" lang="en"
# The first two runs agree to the last digit in accuracy and in the number of nodes read. On
# `digits` all accuracies lie within one point of one another, no more than a different random seed
# could account for. The plans "layer budget" and "clusters" read less than a third of the nodes
# that "all neighbors" reads, yet the time does not shrink accordingly: neither is faster than the
# library's sampler, which reads more. The graph is small, so most of a batch's cost does not depend
# on its number of nodes, and the dozen tensor operations that choose nodes cost more time than they
# save. On a larger graph, the number of nodes is what counts.
#
# ## The same sampler elsewhere
#
# A sampler needs only a graph and seeds, so it runs unchanged wherever both are available.
# `NodeDataLoader` has already called ours. For data-parallel training (lesson 04),
# `create_dataloader` gives each process its share of every batch. For distributed training (lessons
# 05 and 06), `DistNodeDataLoader` samples on a `DistGraph`: the graph in parts, with new node IDs.
# Do the loaders of two processes, run here one after the other, together draw the same edges as one
# loader on the whole graph, and does sampling from two parts yield them too?

# %% [markdown] slot="elsewhere" lang="ko"
# 처음 두 설정의 정확도와 입력 노드 수는 당연히 마지막 자리까지 같습니다. `digits`에서 정확도의
# 차이는 모두 1%포인트 이내로, 난수 시드를 바꿀 때 생길 수 있는 차이보다 크지 않습니다. 그런데도
# 계층별 예산이나 클러스터를 쓰면 모든 이웃을 쓸 때의 3분의 1도 안 되는 노드만 읽습니다. 그러나
# 시간은 그만큼 줄지 않아서, 더 많은 노드를 읽는 라이브러리의 샘플러보다 빠르지 않습니다. 그래프가
# 작으면 배치 하나에 드는 비용의 대부분은 노드 수와 관계없이 고정되어 있습니다. 그래서 노드를 고르는
# 데 쓰는 텐서 연산 십여 번의 비용이 노드를 덜 읽어 아끼는 비용보다 큽니다. 그래프가 커지면 노드
# 수가 시간을 좌우합니다.
#
# ## 다른 환경에서 그대로 쓰기
#
# 샘플러에 필요한 것은 그래프와 시드 노드뿐이므로, 이 둘이 있는 곳이면 어디서나 같은 샘플러를 고치지
# 않고 쓸 수 있습니다. `NodeDataLoader`에서는 이미 사용했습니다. 레슨 04의 주제인 데이터 병렬
# 학습에서는 `create_dataloader`로 각 배치의 시드 노드를 프로세스별로 나누어 맡깁니다. 레슨 05와
# 06의 주제인 분산 학습(distributed training)에서는 `DistNodeDataLoader`로 `DistGraph`에서
# 샘플링합니다. `DistGraph`는 파티션으로 나누고 노드에 새 ID를 매긴 그래프입니다. 두 가지를 확인해
# 봅시다. 하나는 두 프로세스가 쓸 로더를 이 노트북에서 차례로 만들어, 두 로더로 뽑은 에지를 합친
# 결과입니다. 다른 하나는 두 파티션으로 나눈 그래프에서 뽑은 결과입니다. 둘 다 나누지 않은
# 그래프에서 로더 하나로 뽑은 결과와 같아야 합니다.

# %% [markdown] slot="elsewhere" lang="zh"
# 前两次训练的准确率和读取的节点数完全相同，与预期一致。在 `digits` 上，各方案的准确率相差不到一个百
# 分点，不超过换一个随机种子可能带来的变化；而层预算和簇这两种方案读取的节点，还不到全部邻居方案的三
# 分之一。然而时间并没有随之减少：库的采样器读得更多，用时却并不更长。图很小，一个批次的开销大部分与
# 节点数无关；为挑选节点而做的十几次张量运算，所花的时间超过了少读节点所节省的时间。在更大的图上，起
# 决定作用的是节点数。
#
# ## 在别处原样使用
#
# 采样器需要的只有图和种子节点，所以只要两者具备，同一个采样器就能原样运行。前面已经在
# `NodeDataLoader` 中用过我们的采样器。数据并行（data parallel）训练是第 04 课的主题，其中
# `create_dataloader` 把每个批次分给各个进程。分布式训练（distributed training）见第 05 课和第 06
# 课，其中 `DistNodeDataLoader` 在 `DistGraph` 上采样；`DistGraph` 是切成分区（partition）、节点换了
# 新 ID 的图。这里不另起进程，而是在当前进程中依次创建原本分属两个进程的加载器：它们合起来抽到的边，
# 以及在两个分区上抽到的边，与一个加载器在整张图上抽到的相同吗？


# %% slot="elsewhere-code" tags=["nbval-ignore-output"]
def drawn_edges(loader, original=None):
    dgl.seed(0)
    eids = [torch.cat([b.edata[dgl.EID] for b in blocks]) for _, _, blocks in loader]
    return [(e if original is None else original[e]).unique() for e in eids]


assert BATCH % 2 == 0, "BATCH must be even: each of two processes takes a half"
sampler, name = OwnNeighborSampler(FANOUTS), "lesson"
few = train_ids[: min(4, len(train_ids) // BATCH) * BATCH]
whole = drawn_edges(create_dataloader(0, 1, graph, few, sampler, batch_size=BATCH))
both = [
    drawn_edges(create_dataloader(rank, 2, graph, few, sampler, batch_size=BATCH // 2))
    for rank in range(2)
]
assert all(torch.equal(torch.cat(two).unique(), one) for *two, one in zip(*both, whole))
wanted = {"part_method": "random", "return_mapping": True}
with redirect_stdout(None):
    node_map, edge_map = partition_graph(graph, name, 2, lesson.folder, **wanted)
dgl.distributed.initialize()
parts = DistGraph(name, part_config=f"{lesson.folder}/{name}.json")
remote = DistNodeDataLoader(parts, node_map.argsort()[few], sampler, batch_size=BATCH)
there = drawn_edges(remote, edge_map)
here = drawn_edges(NodeDataLoader(graph, few, sampler, batch_size=BATCH))
assert all(map(torch.equal, there, here))
print(f"{len(whole)} + {len(here)} batches: the same edges")

# %% [markdown] slot="summary" lang="en"
# Yes, in both cases. Two conditions matter. First, the sampler must ask the graph only for what a
# `DistGraph` offers too, such as `sample_neighbors`, `in_subgraph`, `in_degrees` and `subgraph`.
# Second, its randomness must come from gnnlab: `LayerSampler` runs on a `DistGraph` as well, but it
# draws with torch's generator, so its samples depend on the process's earlier draws.
# `ClusterSampler` looks up nodes by ID; on a `DistGraph` it needs `cluster[node_map]` and
# `is_train[node_map]`.
#
# By default, your own sampler runs in the training thread. If its result depends only on the graph,
# the seed nodes and `dgl.seed`, the class attribute `pure = True` allows the loader to sample
# ahead.
#
# ## The same sampling in a PyG program
#
# PyG, another such library, has no blocks: a batch is one small graph, a `Data` object, whose nodes
# are renumbered from 0, seeds first. `gnnlab.pyg` has loaders that return such batches from
# gnnlab's sampler, so in a PyG program only the import changes. The code needs `torch_geometric`,
# so it is shown here but not run:
#
# ```python
# from gnnlab.pyg import NeighborLoader, to_pyg  # was: from torch_geometric.loader import …
#
# data = to_pyg(graph, names={"feat": "x", "label": "y"})
# loader = NeighborLoader(data, [10, 5], input_nodes=train_ids, batch_size=32, seed=0)
# batch = next(iter(loader))
# seeds = batch.n_id[: batch.batch_size]  # IDs; batch.x, batch.edge_index, batch.y as in PyG
# ```
#
# The same random seed gives identical batches for any number of worker processes; the [page for PyG
# users](../../docs/pyg.md) has the details.
#
# ## Summary
#
# - A frontier is a graph on all nodes with the chosen edges; `to_block` makes the block.
# - Override `sample_frontier` to choose edges, `sample_blocks` to put data on blocks, `sample` to
#   change what a batch is.
# - Importance sampling is unbiased only with the correction, and pays off only if the weights are
#   roughly proportional to the magnitudes of the values.
# - Before training, check a sampler against the graph and against a different implementation.
# - The same sampler runs in a loader, in data-parallel training and on a `DistGraph`.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, running *Setup* is enough to check an answer; to build on a class of the lesson,
# run the cells up to it. The
# [solutions](../solutions/03_custom_sampling_solution.ipynb) are in a separate
# notebook.
#
# 1. A `LayerSampler` with budgets `[256, 128]` gets 32 seeds: how many input nodes can there be at
#    most?
# 2. Which five weights, for the edges that enter node 0 of the toy graph from nodes 1 to 5, give
#    the reweighted estimate a variance of zero?
# 3. Write a `BlockSampler` with arguments `(num_layers, rate)` that takes all neighbors but drops
#    each edge with probability `rate`.
# 4. Write a `BlockSampler` with arguments `(fanouts, limit)` that samples only edges whose
#    `edata["time"]` is below `limit`, so that no prediction looks into the future.

# %% [markdown] slot="summary" lang="ko"
# 모두 같습니다. 다만 두 가지 조건이 있습니다. 첫째, 샘플러에서는 `sample_neighbors`, `in_subgraph`,
# `in_degrees`, `subgraph`처럼 `DistGraph`도 지원하는 기능만 써야 합니다. 둘째, gnnlab의 난수
# 생성기를 써야 합니다. `LayerSampler`도 `DistGraph`에서 동작하지만, torch의 난수 생성기를 쓰므로
# 프로세스가 그전에 난수를 얼마나 썼는지에 따라 결과가 달라집니다. `ClusterSampler`는 노드 ID로
# 배열을 조회하므로 `DistGraph`에서는 `cluster[node_map]`과 `is_train[node_map]`을 넘겨야 합니다.
#
# 직접 만든 샘플러는 기본적으로 학습 스레드에서 실행됩니다. 샘플링 결과가 그래프, 시드 노드,
# `dgl.seed`에만 달려 있다면 클래스 속성 `pure = True`를 지정하여 로더에서 미리 샘플링하게 할 수
# 있습니다.
#
# ## PyG 프로그램에서 같은 샘플링 쓰기
#
# 널리 쓰이는 또 다른 라이브러리인 PyG에는 블록이라는 개념이 없습니다. 배치는 작은 그래프 하나를
# 담은 `Data` 객체이고, 노드에는 시드 노드를 앞에 두고 0부터 새 번호를 매깁니다. `gnnlab.pyg`의
# 로더는 gnnlab의 샘플러로 이런 배치를 만들므로, PyG 프로그램에서는 import 문만 고치면 됩니다.
# 실행하려면 `torch_geometric`이 필요하므로 여기서는 코드만 싣습니다.
#
# ```python
# from gnnlab.pyg import NeighborLoader, to_pyg  # 원래: from torch_geometric.loader import …
#
# data = to_pyg(graph, names={"feat": "x", "label": "y"})
# loader = NeighborLoader(data, [10, 5], input_nodes=train_ids, batch_size=32, seed=0)
# batch = next(iter(loader))
# seeds = batch.n_id[: batch.batch_size]  # 원래 ID. batch.x 등은 PyG와 같습니다
# ```
#
# 난수 시드가 같으면 워커 프로세스가 몇 개이든 같은 배치가 나옵니다. 자세한 내용은 [PyG 사용자를
# 위한 문서](../../docs/pyg.md)(영어)에 있습니다.
#
# ## 요약
#
# - 프런티어는 노드를 모두 그대로 두고 고른 에지만 남긴 그래프이며, `to_block`을 거치면 블록이
#   됩니다.
# - 에지를 고르는 방법을 바꾸려면 `sample_frontier`를, 블록에 데이터를 추가하려면 `sample_blocks`를,
#   배치의 구성을 바꾸려면 `sample`을 재정의합니다.
# - 보정하지 않은 중요도 샘플링에는 편향이 있습니다. 보정하면 편향이 사라지지만, 오차가 줄어드는
#   것은 가중치가 이웃 값의 크기에 대체로 비례할 때뿐입니다.
# - 학습하기 전에 샘플러의 결과를 원래 그래프와, 그리고 같은 일을 하는 다른 구현의 결과와
#   비교합니다.
# - 같은 샘플러를 로더, 데이터 병렬 학습, `DistGraph`에서 그대로 쓸 수 있습니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 셀만 실행해도 채점할 수 있습니다. 레슨의 클래스를
# 상속하여 답을 쓴다면 그 클래스의 셀까지 차례로 실행합니다.
# [풀이](../solutions/ko/03_custom_sampling_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 예산이 `[256, 128]`인 `LayerSampler`에 시드 노드 32개를 주면 입력 노드는 최대 몇 개입니까?
# 2. 작은 그래프의 노드 1~5에서 노드 0으로 가는 에지 다섯 개에 가중치를 각각 얼마로 주면, 보정한
#    추정값의 분산이 0이 됩니까?
# 3. `(num_layers, rate)`를 인자로 받아, 모든 이웃을 가져오되 각 에지를 확률 `rate`로 제외하는
#    `BlockSampler`의 하위 클래스를 작성합니다.
# 4. `(fanouts, limit)`를 인자로 받아, `edata["time"]`이 `limit`보다 작은 에지만 샘플링하는
#    `BlockSampler`의 하위 클래스를 작성합니다. 그러면 예측에 미래의 정보가 쓰이지 않습니다.

# %% [markdown] slot="summary" lang="zh"
# 相同。不过有两个条件。其一，采样器对图的操作必须是 `DistGraph` 也提供的，例如
# `sample_neighbors`、`in_subgraph`、`in_degrees` 和 `subgraph`。其二，随机数要来自
# gnnlab：`LayerSampler` 也能在 `DistGraph` 上运行，但它用的是 torch 的随机数生成器，采样结果取决于
# 所在进程此前用过多少随机数。`ClusterSampler` 按节点 ID 查数组，在 `DistGraph` 上要传入
# `cluster[node_map]` 和 `is_train[node_map]`。
#
# 默认情况下，你自己的采样器在训练线程中运行。如果它的结果只取决于图、种子节点和 `dgl.seed`，就可以
# 设置类属性 `pure = True`，让加载器提前采样。
#
# ## 在 PyG 程序中使用同样的采样
#
# 另一个常用的库 PyG 没有块：一个批次就是一张小图（`Data` 对象），节点从 0 开始重新编号，种子节点排
# 在最前面。`gnnlab.pyg` 的加载器用 gnnlab 的采样器生成这样的批次，所以 PyG 程序只需改动导入语句。下
# 面的代码需要 `torch_geometric`，这里只展示，不运行：
#
# ```python
# from gnnlab.pyg import NeighborLoader, to_pyg  # 原为 from torch_geometric.loader import …
#
# data = to_pyg(graph, names={"feat": "x", "label": "y"})
# loader = NeighborLoader(data, [10, 5], input_nodes=train_ids, batch_size=32, seed=0)
# batch = next(iter(loader))
# seeds = batch.n_id[: batch.batch_size]  # 原图中的 ID；batch.x 等与 PyG 中相同
# ```
#
# 随机种子相同时，无论用几个工作进程，得到的批次都相同。详见[给 PyG 用户的说
# 明](../../docs/pyg.md)（英文）。
#
# ## 小结
#
# - 边界子图保留全部节点，只含选中的边；经过 `to_block` 就得到块。
# - 要选择边，就重写 `sample_frontier`；要在块上附带数据，就重写 `sample_blocks`；要改变批次的构成，
#   就重写 `sample`。
# - 不校正的重要性采样是有偏的；校正之后无偏，但只有当权重与邻居数值的大小大致成正比时，误差才更小。
# - 训练之前，先对照原图、再对照另一种实现，检验采样器是否正确。
# - 同一个采样器可以原样用于加载器、数据并行训练和 `DistGraph`。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的单元格就能评判；如果答案继承了本课的某个类，就从头运行到定义该类的单元格。
# [解答](../solutions/zh/03_custom_sampling_solution.ipynb)随本课提供。
#
# 1. 给预算为 `[256, 128]` 的 `LayerSampler` 传入 32 个种子节点，输入节点最多有多少个？
# 2. 在小图上，节点 1 到 5 指向节点 0 的五条边各取什么权重，才能使校正后估计值的方差为零？
# 3. 写一个参数为 `(num_layers, rate)` 的 `BlockSampler` 子类：取全部邻居，但以概率 `rate` 丢弃每条
#    边。
# 4. 写一个参数为 `(fanouts, limit)` 的 `BlockSampler` 子类：只采样 `edata["time"]` 小于 `limit` 的
#    边，使预测不会用到未来的信息。


# %% slot="answers-1-2"
answer_1 = None  # a number
answer_2 = None  # a list of five weights
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% slot="answers-3-4"
answer_3 = None  # a class
answer_4 = None  # a class
lesson.check(3, answer_3)
lesson.check(4, answer_4)
