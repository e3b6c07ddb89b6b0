# %% [markdown] slot="title" lang="en"
# # Solutions: published claims, checked by counting
#
# These are the answers to the exercises at the end of the [lesson](../en/11_replayed_papers.ipynb).
# The cells up to the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 논문의 수치, 직접 세어 확인하기
#
# [레슨](../../ko/11_replayed_papers.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의 셀들은
# 레슨의 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：亲手核对论文中的数据
#
# 本 Notebook 给出[第 11 课](../../zh/11_replayed_papers.ipynb)末尾各道练习题的解答。第一题解答之前
# 的单元格是该课的代码，请先运行。

# %% [markdown] slot="why" lang="en"
# **1.** The features of a batch take $188{,}339 \cdot 100 \cdot 4$ bytes, or 71.8 MiB, the
# published figure. On average, three out of four nodes belong to other machines.
#
# **2.** Let the halo have $h$ times as many rows as a machine owns. It saves nothing at
# $\alpha = 0$ and $16.7 - 5.71$ million rows when it is complete. Since it is cached in random
# order, it saves about $\alpha / h$ of that when $\alpha < h$. The saving of $16.7 - 14.0$ at
# $\alpha = 0.1$ gives $h = 0.41$; the saving at $\alpha = 0.2$ gives 0.43. Both are below 0.5, yet
# the published row still falls a little when the cache grows beyond 0.5: presumably, the halos of
# the parts differ in size.
#
# **3.** Remember for each row the last batch that needed it. A cache that does not know the future
# may keep rows that are never needed again; it never fetches fewer rows than `planned`, because no
# rule does.

# %% [markdown] slot="why" lang="ko"
# **1.** 배치 하나의 피처는 모두 $188{,}339 \cdot 100 \cdot 4$바이트, 곧 71.8 MiB이며, 이는 발표된
# 수치와 같습니다. 평균적으로 노드 넷 가운데 셋은 다른 머신에 있습니다.
#
# **2.** 헤일로의 크기가 소유한 행의 $h$배라고 합시다. $\alpha = 0$이면 줄어드는 행이 없고, 헤일로를
# 모두 담으면 ($16.7 - 5.71$)백만 행이 줄어듭니다. 무작위 순서로 담으므로, $\alpha < h$이면 줄어드는
# 행은 대략 그 값의 $\alpha / h$배입니다. $\alpha = 0.1$에서 줄어든 $16.7 - 14.0$백만 행으로
# 계산하면 $h = 0.41$이고, $\alpha = 0.2$로 계산하면 0.43입니다. 둘 다 0.5보다 작은데 논문의 수치는
# 0.5를 지나서도 조금 더 줄어듭니다. 파티션마다 헤일로의 크기가 다르기 때문일 것입니다.
#
# **3.** 행마다 마지막으로 쓰인 배치를 기록합니다. LRU는 앞으로의 요청을 모르므로 다시 쓰이지 않을
# 행을 남길 수 있습니다. 빈 상태에서 시작하는 캐시 가운데 Belady의 규칙이 가장 적게 가져오므로, LRU
# 캐시가 가져오는 행은 `planned`보다 적을 수 없습니다.

# %% [markdown] slot="why" lang="zh"
# **1.** 一批的全部特征是 $188{,}339 \cdot 100 \cdot 4$ 字节，即 71.8 MiB，与已发表的数值一致。平均
# 每四个节点中有三个属于其他机器。
#
# **2.** 设 HALO 的行数是机器自有行数的 $h$ 倍。$\alpha = 0$ 时什么也省不下，全部装下时省下
# $16.7 - 5.71$ 百万行。由于各行是按随机顺序装入的，$\alpha < h$ 时大约省下这个数的 $\alpha / h$。由
# $\alpha = 0.1$ 时省下的 $16.7 - 14.0$ 百万行，得 $h = 0.41$；由 $\alpha = 0.2$，得 0.43。两者都小
# 于 0.5，而论文的数值在 0.5 之后还略有下降：这大概是因为各分区的 HALO 大小不一。
#
# **3.** 为每一行记下最近一次用到它的批次。LRU 不能预知未来，可能留下不再用到的行；它获取的行不会比
# `planned` 少，因为任何规则都不会。

# %% slot="answers"
answer_1 = 188_339 * 100 * 4 * 3 / 4 / 2**20
answer_2 = 0.1 * (16.7 - 5.71) / (16.7 - 14.0)


def answer_3(batches, slots):
    fetched, held, last = 0, set(), {}
    for now, batch in enumerate(batches):
        fetched += len(set(batch) - held)
        last.update(dict.fromkeys(batch, now))
        held = set(sorted(held | set(batch), key=lambda row: (-last[row], row))[:slots])
    return fetched


print(f"{answer_1:.1f} MiB; halo: {answer_2:.2f} times the rows owned")
lesson.check(1, answer_1)
lesson.check(2, answer_2)
lesson.check(3, answer_3)
assert all(answer_3(toy_batches, n) >= planned(toy_batches, n) for n in range(5))
