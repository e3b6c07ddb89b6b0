# %% [markdown] slot="title" lang="en"
# # After training
#
# The test accuracy is good, and the model goes into use. Now accounts arrive that were not in the
# graph when the model was trained; a score is needed within a second, not after a pass over the
# whole graph; every day brings new edges; and the machines that trained the model are needed for
# something else. All of this can go wrong without any error. By the end of this lesson, you will be
# able to
#
# - score a node that was not there during training, and say what has to be given for it;
# - say what a request reads with all neighbors, with sampled ones and with stored rows;
# - append a day of new data, and tell which scores change because of it;
# - notice drift, and compare a frozen model with one that is retrained every day;
# - save a checkpoint on three machines and load it on two or one.

# %% [markdown] slot="title" lang="ko"
# # 학습을 마친 뒤
#
# 테스트 정확도가 만족스러우면 모델을 실제로 쓰기 시작합니다. 그때부터 새로운 문제가 생깁니다.
# 학습할 때 그래프에 없던 계정이 나타납니다. 그래프 전체를 한 번 훑을 겨를도 없이 1초 안에 점수를
# 내야 합니다. 날마다 새 에지가 쌓입니다. 학습에 쓴 머신 여러 대는 다른 일에 써야 합니다. 그리고
# 이 모든 일에는 오류 없이 지나가는 실수가 숨어 있습니다. 레슨을 마치면 다음과 같은 일을 할 수
# 있습니다.
#
# - 학습할 때 없던 노드의 점수를 구하고, 이때 무엇을 주어야 하는지 설명하기
# - 모든 이웃, 샘플링한 이웃, 저장해 둔 행을 쓸 때 요청 하나를 처리하며 각각 무엇을 읽는지 설명하기
# - 하루치 데이터를 그래프에 덧붙이고, 그 때문에 어떤 점수가 바뀌는지 알아내기
# - 드리프트(drift)를 알아차리고, 고정한 모델과 날마다 다시 학습한 모델을 비교하기
# - 머신 세 대에서 저장한 체크포인트(checkpoint)를 두 대나 한 대에서 불러오기

# %% [markdown] slot="title" lang="zh"
# # 训练之后
#
# 测试准确率令人满意，模型就要投入使用了。新的问题也随之而来：有些账户在训练时还不在图中；得分要在
# 一秒之内给出，来不及遍历整张图；每天都有新的边；训练时用的多台机器也要让给别的任务。这些环节都可能
# 出问题，程序却不会报错。学完之后，你能够：
#
# - 为训练时不存在的节点打分，并说明需要提供哪些信息；
# - 说明一次请求分别使用全部邻居、采样得到的邻居和存储的行时，各要读取什么；
# - 把一天的新数据追加到图中，并看出哪些得分因此改变；
# - 发现漂移（drift），并比较固定不变的模型与每天重新训练的模型；
# - 在三台机器上保存检查点（checkpoint），再在两台或一台机器上加载。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# The data are payments that accounts make in shops, generated here for a first day and eight days
# after it. We look for accounts of fraudsters. The last section simulates machines, as in [lesson
# 07](07_cluster_on_a_laptop.ipynb). Graphs with several types of nodes are the subject of [lesson
# 08](08_heterogeneous.ipynb).

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 데이터는 계정이 상점에서 결제한 내역이며, 첫날(0일째)과 그 뒤 8일치를 여기서 생성합니다.
# 찾아내려는 것은 사기 계정입니다. 마지막 절에서는 [레슨 07](07_cluster_on_a_laptop.ipynb)처럼
# 여러 머신을 시뮬레이션합니다. 노드 타입이 여럿인 그래프는 [레슨 08](08_heterogeneous.ipynb)에서
# 다룹니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 数据是账户在商店的付款记录，由本课生成，包括第 0 天和之后的八天。目标是找出欺诈账户。最后一节
# 像[第 07 课](07_cluster_on_a_laptop.ipynb)那样模拟多台机器。有多种节点类型的图，见[第 08
# 课](08_heterogeneous.ipynb)。

# %% slot="imports"
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import gnnlab as dgl
import gnnlab.nn as dglnn
from gnnlab.data import EdgeTable, NodeTable, append_tables, graph_from_tables, to_table
from gnnlab.dataloading import DataLoader, NeighborSampler, score
from gnnlab.distributed import DistEmbedding, DistGraph, DistNodeDataLoader, SparseAdam
from gnnlab.distributed import full_neighbor_inference, initialize, node_split
from gnnlab.distributed import load_checkpoint, original_order, save_checkpoint
from gnnlab.exercises import Lesson
from gnnlab.plot import BLUE, GRAY, GREEN, ORANGE, explore
from gnnlab.simulate import simulate

ACCOUNTS, NEW, DAYS, SHOPS = 2000, 300, 8, 300  # accounts of day 0, of each later day
FANOUT = 10
AS_IN_TEXT = (ACCOUNTS, NEW, DAYS, SHOPS, FANOUT) == (2000, 300, 8, 300, 10)
lesson = Lesson("12", "en")  # exercises, and the style of figures
lesson.style()
torch.set_num_threads(1)

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# Accounts 0 to 3 have paid in three shops. Then account 4 opens and pays in shops 1 and 2
# (dashed). Suppose that a shop is as suspicious as its customers are on average, and an account
# as its shops: two layers of means. What does the score of account 4 need?

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기
#
# 계정 0~3이 상점 세 곳에서 결제한 적이 있습니다. 이제 계정 4가 새로 생겨 상점 1과 2에서
# 결제합니다(점선). 상점의 값은 그 고객들의 값을 평균한 것이고, 계정의 점수는 그 계정이 결제한
# 상점들의 값을 평균한 것이라고 합시다. 곧 평균을 구하는 계층이 두 개입니다. 계정 4의 점수를
# 구하려면 무엇이 필요할까요?

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图
#
# 账户 0 到 3 在三家商店付过款。现在新开了账户 4，它在商店 1 和 2 付款（虚线）。假设商店的值是其顾
# 客的平均值，账户的得分是它付过款的各商店的平均值，也就是两层平均。要算出账户 4 的得分，需要什
# 么？

# %% slot="toy-code"
toy_pays = [(0, 0), (1, 0), (1, 1), (2, 1), (3, 1), (3, 2)]  # (account, shop)
toy_x = [0.1, 0.9, 0.4, 0.2]  # one feature of each account


def mean_of_means(account, pays, x):
    shops = [s for a, s in pays if a == account]
    customers = [[a for a, t in pays if t == s] for s in shops]
    means = [np.mean([x[a] for a in of_shop]) for of_shop in customers]
    return float(np.mean(means)), sorted(set().union(*customers))


new_pays, new_x = [(4, 1), (4, 2)], [0.6]
by_hand, read = mean_of_means(4, toy_pays + new_pays, toy_x + new_x)
print(f"score of account 4: {by_hand:.4f}, accounts read: {read}")

# %% slot="toy-draw" tags=["folded"]
figure, ax = plt.subplots(figsize=(4.6, 1.7), layout="constrained")
for u, v in toy_pays + new_pays:
    color, line = (ORANGE, "--") if u == 4 else ("gray", "-")
    ax.plot([u, v + 1], [1, 0], line, color=color, zorder=1)
