# %% [markdown] slot="title" lang="en"
# # Link prediction without labels
#
# Labels are expensive; edges come with the graph. In **link prediction**, a model learns to score
# pairs of connected nodes higher than pairs drawn at random. Along the way, it learns to compute
# one vector per node, an *embedding*, which is useful for other tasks as well, even though no
# labels are used. By the end of this lesson, you will be able to
#
# - train GraphSAGE on edges, in mini-batches of positive and negative pairs;
# - draw the destinations of negative pairs in proportion to a power of their degree;
# - prevent data leakage by excluding an edge and its reverse;
# - evaluate embeddings with a simple classifier, against fair baselines.

# %% [markdown] slot="title" lang="ko"
# # 레이블 없이 하는 링크 예측
#
# 레이블을 붙이는 데는 큰 비용이 들지만, 에지는 그래프에 이미 들어 있습니다. **링크 예측**(link
# prediction)에서는 무작위로 뽑은 쌍보다 실제로 이어진 노드 쌍에 높은 점수를 주도록 모델을
# 학습합니다. 그 과정에서 노드마다 **임베딩**(embedding)이라는 벡터를 얻으며, 이 벡터는 레이블을
# 전혀 쓰지 않고 학습했는데도 다른 작업에 활용할 수 있습니다. 레슨을 마치면 다음과 같은 일을 할 수
# 있습니다.
#
# - 포지티브(positive) 쌍과 네거티브(negative) 쌍의 미니배치(mini-batch)로 GraphSAGE를 학습하기
# - 차수(degree)의 거듭제곱에 비례하는 확률로 네거티브 쌍의 도착 노드 뽑기
# - 에지와 그 역방향 에지를 제외하여 데이터 누수(leakage) 막기
# - 공정한 베이스라인(baseline)을 두고, 간단한 분류기로 임베딩을 평가하기

# %% [markdown] slot="title" lang="zh"
# # 不用标签的链接预测
#
# 人工标注的成本很高，而边是图中现成的。**链接预测**（link prediction）就是训练一个模型，使相连节点
# 对的得分高于随机节点对。训练的同时，每个节点都得到一个向量，即**嵌入**（embedding）；虽然没有用到
# 标签，这些向量对其他任务同样有用。学完之后，你能够：
#
# - 用正样本对和负样本对组成的小批次（mini-batch）训练 GraphSAGE；
# - 抽取负样本对的目标节点，概率与其度数的幂成正比；
# - 排除要预测的边及其反向边，防止数据泄漏；
# - 用一个简单的分类器评价嵌入，并与基线作公平的比较。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# `DATASET` selects the graph used throughout the lesson. `"digits"` comes with the project: 1,797
# images of handwritten digits, each joined to those that look most like it. `"cora"` and
# `"facebook"` are downloaded once.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 레슨 전체에서 사용할 그래프는 `DATASET`으로 정합니다. `"digits"`는 프로젝트에 포함되어 있습니다.
# 손글씨 숫자 이미지 1,797장을 노드로 하고, 서로 가장 비슷한 이미지끼리 에지로 이은 그래프입니다.
# `"cora"`와 `"facebook"`은 처음 사용할 때 한 번 내려받습니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# `DATASET` 决定整节课使用的图。`"digits"` 随项目附带，图中的节点是 1,797 张手写数字图像，每张都与最
# 相似的若干张相连。`"cora"` 和 `"facebook"` 首次使用时需要下载。

# %% slot="imports"
import time
import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from torch import nn
from tqdm.auto import tqdm

import gnnlab as dgl
import gnnlab.function as fn
import gnnlab.nn as dglnn
from gnnlab.dataloading import EdgeDataLoader, NeighborSampler, NodeDataLoader
from gnnlab.dataloading.negative_sampler import DegreePower, GlobalUniform
from gnnlab.exercises import Lesson
from gnnlab.plot import BLUE, GREEN, ORANGE

DATASET = "digits"  # or "cora", "facebook"
lesson = Lesson("02", "en")  # exercises, and the style of figures
lesson.style()
if DATASET == "digits":
    torch.set_num_threads(1)  # batches this small are not worth splitting across cores

# %% [markdown] slot="toy" lang="en"
# ## A toy graph: edges as examples
#
# In link prediction, the examples are edges. Messages need both directions, so each pair appears in
# the graph twice. For $E$ pairs, `both_ways` arranges the $2E$ edges so that edges $i$ and $i + E$
# are each other's reverse; `reverse_ids` lists the ID of each edge's reverse. The toy graph
# consists of two triangles joined by one more pair, nodes 2 and 3.

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기: 학습 예제는 에지
#
# 링크 예측의 학습 예제는 에지입니다. 메시지는 양쪽 방향으로 전달되어야 하므로 한 쌍마다 에지가 두
# 개씩 필요합니다. `both_ways`는 쌍이 $E$개일 때 $2E$개의 에지 가운데 에지 $i$와 에지 $i + E$가 서로
# 역방향이 되도록 그래프를 만들고, `reverse_ids`는 에지마다 그 역방향 에지의 ID를 반환합니다. 작은
# 그래프는 삼각형 두 개와, 두 삼각형을 잇는 노드 2와 3의 쌍으로 이루어집니다.

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图：样本就是边
#
# 在链接预测中，样本是边。消息要向两个方向传递，所以每一对相连的节点在图中有两条边。设相连的节点共有
# $E$ 对：`both_ways` 建图时，使 $2E$ 条边中的边 $i$ 与边 $i + E$ 互为反向边；`reverse_ids` 返回每条
# 边的反向边 ID。这张小图由两个三角形组成，节点 2 和 3 之间的边把它们连接起来。


# %% slot="toy-code"
def both_ways(pairs, num_nodes):
    u, v = pairs
    return dgl.graph((torch.cat([u, v]), torch.cat([v, u])), num_nodes=num_nodes)


def reverse_ids(graph):
    half = graph.num_edges() // 2
    return torch.arange(2 * half).roll(half)


toy = both_ways(torch.tensor([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]]), 6)
for eid in (3, reverse_ids(toy)[3].item()):
    u, v = toy.find_edges([eid])
    print(f"edge {eid} goes from {u.item()} to {v.item()}")

# %% [markdown] slot="leak" lang="en"
# With seven pairs, the reverse of edge 3 is edge 10.
#
# Now let a model score this pair: are nodes 2 and 3 connected? It computes a vector for node 2 from
# its neighbors, and node 3 is among them. **The input contains the answer**: this is data leakage.
# To prevent it, `EdgeDataLoader` has an argument `exclude`. With `"self"`, the blocks leave out the
# edges of the mini-batch; with `"reverse_id"`, they also leave out the reverse edges, which the
# loader looks up in `reverse_eids`. For a batch that contains only edge 3, we draw the edges of the
# block (those between nodes 2 and 3 in orange). Collapsed cells only draw figures; click one to
# expand it.

# %% [markdown] slot="leak" lang="ko"
# 쌍이 일곱 개이므로 에지 3의 역방향은 에지 10입니다.
#
# 이제 노드 2와 3이 이어져 있는지 모델로 예측한다고 합시다. 노드 2의 벡터는 이웃의 벡터로
# 계산하는데, 그 이웃에 노드 3이 포함됩니다. **모델의 입력에 정답이 들어 있는 것입니다.** 이런
# 데이터 누수를 막기 위해 `EdgeDataLoader`에는 `exclude`라는 인자가 있습니다. `"self"`로 지정하면
# 미니배치의 에지를 블록(block)에서 빼고, `"reverse_id"`로 지정하면 `reverse_eids`에서 찾은 역방향
# 에지까지 뺍니다. 에지 3 하나로 된 배치에서 블록에 어떤 에지가 들어가는지 그려 봅시다(노드 2와 3
# 사이의 에지는 주황색). 이 레슨에서 그림만 그리는 셀은 접어 두었으며, 누르면 펼쳐집니다.

