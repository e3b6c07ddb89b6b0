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
# **2.** Part 1 begins at 14 with its two films, so its users begin at $14 + 2 = 16$, and 30 is
# number $30 - 16 = 14$ of them, counted from 0. Part 0 owns users 0 to 9, so it is user
# $10 + 14 = 24$.
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
# **2.** 파티션 1은 14에서 시작하고 영화 두 편이 먼저 오므로 사용자는 $14 + 2 = 16$부터입니다.
# 따라서 30은 파티션 1의 사용자를 0부터 셀 때 $30 - 16 = 14$번입니다. 파티션 0이 사용자 0~9를
# 소유하므로 사용자 $10 + 14 = 24$입니다.
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
# **2.** 分区 1 从 14 开始，先是两部电影，所以它的用户从 $14 + 2 = 16$ 开始；从 0 数起，30 是其中第
# $30 - 16 = 14$ 个。分区 0 拥有用户 0 到 9，因此是用户 $10 + 14 = 24$。
#
# **3.** 按同构 ID 查找所有者，不需要知道类型。`dgl.ETYPE` 存放每条边的关系在 `g.etypes` 中的序号；
# 设定 `minlength` 之后，一条跨分区的边也没有的关系同样会得到计数 0。
#
# **4.** 电影是 `likes` 和 `dislikes` 的目标节点，用户是另外两种边的目标节点。−1 表示取所有的边。

# %% slot="check"
answer_1 = 4 + 10 + 1
answer_2 = "user", 10 + 30 - (14 + 2)
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% slot="answers"
answer_4 = {"likes": -1, "dislikes": 3, "liked_by": 2, "disliked_by": 2}


def answer_3(g, frontier):
    book = g.get_partition_book()
    u, v = frontier.edges()
    away = book.nid2partid(u) != book.nid2partid(v)
    found = frontier.edata[dgl.ETYPE][away].bincount(minlength=len(g.etypes))
    return dict(zip(g.etypes, found.tolist()))


lesson.check(3, answer_3)
lesson.check(4, answer_4)
