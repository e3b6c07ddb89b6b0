# %% [markdown] slot="title" lang="en"
# # Solutions: launching a job on many machines
#
# These are the answers to the exercises at the end of the [lesson](../en/09_launching.ipynb). The
# cells before the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 여러 머신에서 작업 실행하기
#
# [레슨](../../ko/09_launching.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의 셀들은 레슨의
# 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：在多台机器上启动作业
#
# 本 Notebook 给出[第 09 课](../../zh/09_launching.ipynb)末尾各道练习题的解答。第一题解答之前的单元
# 格是该课的代码，请先运行。

# %% [markdown] slot="why" lang="en"
# **1.** There is one line for each machine, in the order of the parts. A port is given only if it
# matters.
#
# **2.** Servers and trainers are counted per machine, samplers per trainer: $4 \cdot 2$,
# $4 \cdot 2$ and $4 \cdot 2 \cdot 3$.
#
# **3.** Two machines save 27 s per epoch but must first make up for the extra 300 s:
# $300 / 27 \approx 11.1$, so they finish first with 12 epochs or more.
#
# **4.** The length in bytes must be a multiple of eight, and every number must be that of an
# existing row. A negative number would read rows from the end without any error, so it is refused
# as well, and so is an empty request.
#
# **5.** Only checkpoints that *all* machines have are complete; the newest of them is the answer.

# %% [markdown] slot="why" lang="ko"
# **1.** 머신마다 한 줄씩, 파티션 순서대로 적습니다. 포트는 정해야 할 때만 적습니다.
#
# **2.** 서버와 트레이너의 수는 머신 한 대당, 샘플러의 수는 트레이너 하나당 지정합니다. 따라서
# $4 \cdot 2$, $4 \cdot 2$, $4 \cdot 2 \cdot 3$개입니다.
#
# **3.** 머신이 두 대이면 에폭마다 27초를 아끼지만, 먼저 더 걸린 300초를 만회해야 합니다.
# $300 / 27 \approx 11.1$이므로 12에폭 이상이면 두 대로 실행하는 쪽이 먼저 끝납니다.
#
# **4.** 요청의 바이트 수는 8의 배수여야 하고, 모든 번호에 해당하는 행이 있어야 합니다. 음수이면
# 오류 없이 끝에서부터 센 행을 읽게 되므로 음수도 거부해야 합니다. 빈 요청도 거부합니다.
#
# **5.** **모든** 머신에 빠짐없이 있는 체크포인트만 온전합니다. 그 가운데 가장 최근 것을 고릅니다.

# %% [markdown] slot="why" lang="zh"
# **1.** 每台机器一行，按分区的次序排列。需要指定端口时才写端口。
#
# **2.** 服务器和训练器按机器计数，采样器进程按训练器计数：$4 \cdot 2$、$4 \cdot 2$ 和
# $4 \cdot 2 \cdot 3$。
#
# **3.** 两台机器每轮节省 27 秒，但先要抵消多花的 300 秒：$300 / 27 \approx 11.1$，所以训练 12 轮及
# 以上时，两台机器先完成。
#
# **4.** 长度必须是 8 的倍数，每个行号都必须存在。负的行号不会引发错误，而是会从末尾倒着数，所以也要
# 拒绝。空请求同样要拒绝。
#
# **5.** 只有**所有**机器都有的检查点才是完整的，取其中最新的一个。

# %% slot="answers"
answer_1 = "10.0.0.1 31000\n10.0.0.2\n"
answer_2 = [4 * 2, 4 * 2, 4 * 2 * 3]
answer_3 = 300 // (60 - 33) + 1


def answer_4(request, rows):
    if len(request) % 8:
        return b""
    ids = np.frombuffer(request, np.int64)
    if len(ids) == 0 or ids.min() < 0 or ids.max() >= len(rows):
        return b""
    return rows[ids].tobytes()


def answer_5(complete):
    common = set(complete[0]).intersection(*complete)
    return max(common, default=-1)


lesson.check(1, answer_1)
lesson.check(2, answer_2)
lesson.check(3, answer_3)
lesson.check(4, answer_4)
lesson.check(5, answer_5)