# %% [markdown] slot="leak" lang="zh"
# 一共有七对，所以边 3 的反向边是边 10。
#
# 现在让模型预测节点 2 和 3 是否相连。节点 2 的向量由它的邻居算出，而节点 3 就在这些邻居之中，也就是
# 说，**模型的输入里含有答案**。这就是数据泄漏。为此，`EdgeDataLoader` 提供参数 `exclude`：取
# `"self"` 时，从块（block）中去掉当前小批次里作为样本的边；取 `"reverse_id"` 时，还去掉它们的反向边
# （由 `reverse_eids` 查得）。下面以只含边 3 的一批为例，画出块中有哪些边（节点 2 和 3 之间的边为橙
# 色）。本课中只负责绘图的单元格都已折叠，点击即可展开。

# %% slot="leak-code"
kept = {}
for exclude in (None, "self", "reverse_id"):
    hide = {"exclude": exclude, "reverse_eids": reverse_ids(toy)}
    loader = EdgeDataLoader(toy, [3], NeighborSampler([None]), **hide)
    kept[exclude] = next(iter(loader))[-1][0].edata[dgl.EID].sort().values
    print(f"exclude={exclude!r}: the block has edges {kept[exclude].tolist()}")

# %% slot="leak-draw" tags=["folded"]
place = [(0, 1), (0, -1), (1, 0), (2.2, 0), (3.2, 1), (3.2, -1)]
figure, axes = plt.subplots(1, 3, figsize=(9, 1.9), layout="constrained")
for ax, (exclude, eids) in zip(axes, kept.items()):
    for u, v in zip(*(ends.tolist() for ends in toy.find_edges(eids))):
        color = ORANGE if {u, v} == {2, 3} else GREEN
        arrow = {"arrowstyle": "-|>", "color": color, "shrinkA": 8, "shrinkB": 8}
        arrow |= {"connectionstyle": "arc3,rad=0.2", "lw": 1.5}
        ax.annotate("", place[v], place[u], arrowprops=arrow)
    ax.scatter(*zip(*place), s=200, color=["gray"] * 2 + [BLUE] * 2 + ["gray"] * 2)
    for i, (x, y) in enumerate(place):
        ax.text(x, y, i, color="white", ha="center", va="center_baseline")
    ax.margins(0.1, 0.2)
    ax.set_title(f"exclude={exclude!r}")
    ax.axis("off")
plt.show()

# %% [markdown] slot="negative" lang="en"
# Without exclusion, both directions are in the block. `"self"` removes one, but node 2 still
# receives a message from node 3. Only with `"reverse_id"` does neither end receive a message from
# the other.
#
# ## Build it yourself: negative sampling
#
# With edges alone, a model that always answers "connected" would be perfect. **Negative sampling**
# supplies negative examples: for each edge $(u, v)$, we keep $u$ and draw nodes $w$ to replace $v$.
# If all nodes were equally likely to be drawn, nodes with many neighbors would make up a far larger
# share of positive than of negative destinations, and the model would learn the degree of a node
# instead of its affinity with others. If nodes were drawn in proportion to their degree, those with
# many neighbors would crowd out the rest. word2vec uses a compromise for word frequencies, which we
# apply to degrees:
#
# $$P(w) \propto \deg(w)^{0.75}$$
#
# A node with 16 neighbors is then drawn eight times as often as one with a single neighbor, rather
# than equally often or sixteen times as often. A negative sampler is any callable that takes a
# graph and edge IDs and returns sources and destinations. A drawn pair may happen to be an edge; in
# a sparse graph, this is rare. We write a negative sampler and compare it with the library's
# `DegreePower`.

# %% [markdown] slot="negative" lang="ko"
# 제외하지 않으면 양쪽 방향의 에지가 모두 블록에 들어 있습니다. `"self"`로 하나를 빼도 노드 2는
# 여전히 노드 3의 메시지를 받습니다. `"reverse_id"`로 지정해야 두 노드가 서로의 메시지를 받지
# 않습니다.
#
# ## 직접 만들어 보기: 네거티브 샘플링
#
# 에지만 예제로 쓰면 언제나 "이어져 있다"라고 답하는 모델이 가장 좋은 모델이 됩니다. **네거티브
# 샘플링**(negative sampling)은 여기에 네거티브 예제를 더합니다. 에지 $(u, v)$마다 $u$는 그대로 두고
# $v$ 대신 다른 노드 $w$를 뽑습니다. 이때 모든 노드를 같은 확률로 뽑으면, 이웃이 많은 노드는
# 포지티브 쌍의 도착 노드로는 다른 노드보다 자주 나오지만 네거티브 쌍의 도착 노드로는 다른 노드와
# 비슷한 빈도로 나옵니다. 그러면 모델은 두 노드의 관계가 아니라 차수를 학습합니다. 반대로 차수에
# 비례하여 뽑으면 이웃이 많은 노드에 지나치게 치우칩니다. word2vec에서는 단어의 빈도에 대해 그
# 중간을 택했으며, 여기서는 이를 차수에 적용합니다.
#
# $$P(w) \propto \deg(w)^{0.75}$$
#
# 예를 들어 이웃이 16개인 노드는 이웃이 1개인 노드보다 8배 자주 뽑힙니다. 균등하게 뽑을 때의 1배와
# 차수에 비례하여 뽑을 때의 16배 사이의 값입니다. 네거티브 샘플러(negative sampler)는 그래프와 에지
# ID를 인자로 받아 출발 노드와 도착 노드를 반환하는 호출 가능한 객체이면 됩니다. 뽑힌 쌍이 우연히
# 에지일 수도 있지만, 희소한 그래프에서는 드문 일입니다. 네거티브 샘플러를 하나 직접 작성하여
# 라이브러리의 `DegreePower`와 비교해 봅시다.

# %% [markdown] slot="negative" lang="zh"
# 不排除任何边时，两个方向的边都在块中。`"self"` 去掉一个方向，但节点 2 仍会收到节点 3 的消息。只有
# 用 `"reverse_id"` 时，两端才都收不到对方的消息。
#
# ## 亲手实现：负采样
#
# 如果只用图中的边作样本，那么一律预测“相连”的模型就是最好的。**负采样**（negative sampling）用来补
# 充负样本：对每条边 $(u, v)$，保留 $u$，另外抽取节点 $w$ 代替 $v$。邻居多的节点常常是正样本对的目标
# 节点。如果所有节点被抽到的概率相同，这些节点作为负样本对的目标节点出现的次数就与其他节点差不多，模
# 型只凭度数就能区分许多正负样本，不必学习节点之间的关系；如果概率与度数成正比，抽到的又几乎都是邻居
# 多的节点。word2vec 对词频采用了折中的办法，这里把它用于度数：
#
# $$P(w) \propto \deg(w)^{0.75}$$
#
# 例如，有 16 个邻居的节点被抽到的概率，是只有 1 个邻居的节点的 8 倍，介于均匀抽取时的 1 倍与按度数
# 抽取时的 16 倍之间。负采样器可以是任何可调用对象，以一张图和一组边 ID 为参数，返回源节点和目标节
# 点。抽到的节点可能恰好与源节点有边相连，但在稀疏的图中这很少见。下面自己写一个，与库中的
# `DegreePower` 比较。


# %% slot="negative-code"
class PowerSampler:
    def __init__(self, k, power=0.75):
        self.k, self.power = k, power

    def __call__(self, g, eids):
        src = g.find_edges(eids)[0].repeat_interleave(self.k)
        weight = g.in_degrees() ** self.power
        return src, weight.multinomial(len(src), replacement=True)