for y, mark, count, title in ((1, "o", 5, "accounts"), (0, "s", 3, "shops")):
    for i in range(count):
        place, color = (i + 1 - y, y), ORANGE if y and i == 4 else BLUE
        ax.scatter(*place, s=290, marker=mark, color=color)
        style = {"ha": "center", "va": "center_baseline", "weight": "bold"}
        ax.text(*place, i, color="white", **style)
    ax.text(-0.5, y, title, ha="right", va="center")
ax.set(xlim=(-0.5, 4.5), ylim=(-0.3, 1.3))
ax.axis("off")
plt.show()

# %% [markdown] slot="toy-library" lang="en"
# It needs two things: a feature of the account, and its payments. They lead to shops 1 and 2 and
# to all of *their* customers, but not to account 0.
#
# ## The library does the same
#
# `score` computes the output of a model for some nodes, without gradients. Nodes that the graph
# lacks are numbered from `num_nodes` on; `new_inputs` gives their features and `new_edges` their
# edges. The graph itself does not change. We score account 4 twice: with its edges in both
# directions, and with `"pays"` alone.

# %% [markdown] slot="toy-library" lang="ko"
# 두 가지가 필요합니다. 계정의 피처(feature)와 결제 내역입니다. 결제를 따라가면 상점 1과 2에, 다시
# **그 상점들**의 모든 고객에 이르지만 계정 0에는 이르지 않습니다.
#
# ## 라이브러리 사용하기
#
# `score`는 노드 몇 개에 대한 모델의 출력을 그래디언트(gradient) 없이 계산합니다. 그래프에 없는
# 노드의 번호는 `num_nodes`부터 이어지며, 그 피처는 `new_inputs`로, 에지는 `new_edges`로 줍니다.
# 그래프 자체는 바뀌지 않습니다. 계정 4의 점수를 두 번 구해 봅시다. 한 번은 양방향 에지를 모두
# 주고, 한 번은 `"pays"`만 줍니다.

# %% [markdown] slot="toy-library" lang="zh"
# 需要两样东西：账户的特征（feature）和它的付款记录。沿着付款记录可以到达商店 1 和 2，再到达**这两家
# 商店**的所有顾客，但到不了账户 0。
#
# ## 使用库
#
# `score` 计算模型对若干节点的输出，不计算梯度（gradient）。图中没有的节点从 `num_nodes` 开始编
# 号，它的特征由 `new_inputs` 给出，边由 `new_edges` 给出；图本身不变。下面为账户 4 打两次分：一次
# 给出两个方向的边，一次只给 `"pays"`。

# %% slot="toy-library-code"
PAYS, PAID_BY = ("account", "pays", "shop"), ("shop", "paid_by", "account")
src, dst = map(torch.tensor, zip(*toy_pays))
toy = dgl.heterograph({PAYS: (src, dst), PAID_BY: (dst, src)})
mean = dglnn.GraphConv(1, 1, norm="right", weight=False, bias=False)
means = dglnn.HeteroGraphConv({"pays": mean, "paid_by": mean})


def two_means(blocks, x):
    return means(blocks[1], means(blocks[0], x))["account"]


def ask(g, model, accounts, *how, **new):
    return score(g, model, {"account": accounts}, *how, **new)["account"]


everyone = NeighborSampler([-1, -1])  # -1: all neighbors
x = {"account": torch.tensor(toy_x)[:, None], "shop": torch.zeros(3, 1)}
given = {"new_inputs": {"account": torch.tensor([new_x])}}
src, dst = map(torch.tensor, zip(*new_pays))
both, one_way = {PAYS: (src, dst), PAID_BY: (dst, src)}, {PAYS: (src, dst)}
found = ask(toy, two_means, [4], everyone, x, new_edges=both, **given)
silent = ask(toy, two_means, [4], everyone, x, new_edges=one_way, **given)
print(f"both directions: {found.item():.4f}; one: {silent.item():.4f}")
assert abs(found.item() - by_hand) < 1e-6, "the library should give our score"
assert silent.item() == 0, "without paid_by, nothing should arrive"

# %% [markdown] slot="tables" lang="en"
# The first result is ours. The second is 0, without an error: messages travel along `"paid_by"`
# from shops to accounts, and account 4 has no such edge. It looks like the safest account of all.
#
# ## Payments of nine days
#
# Now to a graph from which a model must learn. Each shop has a place on a circle; its prices and
# opening hours follow from that place, with noise; and a few shops have most of the customers. Four
# in ten accounts belong to fraudsters (*frauds* below). They favor some shops, **and different ones
# each day**: their favorites move around the circle. On the day when an account opens, it makes
# four or five payments on average; old accounts make a few as well.
#
# Tables become a graph in one call (the page ["Your own data"](../../docs/own_data.md) explains
# it). Payments are given twice, once for each direction. The account numbers stay with the graph.

# %% [markdown] slot="tables" lang="ko"
# 첫째 결과는 직접 구한 값과 같습니다. 둘째 결과는 0인데, 오류도 나지 않습니다. 상점에서 계정으로
# 가는 메시지는 `"paid_by"` 에지를 따라 전달되는데 계정 4에는 그런 에지가 없기 때문입니다. 그 결과
# 가장 안전한 계정처럼 보입니다.
#
# ## 아흐레 동안의 결제
#
# 이제 학습이 필요한 그래프로 넘어갑니다. 상점은 가격대와 영업시간에 따라 원 위의 한 점으로
# 나타내며, 고객은 몇몇 상점에 많이 몰립니다. 계정 열 개 가운데 네 개는 사기 계정입니다. 사기 계정이
# 즐겨 찾는 상점은 따로 있는데, **날마다 그 상점이 달라져** 원을 따라 옮겨 갑니다. 계정은 만들어진
# 날에 평균 네다섯 번 결제하며, 기존 계정도 조금씩 결제합니다.
#
# 함수를 한 번만 호출하면 표가 그래프로 바뀝니다(자세한 내용은 [내 데이터로
# 학습하기](../../docs/own_data.ko.md)에 있습니다). 결제 표는 방향마다 한 번씩, 두 번 줍니다. 계정
# 번호는 그래프에 함께 저장됩니다.

# %% [markdown] slot="tables" lang="zh"
# 第一个结果与手动计算的一致。第二个是 0，而且没有报错：从商店到账户的消息沿 `"paid_by"` 传递，而账
# 户 4 没有这样的边。如果得分代表风险，它看上去就成了最安全的账户。
#
# ## 九天的付款记录
#
# 现在换成一张需要学习的图。每家商店按价位和营业时间对应圆上的一个点，顾客往往集中在少数几家商店。每
# 十个账户中有四个是欺诈账户。它们偏爱某些商店，**而且偏爱的商店每天都在变**：偏爱的位置沿着圆周移
# 动。账户在开户当天平均付款四五次，旧账户也会有一些付款。
#
# 只需一次调用，表格就变成图（详见[《用自己的数据训练》](../../docs/own_data.zh.md)）。付款表给出
# 两次，每个方向一次。账户编号与图一起保存。

# %% slot="tables-code"
random = np.random.default_rng(0)
angle = 2 * np.pi * random.random(SHOPS)  # where a shop is on the circle
fame = 1 / (1 + random.permutation(SHOPS))  # few shops have most customers
shops = pd.DataFrame({"shop": [f"S{i:03}" for i in range(SHOPS)]})
shops["price"] = np.cos(angle) + random.normal(0, 0.2, SHOPS)
shops["hour"] = np.sin(angle) + random.normal(0, 0.2, SHOPS)


