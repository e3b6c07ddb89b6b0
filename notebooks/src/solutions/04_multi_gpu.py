# %% [markdown] slot="title" lang="en"
# # Solutions: training with multiple processes
#
# These are the answers to the exercises at the end of the [lesson](../en/04_multi_gpu.ipynb). The
# cells before the first exercise are the lesson's own code; run them first.

# %% [markdown] slot="title" lang="ko"
# # 풀이: 멀티프로세스 학습
#
# [레슨](../../ko/04_multi_gpu.ipynb) 끝에 있는 연습 문제의 풀이입니다. 첫 문제 앞의 셀들은 레슨의
# 코드이므로 먼저 실행합니다.

# %% [markdown] slot="title" lang="zh"
# # 解答：用多个进程训练
#
# 本 Notebook 给出[第 04 课](../../zh/04_multi_gpu.ipynb)末尾各道练习题的解答。第一题解答之前的单元
# 格是该课的代码，请先运行。

# %% [markdown] slot="why-1-2" lang="en"
# **1.** A chunk is a quarter of the gradient, 250,000 numbers. A rank sends three chunks in the
# first half, where chunks are added, and three in the second, where they are copied:
# $2 \cdot 3 \cdot 250{,}000 = 1{,}500{,}000$.
#
# **2.** A share has 334 nodes, 1,000 / 3 rounded up. In batches of 64, that is five full batches
# and one of 14: six steps on every rank.

# %% [markdown] slot="why-1-2" lang="ko"
# **1.** 조각 하나는 그래디언트의 4분의 1, 곧 값 250,000개입니다. 각 랭크에서 더하는 단계에 조각 세
# 개, 복사하는 단계에 조각 세 개를 보내므로 $2 \cdot 3 \cdot 250{,}000 = 1{,}500{,}000$개입니다.
#
# **2.** 랭크마다 1,000 / 3을 올림한 334개를 맡습니다. 배치 크기가 64이면 꽉 찬 배치 다섯 개와
# 14개짜리 배치 하나가 되므로, 모든 랭크에서 여섯 단계입니다.

# %% [markdown] slot="why-1-2" lang="zh"
# **1.** 一个分块是梯度的四分之一，即 250,000 个数。每个 rank 在累加阶段发送三个分块，在复制阶段又发
# 送三个：$2 \cdot 3 \cdot 250{,}000 = 1{,}500{,}000$。
#
# **2.** 每份有 334 个节点，即 1,000 / 3 向上取整的结果。批次大小为 64 时，有五个完整的批次和一个只
# 有 14 个节点的批次：每个 rank 都是六步。

# %% slot="answers-1-2"
answer_1 = 2 * (4 - 1) * 1_000_000 // 4
nodes = -(-1000 // 3)
answer_2 = -(-nodes // 64)
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% [markdown] slot="why-3-4" lang="en"
# **3.** The loss of the whole batch is a mean over all its nodes, so each rank's weight is
# proportional to its number of nodes. DDP gives every rank the same weight, which is right only for
# equal shares.
#
# **4.** Correct predictions and nodes are each summed over all ranks, and then the first sum is
# divided by the second. The mean of the ranks' accuracies would be wrong: in the check, the ranks
# have 40, 50 and 10 nodes.

# %% [markdown] slot="why-3-4" lang="ko"
# **3.** 배치 전체의 손실은 모든 노드에 대한 평균이므로, 각 랭크의 가중치는 맡은 노드 수에
# 비례합니다. DDP에서는 모든 랭크에 같은 가중치를 쓰므로, 맡은 노드 수가 같을 때에만 배치 전체의
# 그래디언트가 나옵니다.
#
# **4.** 맞힌 노드 수와 맡은 노드 수를 각각 모든 랭크에 걸쳐 더한 뒤, 앞의 합을 뒤의 합으로
# 나눕니다. 채점에 쓰는 예에서는 세 랭크가 노드를 각각 40개, 50개, 10개 맡으므로, 랭크별 정확도를
# 단순히 평균하면 틀린 값이 나옵니다.

# %% [markdown] slot="why-3-4" lang="zh"
# **3.** 整个批次的损失是所有节点的损失的平均值，所以每个 rank 的权重应与它的节点数成正比。DDP 给每
# 个 rank 相同的权重，只有各份大小相同时才正确。
#
# **4.** 先把各 rank 预测正确的节点数和各自的节点数分别相加，再用前者除以后者。这里不能对各 rank 的
# 准确率求平均：评判时，三个 rank 分别有 40、50 和 10 个节点。


# %% slot="answers-3-4"
def answer_3(sizes):
    return [size / sum(sizes) for size in sizes]


def answer_4(rank, world_size, counts):
    dist.init_process_group("gloo")
    dist.all_reduce(counts[rank])
    hits, nodes = counts[rank].tolist()
    return hits / nodes


lesson.check(3, answer_3)
lesson.check(4, answer_4)