torch.manual_seed(0)
dgl.seed(0)
wanted = toy.in_degrees() ** 0.75
wanted = wanted / wanted.sum()
print("desired:", wanted.numpy().round(2))
for name, draw in (("by hand", PowerSampler(20_000)), ("library", DegreePower(20_000))):
    src, dst = draw(toy, torch.arange(14))
    share = dst.bincount(minlength=6) / len(dst)
    assert torch.allclose(share, wanted, atol=2 * len(dst) ** -0.5)
    print(f"{name}:", share.numpy().round(2))

# %% [markdown] slot="score" lang="en"
# Nodes 2 and 3 have three neighbors, the others two; both samplers draw them in the desired
# proportions.
#
# ## Score and loss
#
# `apply_edges` computes a value for each edge from the features of its endpoints; with `u_dot_v`,
# this value is their dot product. Our vectors will have norm 1, so this is the cosine of the angle
# between them. Multiplying it by `SCALE` stretches its range to [−5, 5], wide enough for the
# logistic function $\sigma$ to come close to 0 and 1. The loss is small when positive pairs have
# high scores and negative pairs have low ones:
#
# $$L = -\operatorname{mean}_{+} \log \sigma(s) - \operatorname{mean}_{-} \log (1 - \sigma(s))$$
#
# In code, `softplus(-s)` is $-\log \sigma(s)$ and `softplus(s)` is $-\log (1 - \sigma(s))$, without
# overflow. A model that gives every pair a score of 0 has $\sigma(0) = 0.5$ throughout and a loss
# of $2 \log 2 \approx 1.386$; judged by its loss alone, a model that does not get below this is no
# better than one that ignores its input.

# %% [markdown] slot="score" lang="ko"
# 노드 2와 3은 이웃이 세 개이고 나머지는 두 개입니다. 두 샘플러 모두 원하는 비율로 노드를 뽑습니다.
#
# ## 점수와 손실
#
# `apply_edges`는 양 끝 노드의 피처(feature)로 에지마다 값을 하나씩 계산합니다. `u_dot_v`를 쓰면 두
# 피처 벡터의 내적이 그 값이 됩니다. 여기서는 노름(norm)이 1인 벡터를 쓰므로 내적은 두 벡터가 이루는
# 각의 코사인입니다. 여기에 `SCALE`을 곱하면 점수의 범위가 −5에서 5까지로 넓어져, 로지스틱 함수
# $\sigma$의 값이 0이나 1에 가까워질 수 있습니다. 손실은 포지티브 쌍의 점수가 높고 네거티브 쌍의
# 점수가 낮을수록 작아집니다.
#
# $$L = -\operatorname{mean}_{+} \log \sigma(s) - \operatorname{mean}_{-} \log (1 - \sigma(s))$$
#
# 코드에서 `softplus(-s)`는 $-\log \sigma(s)$이고 `softplus(s)`는 $-\log (1 - \sigma(s))$이며, 둘 다
# 오버플로가 생기지 않습니다. 모든 쌍의 점수가 0이면 언제나 $\sigma(0) = 0.5$이므로 손실은
# $2 \log 2 \approx 1.386$입니다. 손실만 놓고 보면, 손실이 이 값 이상인 모델은 모든 쌍에 0점을
# 주는 것보다 나을 것이 없습니다.

# %% [markdown] slot="score" lang="zh"
# 节点 2 和 3 各有三个邻居，其余节点各有两个；两个采样器（sampler）抽取的比例都符合要求。
#
# ## 得分与损失
#
# `apply_edges` 根据两端节点的特征（feature）为每条边计算一个值；用 `u_dot_v` 时，这个值就是点积。这
# 里的向量模长都是 1，所以点积等于夹角的余弦。乘以 `SCALE` 后，得分的范围扩大到 −5 至 5，sigmoid 函
# 数 $\sigma$ 的值才能接近 0 和 1。正样本对的得分越高、负样本对的得分越低，损失就越小：
#
# $$L = -\operatorname{mean}_{+} \log \sigma(s) - \operatorname{mean}_{-} \log (1 - \sigma(s))$$
#
# 在代码中，`softplus(-s)` 就是 $-\log \sigma(s)$，`softplus(s)` 就是 $-\log (1 - \sigma(s))$，并且
# 不会溢出。如果每一对的得分都是 0，则 $\sigma(0) = 0.5$，损失为 $2 \log 2 \approx 1.386$；仅就损失
# 而言，损失不低于这个值的模型，并不比给每一对都打 0 分更好。

# %% slot="score-code"
SCALE = 5


def score(graph, h):
    with graph.local_scope():
        graph.ndata["h"] = h
        graph.apply_edges(fn.u_dot_v("h", "h", "score"))
        return SCALE * graph.edata["score"].flatten()


def loss_of(positive, negative):
    return F.softplus(-positive).mean() + F.softplus(negative).mean()


h = F.normalize(torch.randn(6, 4), dim=1)
u, v = toy.edges()
by_hand = SCALE * (h[u] * h[v]).sum(1)
assert torch.allclose(score(toy, h), by_hand, atol=1e-6)
print("equal:", tuple(by_hand.shape))

# %% [markdown] slot="data" lang="en"
# `apply_edges` and the formula agree.
#
# ## Real pairs
#
# We set a tenth of all pairs aside for testing and remove them from the graph, in both directions.
# Each feature is centered, and all are divided by one overall standard deviation, so that the same
# learning rate works for every data set. Labels are used only to evaluate the embeddings.

# %% [markdown] slot="data" lang="ko"
# `apply_edges`의 결과는 식으로 계산한 값과 같습니다.
#
# ## 실제 데이터 준비
#
# 전체 쌍의 10분의 1을 테스트용으로 떼어 두고, 그래프에서 이 쌍의 에지를 양쪽 방향 모두 지웁니다.
# 피처마다 평균을 뺀 뒤 전체에서 구한 하나의 표준편차로 모두 나누어, 모든 데이터셋에 같은 학습률을
# 쓸 수 있게 합니다. 레이블은 임베딩을 평가할 때만 사용합니다.

# %% [markdown] slot="data" lang="zh"
# `apply_edges` 的结果与直接计算的点积一致。
#
# ## 真实数据
#
# 留出全部相连节点对的十分之一用于测试，并从图中删去它们两个方向的边。每个特征先减去各自的平均值，再
# 统一除以所有特征值的标准差，使同一个学习率适用于所有数据集。标签只在评价嵌入时使用。

# %% slot="data-code"
dataset = dgl.data.load(DATASET, add_reverse_edges=False)
feat, label = dataset[0].ndata["feat"], dataset[0].ndata["label"]
feat = feat - feat.mean(0)
feat, num_nodes = feat / feat.std(), len(feat)
pairs = torch.stack(dataset[0].edges()).sort(0).values
pairs = pairs[:, pairs[0] < pairs[1]].unique(dim=1)  # each pair once, no self-loops


def split(pairs):
    order = torch.randperm(pairs.shape[1], generator=torch.Generator().manual_seed(0))
    held_out = len(order) // 10
    return pairs[:, order[held_out:]], pairs[:, order[:held_out]]


train_pairs, test_pairs = split(pairs)
graph = both_ways(train_pairs, num_nodes)
print(f"{train_pairs.shape[1]} training pairs, {test_pairs.shape[1]} test pairs")
print(f"training graph: {num_nodes} nodes, {graph.num_edges()} edges")