def opened(day, count):
    fraud = random.random(count) < 0.4
    table = pd.DataFrame({"account": [f"A{day}-{i:04}" for i in range(count)]})
    table["income"] = random.normal(3 - 0.5 * fraud, 1)
    table["age"] = random.normal(4, 1, count)
    return table.assign(label=np.where(fraud, "fraud", "honest"))


def paid(payers, day):
    lure = fame * np.exp(3 * np.cos(angle - day * np.pi / 10))  # favorites of frauds
    shares = lure / lure.sum(), fame / fame.sum()
    fraud, honest = (random.choice(SHOPS, len(payers), p=share) for share in shares)
    chosen = np.where(payers["label"] == "fraud", fraud, honest)
    names = shops["shop"].to_numpy()[chosen]
    return pd.DataFrame({"account": payers["account"], "shop": names})


# %% slot="graph-code"
accounts, payments = [], []
for day in range(DAYS + 1):
    accounts.append(opened(day, NEW if day else ACCOUNTS))
    table, count = accounts[day], len(accounts[day])
    more = table.sample(3 * count, replace=True, random_state=day)
    all_ = pd.concat(accounts).sample(count, random_state=day)
    payments.append(paid(pd.concat([table, more, all_]), day))

columns = {"feat": ["income", "age"], "label": "label"}
tables = {"account": NodeTable(accounts[0], "account", **columns)}
tables["shop"] = NodeTable(shops, "shop", feat=["price", "hour"])
ends = {PAYS: ("account", "shop"), PAID_BY: ("shop", "account")}
edges = {name: EdgeTable(payments[0], *pair) for name, pair in ends.items()}
g, report = graph_from_tables(tables, edges)
largest = (g.in_degrees(etype="pays").topk(3).values.sum() / g.num_edges("pays")).item()
print(g)
print("classes:", report.classes["account", "label"])
print(f"payments in the three largest shops: {largest:.0%}")
assert not AS_IN_TEXT or 1 / 3 < largest < 0.4

# %% [markdown] slot="model" lang="en"
# The three largest of 300 shops get more than a third of the payments. Class 0 is `"fraud"`.
#
# The model has two layers. `first` computes a row for each account and shop, `last` a score for
# each class from the rows of an account and of its shops. They are separate, since a request will
# later run only one of them. `score_all` is batch inference: one pass over the whole graph.
#
# **Compared with what?** With logistic regression on the account's own columns, and with calling
# every account honest.

# %% [markdown] slot="model" lang="ko"
# 결제의 3분의 1 이상이 상점 300곳 가운데 가장 큰 세 곳에서 이루어졌습니다. 클래스 0이
# `"fraud"`입니다.
#
# 모델에는 계층이 두 개 있습니다. `first`는 계정과 상점마다 행을 하나씩 계산하고, `last`는 계정과 그
# 상점들의 행으로 클래스별 점수를 계산합니다. 나중에 둘 중 하나만 실행할 일이 있으므로 따로
# 나누었습니다. `score_all`은 그래프 전체를 한 번에 계산하는 일괄 추론입니다.
#
# **무엇과 비교할까요?** 계정 자신의 열만 쓴 로지스틱 회귀, 그리고 모든 계정이 정상이라고 답하는
# 것이 비교 기준입니다.

# %% [markdown] slot="model" lang="zh"
# 300 家商店中最大的三家，占了全部付款的三分之一以上。类别 0 是 `"fraud"`。
#
# 模型有两层。`first` 为每个账户和每家商店算出一行，`last` 由账户和它的商店的行算出各类别的得分。
# 之所以分开，是因为后面的请求会只运行其中一层。`score_all` 是批量推理，对整张图一次算完。
#
# **与什么相比？** 一个基准是只用账户自身各列的逻辑回归，另一个基准是把所有账户都判为正常。


# %% slot="model-code"
class Model(nn.Module):
    def __init__(self, shop=2, size=16):
        super().__init__()
        pays = dglnn.SAGEConv((2, shop), size, "mean")
        paid_by = dglnn.SAGEConv((shop, 2), size, "mean")
        self.one = dglnn.HeteroGraphConv({"pays": pays, "paid_by": paid_by})
        self.two = dglnn.SAGEConv(size, 2, "mean")

    def first(self, blocks, x):
        return {ntype: h.relu() for ntype, h in self.one(blocks[0], x).items()}

    def last(self, blocks, h):
        own = h["account"][: blocks[-1].num_dst_nodes("account")]
        return self.two(blocks[-1]["paid_by"], (h["shop"], own))

    def forward(self, blocks, x):
        return self.last(blocks, self.first(blocks, x))


# %% slot="train-code"
def inputs(g):
    return {ntype: g.nodes[ntype].data["feat"] for ntype in g.ntypes}


