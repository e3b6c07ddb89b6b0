# %% [markdown] slot="title" lang="en"
# # Solutions: the distributed API
#
# These are the answers to the exercises at the end of the [lesson](../en/06_distributed_api.ipynb).
# The cells before the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 분산 API
#
# [레슨](../../ko/06_distributed_api.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의 셀들은
# 레슨의 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：分布式 API
#
# 本 Notebook 给出[第 06 课](../../zh/06_distributed_api.ipynb)末尾各道练习题的解答。第一题解答之前
# 的单元格是该课的代码，请先运行。

# %% [markdown] slot="why" lang="en"
# **1.** The last range that begins at or below 1000 is that of part 2, which begins at 899. In this
# part, the node is row $1000 - 899 = 101$, counting from 0.
#
# **2.** The first step divides by the square root of 1, the second by that of $1 + 9$:
# $-0.1 \cdot 1 / 1 - 0.1 \cdot 3 / \sqrt{10} = -0.195$. With the gradients summed, there is a
# single step of $-0.1 \cdot 4 / \sqrt{16} = -0.1$. With two steps, the order within the batch would
# matter too.
#
# **3.** First find the distinct IDs; `index_add_` then adds all values for each ID to its row. This
# way, each row is read once and written once. Whatever another trainer writes to these rows between
# the read and the write is lost: concurrent updates are safe only if the owner of a row computes
# them. That is why the owners compute the updates of sparse optimizers.
#
# **4.** Again, take the distinct IDs, map them to their owners with the partition book, and count
# those whose owner is not `part`.

# %% [markdown] slot="why" lang="ko"
# **1.** 1000 이하에서 시작하는 마지막 구간은 899에서 시작하는 파티션 2의 구간입니다. 따라서 노드
# 1000의 행 번호는 이 파티션 안에서 $1000 - 899 = 101$입니다(0부터 셉니다).
#
# **2.** 그래디언트를 첫째 단계에서는 1의 제곱근으로, 둘째 단계에서는 $1 + 9$의 제곱근으로 나누므로
# 행의 값은 $-0.1 \cdot 1 / 1 - 0.1 \cdot 3 / \sqrt{10} = -0.195$가 됩니다. 그래디언트를 더해 한
# 단계만 수행하면 $-0.1 \cdot 4 / \sqrt{16} = -0.1$입니다. 두 단계로 나누면 배치 안에서 어느 쪽을
# 먼저 처리하느냐에 따라서도 결과가 달라집니다.
#
# **3.** 먼저 중복된 ID를 하나로 합치고, 같은 ID의 값은 `index_add_`로 모두 더합니다. 그러면 행마다
# 한 번씩만 읽고 씁니다. 다만 읽고 쓰는 사이에 다른 트레이너가 이 행에 쓴 값은 사라집니다. 여러
# 트레이너가 동시에 갱신해도 안전하려면 행의 소유자가 계산해야 하며, 희소 옵티마이저의 계산을
# 소유자가 맡는 것도 이 때문입니다.
#
# **4.** 이번에도 중복된 ID를 하나로 합친 다음, 파티션 북으로 소유자를 찾아 소유자가 `part`가 아닌
# 행을 셉니다.

# %% [markdown] slot="why" lang="zh"
# **1.** 起点不大于 1000 的各段中，最后一段属于分区 2，从 899 开始。所以节点 1000 是该分区的第
# $1000 - 899 = 101$ 行（从 0 数起）。
#
# **2.** 第一步把梯度除以 1 的平方根，第二步把梯度除以 $1 + 9$ 的平方根，结果为
# $-0.1 \cdot 1 / 1 - 0.1 \cdot 3 / \sqrt{10} = -0.195$。如果把梯度相加后只走一步，结果是
# $-0.1 \cdot 4 / \sqrt{16} = -0.1$。分两步走时，结果还取决于批次内的先后顺序。
#
# **3.** 先去掉重复的 ID，再用 `index_add_` 把同一个 ID 的所有值相加。这样，每一行只读一次、写一次。
# 不过，其他训练器在这一读一写之间写入这些行的值会丢失：只有由行的所有者来计算，并发的更新才是安全
# 的。正因为如此，稀疏优化器的更新才由所有者计算。
#
# **4.** 同样先去掉重复的 ID，再用分区簿查出各自的所有者，数出其中所有者不是 `part` 的有多少个。

# %% slot="answers"
answer_1 = [2, 1000 - 899]
answer_2 = -0.1 * 1 / 1 - 0.1 * 3 / 10**0.5


def answer_3(tensor, ids, values):
    distinct, position = ids.unique(return_inverse=True)
    rows = tensor[distinct]
    tensor[distinct] = rows.index_add_(0, position, values)


def answer_4(g, ids, part):
    return (g.get_partition_book().nid2partid(ids.unique()) != part).sum().item()


lesson.check(1, answer_1)
lesson.check(2, answer_2)
lesson.check(3, answer_3)
lesson.check(4, answer_4)