# %% [markdown] slot="loader" lang="en"
# ## Mini-batches of edges
#
# `EdgeDataLoader` splits the edges into batches. For each batch, it calls the negative sampler,
# which draws five pairs for each edge, and then the block sampler, with the endpoints of all
# positive and negative pairs as seeds. A mini-batch consists of
#
# - `input_nodes`: the nodes whose features are needed;
# - `pos_graph`: a graph of the edges in the batch;
# - `neg_graph`: a graph of the negative pairs;
# - `blocks`: one per layer, without the edges that `exclude` specifies.
#
# Both graphs have the same nodes in the same order: the destination nodes of the last block. So the
# rows that the model returns line up with both.

# %% [markdown] slot="loader" lang="ko"
# ## 에지의 미니배치
#
# `EdgeDataLoader`는 에지를 배치로 나눈 다음, 네거티브 샘플러로 에지마다 네거티브 쌍을 다섯 개씩
# 뽑고, 포지티브 쌍과 네거티브 쌍의 양 끝 노드를 모두 시드로 하여 블록 샘플러를 실행합니다.
# 미니배치는 다음과 같이 구성됩니다.
#
# - `input_nodes`: 피처가 필요한 노드입니다.
# - `pos_graph`: 배치의 에지로 이루어진 그래프입니다.
# - `neg_graph`: 네거티브 쌍으로 이루어진 그래프입니다.
# - `blocks`: 계층마다 하나씩 있으며, `exclude`로 지정한 에지가 빠져 있습니다.
#
# 두 그래프의 노드는 마지막 블록의 도착 노드와 같고 순서도 같습니다. 따라서 모델의 출력을 두
# 그래프에 그대로 쓸 수 있습니다.

# %% [markdown] slot="loader" lang="zh"
# ## 边的小批次
#
# `EdgeDataLoader` 把边分成若干批，用负采样器为每条边抽取五个负样本对，再以正、负样本对的两端节点为
# 种子，用块采样器生成块。一个小批次包括：
#
# - `input_nodes`：需要读取特征的节点；
# - `pos_graph`：由这一批的边组成的图；
# - `neg_graph`：由负样本对组成的图；
# - `blocks`：每层一个块，其中不含 `exclude` 所指定的边。
#
# 两张图的节点都是最后一个块的目标节点，顺序也相同，所以模型的输出可以直接用于两张图。

# %% slot="loader-code"
BATCH, EPOCHS = (1024, 2) if DATASET == "facebook" else (256, 3)
FANOUTS = [10, 5]
settings = [DATASET, SCALE, BATCH, EPOCHS, FANOUTS]
unchanged = settings == ["digits", 5, 256, 3, [10, 5]]  # the text is about these


def edge_loader(graph, exclude="reverse_id", k=5, fanouts=FANOUTS, batch_size=BATCH):
    return EdgeDataLoader(
        graph,
        torch.arange(graph.num_edges()),
        NeighborSampler(fanouts),
        exclude=exclude,
        reverse_eids=reverse_ids(graph),
        negative_sampler=DegreePower(k),
        batch_size=batch_size,
        shuffle=True,
    )


dgl.seed(0)
input_nodes, pos_graph, neg_graph, blocks = next(iter(edge_loader(graph)))
for pair_graph in (pos_graph, neg_graph):
    assert torch.equal(pair_graph.ndata[dgl.NID], blocks[-1].dstdata[dgl.NID])
print(f"{pos_graph.num_edges()} positive and {neg_graph.num_edges()} negative edges")
print(f"on {pos_graph.num_nodes()} nodes, computed from {len(input_nodes)} input nodes")

# %% [markdown] slot="model" lang="en"
# On `digits`, the 1,536 pairs have over 1,100 different endpoints, and these need the features of
# the whole graph; in larger graphs, they need only part of it.
#
# ## The model
#
# The model has two `SAGEConv` layers, each applied to its own block. The last step divides the 64
# numbers of each node by their norm, which gives the embedding; the GraphSAGE paper divides by the
# norm after every layer.

# %% [markdown] slot="model" lang="ko"
# `digits`에서 쌍 1,536개에는 서로 다른 노드가 1,100개 넘게 나오고, 이 노드들의 벡터를 계산하려면
# 그래프 전체의 피처가 필요합니다. 더 큰 그래프에서는 일부만 있으면 됩니다.
#
# ## 모델
#
# 모델은 `SAGEConv` 계층 두 개로 이루어지며, 계층마다 블록을 하나씩 씁니다. 마지막에는 각 벡터를 그
# 노름으로 나누어 노드마다 64차원 임베딩을 얻습니다. GraphSAGE 논문에서는 계층마다 노름으로
# 나눕니다.

# %% [markdown] slot="model" lang="zh"
# 在 `digits` 上，1,536 对节点共有 1,100 多个不同的端点，计算它们的向量需要整张图的特征；在更大的图
# 上只需要一部分。
#
# ## 模型
#
# 模型由两个 `SAGEConv` 层组成，每层使用一个块。最后把每个向量除以它的模长（L2 范数），得到每个节点
# 的 64 维嵌入；GraphSAGE 论文则在每一层之后都除以模长。