def train(g, seeds, label, epochs=8):
    torch.manual_seed(0)
    dgl.seed(0)
    model, x = Model(), inputs(g)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    how = {"batch_size": 128, "shuffle": True, "seed": 0}
    loader = DataLoader(g, {"account": seeds}, NeighborSampler([FANOUT, FANOUT]), **how)
    for _ in range(epochs):
        for nodes, seeds, blocks in loader:
            scores = model(blocks, {ntype: x[ntype][nodes[ntype]] for ntype in x})
            loss = nn.functional.cross_entropy(scores, label[seeds["account"]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


@torch.no_grad()
def score_all(model, g):
    return model([g, g], inputs(g))


# %% slot="compare-code" tags=["nbval-ignore-output"]
feat, label = (g.nodes["account"].data[name] for name in ("feat", "label"))
order = torch.randperm(ACCOUNTS, generator=torch.Generator().manual_seed(0))
test_ids, train_ids = order.split([ACCOUNTS // 4, ACCOUNTS - ACCOUNTS // 4])
model = train(g, train_ids, label)
alone = LogisticRegression().fit(feat[train_ids], label[train_ids])


def accuracy(scores, label):
    return (scores.argmax(1) == label).float().mean().item()


def fraud(scores):  # its probability
    return scores.softmax(1)[:, 0].detach()


with_graph = accuracy(score_all(model, g)[test_ids], label[test_ids])
without = alone.score(feat[test_ids], label[test_ids])
honest = label[test_ids].float().mean().item()
print(f"graph {with_graph:.2f}, own columns {without:.2f}, all honest {honest:.2f}")
assert not AS_IN_TEXT or (with_graph > without + 0.2 and without < honest + 0.1)

# %% [markdown] slot="new" lang="en"
# An account's own columns hardly help; what gives fraudsters away is where they pay.
#
# ## A node that was not there
#
# It is day 1, and 300 accounts have opened. Nobody knows their labels. We append the tables of the
# day, without the label column.

# %% [markdown] slot="new" lang="ko"
# 계정 자신의 열은 별로 도움이 되지 않습니다. 사기 계정은 어디에서 결제하는지를 보아야 드러납니다.
#
# ## 학습할 때 없던 노드
#
# 1일째가 되어 계정 300개가 새로 생겼습니다. 이 계정들의 레이블은 아직 아무도 모릅니다. 레이블
# 열을 빼고 그날의 표를 그래프에 덧붙여 봅시다.

# %% [markdown] slot="new" lang="zh"
# 账户自身的各列几乎没有帮助；暴露欺诈账户的，是它们付款的地方。
#
# ## 训练时不存在的节点
#
# 到了第 1 天，新开了 300 个账户，它们的标签还没有人知道。下面去掉标签这一列，把当天的表格追加到图
# 中。


# %% slot="refused"
def of_day(day):
    nodes = {"account": accounts[day].drop(columns="label")}
    return nodes, {PAYS: payments[day], PAID_BY: payments[day]}


try:
    append_tables(g, report, *of_day(1))
except dgl.DGLError as error:
    print(error)
else:
    raise RuntimeError("a label that nobody knows should not become 0")

# %% [markdown] slot="rebuilt" lang="en"
# A missing feature is never filled with 0 in silence: here 0 would mean fraud. We give −1, which
# means unknown. `append_tables` returns a larger graph, in which old nodes keep their IDs.
#
# There are now two ways to score a new account. Batch inference runs over the larger graph. A
# request to the **old** graph brings all edges of the day and the new accounts' features. All 300
# accounts are in one request here, since they pay in the same shops. Both must agree.

# %% [markdown] slot="rebuilt" lang="ko"
# 빠진 피처를 말없이 0으로 채우는 일은 없습니다. 여기서 레이블을 0으로 채우면 사기라는 뜻이 됩니다.
# 그래서 모른다는 뜻으로 −1을 지정합니다. `append_tables`는 더 커진 그래프를 반환하며, 기존 노드의
# ID는 그대로입니다.
#
# 새 계정의 점수를 구하는 방법은 이제 두 가지입니다. 하나는 커진 그래프 전체에서 일괄 추론을 하는
# 것입니다. 다른 하나는 **이전** 그래프에 요청하면서 새 에지와 피처를 함께 보내는 것입니다. 새
# 계정들은 같은 상점에서 결제하므로, 여기서는 300개를 한 요청에 담습니다. 두 결과는 같아야 합니다.

# %% [markdown] slot="rebuilt" lang="zh"
# 缺失的列绝不会悄悄地填成 0：在标签这一列，0 表示欺诈。我们指定 −1，表示未知。`append_tables` 返回
# 一张更大的图，旧节点的 ID 不变。
#
# 现在有两种方法为新账户打分：一种是在扩大后的图上做批量推理；另一种是向**旧的**图发出请求，附上新
# 的边和特征。这些新账户会在同样的商店付款，所以这里把 300 个账户放在一次请求中。两者的结果应当相
# 同。

# %% slot="rebuilt-code" tags=["nbval-ignore-output"]
later, later_report = append_tables(g, report, *of_day(1), fill={"label": -1})
new = torch.arange(ACCOUNTS, later.num_nodes("account"))
batch = score_all(model, later)

new_edges = {}
for name in ends:
    src, dst = later.edges(etype=name)
    new_edges[name] = src[g.num_edges(name) :], dst[g.num_edges(name) :]
new_feat = {"account": later.nodes["account"].data["feat"][new]}
request = {"new_edges": new_edges, "new_inputs": new_feat}
answer = ask(g, model, new, everyone, "feat", **request)

apart = (answer - batch[new]).abs().max().item()
assert apart < 1e-5, f"the request and batch inference differ by {apart}"
print("scores of a request and of batch inference are equal:", tuple(answer.shape))
print(to_table(later, {"class": answer.argmax(1)}, new, "account").head(3))

# %% [markdown] slot="wrong" lang="en"
# They are equal, and `to_table` lists the predicted classes by account number. Nothing was trained
# again: the weights belong to relations, not to nodes. (An embedding belongs to a node: for a new
# one, there is no row.)
#
# What do two silent mistakes cost: zeros for features, and edges in one direction?

# %% [markdown] slot="wrong" lang="ko"
# 두 결과가 같으며, `to_table`로 계정 번호와 함께 내보낼 수 있습니다. 다시 학습한 것은 없습니다.
# 가중치는 노드마다가 아니라 관계마다 있기 때문입니다. (반면 임베딩(embedding)은 노드마다 있으므로
# 새 노드에는 해당하는 행이 없습니다.)
#
# 오류 없이 지나가는 두 가지 실수, 곧 피처를 0으로 채우는 것과 에지를 한 방향만 주는 것은 정확도를
# 얼마나 떨어뜨릴까요?

# %% [markdown] slot="wrong" lang="zh"
# 两者的结果相同，`to_table` 按账户编号把它们列出。这里不需要重新训练：权重属于关系，而不属于
# 节点。嵌入（embedding）则不同，它属于节点：新节点没有对应的行。
#
# 两种不报错的疏忽——把特征填成 0、只给一个方向的边——会造成多大损失？

# %% slot="wrong-code" tags=["nbval-ignore-output"]
is_honest = pd.concat(accounts)["label"] == "honest"
truth = torch.tensor(is_honest.to_numpy().astype(int))
zeros = {"new_inputs": {"account": torch.zeros(len(new), 2)}}
mistakes = {"as given": {}, "features 0": zeros}
mistakes["one direction"] = {"new_edges": {PAYS: new_edges[PAYS]}}
right, called = {}, {}
for name, change in mistakes.items():
    scores = ask(g, model, new, everyone, "feat", **{**request, **change})
    right[name] = accuracy(scores, truth[new])
    called[name] = scores.argmax(1).float().mean().item()
    print(f"{name}: accuracy {right[name]:.2f}, called honest {called[name]:.0%}")
if AS_IN_TEXT:
    assert right["as given"] > right["features 0"] > right["one direction"]
    assert called["one direction"] > 0.95

# %% [markdown] slot="cost" lang="en"
# Both lower the accuracy without a warning. With edges in one direction, hardly any fraud is
# found.
#
# ## What a request reads
#
# Two hops from an account are all customers of its shops. We count the nodes whose rows a request
# for one account reads: with all neighbors, with at most 10 of each node, and with **stored rows**:
# if the output of the first layer is kept for all nodes, the last layer reads only a single hop.

# %% [markdown] slot="cost" lang="ko"
# 두 경우 모두 아무 경고 없이 정확도가 낮아집니다. 에지를 한 방향만 주면 사기 계정을 거의 하나도
# 찾지 못합니다.
#
# ## 요청 하나가 읽는 것
#
# 계정에서 두 홉을 가면 그 계정이 결제한 상점들의 모든 고객에 이릅니다. 계정 하나의 점수를 구할 때
# 행을 읽어야 하는 노드를 세어 봅시다. 모든 이웃을 쓸 때, 노드마다 최대 10개만 쓸 때, 그리고
# **저장해 둔 행**을 쓸 때를 비교합니다. 모든 노드에 대하여 첫째 계층의 출력을 저장해 두면 마지막
# 계층은 한 홉만 읽으면 됩니다.

# %% [markdown] slot="cost" lang="zh"
# 两种情况下准确率都下降了，却没有任何警告。只给一个方向的边，几乎一个欺诈账户也找不到。
#
# ## 一次请求读取什么
#
# 从一个账户走两跳，就到达它的商店的所有顾客。下面统计为一个账户打分要读取多少个节点的行：使用全部
# 邻居；每个节点至多取 10 个；使用**存储的行**——如果为所有节点保存第一层的输出，最后一层就只需读取
# 一跳。

# %% slot="cost-code"
ways = {"all": everyone, "sampled": NeighborSampler([FANOUT, FANOUT])}
ways["stored"] = NeighborSampler([-1])
asked = torch.arange(0, ACCOUNTS, 10)


def nodes_read(sampler, account):
    dgl.seed(0)
    _, _, blocks = sampler.sample(g, {"account": torch.tensor([account])})
    return sum(map(len, blocks[0].srcdata[dgl.NID].values()))


counts = {}
for name, sampler in ways.items():
    counts[name] = sorted(nodes_read(sampler, account) for account in asked.tolist())
    middle, most = counts[name][len(asked) // 2], counts[name][-1]
    print(f"{name}: {middle} nodes in the median, {most} at most")
if AS_IN_TEXT:
    assert counts["all"][-1] > 0.7 * g.num_nodes() and counts["sampled"][-1] <= 121
    most, few, least = (each[100] for each in counts.values())
    assert most > 20 * few > 100 * least and most > 1000

# %% slot="cost-draw"
figure, ax = plt.subplots(figsize=(5.4, 2.5), layout="constrained")
for (name, each), color in zip(counts.items(), (ORANGE, BLUE, GREEN)):
    ax.semilogy(np.linspace(0, 100, len(each)), each, color=color, label=name)
ax.axhline(g.num_nodes(), color="gray", ls=":")
ax.set(xlabel="% of the accounts", ylabel="nodes read", ylim=1)
ax.legend(loc="lower right")
plt.show()

# %% [markdown] slot="sampled" lang="en"
# The dotted line is the whole graph. With all neighbors, more than half of the requests read over
# a thousand nodes, because they touch one of the **hubs**, the largest shops; a request for an
# account that pays only in small shops is cheap. A fanout bounds the cost: at most
# $1 + 10 + 10 + 10 \cdot 10 = 121$ nodes (the shops of the account are drawn once for each
# layer). Stored rows are the cheapest: the account and its shops.
#
# A sampled score depends on chance. The draw of `score` depends only on `seed`, the layer and the
# ID of each node, so the same request has the same answer; another random seed gives another draw.
# Change the fanout to see how far the answers of five seeds lie from the exact ones.

# %% [markdown] slot="sampled" lang="ko"
# 점선은 그래프 전체의 노드 수입니다. 모든 이웃을 쓰면 요청의 절반 이상이 천 개가 넘는 노드를
# 읽습니다. 고객이 몰린 **허브**(hub) 상점에 닿기 때문입니다. 동네 가게에서만 결제한 계정은 비용이
# 적습니다. 팬아웃(fanout)을 정하면 비용에 상한이 생깁니다. 여기서는 최대
# $1 + 10 + 10 + 10 \cdot 10 = 121$개입니다(계정의 상점은 계층마다 한 번씩 뽑습니다). 저장해 둔
# 행을 쓸 때 비용이 가장 적으며, 계정과 그 상점만 읽습니다.
#
# 이웃을 샘플링하여 구한 점수는 우연에 따라 달라집니다. `score`는 `seed`와 계층, 노드 ID로 이웃을
# 뽑으므로 같은 요청에는 같은 답이 나오고, `seed`를 바꾸면 다른 이웃이 뽑힙니다. 팬아웃을 바꾸어
# 가며 난수 시드 다섯 개로 구한 점수가 정확한 점수에서 얼마나 벗어나는지 살펴봅시다.

# %% [markdown] slot="sampled" lang="zh"
# 虚线是整张图的节点数。使用全部邻居时，一半以上的请求要读取一千多个节点，因为它们触及了顾客最多
# 的**枢纽**（hub）商店；只在小店付款的账户，开销很小。扇出（fanout）为开销设定了上限：至多
# $1 + 10 + 10 + 10 \cdot 10 = 121$ 个节点（账户的商店在每一层各抽取一次）。使用存储的行开销最小：
# 只有账户自己和它的商店。
#
# 采样得到的得分带有随机性。`score` 由 `seed` 和节点的 ID 决定抽取哪些邻居，所以同样的请求得到同样
# 的回答；换一个 `seed`，抽到的邻居就不同。请改变扇出，看看用五个随机种子得到的得分与精确的得分相
# 差多少。

# %% slot="sampled-code" tags=["nbval-ignore-output"]
exact = fraud(ask(g, model, asked, everyone, "feat"))


def drawn(fanout, seed):
    sampler = NeighborSampler([fanout, fanout])
    return fraud(ask(g, model, asked, sampler, "feat", seed=seed))


def show(fanout=FANOUT):
    figure, ax = plt.subplots(figsize=(3.2, 3), layout="constrained")
    for seed in range(5):
        ax.plot(exact, drawn(fanout, seed), ".", ms=3, color=BLUE)
    ax.axline((0, 0), slope=1, color="gray", lw=0.8)
    ax.set(xlabel="all neighbors", ylabel="sampled", xlim=(0, 1), ylim=(0, 1))
    return figure


assert torch.equal(drawn(FANOUT, 7), drawn(FANOUT, 7)), "a seed should repeat its answer"
error = {k: (drawn(k, 0) - exact).abs().mean().item() for k in (2, 10, 50)}
classes = torch.stack([drawn(2, seed) > 0.5 for seed in range(5)])
if AS_IN_TEXT:
    assert error[2] > 2 * error[10] > 2 * error[50] and error[10] < 0.03
    assert (classes.any(0) != classes.all(0)).any()
explore(show, fanout=[2, 5, 10, 50])

# %% [markdown] slot="stored" lang="en"
# With a fanout of 2, an account may be called a fraud or not depending on the seed; with 10, most
# points are close to the line.
#
# Stored rows involve no chance. `store` computes the first layer for all nodes, once; `score`
# then runs `model.last` on them.

# %% [markdown] slot="stored" lang="ko"
# 팬아웃이 2이면 난수 시드에 따라 사기 계정으로도 정상 계정으로도 분류되는 계정이 있습니다. 10이면
# 점이 대부분 직선 가까이에 있습니다.
#
# 저장해 둔 행을 쓸 때에는 우연이 끼어들지 않습니다. `store`는 모든 노드에 대하여 첫째 계층을 한
# 번 계산합니다. 그다음 `score`는 그 행으로 `model.last`만 실행합니다.

# %% [markdown] slot="stored" lang="zh"
# 扇出为 2 时，有的账户是否被判为欺诈，会因随机种子而异；扇出为 10 时，大多数点都在直线附近。
#
# 使用存储的行则没有随机性。`store` 为所有节点计算一次第一层的输出，之后 `score` 只在这些行上运行
# `model.last`。


# %% slot="stored-code"
@torch.no_grad()
def store(g):
    return model.first([g], inputs(g))


stored = store(g)
one_hop = fraud(ask(g, model.last, asked, ways["stored"], stored))
apart = (one_hop - exact).abs().max().item()
assert apart < 1e-5, f"stored and computed scores differ by {apart}"
print("scores from stored rows equal those from all neighbors:", len(one_hop))

# %% [markdown] slot="day" lang="en"
# As long as the graph does not change, stored rows lose nothing. But it does change.
#
# ## A new day
#
# Appending day 1 changed no IDs or features of old accounts. Did it change their scores?

# %% [markdown] slot="day" lang="ko"
# 그래프가 그대로인 동안에는 저장해 둔 행을 써도 잃는 것이 없습니다. 그러나 그래프는 바뀝니다.
#
# ## 새로운 하루
#
# 1일째의 표를 덧붙여도 기존 계정의 ID와 피처는 바뀌지 않습니다. 점수는 어떨까요?

# %% [markdown] slot="day" lang="zh"
# 只要图不变，使用存储的行就没有任何损失。但图是会变的。
#
# ## 新的一天
#
# 追加第 1 天的数据之后，旧账户的 ID 和特征都没有变。它们的得分变了吗？

# %% slot="day-code"
old = torch.arange(ACCOUNTS)
for name in ("key", "feat", "label"):
    before, after = (each.nodes["account"].data[name] for each in (g, later))
    assert torch.equal(before, after[old]), f"{name} of an old account changed"

change = (fraud(batch[old]) - fraud(score_all(model, g))).abs()
paid_today = torch.unique(new_edges[PAYS][0])
paid_today = paid_today[paid_today < ACCOUNTS]
moved = (change > 1e-6).float().mean().item()
print(f"old accounts that paid: {len(paid_today)}")
print(f"old accounts with another score: {moved:.0%}")
assert not AS_IN_TEXT or (moved > 0.9 and len(paid_today) < 0.2 * ACCOUNTS)

# %% [markdown] slot="stale" lang="en"
# Few old accounts paid that day, yet nearly all have a different score: their shops have new
# customers. Stored rows do not reflect that; they become **stale**. How fast? (A partition on disk
# is appended to in the same way, with `append_partition`.)
#
# We append all days. For each, we score the accounts of day 0 twice: with the rows of old nodes
# as stored on day 0, and with rows computed anew.

# %% [markdown] slot="stale" lang="ko"
# 그날 결제한 기존 계정은 일부뿐인데, 거의 모든 기존 계정의 점수가 달라졌습니다. 결제한 적이 있는
# 상점에 새 고객이 생겼기 때문입니다. 저장해 둔 행에는 이 변화가 반영되지 않으므로 점점 **낡은**
# 값이 됩니다. 얼마나 빨리 낡을까요? (디스크에 저장된 파티션(partition)에는 `append_partition`을
# 써서 같은 방법으로 덧붙입니다.)
#
# 나머지 날도 차례로 덧붙입니다. 날마다 0일째의 계정에 대하여 점수를 두 번 구합니다. 한 번은 기존
# 노드에 0일째에 저장한 행을 쓰고, 한 번은 새로 계산한 행을 씁니다.

# %% [markdown] slot="stale" lang="zh"
# 当天付过款的旧账户并不多，但几乎所有旧账户的得分都变了：它们的商店有了新顾客。存储的行没有反映这些
# 变化，于是逐渐**过时**。（磁盘上的分区（partition）也可以用 `append_partition` 以同样的方式追加数
# 据。）那么，存储的行过时得有多快？
#
# 下面把其余各天的数据依次追加进来。每一天都为第 0 天的账户打两次分：一次对旧节点使用第 0 天存储的
# 行，一次使用重新计算的行。

# %% slot="stale-code" tags=["nbval-ignore-output"]
graphs, told, stale = [g], report, [0.0]
for day in range(1, DAYS + 1):
    more, told = append_tables(graphs[-1], told, *of_day(day), fill={"label": -1})
    graphs.append(more)
    fresh = store(more)
    mixed = {t: torch.cat([stored[t], fresh[t][len(stored[t]) :]]) for t in fresh}
    now, late = (fraud(model.last([more], rows)[:ACCOUNTS]) for rows in (fresh, mixed))
    stale.append((now - late).abs().mean().item())
print("mean distance of stored scores by day:", [round(x, 3) for x in stale])
assert not AS_IN_TEXT or (sorted(stale) == stale and stale[8] > 3 * stale[1])

# %% [markdown] slot="drift" lang="en"
# Each day the stored scores are further off, so rows are stored again every night: one pass over
# the graph. But even fresh rows come from a model of day 0.
#
# ## Drift
#
# What does that model know about the frauds of day 8? We measure its accuracy on the accounts that
# open on each day, on the graph of that day. Beside it, a second model is trained anew each day, on
# the accounts of the two days before, whose labels have come in.

# %% [markdown] slot="drift" lang="ko"
# 날이 갈수록 차이가 커집니다. 그래서 밤마다 그래프를 한 번 훑어 행을 다시 저장합니다. 하지만 행을
# 새로 계산하더라도 모델은 여전히 0일째에 학습한 것입니다.
#
# ## 드리프트
#
# 그 모델은 8일째의 사기 계정에 대하여 무엇을 알고 있을까요? 날마다 그날의 그래프에서, 그날 새로
# 생긴 계정에 대한 정확도를 측정합니다. 아울러 날마다 모델을 새로 학습하여 나란히 비교합니다. 이
# 모델은 앞선 이틀 동안 생긴 계정으로 학습하며, 그 레이블은 그사이에 밝혀졌습니다.

# %% [markdown] slot="drift" lang="zh"
# 差距一天比一天大，所以每晚要重新存储一次，即对整张图计算一遍。不过，行即使是新的，模型仍然是第 0
# 天的。
#
# ## 漂移
#
# 这个模型还能认出多少第 8 天的欺诈账户？下面每天都在当天的图上，统计它对当天新开账户的准确率。作为
# 对比，每天另外训练一个模型，使用此前两天新开的账户，它们的标签这时已经知道了。

# %% slot="drift-code" tags=["nbval-ignore-output"]
begins = [0] + [ACCOUNTS + d * NEW for d in range(DAYS)]  # the first account of each day
frozen, daily = [with_graph], [with_graph]
for day in range(1, DAYS + 1):
    today = torch.arange(begins[day], begins[day] + NEW)
    recent = torch.arange(begins[max(day - 2, 0)], begins[day])
    retrained = train(graphs[day], recent, truth)
    frozen.append(accuracy(score_all(model, graphs[day])[today], truth[today]))
    daily.append(accuracy(score_all(retrained, graphs[day])[today], truth[today]))
guess = [1 - (each["label"] == "fraud").mean() for each in accounts]

figure, ax = plt.subplots(figsize=(5.4, 2.5), layout="constrained")
lines = {"retrained": daily, "frozen": frozen, "all honest": guess}
for (name, values), color in zip(lines.items(), (BLUE, ORANGE, GRAY)):
    ax.plot(values, "o-", color=color, label=name)
ax.set(xlabel="day", ylabel="accuracy on new accounts", ylim=(0.3, 1))
ax.legend(loc="lower left", ncols=3)
plt.show()
if AS_IN_TEXT:
    assert frozen[8] < guess[8]
    assert min(x - y for x, y in zip(daily, guess)) > 0.1

# %% [markdown] slot="machines" lang="en"
# The frozen model ends below the answer that needs no model, while the retrained one stays well
# above it. The graph does not protect against **drift**, a change of the data after training: here
# the graph itself carries it, for what changes is the meaning of an edge. Note what told us: labels
# of new accounts. Measure on the newest labels that you have, by day; one accuracy over all days
# would hide the fall.
#
# ## A checkpoint on fewer machines
#
# Training may need three machines, and answering requests one. The simulator of lesson 07 simulates
# such machines. This job gives each shop a row of an **embedding**, four numbers in place of its
# features. Each row, and what the optimizer remembers of it, lies on the machine that owns the
# shop, so every machine saves a share. `save_checkpoint` writes the shares with the IDs that nodes
# had *before* the graph was partitioned: IDs within parts differ from one partition to the next.
#
# `fit` trains; `infer` computes all scores layer by layer, in the original order. With three
# machines the job trains and saves; with two and with one it only loads. The scores must be
# equal.

# %% [markdown] slot="machines" lang="ko"
# 고정한 모델의 정확도는 마지막에는 모두 정상이라고 답할 때보다도 낮아지지만, 다시 학습한 모델의
# 정확도는 내내 그보다 훨씬 높습니다. 이렇게 시간이 지나면서 데이터의 성질이 달라지는 것이
# 드리프트이며, 그래프를 쓴다고 피할 수 있는 것은 아닙니다. 여기서는 오히려 에지의 의미가 달라지는
# 것이 드리프트입니다. 이를 알려 준 것은 새 계정의 레이블이었습니다. 가장 최근의 레이블로 날짜별
# 정확도를 재야 합니다. 모든 날을 합친 정확도 하나만 보면 하락이 가려집니다.
#
# ## 더 적은 머신에서 체크포인트 불러오기
#
# 학습에는 머신 세 대가 필요해도 요청에 답하는 데에는 한 대면 충분할 수 있습니다. 레슨 07의
# 시뮬레이터(simulator)로 이런 머신들을 흉내 내 봅시다. 이 작업에서는 상점마다 피처 대신 숫자 네
# 개짜리 **임베딩**을 씁니다. 임베딩 행, 그리고 옵티마이저가 행마다 기억하는 값은 그 상점을 소유한
# 머신에 있으므로, 머신마다 자기 몫을 저장합니다. `save_checkpoint`는 그래프를 파티션으로 나누기
# **전**의 ID와 함께 이 몫을 저장합니다. 파티션 안의 ID는 그래프를 나눌 때마다 달라지기 때문입니다.
#
# `fit`은 학습하고, `infer`는 모든 점수를 계층별로 계산하여 원래 순서로 반환합니다. 머신이 세 대일
# 때에는 학습하여 저장하고, 두 대와 한 대일 때에는 불러오기만 합니다. 점수는 모두 같아야 합니다.

# %% [markdown] slot="machines" lang="zh"
# 固定不变的模型最后还不如不用模型，重新训练的模型则始终明显高于基准。使用图并不能避免漂移；在这
# 里，变化的恰恰是边的含义。让我们发现这一点的，是新账户的标签。应当用手头最新的标签，按天统计准确
# 率；如果把所有日子合成一个准确率，下降就被掩盖了。
#
# ## 在更少的机器上加载检查点
#
# 训练可能需要三台机器，而回答请求一台就够。这里用第 07 课的模拟器（simulator）来模拟这些机器。这
# 个作业不使用商店的特征，而是为每家商店设一个四维的**嵌入**。嵌入行以及优化器为各行保存的
# 状态，都在拥有该商店的机器上，所以每台机器保存自己的一份。`save_checkpoint` 保存时使用图切分**之
# 前**的 ID，因为分区中的 ID 会随切分方式而改变。
#
# `fit` 负责训练；`infer` 逐层算出所有得分，并恢复为原来的顺序。用三台机器时，作业先训练再保存；用
# 两台和一台机器时，只加载。三次的得分应当相同。


# %% slot="job-code"
def fit(g, model, rows, sparse, epochs=4):
    x, label = (g.nodes["account"].data[name] for name in ("feat", "label"))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mine = {"account": node_split(label[:] >= 0, g.get_partition_book(), "account")}
    how = {"batch_size": 128, "shuffle": True, "seed": 0}
    loader = DistNodeDataLoader(g, mine, NeighborSampler([FANOUT, FANOUT]), **how)
    for _ in range(epochs):
        for nodes, seeds, blocks in loader:
            h = {"account": x[nodes["account"]], "shop": rows(nodes["shop"])}
            loss = nn.functional.cross_entropy(model(blocks, h), label[seeds["account"]])
            optimizer.zero_grad()
            sparse.zero_grad()
            loss.backward()
            optimizer.step()
            sparse.step()


def infer(g, model, rows):
    def last(block, h):
        return {"account": model.last([block], h)}

    steps = [lambda block, h: model.first([block], h), last]
    x = {"account": g.nodes["account"].data["feat"], "shop": rows.weight}
    return original_order(full_neighbor_inference(g, steps, x)["account"])[:]


# %% slot="run-code"
def small(shape, dtype):
    return 0.1 * torch.randn(shape, dtype=dtype)


def job(folder, saves):
    initialize()
    torch.distributed.init_process_group("gloo")
    g = DistGraph("graph")
    torch.manual_seed(g.rank())
    model = nn.parallel.DistributedDataParallel(Model(shop=4))
    policy = g.get_node_partition_policy("shop")
    rows = DistEmbedding(SHOPS, 4, "rows", small, part_policy=policy)
    parts = {"model": model, "rows": rows, "sparse": SparseAdam([rows], lr=0.05)}
    if saves:
        fit(g, *parts.values())
        save_checkpoint(folder, **parts)
    else:
        load_checkpoint(folder, **parts)
    return infer(g, model.module.eval(), rows)


# %% slot="move-code"
scores = {}
for machines in (3, 2, 1):
    cluster = simulate(g, machines)
    scores[machines] = cluster.run(job, lesson.folder / "run", machines == 3).returned[0]
    apart = (scores[machines] - scores[3]).abs().max().item()
    assert apart < 1e-4, f"machines: {machines}; scores differ by {apart}"
    print(f"machines: {machines}; equal scores of {len(scores[machines])} accounts")
files = sorted(path.name for path in (lesson.folder / "run").rglob("*.pt"))
print("saved:", *files)
assert not AS_IN_TEXT or accuracy(scores[1], label) > honest + 0.1

# %% [markdown] slot="summary" lang="en"
# Three shares became two and one, and every account has the score that it had. The files `part-…`
# hold rows, the files `rank-…` the state of each trainer; all trainers have the same model. A
# checkpoint belongs to its graph, though: a shop that opens later has no row, and loading says so.
#
# ## Summary
#
# - A new node needs features, and edges in both directions where the model reads both; its score
#   is the one computed on the larger graph.
# - Reading all neighbors is exact but may mean most of the graph; a fanout bounds the cost, and a
#   seed makes the answer repeatable; with stored rows, a request reads one hop.
# - New edges change the scores of old nodes, so stored rows become stale, more so each day.
# - Drift shows only where accuracy is measured by day, on new nodes; a model that is trained
#   again follows it.
# - A checkpoint keeps rows by original IDs, so it can be loaded on a different number of machines.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, running *Setup* is enough to check an answer. The
# [solutions](../solutions/12_after_training_solution.ipynb) are in a separate notebook.
#
# 1. In the toy graph, as it was before account 4 opened, a new account 4 pays in shops 0 and 2
#    instead. Which accounts does its score read? Answer with a list.
# 2. An account has paid in three shops, which have 1,000, 40 and 5 customers, itself included. No
#    other account is a customer of two of them. How many nodes does a request for it read with
#    all neighbors, at most with fanouts of 10, and with stored rows? Answer with a list of three
#    numbers.
# 3. Write a function of `pays` and `new`, lists of pairs (account, shop) without duplicates. `new`
#    are payments of today. It should return the set of the accounts in `pays` whose scores may
#    change in our two-layer model.
# 4. Write a function of `right` and `drop`. `right[d]` is the list of booleans that says which
#    accounts of day $d$ were scored correctly. Return the first day whose accuracy is at least
#    `drop` below that of day 0, or `None`.
# 5. Write a function of `saved` and `wanted`. `saved` has a pair for each old machine: original
#    IDs and the rows of these nodes, two tensors. `wanted` has a tensor of original IDs for each
#    new machine. Return a list with the tensor of rows for each new machine.

# %% [markdown] slot="summary" lang="ko"
# 세 머신의 몫이 두 대로, 또 한 대로 옮겨졌고 모든 계정의 점수는 그대로입니다. `part-…` 파일에는
# 행이, `rank-…` 파일에는 트레이너(trainer)별 상태가 들어 있으며, 그 가운데 모델은 어느 `rank-…`
# 파일에서나 같습니다. 다만 체크포인트는 저장할 때의 그래프에서만 쓸 수 있습니다. 나중에 생긴
# 상점에는 행이 없으므로 불러올 때 오류가 납니다.
#
# ## 요약
#
# - 새 노드에는 피처가 필요하고, 모델이 두 방향의 에지를 모두 읽는다면 양방향 에지가 필요합니다.
#   이렇게 구한 점수는 커진 그래프에서 구한 점수와 같습니다.
# - 모든 이웃을 쓰면 정확하지만 그래프의 대부분을 읽을 수도 있습니다. 팬아웃을 정하면 비용에
#   상한이 생기고, 난수 시드를 정하면 같은 답이 나옵니다. 저장해 둔 행을 쓰면 한 홉만 읽습니다.
# - 새 에지는 기존 노드의 점수도 바꾸므로, 저장해 둔 행은 날이 갈수록 낡습니다.
# - 드리프트는 새 노드에 대한 정확도를 날짜별로 재어야 드러나며, 모델을 다시 학습하면 따라잡을 수
#   있습니다.
# - 체크포인트에는 행이 원래 ID와 함께 저장되므로 머신 수가 달라도 불러올 수 있습니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 셀만 실행해도 채점할 수 있습니다.
# [풀이](../solutions/ko/12_after_training_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 계정 4가 생기기 전의 작은 그래프에서, 새 계정 4가 이번에는 상점 0과 2에서 결제합니다. 그
#    점수를 구할 때 어떤 계정을 읽습니까? 리스트로 답합니다.
# 2. 한 계정이 상점 세 곳에서 결제했습니다. 고객은 이 계정을 포함하여 각각 1,000명, 40명, 5명이고,
#    두 곳 이상의 고객인 계정은 이 계정뿐입니다. 이 계정에 대한 요청이 읽는 노드는 모든 이웃을 쓸
#    때 몇 개, 팬아웃이 10씩일 때 최대 몇 개, 저장해 둔 행을 쓸 때 몇 개입니까? 수 세 개의
#    리스트로 답합니다.
# 3. `pays`와 `new`를 받는 함수를 작성합니다. 둘 다 (계정, 상점) 쌍의 리스트이며 중복은 없습니다.
#    `new`는 오늘의 결제입니다. `pays`에 있는 계정 가운데 이 레슨의 2계층 모델에서 점수가 바뀔 수
#    있는 계정의 집합을 반환합니다.
# 4. `right`와 `drop`을 받는 함수를 작성합니다. `right[d]`는 $d$일째의 계정을 각각 맞혔는지 나타내는
#    불리언 리스트입니다. 정확도가 0일째보다 `drop` 이상 낮은 날 가운데 가장 이른 날을 반환하고,
#    그런 날이 없으면 `None`을 반환합니다.
# 5. `saved`와 `wanted`를 받는 함수를 작성합니다. `saved`에는 이전 머신마다 원래 ID의 텐서와 그
#    노드들의 행 텐서로 이루어진 쌍이 하나씩 들어 있습니다. `wanted`에는 새 머신마다 원래 ID의
#    텐서가 들어 있습니다. 새 머신별 행 텐서를 리스트로 반환합니다.

# %% [markdown] slot="summary" lang="zh"
# 三份变成了两份，又变成了一份，而每个账户的得分都没有变。`part-…` 文件存放各行，`rank-…` 文件存放
# 各训练器（trainer）的状态，其中的模型是相同的。不过，检查点只适用于保存时的那张图：之后新开的商
# 店没有对应的行，加载时会报错。
#
# ## 小结
#
# - 新节点需要特征；如果模型要读取两个方向的边，两个方向都要给出。这样，向旧图发出请求得到的得分，与
#   在扩大后的图上得到的相同。
# - 使用全部邻居，结果精确，但可能要读取图的大部分；扇出为开销设定上限，随机种子使回答可以重复；使用
#   存储的行只需读取一跳。
# - 新的边会改变旧节点的得分，所以存储的行一天比一天过时。
# - 只有在新节点上按天统计准确率，才能发现漂移；重新训练可以跟上变化。
# - 检查点按原始 ID 保存各行，所以机器数改变之后仍可加载。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的单元格就能评判。
# [解答](../solutions/zh/12_after_training_solution.ipynb)随本课提供。
#
# 1. 在账户 4 开户之前的小图中，假设新账户 4 改在商店 0 和 2 付款。为它打分要读取哪些账户？用列表
#    作答。
# 2. 一个账户在三家商店付过款，这三家商店的顾客（包括该账户）分别有 1,000、40 和 5 个；除它之外，
#    没有账户同时是其中两家的顾客。为它打分的一次请求，使用全部邻居时读取多少个节点？各层扇出为 10
#    时至多读取多少个？使用存储的行时读取多少个？用三个数的列表作答。
# 3. 写一个以 `pays` 和 `new` 为参数的函数：两者都是（账户，商店）对的列表，没有重复，`new` 是今天
#    的付款。返回一个集合，其中是 `pays` 中得分可能改变的账户（模型是本课的两层模型）。
# 4. 写一个以 `right` 和 `drop` 为参数的函数：`right[d]` 是一个布尔值列表，表示第 $d$ 天对各账户的判
#    断是否正确。有些天的准确率比第 0 天至少低 `drop`，返回其中最早的一天；如果没有，就返回 `None`。
# 5. 写一个以 `saved` 和 `wanted` 为参数的函数：`saved` 中每台旧机器对应一对张量，即原始 ID 和这些
#    节点的行；`wanted` 中每台新机器对应一个由原始 ID 组成的张量。返回一个列表，给出每台新机器的行
#    张量。

# %% slot="check"
answer_1 = None  # a list
answer_2 = None  # a list of three numbers
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% slot="answers"
answer_3 = None  # a function of pays and new
answer_4 = None  # a function of right and drop
answer_5 = None  # a function of saved and wanted
lesson.check(3, answer_3)
lesson.check(4, answer_4)
lesson.check(5, answer_5)
