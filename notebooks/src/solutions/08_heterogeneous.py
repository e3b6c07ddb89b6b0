# %% [markdown] slot="title" lang="en"
# # Solutions: heterogeneous graphs
#
# These are the answers to the exercises at the end of the [lesson](../en/08_heterogeneous.ipynb).
# The cells before the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 이종 그래프
#
# [레슨](../../ko/08_heterogeneous.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의 셀들은
# 레슨의 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：异构图
#
# 本 Notebook 给出[第 08 课](../../zh/08_heterogeneous.ipynb)末尾各道练习题的解答。第一题解答之前的
# 单元格是该课的代码，请先运行。

# %% [markdown] slot="why" lang="en"
# **1.** Films 0 to 3 belong to part 0, so film 5 is the second film of part 1. Part 0 has 14 nodes,
# and films come first within a part: $14 + 1 = 15$.
#
# **2.** Part 2 begins at $14 + 22 = 36$ with its three films, so 40 is the second of its users.
# Parts 0 and 1 own users 0 to 29, so it is user 31.
#
# **3.** No types are needed to find the owners of homogeneous IDs. `dgl.ETYPE` gives the relation
# of each edge as an index into `g.etypes`; `minlength` gives relations without edges a count of
# zero.
#
# **4.** Films are the destinations of `likes` and `dislikes`, and users those of the other two
# types. A fanout of −1 takes all edges.

# %% [markdown] slot="why" lang="ko"
# **1.** 영화 0~3은 파티션 0에 속하므로 영화 5는 파티션 1의 두 번째 영화입니다. 파티션 0의 노드는
# 14개이고, 파티션 안에서는 영화가 먼저 오므로 $14 + 1 = 15$입니다.
#
# **2.** 파티션 2는 $14 + 22 = 36$에서 시작하고 영화 세 편이 먼저 오므로, 40은 파티션 2의 두 번째
# 사용자입니다. 파티션 0과 1의 사용자가 30명이므로 사용자 31입니다.
#
# **3.** 동종 ID의 소유자를 찾는 데에는 타입이 필요하지 않습니다. `dgl.ETYPE`에는 각 에지의 관계가
# `g.etypes`에서 몇 번째인지를 나타내는 번호가 들어 있습니다. `minlength`를 지정하면 에지가 없는
# 관계도 0으로 집계됩니다.
#
# **4.** 영화는 `likes`와 `dislikes`의 도착 노드이고, 사용자는 나머지 두 타입의 도착 노드입니다.
# −1은 모든 에지를 뜻합니다.

# %% [markdown] slot="why" lang="zh"
# **1.** 电影 0 到 3 属于分区 0，所以电影 5 是分区 1 的第二部。分区 0 有 14 个节点，而分区内电影排在
# 前面：$14 + 1 = 15$。
#
# **2.** 分区 2 从 $14 + 22 = 36$ 开始，先是三部电影，所以 40 是它的第二个用户。分区 0 和 1 共有 30
# 个用户，因此是用户 31。
#
# **3.** 按同构 ID 查找所有者，不需要知道类型。`dgl.ETYPE` 存放每条边的关系在 `g.etypes` 中的序号；
# 设定 `minlength` 之后，一条跨分区的边也没有的关系同样会得到计数 0。
#
# **4.** 电影是 `likes` 和 `dislikes` 的目标节点，用户是另外两种边的目标节点。−1 表示取所有的边。

# %% slot="check"
def check(number, answer, is_right):
    verdict = "not answered yet"
    if answer is not None:
        verdict = "right" if is_right(answer) else "wrong"
    print(f"exercise {number}: {verdict}")


def sha(answer):
    return hashlib.sha256(str(answer).encode()).hexdigest()[:8]


answer_1 = 4 + 10 + 1
answer_2 = "user", 30 + 40 - (14 + 22 + 3)
check(1, answer_1, lambda answer: sha(int(answer)) == "e629fa65")
check(2, answer_2, lambda pair: sha((pair[0], int(pair[1]))) == "e75c6d0c")

# %% slot="answers"
answer_4 = {"likes": -1, "dislikes": 3, "liked_by": 2, "disliked_by": 2}


def answer_3(frontier):
    u, v = frontier.edges()
    away = book.nid2partid(u) != book.nid2partid(v)
    found = frontier.edata[dgl.ETYPE][away].bincount(minlength=len(g.etypes))
    return dict(zip(g.etypes, found.tolist()))


def counts(answer):
    dgl.seed(3)
    typed, wanted = sample_neighbors(g, {"film": train_ids}, 5), {}
    for etype in g.canonical_etypes:
        u, v = typed.edges(etype=etype)
        cut = book.nid2partid(u, etype[0]) != book.nid2partid(v, etype[2])
        wanted[etype[1]] = int(cut.sum())
    dgl.seed(3)
    homo_ids = book.map_to_homo_nid(train_ids, "film")
    return answer(sample_neighbors(g, homo_ids, 5)) == wanted


def samples(answer):
    ids, most = torch.arange(99), dict(zip(g.etypes, (2, 2, 3, 999)))
    found = sample_neighbors(g, {"film": ids, "user": ids}, answer)
    rows = [(found.in_degrees(ids, e), g.in_degrees(ids, e)) for e in most]
    return all(torch.equal(a, b.clamp(max=k)) for (a, b), k in zip(rows, most.values()))


check(3, answer_3, counts)
check(4, answer_4, samples)