# %% slot="model-code"
class SAGE(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        layers = [dglnn.SAGEConv(i, o, "mean") for i, o in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)

    def step(self, i, block, h):
        h = self.layers[i](block, h)
        last = i + 1 == len(self.layers)
        return F.normalize(h, dim=1) if last else F.relu(h)

    def forward(self, blocks, h):
        for i, block in zip(range(len(self.layers)), blocks, strict=True):
            h = self.step(i, block, h)
        return h


def new_model(feat, seed):
    torch.manual_seed(seed)
    return SAGE([feat.shape[1], *[128] * (len(FANOUTS) - 1), 64])


# %% [markdown] slot="train" lang="en"
# ## Training
#
# In each epoch, every edge serves as a positive example exactly once. `batch_loss` computes one set
# of vectors and scores both graphs with it; the rest is an ordinary loop. Results depend a little
# on the random seed, so we train three times.

# %% [markdown] slot="train" lang="ko"
# ## 학습
#
# 한 에폭(epoch) 동안 모든 에지가 한 번씩 포지티브 예제가 됩니다. `batch_loss`에서는 벡터를 한 번만
# 계산하여 두 그래프의 점수를 모두 구합니다. 나머지는 평범한 학습 루프입니다. 결과가 난수 시드에
# 따라 조금씩 달라지므로 세 번 학습합니다.

# %% [markdown] slot="train" lang="zh"
# ## 训练
#
# 在一轮（epoch）之中，每条边都充当一次正样本。`batch_loss` 只计算一次向量，用来为两张图中的节点对打
# 分；其余是普通的训练循环。结果会因随机种子不同而略有变化，所以训练三次。


# %% slot="train-code" tags=["nbval-ignore-output"]
def batch_loss(model, feat, batch):
    input_nodes, pos_graph, neg_graph, blocks = batch
    h = model(blocks, feat[input_nodes])
    return loss_of(score(pos_graph, h), score(neg_graph, h))


def train(graph, feat, seed, exclude="reverse_id"):
    dgl.seed(seed)
    model, losses = new_model(feat, seed), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    loader = edge_loader(graph, exclude)
    for _ in tqdm(range(EPOCHS), desc="epochs", leave=False):
        for batch in loader:
            loss = batch_loss(model, feat, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return model, losses


runs = [train(graph, feat, seed) for seed in range(3)]
for _, losses in runs:
    print(f"loss: {losses[0]:.2f} at the start, {sum(losses[-10:]) / 10:.2f} at the end")
    assert not unchanged or (losses[0] > 1.386 and sum(losses[-10:]) / 10 < 0.9)

# %% [markdown] slot="inference" lang="en"
# All three runs start above 1.386, because an untrained network gives even negative pairs scores
# well above 0; they end at about 0.8.
#
# ## Embeddings of all nodes
#
# Layer-wise inference computes every node's vector once per layer, from all of its neighbors. First
# we compare scores: do test pairs get higher scores than pairs that are not connected? The AUC is
# the probability that this holds for a random pair of each kind; 0.5 is a coin toss. There are two
# baselines: the raw features, and the same network *untrained*, with random weights.

# %% [markdown] slot="inference" lang="ko"
# 학습하지 않은 모델은 네거티브 쌍에도 0보다 훨씬 높은 점수를 주기 때문에, 손실은 세 번 모두
# 1.386보다 큰 값에서 시작하여 0.8 정도까지 내려갑니다.
#
# ## 모든 노드의 임베딩
#
# 계층별 추론(layer-wise inference)은 모든 이웃을 써서 각 노드의 벡터를 계층마다 한 번만 계산합니다.
# 먼저 테스트용 쌍의 점수가, 에지로 이어지지 않은 쌍의 점수보다 높은지 알아봅시다. AUC는 양쪽에서
# 쌍을 하나씩 무작위로 골랐을 때 테스트용 쌍의 점수가 더 높을 확률이며, 0.5이면 동전 던지기와
# 같습니다. 베이스라인은 두 가지입니다. 하나는 원래 피처이고, 다른 하나는 구조는 같지만 **학습하지
# 않아** 가중치가 무작위인 신경망입니다.

# %% [markdown] slot="inference" lang="zh"
# 训练开始时，未经训练的网络对负样本对也给出远高于 0 的得分，所以三次训练的损失都从 1.386 以上开始，
# 最后降到 0.8 左右。
#
# ## 所有节点的嵌入
#
# 逐层推理（layer-wise inference）使用全部邻居，每个节点的向量在每一层只计算一次。先比较得分：测试用
# 节点对的得分是否高于不相连的节点对？从这两类节点对中各随机取一对，测试用节点对得分更高的概率就是
# AUC；0.5 相当于抛硬币。基线有两个：原始特征，以及结构相同但**未经训练**、权重随机的网络。


# %% slot="inference-code" tags=["nbval-ignore-output"]
@torch.no_grad()
def embed(model, graph, feat, batch_size=1024):
    everyone, sampler = torch.arange(graph.num_nodes()), NeighborSampler([None])
    loader = NodeDataLoader(graph, everyone, sampler, batch_size=batch_size)
    h = feat
    for i in range(len(model.layers)):
        h = torch.cat([model.step(i, block, h[ids]) for ids, _, (block,) in loader])
    return h


def auc(h, positive, negative):
    scores = [(h[u] * h[v]).sum(1) for u, v in (positive, negative)]
    truth = [1] * len(scores[0]) + [0] * len(scores[1])
    return roc_auc_score(truth, torch.cat(scores))


everything = both_ways(pairs, num_nodes)
unjoined = GlobalUniform(5)(everything, torch.arange(test_pairs.shape[1]))
rivals = {"raw features": [F.normalize(feat, dim=1)]}
rivals["untrained"] = [embed(new_model(feat, seed), graph, feat) for seed in range(3)]
rivals["trained"] = [embed(model, graph, feat) for model, _ in runs]
for name, rows in rivals.items():
    found = [auc(h, test_pairs, unjoined) for h in rows]
    print(f"{name}:", [f"{each:.3f}" for each in found])
    assert not unchanged or min(found) > 0.97

# %% [markdown] slot="judge" lang="en"
# On `digits`, all three have a very high AUC. This is no surprise: the edges join images with
# similar pixels, so the raw features already contain the answer. On `"facebook"`, where the edges
# represent mutual likes between pages and are not computed from features, the same cells gave an
# AUC of 0.837 for the raw features, 0.876 to 0.882 for the untrained network and 0.967 to 0.969 for
# the trained one (three random seeds).
#
# ## Evaluate the embeddings
#
# Do the embeddings help with a task that they were not trained for? A logistic regression learns
# the labels from the embeddings of the training nodes (179 on `digits`) and is tested on the test
# nodes. The micro-F1 score weights all nodes equally; with one label per node, it equals the
# accuracy. Random vectors serve as a third baseline. The figure shows the cosine similarities
# between the centered vectors of about 130 nodes, sorted by class: blue means similar, red
# opposite.

# %% [markdown] slot="judge" lang="ko"
# `digits`에서는 셋 모두 AUC가 아주 높습니다. 픽셀이 비슷한 이미지끼리 에지로 이었으므로 원래 피처에
# 이미 답이 들어 있기 때문입니다. `"facebook"`의 에지는 피처로 계산한 것이 아니라 페이지끼리 서로
# 누른 ‘좋아요’입니다. 이 데이터셋으로 같은 셀을 실행했을 때, AUC는 원래 피처가 0.837, 학습하지 않은
# 신경망이 0.876~0.882, 학습한 신경망이 0.967~0.969였습니다(난수 시드 세 개).
#
# ## 임베딩 평가
#
# 임베딩은 학습 목표가 아니었던 작업에도 도움이 될까요? 학습 노드(`digits`에서는 179개)의 임베딩과
# 레이블로 로지스틱 회귀(logistic regression)를 학습하고, 테스트 노드에서 평가합니다. micro-F1은
# 모든 노드에 같은 비중을 두는 점수로, 노드마다 레이블이 하나이면 정확도와 같습니다. 여기에 세 번째
# 베이스라인으로 난수 벡터를 추가합니다. 그림은 노드 130개가량을 클래스별로 늘어놓고, 평균을 뺀
# 벡터의 코사인 유사도를 두 노드씩 짝지어 나타낸 것입니다. 파란색은 두 벡터의 방향이 비슷한 쌍,
# 빨간색은 방향이 반대인 쌍입니다.

# %% [markdown] slot="judge" lang="zh"
# 在 `digits` 上，三者的 AUC 都很高。这不奇怪：边连接的是像素相似的图像，所以原始特征里已经有了答
# 案。`"facebook"` 的边是页面之间的互相点赞，不是由特征算出的；在这张图上运行同样的单元格，AUC 为：
# 原始特征 0.837，未训练的网络 0.876 到 0.882，训练过的网络 0.967 到 0.969（三个随机种子）。
#
# ## 评价嵌入
#
# 这些嵌入对训练时没有涉及的任务有帮助吗？用训练节点（`digits` 上有 179 个）的嵌入和标签训练一个逻辑
# 回归分类器，再在测试节点上检验。micro-F1 对所有节点一视同仁；每个节点只有一个标签时，它就等于准确
# 率。再加上随机数作为第三个基线。下图取约 130 个节点，按类别排列；先从各个向量中减去所有向量的平
# 均，再画出两两之间的余弦相似度：蓝色表示相似，红色表示相反。


# %% slot="judge-code" tags=["nbval-ignore-output"]
def micro_f1(h):
    h = ((h - h.mean(0)) / h.std()).numpy()
    judge = LogisticRegression(max_iter=1000)
    judge.fit(h[dataset.train_idx], label[dataset.train_idx])
    predicted = judge.predict(h[dataset.test_idx])
    return f1_score(label[dataset.test_idx], predicted, average="micro")


random = [torch.randn(num_nodes, 64) for _ in range(3)]
rivals = {"random": random, **rivals, "raw features": [feat]}
judged = {name: [micro_f1(h) for h in rows] for name, rows in rivals.items()}
for name, found in judged.items():
    print(f"{name}:", [f"{each:.3f}" for each in found])
pixels = judged["raw features"][0]
for a, b, c in zip(judged["random"], judged["untrained"], judged["trained"]):
    assert not unchanged or a < pixels < b < c

# %% slot="judge-draw" tags=["folded", "nbval-ignore-output"]
order = label.argsort(stable=True)[:: max(1, num_nodes // 120)]
classes = range(dataset.num_classes)
middles = [(label[order] == c).nonzero().float().mean() for c in classes]
colors = plt.get_cmap("RdBu", 21)
figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, name in zip(axes, ("raw features", "untrained", "trained")):
    rows = rivals[name][0]
    rows = F.normalize(rows - rows.mean(0), dim=1)[order]
    image = ax.imshow(rows @ rows.T, colors, vmin=-1, vmax=1, interpolation="nearest")
    ax.set(xticks=middles, xticklabels=classes, yticks=[], title=name)
figure.colorbar(image, ax=axes, label="cosine")
plt.show()

# %% [markdown] slot="prove" lang="en"
# On `digits`, the ranking is clear in all three runs: random about 0.1, raw pixels 0.937, untrained
# about 0.95, trained about 0.97. Note the untrained network: merely averaging neighbors beats the
# pixels, and training adds about two more points. In the figure, the squares on the diagonal are
# the classes. With raw and untrained vectors, some whole classes also resemble, or are opposite to,
# other classes; after training, little but the squares is left. On `"facebook"`, the micro-F1 was
# 0.776 for the raw features, 0.741 to 0.766 for the untrained network and 0.890 to 0.902 for the
# trained one.
#
# ## Check that nothing leaks
#
# In every block of one epoch on the real graph, we count the edges that are examples in their
# batch, or reverses of such examples.

# %% [markdown] slot="prove" lang="ko"
# `digits`에서는 난수 시드 세 개 모두에서 순위가 분명합니다. 난수는 약 0.1, 원래 픽셀은 0.937,
# 학습하지 않은 신경망은 약 0.95, 학습한 신경망은 약 0.97입니다. 특히 학습하지 않은 신경망의 결과가
# 눈에 띕니다. 이웃의 평균을 내는 것만으로도 픽셀을 그대로 쓰는 것보다 낫고, 학습하면 여기에
# 2%포인트쯤이 더해집니다. 그림에서 대각선에 놓인 정사각형 하나하나가 클래스 하나에 해당합니다. 원래
# 피처와 학습하지 않은 신경망의 벡터에서는 서로 다른 두 클래스의 벡터가 전체적으로 비슷한 방향이거나
# 반대 방향인 경우도 있지만, 학습하고 나면 거의 대각선의 정사각형만 남습니다. `"facebook"`에서
# micro-F1은 원래 피처가 0.776, 학습하지 않은 신경망이 0.741~0.766, 학습한 신경망이
# 0.890~0.902였습니다.
#
# ## 확인하기: 데이터 누수가 없는가
#
# 실제 그래프에서 한 에폭의 모든 블록을 살펴보며, 같은 배치의 예제이거나 그 역방향인 에지가 몇
# 개인지 셉니다.

# %% [markdown] slot="prove" lang="zh"
# 在 `digits` 上，换用三个随机种子，各方法的优劣顺序始终不变：随机数约 0.1，原始像素 0.937，未训练的
# 网络约 0.95，训练过的网络约 0.97。值得注意的是未训练的网络：仅仅对邻居求平均就胜过像素，训练又提高
# 了约两个百分点。图中对角线上的方块就是各个类别。用原始特征和未训练网络的向量时，不同类别之间也会成
# 片地相似或相反；训练之后，几乎只剩下这些方块。在 `"facebook"` 上，micro-F1 为：原始特征 0.776，未
# 训练的网络 0.741 到 0.766，训练过的网络 0.890 到 0.902。
#
# ## 验证：没有泄漏
#
# 在真实的图上逐个检查一轮中的所有块，统计有多少条边是同一批的样本或样本的反向边。


# %% slot="prove-code"
def count_leaks(exclude):
    found = total = 0
    for _, pos_graph, _, blocks in edge_loader(graph, exclude):
        eids = pos_graph.edata[dgl.EID]
        answers = torch.cat([eids, reverse_ids(graph)[eids]])
        for block in blocks:
            found += torch.isin(block.edata[dgl.EID], answers).sum().item()
            total += block.num_edges()
    return found, total


dgl.seed(0)
shares = []
for exclude in (None, "self", "reverse_id"):
    found, total = count_leaks(exclude)
    print(f"exclude={exclude!r}: {found} of {total} block edges are answers")
    shares.append(found / total)
assert shares[2] == 0 and 0.4 < shares[1] / shares[0] < 0.6

# %% [markdown] slot="loss" lang="en"
# Without exclusion, about 3% of the edges are answers; with `"self"`, half as many; with
# `"reverse_id"`, none.
#
# ## Check the loss by hand
#
# Now we compute the loss of a mini-batch without the loader's exclusion, blocks or new node IDs:
# take the whole graph, remove the edges of the batch and their reverses, average over neighbors
# with `index_add`, and write the loss as in the formula. With all neighbors in the blocks, the two
# losses must agree.

# %% [markdown] slot="loss" lang="ko"
# 제외하지 않으면 블록의 에지 가운데 약 3%가 정답입니다. `"self"`로 지정하면 정답이 그 절반으로
# 줄고, `"reverse_id"`로 지정하면 하나도 남지 않습니다.
#
# ## 확인하기: 손실을 직접 계산한 값과 비교
#
# 이제 제외 기능도, 블록도, 새 노드 번호도 쓰지 않고 미니배치의 손실을 계산합니다. 그래프 전체에서
# 배치의 에지와 그 역방향을 지우고, `index_add`로 이웃의 평균을 구한 뒤, 손실을 식 그대로
# 계산합니다. 블록에 모든 이웃이 들어 있다면 두 값이 같아야 합니다.

# %% [markdown] slot="loss" lang="zh"
# 不排除任何边时，约 3% 的边是答案；用 `"self"` 时减半；用 `"reverse_id"` 时一条也没有。
#
# ## 验证：手动计算损失
#
# 下面换一种方法计算一个小批次的损失，不用排除功能，不用块，也不用新的节点编号：从整张图中删去这一批
# 的边及其反向边，用 `index_add` 对邻居求平均，再按公式算出损失。如果块中包含全部邻居，两者应当相
# 同。


# %% slot="loss-code"
def loss_by_hand(model, pos_graph, neg_graph):
    keep = torch.ones(graph.num_edges(), dtype=torch.bool)
    eids = pos_graph.edata[dgl.EID]
    keep[eids] = keep[reverse_ids(graph)[eids]] = False
    src, dst = (ends[keep] for ends in graph.edges())
    degree = dst.bincount(minlength=num_nodes).clamp(min=1)[:, None]
    h = feat
    for i, conv in enumerate(model.layers):
        h = h if i == 0 else h.clamp(min=0)
        mean = torch.zeros_like(h).index_add(0, dst, h[src]) / degree
        h = conv.fc_self(h) + conv.fc_neigh(mean)
    h = h / h.norm(dim=1, keepdim=True)
    chances = []
    for g in (pos_graph, neg_graph):
        u, v = (g.ndata[dgl.NID][ends] for ends in g.edges())
        chances.append(torch.sigmoid(SCALE * (h[u] * h[v]).sum(1)))
    return -chances[0].log().mean() - (1 - chances[1]).log().mean()


model, everyone = runs[0][0], [None] * len(FANOUTS)
batch = next(iter(edge_loader(graph, fanouts=everyone)))
with torch.no_grad():
    loss, by_hand = batch_loss(model, feat, batch), loss_by_hand(model, *batch[1:3])
assert torch.allclose(loss, by_hand, atol=1e-5)
print("the mini-batch loss equals the loss computed by hand")

# %% [markdown] slot="placebo" lang="en"
# They agree up to rounding: the mini-batch gives the same loss as the whole graph with the answers
# removed.
#
# ## What a leak does
#
# To see the effect of a leak in isolation, we need a *placebo*, data in which there is nothing to
# learn: the same number of pairs, but random ones, and random features. Without a leak, the loss
# does not get far below 1.386 (dashed). The plot on the left shows the placebo, the one on the
# right the real graph. The AUC is measured on held-out pairs.

# %% [markdown] slot="placebo" lang="ko"
# 두 값은 반올림 오차 범위 안에서 같습니다. 미니배치로 계산해도 정답을 지운 그래프에서 계산한 것과
# 같은 손실을 얻습니다.
#
# ## 데이터 누수의 영향
#
# 데이터 누수의 영향만 따로 보려면 **플라세보**(placebo), 즉 배울 것이 전혀 없는 데이터가
# 필요합니다. 쌍의 수는 실제 그래프와 같지만, 쌍도 피처도 모두 무작위로 정합니다. 누수가 없다면
# 손실은 1.386(점선) 아래로 크게 내려가지 않습니다. 그림의 왼쪽은 플라세보로, 오른쪽은 실제 그래프로
# 학습할 때의 손실입니다. AUC는 따로 떼어 둔 쌍에서 측정한 값입니다.

# %% [markdown] slot="placebo" lang="zh"
# 两者在舍入误差范围内一致：小批次的损失与在去掉答案的整张图上算出的相同。
#
# ## 泄漏的后果
#
# 要单独看清泄漏的影响，需要一份**安慰剂**（placebo）数据，其中没有任何规律可学：节点对数量相同，但
# 都是随机的，特征也是随机的。没有泄漏时，损失不会比 1.386（虚线）低多少。左图是安慰剂数据上的结果，
# 右图是真实图上的结果。AUC 是在留出的节点对上测得的。

# %% slot="placebo-code" tags=["nbval-ignore-output"]
torch.manual_seed(0)
ends, noise = torch.randint(num_nodes, pairs.shape), torch.randn(num_nodes, 64)
known, hidden = split(ends)
others = torch.randint(num_nodes, hidden.shape)
cases = {
    "placebo": (both_ways(known, num_nodes), noise, hidden, others),
    DATASET: (graph, feat, test_pairs, unjoined),
}
curves, aucs = {}, {}
for name, (g, x, *tests) in cases.items():
    for exclude in (None, "self", "reverse_id"):
        model, losses = train(g, x, 0, exclude)
        curves[name, exclude] = torch.tensor(losses).unfold(0, 10, 1).mean(1)
        aucs[name, exclude] = auc(embed(model, g, x), *tests)
        print(f"{name}, exclude={exclude!r}: AUC {aucs[name, exclude]:.3f}")

# %% slot="placebo-draw" tags=["folded", "nbval-ignore-output"]
figure, axes = plt.subplots(1, 2, figsize=(8.5, 2.8), sharey=True, layout="constrained")
for ax, name in zip(axes, cases):
    for exclude, color in ((None, ORANGE), ("self", GREEN), ("reverse_id", BLUE)):
        smooth = curves[name, exclude]
        ax.plot(torch.arange(len(smooth)) + 10, smooth, color=color, label=repr(exclude))
    ax.axhline(1.386, color="gray", ls="--")
    ax.set(title=name, xlabel="step", ylim=(0.75, 1.75))
axes[0].set_ylabel("training loss")
axes[0].legend(frameon=False, title="exclude")
plt.show()

final = [curves["placebo", exclude][-1] for exclude in (None, "self", "reverse_id")]
found = list(aucs.values())
if unchanged:
    assert final[0] < final[1] - 0.05 and final[1] < final[2] - 0.03
    assert max(abs(each - 0.5) for each in found[:3]) < 0.05
    assert max(found[3:]) - min(found[3:]) < 0.01

# %% [markdown] slot="cost" lang="en"
# On the placebo, the losses of the two models trained with a leak fall well below the dashed line,
# yet on held-out pairs neither is better than a coin toss: they have learned to recognize the
# answer in the input. `"self"` prevents only half of the leak. With `"reverse_id"`, the loss falls
# slowly, and in steps, one per epoch: the model memorizes pairs that it has already been trained
# on.
#
# On `digits`, the three hardly differ. Each node has ten neighbors on average, so the one that
# leaks carries little weight, and the features alone suffice to score the pairs. The sparser the
# graph, the more harm a leak does: on `"cora"`, with fewer than four neighbors on average, three
# runs reached an AUC of 0.898 to 0.909 without exclusion and 0.923 to 0.931 with `"reverse_id"`.
#
# ## What it costs
#
# Each negative pair adds at most one more node, which needs a neighborhood of its own. For batches
# of 32 edges, we count nodes and time a training step.

# %% [markdown] slot="cost" lang="ko"
# 플라세보에서 누수가 있는 두 모델은 손실이 점선보다 뚜렷이 낮아지지만, 떼어 둔 쌍에서는 둘 다 동전
# 던지기와 다를 바 없습니다. 입력에 섞인 정답을 알아보도록 학습되었을 뿐입니다. `"self"`는 그 절반만
# 막습니다. `"reverse_id"`에서는 손실이 에폭이 바뀔 때마다 계단식으로 조금씩 내려갑니다. 앞 에폭에서
# 학습한 쌍을 외우기 때문입니다.
#
# `digits`에서는 세 경우가 거의 같습니다. 이웃이 평균 열 개이므로 정답이 새는 이웃 하나의 비중이
# 작고, 피처만으로도 충분히 예측할 수 있습니다. 그래프가 희소할수록 영향이 큽니다. 이웃이 평균 네
# 개가 안 되는 `"cora"`에서 난수 시드 세 개의 AUC는 제외하지 않았을 때 0.898~0.909, `"reverse_id"`로
# 지정했을 때 0.923~0.931이었습니다.
#
# ## 비용
#
# 네거티브 쌍마다 노드가 하나씩 늘고, 그 노드의 이웃도 필요합니다. 에지가 32개인 배치에서 노드 수를
# 세고 학습 한 단계의 시간을 측정합니다.

# %% [markdown] slot="cost" lang="zh"
# 在安慰剂数据上，两个有泄漏的模型，损失都明显降到虚线以下，但在留出的节点对上，预测都与抛硬币无异：
# 它们只学会了从输入中认出答案。`"self"` 只能防止一半的泄漏。用 `"reverse_id"` 时，损失只是像台阶一
# 样每轮略降一级：这是因为模型记住了前几轮训练过的节点对。
#
# 在 `digits` 上，三者几乎没有差别：每个节点平均有十个邻居，泄漏答案的那个邻居只占很小的权重，而且仅
# 凭特征就足以预测。图越稀疏，影响越大：在每个节点平均不到四个邻居的 `"cora"` 上，三个随机种子的 AUC
# 在不排除任何边时是 0.898 到 0.909，用 `"reverse_id"` 时是 0.923 到 0.931。
#
# ## 开销
#
# 每个负样本对都会增加一个节点，还需要这个节点的邻居。下面以 32 条边为一批，统计节点数，并测量一个训
# 练步所用的时间。

# %% slot="cost-code" tags=["nbval-ignore-output"]
counts, steps, table = [1, 2, 5, 10, 20], 30, []
for k in counts:
    sampler = edge_loader(graph, k=k).graph_sampler
    rows = []
    for _ in range(steps):
        start = time.perf_counter()
        batch = sampler.sample(graph, torch.randint(graph.num_edges(), (32,)))
        batch_loss(model, feat, batch).backward()
        milliseconds = 1000 * (time.perf_counter() - start)
        rows.append((len(batch[0]), batch[1].num_nodes(), milliseconds))
    rows = torch.tensor(rows)
    table.append([*rows[:, :2].median(0).values, rows[:, 2].min()])
inputs, ends, fastest = torch.tensor(table).T
if unchanged and fastest[-1] > 7 * fastest[0]:
    warnings.warn("slower than in the text: other programs may be busy")

# %% slot="cost-draw" tags=["folded", "nbval-ignore-output"]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 2.8), layout="constrained")
left.plot(counts, inputs, "o-", color=BLUE, label="input nodes")
left.plot(counts, ends, "o-", color=ORANGE, label="endpoints of pairs")
left.axhline(num_nodes, color="gray", ls="--")
left.legend(frameon=False)
left.set(xlabel="negatives per positive", xticks=counts, ylim=0)
left.set_ylabel("nodes per batch")
right.plot(counts, fastest, "o-", color=BLUE)
right.set(xlabel="negatives per positive", xticks=counts, ylim=0)
right.set_ylabel("time per training step (ms, fastest)")
plt.show()

# %% [markdown] slot="summary" lang="en"
# For each edge, the pairs have at most 3 endpoints with one negative and 22 with twenty, but the
# number of input nodes soon reaches the size of the graph (dashed), so a step with twenty negatives
# takes far less than seven times as long as a step with one. In a large graph, that cap is far
# away: with five negatives, an edge needs up to seven neighborhoods instead of the two needed
# without negatives.
#
# ## Summary
#
# - In link prediction, edges are the positive examples and random pairs the negative ones.
# - Drawing negatives in proportion to $\deg^{0.75}$ strikes a balance between nodes with many
#   neighbors and nodes with few.
# - `pos_graph` and `neg_graph` share the rows that the model returns; `apply_edges` scores both.
# - Excluding the edge is not enough if the graph also has its reverse.
# - Compare embeddings with raw features and with an untrained network; test a pipeline with a
#   placebo.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, running *Setup* is enough to check an answer. The
# [solutions](../solutions/02_link_prediction_solution.ipynb) are in a separate notebook.
#
# 1. A mini-batch has 100 edges and five negatives for each. How many nodes can `pos_graph` have at
#    most?
# 2. Edges 0 and 10 of the toy graph form a batch. Which edges does `"reverse_id"` exclude from the
#    blocks? Answer with a sorted list.
# 3. Write a negative sampler, a function of `g` and `eids`, that keeps each source and draws one
#    destination such that the pair is neither an edge nor a self-loop.
# 4. Write a different score, a function of `graph` and `h`: the squared distance $|h_u - h_v|^2$
#    between the endpoints of each edge, computed with `apply_edges`. For vectors of norm 1, it is
#    $2 - 2 \cos\theta$, where $\theta$ is the angle between them.

# %% [markdown] slot="summary" lang="ko"
# 에지 하나의 포지티브 쌍과 네거티브 쌍에 나오는 노드는 네거티브가 한 개이면 최대 3개, 스무 개이면
# 최대 22개입니다. 그러나 입력 노드 수는 곧 그래프 전체의 노드 수(점선)에 이르러 더 늘지 않습니다.
# 그래서 네거티브를 한 개에서 스무 개로 늘려도 시간은 일곱 배에 훨씬 못 미칩니다. 큰 그래프에서는
# 입력 노드 수가 이런 상한에 좀처럼 이르지 않습니다. 네거티브가 다섯 개이면 에지 하나의 손실을
# 계산하는 데 노드 두 개의 이웃이 아니라 최대 일곱 개 노드의 이웃이 필요합니다.
#
# ## 요약
#
# - 링크 예측에서는 에지가 포지티브 예제이고 무작위 쌍이 네거티브 예제입니다.
# - $\deg^{0.75}$에 비례하여 네거티브를 뽑으면 이웃이 많은 노드와 적은 노드가 균형을 이룹니다.
# - `pos_graph`와 `neg_graph`는 모델의 출력을 함께 쓰며, `apply_edges`로 두 그래프의 점수를
#   구합니다.
# - 그래프에 역방향 에지도 있으면 에지 자신만 제외하는 것으로는 부족합니다.
# - 임베딩은 원래 피처, 그리고 학습하지 않은 신경망의 임베딩과 비교합니다. 학습 과정 전체는
#   플라세보로 점검합니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 셀만 실행해도 채점할 수 있습니다.
# [풀이](../solutions/ko/02_link_prediction_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 미니배치에 에지가 100개 있고 에지마다 네거티브가 다섯 개입니다. `pos_graph`의 노드는 최대 몇
#    개입니까?
# 2. 작은 그래프의 에지 0과 10으로 배치를 만듭니다. `"reverse_id"`로 지정할 때 블록에서 제외되는
#    에지는 무엇입니까? 정렬된 리스트로 답합니다.
# 3. `g`와 `eids`를 받는 네거티브 샘플러 함수를 작성합니다. 출발 노드는 그대로 두고 도착 노드를
#    하나씩 뽑되, 뽑은 쌍이 에지나 셀프 루프이면 안 됩니다.
# 4. `graph`와 `h`를 받아 다른 방식으로 점수를 구하는 함수를 작성합니다. `apply_edges`로 각 에지의
#    양 끝 벡터 사이의 거리의 제곱 $|h_u - h_v|^2$을 계산합니다. 벡터의 노름이 1이고 두 벡터가
#    이루는 각이 $\theta$이면 이 값은 $2 - 2 \cos\theta$와 같습니다.

# %% [markdown] slot="summary" lang="zh"
# 每条边对应的端点，用一个负样本时最多 3 个，用二十个时最多 22 个，约为七倍；而输入节点数很快达到整
# 张图的大小（虚线），所以用二十个负样本的开销远没有增加到七倍。大图的上限高得多，一般达不到，开销也
# 就随负样本数继续增长：有五个负样本时，一条边最多需要七个节点的邻居，而没有负样本时只需要两个节点的
# 邻居。
#
# ## 小结
#
# - 在链接预测中，边是正样本，随机节点对是负样本。
# - 按 $\deg^{0.75}$ 抽取负样本，是均匀抽取与按度数抽取之间的折中。
# - `pos_graph` 和 `neg_graph` 共用模型的输出；`apply_edges` 为两者打分。
# - 如果图中还有反向边，只排除边本身是不够的。
# - 把嵌入与原始特征、未训练网络的输出比较；用安慰剂数据检验整个流程。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的单元格就能评判。
# [解答](../solutions/zh/02_link_prediction_solution.ipynb)随本课提供。
#
# 1. 一个小批次有 100 条边，每条边有五个负样本。`pos_graph` 最多有多少个节点？
# 2. 小图的边 0 和边 10 组成一批。用 `"reverse_id"` 时，哪些边会被排除在块之外？用排好序的列表作答。
# 3. 写一个负采样器，即以 `g` 和 `eids` 为参数的函数：保留每条边的源节点，各抽取一个目标节点，使这一
#    对既不是图中的边，也不是自环。
# 4. 再写一个打分函数，以 `graph` 和 `h` 为参数：用 `apply_edges` 计算每条边两端向量的距离的平方
#    $|h_u - h_v|^2$。对模长为 1 的向量，它等于 $2 - 2 \cos\theta$，其中 $\theta$ 是两个向量的夹角。

# %% slot="answer-1-2"
answer_1 = None  # a number
answer_2 = None  # a sorted list
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% slot="answer-3-4"
answer_3 = None  # a function of g and eids
answer_4 = None  # a function of graph and h
lesson.check(3, answer_3)
lesson.check(4, answer_4)
