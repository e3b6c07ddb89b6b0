# %% [markdown] slot="title" lang="en"
# # Training with multiple processes
#
# A single Python process usually drives one GPU or, with one thread, one CPU core.
# **Data-parallel** training starts several processes, gives each a share of every mini-batch, and
# keeps their models identical. With several GPUs, each process drives one; the same program also
# runs on CPU cores. By the end, you will be able to
#
# - say what an all-reduce does, and why averaging the processes' gradients gives the gradient of
#   the whole batch;
# - start real processes from a notebook and train with `DistributedDataParallel`;
# - check that two processes learn what one would learn;
# - choose between a fork and a fresh interpreter, and say what each costs in memory;
# - recognize and prevent three failures that can take days to track down.

# %% [markdown] slot="title" lang="ko"
# # 멀티프로세스 학습
#
# Python 프로세스 하나는 대개 GPU 하나만 쓰며, 스레드가 하나이면 CPU 코어도 하나만 씁니다. 그보다
# 많은 자원을 쓰려면 **데이터 병렬**(data parallel) 학습을 합니다. 프로세스를 여러 개 시작하여
# 미니배치(mini-batch)를 나누어 맡기고, 모든 프로세스의 모델을 똑같이 유지하는 방법입니다. GPU가
# 여러 개이면 프로세스마다 하나씩 씁니다. 같은 프로그램을 CPU 코어에서도 실행할 수 있으며, 이
# 레슨에서는 CPU를 사용합니다. 레슨을 마치면 다음과 같은 일을 할 수 있습니다.
#
# - 올리듀스(all-reduce)가 어떤 연산인지, 그래디언트(gradient)의 평균이 왜 배치 전체의 그래디언트와
#   같은지 설명하기
# - 노트북에서 프로세스를 실제로 여러 개 시작하고 `DistributedDataParallel`로 학습하기
# - 프로세스 두 개로 학습한 결과가 하나로 학습한 결과와 같은지 확인하기
# - 포크(fork)와 새 인터프리터 가운데 알맞은 것을 고르고, 각각 메모리를 얼마나 쓰는지 설명하기
# - 많은 사람이 며칠씩 헤매게 되는 장애 세 가지를 알아차리고 예방하기

# %% [markdown] slot="title" lang="zh"
# # 用多个进程训练
#
# 一个 Python 训练进程通常只使用一块 GPU；在 CPU 上，如果只用一个线程，就只能使用一个核。**数据并行
# **（data parallel）训练启动多个进程，把每个小批次（mini-batch）分成若干份，每个进程一份，并使各进
# 程的模型始终相同。有多块 GPU 时，每个进程使用一块；同样的程序也能在 CPU 核上运行，本课就是这样做
# 的。学完之后，你能够：
#
# - 说明全归约（all-reduce）的作用，以及为什么对各进程的梯度（gradient）取平均，就能得到整个批次的梯
#   度；
# - 在 Notebook 中启动真正的进程，并用 `DistributedDataParallel` 训练；
# - 验证两个进程的训练结果与一个进程相同；
# - 在 fork（用 fork 系统调用派生子进程）和启动全新的解释器之间做出选择，并说明两种方式各占多少内
#   存；
# - 识别并预防三种往往要排查数日的故障。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# Processes that train together form a group; each has a number, its **rank**, which also stands for
# the process; the group's size is the **world size**. Two ranks suit two cores; with two GPUs, each
# rank takes one. Each process computes with one thread, so ranks do not compete for cores.
# `"digits"`, the graph of handwritten digits, comes with the project. Collapsed cells only draw
# figures; click to expand.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 함께 학습하는 프로세스들은 그룹을 이룹니다. 그룹에 속한 프로세스의 번호를 **랭크**(rank),
# 프로세스의 수를 **월드 크기**(world size)라고 합니다. 이 레슨에서는 그 번호가 붙은 프로세스도
# 랭크라고 부릅니다. CPU 코어가 두 개이면 랭크도 두 개가 알맞고, GPU가 두 개이면 랭크마다 하나씩
# 씁니다. 랭크끼리 코어를 두고 경쟁하지 않도록 프로세스마다 스레드를 하나만 사용합니다. 손글씨 숫자
# 그래프인 `"digits"`는 프로젝트에 포함되어 있습니다. 그림만 그리는 셀은 접어 두었으며, 누르면
# 펼쳐집니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 进程组中的每个进程都有一个编号，称为**进程序号**（rank），下文直接写作 rank，有时也指进程本身；进
# 程的个数称为**进程总数**（world size）。两个 CPU 核正好运行两个 rank；如果有两块 GPU，就每个 rank
# 用一块。每个进程只用一个线程，以免各个 rank 争抢 CPU 核。由手写数字图像构成的图 `"digits"` 随项目
# 附带。只负责绘图的单元格都已折叠，点击即可展开。

# %% slot="imports"
import os
import time
from datetime import timedelta

import matplotlib.pyplot as plt
import psutil
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import gnnlab as dgl
import gnnlab.multiprocessing as mp
import gnnlab.nn as dglnn
from gnnlab.dataloading import NeighborSampler, NodeDataLoader
from gnnlab.exercises import Lesson
from gnnlab.helpers import block_sampler, ddp_loader, fix_openmp, prepare_mp
from gnnlab.parallel import create_dataloader, free_port, init_model
from gnnlab.parallel import init_process_group, launch_processes, track
from gnnlab.plot import BLUE, GREEN, ORANGE

DATASET, WORLD_SIZE, FANOUTS, BATCH = "digits", 2, [5, 5], 32
lesson = Lesson("04", "en")  # exercises, and the style of figures
lesson.style()
torch.set_num_threads(1)

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# The seed nodes 1, 4, 2 and 3 form a mini-batch. Rank 0 takes the first two, rank 1 the others.
# Each rank reads the features of its seeds and their neighbors. In the figure, seeds are blue, the
# nodes read for them orange.

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기
#
# 시드 노드(seed node) 1, 4, 2, 3이 미니배치 하나를 이룹니다. 앞의 둘은 랭크 0이, 나머지 둘은 랭크
# 1이 맡습니다. 각 랭크에서는 프로세스가 하나일 때와 똑같이, 맡은 시드 노드의 이웃을 찾고, 시드
# 노드와 이웃의 피처(feature)를 읽습니다. 그림에서 파란색은 시드 노드이고, 주황색은 시드 노드의
# 출력을 계산하기 위해 함께 읽는 이웃 노드입니다.

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图
#
# 四个种子节点（seed node）1、4、2、3 组成一个小批次。rank 0 取前两个，rank 1 取后两个。每个 rank 都
# 像单个进程那样，查找自己那份种子节点的邻居，并读取这些种子节点和邻居的特征（feature）。图中蓝色的
# 是种子节点，橙色的是为它们而读取的节点。

# %% slot="toy-code"
toy_src = [1, 2, 3, 4, 0, 5, 6, 6, 7, 2, 7, 8, 8, 5]
toy_dst = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4]
toy = dgl.graph((toy_src, toy_dst))
place = [(0, 0), (-1, 1), (1, 1), (1, -1), (-1, -1), (-2, 0), (0, 2), (2, 0), (0, -2)]

figure, axes = plt.subplots(1, 2, figsize=(7, 2.9), layout="constrained")
for rank, (seeds, ax) in enumerate(zip(([1, 4], [2, 3]), axes)):
    input_nodes, _, toy_blocks = NeighborSampler([None]).sample(toy, seeds)
    print(f"rank {rank} reads nodes {input_nodes.sort().values.tolist()}")
    dgl.plot.graph(toy, toy_blocks, pos=place, ax=ax).set_title(f"rank {rank}")
plt.show()

# %% [markdown] slot="gradient" lang="en"
# Every rank has the whole graph, so no communication is needed yet. Both ranks read nodes 6 and 8:
# the cost of splitting a batch. The ranks need to agree only when the model is updated.
#
# Let $L_r$ be the mean loss over the seeds of rank $r$. If all $R$ shares have the same size, the
# mean loss $L$ of the batch is the mean of the $L_r$, and the same holds for the gradients:
#
# $$\nabla L = \frac{1}{R} \sum_{r=0}^{R-1} \nabla L_r$$
#
# For one `SAGEConv` layer, we compute and compare the gradients of both ranks and of the whole
# batch.

# %% [markdown] slot="gradient" lang="ko"
# 모든 랭크에 그래프 전체가 있으므로 여기까지는 서로 통신할 필요가 없습니다. 노드 6과 8은 두
# 랭크에서 모두 읽는데, 이는 배치를 나누었기 때문에 더 드는 비용입니다. 두 랭크가 결과를 맞추어야
# 하는 것은 모델을 갱신할 때뿐입니다.
#
# 랭크 $r$이 맡은 시드 노드의 평균 손실을 $L_r$이라고 합시다. 랭크 $R$개가 맡은 시드 노드의 수가
# 모두 같으면 배치 전체의 평균 손실 $L$은 $L_r$의 평균이며, 그래디언트도 마찬가지입니다.
#
# $$\nabla L = \frac{1}{R} \sum_{r=0}^{R-1} \nabla L_r$$
#
# `SAGEConv` 계층 하나로 두 랭크의 그래디언트와 배치 전체의 그래디언트를 구하여 비교해 봅시다.

# %% [markdown] slot="gradient" lang="zh"
# 每个 rank 都有整张图，所以到这一步为止，它们互不依赖。节点 6 和 8 被两个 rank 各读了一遍，这是拆分
# 批次的开销。只有在更新模型时，各个 rank 才需要相互协调。
#
# 设 $L_r$ 为 rank $r$ 的种子节点上的平均损失。如果批次分成的 $R$ 份大小都相同，整个批次的平均损失
# $L$ 就是各个 $L_r$ 的平均值，梯度也是如此：
#
# $$\nabla L = \frac{1}{R} \sum_{r=0}^{R-1} \nabla L_r$$
#
# 我们用一个 `SAGEConv` 层算出两个 rank 各自的梯度和整个批次的梯度，加以比较。

# %% slot="gradient-code"
torch.manual_seed(0)
toy_x, toy_y = torch.rand(9, 4), torch.randint(3, (9,))
conv = dglnn.SAGEConv(4, 3, "mean")


def gradient(seeds):
    _, _, (block,) = NeighborSampler([None]).sample(toy, seeds)
    loss = F.cross_entropy(conv(block, toy_x[block.srcdata[dgl.NID]]), toy_y[seeds])
    parts = torch.autograd.grad(loss, list(conv.parameters()))
    return torch.cat([part.flatten() for part in parts])


first, second, whole = gradient([1, 4]), gradient([2, 3]), gradient([1, 4, 2, 3])
assert torch.allclose((first + second) / 2, whole, atol=1e-6)
print(f"the mean of both gradients is the batch gradient in all {len(whole)} parameters")
print("the two gradients are equal:", torch.allclose(first, second))
assert not torch.allclose(first, second)

# %% [markdown] slot="ring" lang="en"
# The two gradients differ, and their mean is the gradient of the batch. Note the condition: equal
# shares.
#
# ## Build it yourself: all-reduce
#
# At the start, each rank has its own gradient; at the end, each should have the sum of all. This
# operation is called **all-reduce**. If rank 0 added up all gradients alone, it would be a
# bottleneck. A *ring* has none: every gradient is cut into as many chunks as there are ranks, and
# in every step each rank sends one chunk to the next (the last rank to the first). In the first
# half of the steps, the receiver adds the chunk to its own; in the second half, the chunk replaces
# its own.

# %% [markdown] slot="ring" lang="ko"
# 두 랭크의 그래디언트는 서로 다르지만, 그 평균은 배치 전체의 그래디언트와 같습니다. 단, 랭크마다
# 맡은 시드 노드의 수가 같아야 한다는 조건을 기억해 두십시오.
#
# ## 직접 만들어 보기: 올리듀스
#
# 처음에는 랭크마다 그래디언트가 하나씩 있습니다. 이를 모두 더한 값을 모든 랭크가 갖게 하는 연산을
# **올리듀스**라고 합니다. 랭크 0 혼자서 모든 그래디언트를 더한다면 랭크 0이 병목(bottleneck)이
# 됩니다. **링**(ring) 방식에는 이런 병목이 없습니다. 각 그래디언트를 랭크 수만큼의 조각으로 나누고,
# 단계마다 각 랭크에서 조각 하나를 다음 랭크로 보냅니다. 마지막 랭크에서는 첫 랭크로 보냅니다.
# 전반부에는 받은 조각을 자기 조각에 더하고, 후반부에는 받은 조각을 그대로 복사합니다.

# %% [markdown] slot="ring" lang="zh"
# 两个梯度并不相同，而它们的平均值就是整个批次的梯度。请注意前提：各份大小相同。
#
# ## 亲手实现：全归约
#
# 开始时每个 rank 各有一个梯度，结束时每个 rank 都要得到全部梯度之和。这个操作称为**全归约**。如果由
# rank 0 独自求和，它就会成为瓶颈（bottleneck）。采用**环**（ring）的方式则没有瓶颈：有多少个 rank，
# 就把每个梯度切成多少个分块（chunk）；每一步，每个 rank 都把一个分块发给下一个 rank，最后一个 rank
# 发给第一个。在前一半步骤中，接收方把收到的分块加到自己的分块上；在后一半步骤中，则用收到的分块替换
# 自己的分块。


# %% slot="ring-code"
def ring_all_reduce(vectors):
    n, ranks = len(vectors), torch.arange(len(vectors))
    chunks = torch.stack(vectors).unflatten(1, (n, -1))  # (rank, chunk, element)
    yield chunks.clone()
    for step in range(2 * n - 2):
        which, receivers = (ranks - step) % n, (ranks + 1) % n
        kept = chunks[receivers, which] if step < n - 1 else 0
        chunks[receivers, which] = chunks[ranks, which] + kept
        yield chunks.clone()


for counts in ring_all_reduce([torch.ones(2)] * 2):
    print("summed in each chunk:", counts[..., 0].int().tolist())

# %% [markdown] slot="hand" lang="en"
# The first line shows the start: each chunk holds the contribution of one rank. After one step,
# each rank has the sum in one chunk; after two, in both.
#
# Now change the number of ranks. In each panel, rows are ranks and columns are chunks; each number
# says how many ranks' contributions a chunk contains. The chunks framed in orange are sent next.
# Chunks arriving in the upper row of panels are added; those in the lower row are copied. The title
# gives the total that each rank sends. Without a running kernel, you see four settings.

# %% [markdown] slot="hand" lang="ko"
# 첫 줄은 시작할 때의 상태로, 각 조각에는 랭크 하나의 값만 들어 있습니다. 한 단계가 지나면 각 랭크에
# 두 랭크의 값을 더한 조각이 하나 생기고, 두 단계가 지나면 두 조각이 모두 그런 조각이 됩니다.
#
# 이번에는 랭크 수를 직접 바꾸어 봅시다. 각 정사각형에서 행은 랭크, 열은 조각이고, 숫자는 그 조각에
# 랭크 몇 개의 값이 더해졌는지를 나타냅니다. 주황색 테두리를 두른 것은 다음 단계에서 보낼
# 조각입니다. 윗줄의 단계에서는 받은 조각을 자기 조각에 더하고, 아랫줄의 단계에서는 받은 조각으로
# 바꿉니다. 그림 맨 위의 제목은 랭크 하나가 모든 단계에 걸쳐 보내는 양의 합계입니다. 커널이 실행되지
# 않는 환경에서는 네 가지 설정의 그림이 표시됩니다.

# %% [markdown] slot="hand" lang="zh"
# 第一行是开始时的状态：每个分块只含一个 rank 的数。一步之后，每个 rank 有一个分块是两者之和；两步之
# 后，两个分块都是。
#
# 现在请亲手改变 rank 的个数。每个方阵中，行是 rank，列是分块，数字表示这个分块已累加了几个 rank 的
# 梯度。橙色框中的分块将在下一步发送。上排的方阵是累加的过程：每一步，各 rank 都把收到的分块累加到自
# 己的分块上；下排的方阵是替换的过程：每一步，各 rank 都用收到的分块替换自己的分块。标题给出每个
# rank 的总发送量。没有启动内核时，显示的是预先保存的四张图，对应四种 rank 个数。


# %% slot="hand-draw" tags=["folded"]
def draw_ring(ranks=4):
    figure, axes = plt.subplots(2, ranks, figsize=(5.7, 3), layout="constrained")
    axes[1, -1].axis("off")
    for step, counts in enumerate(ring_all_reduce([torch.ones(ranks)] * ranks)):
        ax = axes[divmod(step, ranks)]
        ax.imshow(counts[..., 0], cmap="Blues", vmin=0, vmax=1.5 * ranks)
        for rank in range(ranks):
            for chunk, count in enumerate(counts[rank, :, 0].tolist()):
                style = {"ha": "center", "va": "center_baseline", "size": 7}
                style["color"] = "white" if count > 0.75 * ranks else "black"
                ax.text(chunk, rank, f"{count:.0f}", **style)
            if step < 2 * ranks - 2:
                corner, frame = ((rank - step) % ranks - 0.45, rank - 0.45), (0.9, 0.9)
                patch = plt.Rectangle(corner, *frame, fill=False, color=ORANGE, lw=1.5)
                ax.add_patch(patch)
        ax.set_title(f"after step {step}" if step else "start", size=7)
        ax.set(xticks=[], yticks=[])
    sent = 2 * (ranks - 1) / ranks
    figure.suptitle(f"each rank sends {sent:.2f} times the size of its gradient", size=9)
    return figure


# %% slot="hand-code"
states = list(ring_all_reduce([torch.ones(4)] * 4))
assert ((states[3] == 4).sum(0) == 1).all() and (states[6] == 4).all()
dgl.plot.explore(draw_ring, ranks=("ranks", [2, 3, 4, 6]))

# %% [markdown] slot="meet" lang="en"
# With four ranks, each chunk is complete on one rank after three steps and on all ranks after six.
# By then, each rank has sent six chunks, each a quarter of its gradient: 1.5 times the whole. With
# any number of ranks, the factor stays below 2.
#
# ## Real processes
#
# `launch_processes(function, n, ...)` starts $n$ fresh Python interpreters and calls
# `function(rank, n, ...)` in each. The function may be defined in a cell; large tensors and graphs
# are placed in shared memory. Results come back in rank order. `init_process_group` connects the
# ranks; its backend is `gloo` between CPUs, `nccl` between GPUs. Does PyTorch's `all_reduce` agree
# with our ring?

# %% [markdown] slot="meet" lang="ko"
# 랭크가 네 개이면 세 단계 뒤에 각 조각의 합이 어느 한 랭크에서 완성되고, 여섯 단계 뒤에는 모든
# 랭크에서 완성됩니다. 그동안 각 랭크에서는 4분의 1 크기의 조각을 여섯 번, 곧 그래디언트의 1.5배를
# 보냅니다. 랭크가 아무리 많아도 2배에는 이르지 않습니다.
#
# ## 실제 프로세스
#
# `launch_processes(function, n, ...)`는 Python 인터프리터 $n$개를 새로 시작하고, 각각에서
# `function(rank, n, ...)`을 호출합니다. 셀에서 정의한 함수도 전달되며, 큰 텐서와 그래프는 공유
# 메모리(shared memory)에 저장됩니다. 결과는 랭크 순서대로 반환됩니다. `init_process_group`을
# 호출하면 랭크들이 서로 연결됩니다. 백엔드로는 CPU 간 통신에 `gloo`, GPU 간 통신에 `nccl`을 씁니다.
# 이렇게 연결한 뒤 `all_reduce`로 구한 값이 직접 만든 링으로 구한 값과 같은지 확인해 봅시다.

# %% [markdown] slot="meet" lang="zh"
# 有四个 rank 时，三步之后，每个分块都已在某一个 rank 上完成求和；六步之后，在所有 rank 上都已完成。
# 这时每个 rank 共发送了 6 个分块，每个分块是梯度的 1/4，合计为梯度大小的 1.5 倍；rank 再多，也不到
# 2 倍。
#
# ## 真正的进程
#
# `launch_processes(function, n, ...)` 启动 $n$ 个全新的 Python 解释器，并在每个解释器中调用
# `function(rank, n, ...)`。在单元格中定义的函数也能传过去，大的张量和图放在共享内存（shared
# memory）中。结果按 rank 的顺序返回。`init_process_group` 在各个 rank 之间建立连接；所用的后端，CPU
# 之间是 `gloo`，GPU 之间是 `nccl`。连接之后，`all_reduce` 得到的结果与我们用环得到的相同吗？


# %% slot="meet-code"
def meet(rank, world_size, vectors):
    dist.init_process_group("gloo")
    mine = vectors[rank].clone()
    dist.all_reduce(mine)
    return os.getpid(), mine


vectors = list(torch.rand(WORLD_SIZE, 4 * WORLD_SIZE))
answers = launch_processes(meet, WORLD_SIZE, vectors)
*_, ring = ring_all_reduce(vectors)
for rank, (_, total) in enumerate(answers):
    assert torch.allclose(total, ring[rank].flatten())
pids = {os.getpid(), *(pid for pid, _ in answers)}
print(f"equal sums; {len(pids)} processes, including this one")

# %% [markdown] slot="data" lang="en"
# The sums agree.
#
# ## Build it yourself: a share for each rank
#
# A graph keeps its edges in up to three formats: `coo`, in the order of their IDs; `csc`, grouped
# by destination, for sampling; `csr`, grouped by source, for the backward pass. Each is created
# when first needed. `prepare_mp` creates the last two now, because ranks share only what exists
# before they start.
#
# In every epoch, all ranks shuffle the training nodes with the same random seed and so agree on the
# order without communicating. Of $R$ ranks, rank $r$ takes every $R$-th node, starting at position
# $r$. In each step, the ranks' batches make up the batch that one process would use. If the nodes
# do not divide evenly, some are taken twice, because all ranks must take the same number of steps.
# Below, `share` takes a rank's nodes from `order`. In `ddp_loader.py` of `gnnlab.helpers`,
# `rank_share` also shuffles, and the loader makes batches.

# %% [markdown] slot="data" lang="ko"
# 두 값은 같습니다. 프로세스는 이 노트북의 프로세스와 랭크 두 개, 모두 셋입니다.
#
# ## 직접 만들어 보기: 랭크별 담당 노드
#
# 그래프의 에지는 최대 세 가지 형식으로 저장됩니다. `coo`는 에지 ID 순서로 나열한 것입니다. `csc`는
# 도착 노드별로 묶은 것으로 샘플링에 쓰이고, `csr`은 출발 노드별로 묶은 것으로 역전파에 쓰입니다. 각
# 형식은 처음 필요할 때 만들어집니다. 랭크들은 시작하기 전에 만들어 둔 것만 공유할 수 있으므로,
# `prepare_mp`로 뒤의 두 형식을 미리 만듭니다.
#
# 에폭(epoch)마다 모든 랭크에서 같은 난수 시드로 학습 노드를 섞으므로, 통신하지 않아도 순서가
# 일치합니다. 랭크가 $R$개이면 랭크 $r$은 위치 $r$부터 $R$칸 간격으로 노드를 가져갑니다. 그러면 각
# 랭크의 배치를 합친 것이 프로세스가 하나일 때의 배치와 같아집니다. 모든 랭크의 단계 수가 같아야
# 하므로, 노드 수가 랭크 수로 나누어떨어지지 않으면 일부 노드는 두 번 쓰입니다. 아래의 `share`는
# 노드의 순서 `order`에서 랭크의 담당 노드를 고릅니다. `gnnlab.helpers`에 있는 `ddp_loader.py`에서는
# `rank_share`가 노드를 섞는 일까지 맡고, 로더가 담당 노드를 배치로 나눕니다.

# %% [markdown] slot="data" lang="zh"
# 结果一致。一共有三个进程：当前进程和两个 rank。
#
# ## 亲手实现：每个 rank 一份
#
# 图的边最多以三种格式存储：`coo` 按边 ID 的顺序排列；`csc` 按目标节点分组，供采样使用；`csr` 按源节
# 点分组，供反向传播使用。每种格式都在第一次用到时才建立。各个 rank 只能共享启动之前已有的数据，所以
# 现在就用 `prepare_mp` 建立后两种。
#
# 每一轮（epoch）中，所有 rank 都用同一个随机种子打乱训练节点，因此无需通信就能得到相同的顺序。共有
# $R$ 个 rank 时，rank $r$ 从位置 $r$ 开始，每 $R$ 个节点取一个；这样，各 rank 的批次合起来正是单个
# 进程的一个批次。所有 rank 的步数必须相同，所以节点数不能被 rank 的个数整除时，有的节点会用到两次。
# 下面的 `share` 从节点的顺序 `order` 中取出一个 rank 的份额。在 `gnnlab.helpers` 的 `ddp_loader.py`
# 中，`rank_share` 还负责打乱顺序，加载器再把份额分成批次。

# %% slot="data-code"
dataset = dgl.data.load(DATASET)
graph = dataset[0]
train_ids, val_ids = dataset.train_idx, dataset.val_idx
prepare_mp(graph)
print("formats:", graph.formats()["created"])


def share(order, rank, world_size):
    steps = -(-len(order) // world_size)  # rounded up, the same for all ranks
    positions = torch.arange(rank, steps * world_size, world_size)
    return order[positions % len(order)]


order = torch.arange(len(train_ids))  # not shuffled
for rank in range(WORLD_SIZE):
    mine = share(order, rank, WORLD_SIZE)
    print(f"rank {rank}: {len(mine)} nodes, the last {mine[-3:].tolist()}")
    wanted = ddp_loader.rank_share(len(train_ids), rank, WORLD_SIZE, shuffle=False)
    assert torch.equal(mine, wanted)

# %% [markdown] slot="loader" lang="en"
# Every batch has a key, derived from the random seed, the epoch and the batch number. Samples
# depend only on the key, the layer and the node, not on the rank.
# `gnnlab export ddp_loader my_project/` copies the file, which needs only torch.
#
# ## With the library
#
# The library's `create_dataloader` creates the loader of one rank. Its batches must equal those of
# `ddp_loader`, which here uses the sampler of lesson 03.

# %% [markdown] slot="loader" lang="ko"
# 배치마다 난수 시드, 에폭, 배치 번호로 만든 키가 있습니다. 샘플링 결과는 이 키와 계층, 노드에만
# 달려 있으며, 어느 랭크에서 샘플링하는지와는 무관합니다. 이 성질은 뒤에서 다시 이용합니다. 이
# 로더의 파일은 torch만 있으면 동작하며, `gnnlab export ddp_loader my_project/`를 실행하면 자신의
# 프로젝트로 복사할 수 있습니다.
#
# ## 라이브러리 사용하기
#
# 라이브러리에서는 `create_dataloader`로 랭크의 로더를 만듭니다. 이 로더의 배치는 앞에서 본
# `ddp_loader`의 배치와 같아야 합니다. 여기서는 `ddp_loader`에 레슨 03에서 살펴본 샘플러(sampler)를
# 씁니다.

# %% [markdown] slot="loader" lang="zh"
# 每个批次都有一个键，由随机种子、轮和批次的序号得出。采样结果只取决于这个键、层和节点，与其他因素无
# 关，甚至与 rank 无关；后面会用到这一点。这个加载器的文件只依赖 torch，运行
# `gnnlab export ddp_loader my_project/` 就能把它复制到自己的项目中。
#
# ## 使用库
#
# 库的 `create_dataloader` 为一个 rank 创建加载器，它给出的批次应当与上面 `ddp_loader` 给出的相同；
# 这里的 `ddp_loader` 使用第 03 课的采样器（sampler）。


# %% slot="loader-code" tags=["nbval-ignore-output"]
def loader_of(rank, world_size, graph, nids, **options):
    options["batch_size"] = BATCH // world_size
    sampler = NeighborSampler(FANOUTS)
    return create_dataloader(rank, world_size, graph, nids, sampler, **options)


def one_epoch(loader):
    start = time.perf_counter()
    batches = list(loader)
    seconds.append(time.perf_counter() - start)
    edges = [block.edata[dgl.EID] for _, _, blocks in batches for block in blocks]
    return [seeds for _, seeds, _ in batches] + edges


small, seconds = block_sampler.Graph(*graph.edges()), []
inputs = small, train_ids, block_sampler.NeighborSampler(FANOUTS), BATCH // 2
for rank in range(2):
    mine = ddp_loader.DDPLoader(*inputs, rank=rank, world_size=2)
    both = [mine, loader_of(rank, 2, graph, train_ids)]
    assert all(all(map(torch.equal, *map(one_epoch, both))) for _ in range(5))
    print(f"rank {rank}: {len(mine)} batches per epoch, all equal")
print(f"time (library = 1): ddp_loader {min(seconds[::2]) / min(seconds[1::2]):.1f}")

# %% [markdown] slot="model" lang="en"
# The 179 training nodes form two shares of 90, with one node taken twice. Batches of 16 make six
# steps on each rank. The library makes the same batches, usually in less time.
#
# ## Model and training
#
# The model is GraphSAGE with two layers. `init_model` wraps it in `DistributedDataParallel` (DDP),
# which copies the parameters of rank 0 to all ranks and, in every backward pass, averages the
# gradients with all-reduce. The optimizers of all ranks get identical gradients, so the models stay
# identical.
#
# With GPUs, rank $r$ uses GPU $r$. gnnlab's `init_process_group` makes it the current device of the
# process, as `torch.cuda.set_device(rank)` does, and returns it; `init_model` passes it to DDP as
# `device_ids`. A script without these two functions should do both: without `set_device`, anything
# moved to plain `"cuda"` ends up on GPU 0 on every rank.
#
# All ranks run the same function, `train`. Only rank 0 validates and saves the best model, using
# `model.module`, the bare model inside DDP. The others wait at the *barrier*, which no rank passes
# before all have reached it. `@fix_openmp` will be explained below.

# %% [markdown] slot="model" lang="ko"
# 학습 노드 179개를 두 랭크가 90개씩 맡으므로, 노드 하나는 두 번 쓰입니다. 배치 크기가 16이므로 각
# 랭크는 한 에폭에 여섯 단계를 수행합니다. 라이브러리를 쓰면 같은 배치를 대개 더 짧은 시간에 만들 수
# 있습니다.
#
# ## 모델과 학습
#
# 모델은 계층이 두 개인 GraphSAGE입니다. `init_model`은 이 모델을 `DistributedDataParallel`(DDP)로
# 감쌉니다. DDP는 랭크 0의 매개변수를 모든 랭크에 복사하고, 역전파할 때마다 그래디언트의 평균을
# 올리듀스로 구합니다. 모든 랭크의 옵티마이저에 같은 그래디언트가 전달되므로 모델도 계속 똑같이
# 유지됩니다.
#
# GPU가 있는 컴퓨터에서는 랭크 $r$이 GPU $r$을 사용합니다. gnnlab의 `init_process_group`은
# `torch.cuda.set_device(rank)`처럼 이 GPU를 프로세스의 현재 장치로 지정한 뒤 그 장치를 반환하고,
# `init_model`은 이 장치를 DDP의 `device_ids`로 넘깁니다. 두 함수를 쓰지 않는 스크립트에서는 현재
# 장치를 지정하고 그 장치를 DDP에 넘기는 일을 모두 직접 해야 합니다. `set_device`를 빠뜨리면, 번호
# 없이 `"cuda"`라고만 지정한 텐서와 모델은 어느 랭크에서나 GPU 0에 놓입니다.
#
# 모든 랭크에서 같은 함수 `train`을 실행합니다. 검증하고 가장 좋은 모델을 저장하는 일은 랭크 0에서만
# 하며, 이때 DDP로 감싸기 전의 원래 모델인 `model.module`을 씁니다. 그동안 다른 랭크는
# **배리어**(barrier)에서 기다립니다. 배리어는 모든 랭크가 도착해야 통과할 수 있는
# 동기화(synchronization) 지점입니다. `@fix_openmp`는 뒤에서 설명합니다.

# %% [markdown] slot="model" lang="zh"
# 179 个训练节点分成两份，每份 90 个，其中一个节点用了两次。每个 rank 的批次大小为 16，一轮有六步。
# 库生成的批次完全相同，用时通常更短。
#
# ## 模型与训练
#
# 模型是两层的 GraphSAGE，`init_model` 用 `DistributedDataParallel`（DDP）把它包装起来：DDP 把 rank
# 0 的参数复制给所有 rank，并在每次反向传播中用全归约对梯度求平均。各 rank 的优化器得到的梯度相同，
# 模型也就始终相同。
#
# 在有 GPU 的机器上，rank $r$ 使用 GPU $r$。gnnlab 的 `init_process_group` 把它设为该进程的当前设
# 备，作用与 `torch.cuda.set_device(rank)` 相同，并返回这个设备；`init_model` 再把它作为
# `device_ids` 传给 DDP。不用这两个函数的脚本，两件事都要自己做：如果不调用 `set_device`，在每个
# rank 上，凡是只写 `"cuda"` 而不写编号的，都会用到 GPU 0。
#
# 所有 rank 运行同一个函数 `train`。只有 rank 0 做验证并保存最好的模型，这时使用 DDP 内部的原始模型
# `model.module`；其他 rank 则在**屏障**（barrier）处等待：所有 rank 到齐之前，任何 rank 都不能继
# 续。`@fix_openmp` 将在后面解释。


# %% slot="model-code"
class SAGE(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        steps = range(len(sizes) - 1)
        layers = [dglnn.SAGEConv(sizes[i], sizes[i + 1], "mean") for i in steps]
        self.layers = nn.ModuleList(layers)

    def forward(self, blocks, h):
        for layer, block in zip(self.layers, blocks, strict=True):
            h = layer(block, h if layer is self.layers[0] else F.relu(h))
        return h


hidden = [128] * (len(FANOUTS) - 1)
SIZES = [graph.ndata["feat"].shape[1], *hidden, dataset.num_classes]


@torch.no_grad()
def accuracy(model, graph, nids, device):
    # all neighbors, one batch
    sampler = NeighborSampler([None] * len(FANOUTS))
    loader = NodeDataLoader(graph, nids, sampler, device, batch_size=len(nids))
    _, _, blocks = next(iter(loader))
    predicted = model(blocks, blocks[0].srcdata["feat"]).argmax(1)
    return (predicted == blocks[-1].dstdata["label"]).float().mean().item()


# %% slot="train-code"
@fix_openmp
def train(rank, world_size, graph, train_ids, val_ids, epochs, path, meeting=None):
    device = init_process_group(rank, world_size, init_method=meeting)
    torch.manual_seed(0)
    model, history = init_model(SAGE(SIZES), device), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    loader = loader_of(rank, world_size, graph, train_ids, device=device)
    for epoch in track(range(epochs), "epochs"):
        loader.set_epoch(epoch)
        for _, _, blocks in loader:
            logits = model(blocks, blocks[0].srcdata["feat"])
            loss = F.cross_entropy(logits, blocks[-1].dstdata["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            history.append(accuracy(model.module, graph, val_ids, device))
            if history[-1] == max(history):
                torch.save(model.module.state_dict(), path)
        dist.barrier()
    dist.destroy_process_group()
    return history, nn.utils.parameters_to_vector(model.parameters()).detach().cpu()


# %% slot="train-run" tags=["nbval-ignore-output"]
fresh, forked = f"{lesson.folder}/fresh.pt", f"{lesson.folder}/forked.pt"
everything = (graph, train_ids, val_ids, 8)
(history, ours), *others = launch_processes(train, WORLD_SIZE, *everything, fresh)
assert all(torch.equal(ours, theirs) for _, theirs in others)
assert max(history) > 0.9, (
    f"only {max(history):.2f}: more epochs, larger FANOUTS or a smaller BATCH"
)
print("validation accuracy:", *(f"{value:.2f}" for value in history))

# %% [markdown] slot="fork" lang="en"
# Only rank 0 has the history; the ranks' parameters are identical down to the last bit.
#
# ## Start processes by forking
#
# Processes can be started in two ways. `launch_processes` starts fresh interpreters, and so does
# `torch.multiprocessing.spawn`, often written `mp.spawn`; but the latter finds the function by
# importing it, so it cannot run one defined in a notebook. The other way is a **fork**, available
# everywhere except on Windows: a copy of the running process that shares memory with it until
# either writes. It takes milliseconds, and the functions and the graph are already there. Scripts
# usually fork with `mp.Process` and the start method `"fork"`; `gnnlab.multiprocessing` is
# PyTorch's module with a safer `Process`.
#
# If there are GPUs, PyTorch starts a thread per GPU for a process's first gradient; a fork does not
# copy threads: children forked later cannot compute gradients. This notebook has computed some, so
# a fresh interpreter forks the ranks. They connect through a free port and should find the same
# best model as before. (On GPUs, the summation order is not fixed, so the model may differ.)

# %% [markdown] slot="fork" lang="ko"
# 정확도 기록은 랭크 0에만 있고, 두 랭크의 매개변수는 마지막 비트까지 일치합니다.
#
# ## 포크로 시작하기
#
# 프로세스를 시작하는 방법은 두 가지입니다. 하나는 인터프리터를 새로 시작하는 것으로,
# `launch_processes`가 이 방법을 씁니다. 많은 스크립트에서 `mp.spawn`으로 호출하는
# `torch.multiprocessing.spawn`도 마찬가지이지만, 이 함수는 실행할 함수를 import하여 찾으므로
# 노트북에서 정의한 함수는 실행하지 못합니다. 다른 하나는 **포크**입니다. Windows를 제외한 운영
# 체제에서 쓸 수 있으며, 실행 중인 프로세스를 복제하고 어느 한쪽이 메모리에 쓰기 전까지는 메모리를
# 공유합니다. 몇 밀리초면 끝나고, 함수와 그래프를 따로 전달하지 않아도 됩니다. 포크를 쓰는
# 스크립트에서는 보통 시작 방식을 `"fork"`로 정하고 `mp.Process`로 포크합니다.
# `gnnlab.multiprocessing`은 PyTorch에 있는 같은 이름의 모듈에서 `Process`를 더 안전하게 바꾼
# 것입니다.
#
# GPU가 있는 컴퓨터에서는 그래디언트를 계산한 적이 있는 프로세스를 포크하면 자식 프로세스에서
# 그래디언트를 계산할 수 없습니다. PyTorch는 그래디언트를 처음 계산할 때 GPU마다 스레드를 하나씩
# 시작하는데, 포크는 이 스레드를 복제하지 않기 때문입니다. 이 노트북에서는 이미 그래디언트를
# 계산했으므로, 새로 시작한 인터프리터에서 랭크를 포크합니다. 랭크들은 비어 있는 포트로 연결되며,
# 가장 좋은 모델은 앞에서 얻은 것과 같아야 합니다. (GPU에서는 더하는 순서가 정해져 있지 않으므로
# 모델이 다를 수 있습니다.)

# %% [markdown] slot="fork" lang="zh"
# 只有 rank 0 上有准确率的记录；两个 rank 的参数则逐位相同。
#
# ## 用 fork 启动
#
# 启动进程有两种方式。一种是启动全新的解释器，`launch_processes` 就是这样；许多脚本用的
# `torch.multiprocessing.spawn`（在那些脚本中常写作 `mp.spawn`）也是这样，但它靠导入来找到要运行的函
# 数，所以运行不了 Notebook 中定义的函数。另一种是 **fork**，除 Windows 外都可用：复制正在运行的进
# 程，在其中一方写入之前，双方共享内存。fork 只需几毫秒，函数和图也都已在新进程的内存中。采用 fork
# 的脚本通常把启动方式设为 `"fork"`，再用 `mp.Process` 创建进程；`gnnlab.multiprocessing` 就是
# PyTorch 的同名模块，只是其中的 `Process` 更安全。
#
# 在有 GPU 的计算机上，进程一旦计算过梯度，由它 fork 出的子进程就无法再计算梯度：第一次计算梯度时，
# PyTorch 会为每块 GPU 启动一个线程，而 fork 不会复制这些线程。本 Notebook 已经计算过梯度，所以由一
# 个新启动的解释器来 fork 各个 rank。各个 rank 通过一个空闲端口建立连接；训练得到的最好的模型应当与
# 前面的相同。（在 GPU 上求和没有固定的顺序，模型可能不同。）


# %% slot="fork-code"
def fork_ranks(rank, world_size, *arguments):
    torch.set_num_threads(1)
    mp.set_start_method("fork", force=True)
    meeting, ranks = f"tcp://127.0.0.1:{free_port()}", []
    for number in range(WORLD_SIZE):
        position = (number, WORLD_SIZE)
        ranks.append(mp.Process(target=train, args=(*position, *arguments, meeting)))
        ranks[-1].start()
    for process in ranks:
        process.join()
    return [process.exitcode for process in ranks]


can_fork = hasattr(os, "fork")
no_fork = "" if can_fork else "no fork on Windows: use WSL, or see the stored output"
if no_fork:
    print(no_fork)
else:
    (codes,) = launch_processes(fork_ranks, 1, *everything, forked)
    both = zip(torch.load(fresh).values(), torch.load(forked).values())
    same = all(torch.equal(*pair) for pair in both)
    print(f"exit codes: {codes}; same best model: {same}")
    assert codes == [0] * WORLD_SIZE
    assert same or torch.accelerator.is_available()

# %% [markdown] slot="memory" lang="en"
# Both processes exited normally. How ranks are started does not change what they learn, only how
# fast they start and how much memory they need. A fresh interpreter imports PyTorch again, and an
# argument that is neither a tensor nor a graph, such as a dictionary of node names, is copied for
# each rank, so memory grows with every process. A forked rank shares everything that its parent
# has. We start one fresh rank, which forks two, and measure the memory that each shares with
# no other process.

# %% [markdown] slot="memory" lang="ko"
# 두 프로세스 모두 정상적으로 종료되었습니다. 랭크를 어떤 방식으로 시작하든 학습 결과는 같고,
# 시작하는 데 걸리는 시간과 메모리 사용량만 다릅니다. 새 인터프리터에서는 PyTorch를 다시 import해야
# 하고, 노드 이름이 든 딕셔너리처럼 텐서도 그래프도 아닌 인자는 랭크마다 복사되므로, 프로세스가
# 늘어나는 만큼 메모리도 늘어납니다. 포크한 랭크는 부모 프로세스의 메모리를 모두 공유합니다. 새
# 인터프리터로 랭크를 하나 시작하고 그 랭크에서 다시 두 개를 포크하여, 각 랭크가 다른 프로세스와
# 공유하지 않는 메모리를 재어 봅시다.

# %% [markdown] slot="memory" lang="zh"
# 两个进程都正常结束；启动方式不影响训练结果，只影响启动的快慢和内存用量。全新的解释器要重新导入
# PyTorch；而且，传给函数的数据中，凡不是张量也不是图的（例如存放节点名称的字典），都要为每个 rank
# 各复制一份，所以进程越多，占用的内存也越多。fork 出的 rank 则共享父进程的全部内存。我们启动一个全
# 新的 rank，再由它 fork 出两个，测量每个 rank 独占、不与其他进程共享的内存。


# %% slot="memory-code" tags=["nbval-ignore-output"]
def own_memory(rank, world_size):
    return psutil.Process().memory_full_info().uss / 1e6


def two_ways(rank, world_size):
    fresh = [own_memory(rank, world_size)]
    return {"spawn": fresh, "fork": launch_processes(own_memory, 2, start_method="fork")}


if no_fork:
    print(no_fork)
else:
    own = launch_processes(two_ways, 1)[0]
    for way, found in own.items():
        print(f"{way}: at most {max(found):.0f} MB per rank")
    assert max(own["fork"]) < 20, "what a forked rank does not share"

# %% [markdown] slot="prove" lang="en"
# A fresh rank takes more than a hundred megabytes before it does anything, a forked one only a few;
# memory that a forked rank writes to later becomes its own.
#
# ## Check that they agree
#
# Two ranks with batches of 16 should learn what one process learns with batches of 32. We train for
# 20 steps on 160 nodes, so that every batch is full, first on two ranks and then in this notebook,
# and compare all parameters.

# %% [markdown] slot="prove" lang="ko"
# 새로 시작한 랭크는 아무 일도 하지 않아도 100 MB 넘게 쓰고, 포크한 랭크는 몇 MB만 씁니다. 다만
# 포크한 뒤에 값을 고쳐 쓴 부분은 랭크마다 따로 메모리를 차지합니다.
#
# ## 확인하기
#
# 이제 데이터 병렬 학습의 바탕이 되는 주장을 확인합니다. 배치 크기가 16인 랭크 두 개로 학습한 결과는
# 배치 크기가 32인 프로세스 하나로 학습한 결과와 같다는 것입니다. 먼저 랭크 두 개로, 이어서 이
# 노트북의 프로세스 하나로 20단계씩 학습하여 모든 매개변수를 비교합니다. 마지막 배치까지 꽉 차도록
# 학습 노드는 160개만 씁니다.

# %% [markdown] slot="prove" lang="zh"
# 全新启动的 rank 还什么都没做，就占用了一百多 MB；fork 出的 rank 只占几 MB，不过此后写入的内存也归
# 它独占。
#
# ## 验证
#
# 现在来验证数据并行训练的根本依据：用两个 rank、批次大小各为 16 时，训练结果与用一个进程、批次大小
# 为 32 时相同。先用两个 rank 训练 20 步，再在当前的 Notebook 中用一个进程训练同样的步数，然后比较全
# 部参数。这里只用 160 个节点，使每个批次都是满的。

# %% slot="prove-code" tags=["nbval-ignore-output"]
some = (graph, train_ids[:160], val_ids, 4, f"{lesson.folder}/proof.pt")
(_, by_two), _ = launch_processes(train, 2, *some)
_, by_one = train(0, 1, *some)
difference = (by_two - by_one).abs().max().item()
assert difference < 1e-6, f"{difference:.0e}: is BATCH even, and does it divide 160?"
print(f"{len(by_one):,} parameters after 20 steps, none differing by more than 1e-6")

# %% [markdown] slot="cost" lang="en"
# Only rounding differs, since sums are taken in a different order. With equal shares, data-parallel
# training is not an approximation; it changes only the speed.
#
# ## What it costs
#
# We measure the time per step of two ranks and of one process, with batches of
# increasing size on a larger random graph; on `digits`, each rank would read nearly all nodes for a
# large batch. To make the waiting visible, we do by hand, with one all-reduce after the backward
# pass, what DDP does during it.

# %% [markdown] slot="cost" lang="ko"
# 더하는 순서가 달라 반올림 오차만큼만 차이가 납니다. 랭크마다 맡은 노드 수가 같으면 데이터 병렬
# 학습은 근사가 아니며, 달라지는 것은 속도뿐입니다.
#
# ## 비용
#
# 그렇다면 학습은 정말 빨라질까요? 배치 크기를 늘려 가며 프로세스가 하나일 때와 랭크가 두 개일 때 한
# 단계에 걸리는 시간을 잽니다. `digits`에서는 배치가 커지면 두 랭크가 각각 거의 모든 노드를 읽게
# 되므로 더 큰 무작위 그래프를 씁니다. DDP는 역전파 도중에 올리듀스를 하지만, 여기서는 대기 시간이
# 드러나도록 DDP를 쓰지 않고 역전파가 끝난 뒤에 올리듀스를 직접 한 번 호출합니다.

# %% [markdown] slot="cost" lang="zh"
# 差别只来自舍入，因为求和的次序不同。只要各份大小相同，数据并行训练就不是近似方法，改变的只有速度。
#
# ## 开销
#
# 那么训练变快了吗？我们让批次逐渐增大，分别测量用一个进程和用多个 rank 时每一步的时间。在 `digits`
# 上，批次一大，每个 rank 就会读取几乎所有节点，所以这里改用一张更大的随机图。DDP 在反向传播的过程中
# 就进行全归约；为了看清等待的时间，这里不用 DDP，而是在反向传播之后手动做一次全归约。


# %% slot="cost-code"
def measure(rank, world_size, graph, x, sizes, steps=8):
    if world_size > 1:
        dist.init_process_group("gloo")
    model, sampler = SAGE([64, 256, 10]), NeighborSampler([5, 5])
    marks = torch.zeros(len(sizes), steps, 4, dtype=torch.float64)
    for i, batch in enumerate(sizes):
        for step in range(steps):
            seeds = torch.arange(step * batch, (step + 1) * batch)[rank::world_size]
            marks[i, step, 0] = time.perf_counter()
            input_nodes, _, blocks = sampler.sample(graph, seeds)
            h = x[input_nodes]
            marks[i, step, 1] = time.perf_counter()
            model(blocks, h).square().mean().backward()
            marks[i, step, 2] = time.perf_counter()
            if world_size > 1:
                dist.all_reduce(torch.cat([p.grad.flatten() for p in model.parameters()]))
            marks[i, step, 3] = time.perf_counter()
    return marks


large, sizes = dgl.rand_graph(50_000, 500_000), [32, 64, 128, 256, 512, 1024, 2048]
prepare_mp(large)
x = torch.rand(50_000, 64)
together = launch_processes(measure, WORLD_SIZE, large, x, sizes)
alone = measure(0, 1, large, x, sizes)

# %% slot="cost-plot" tags=["folded", "nbval-ignore-output"]
phases = ["sample", "forward, backward", "all-reduce"]
style = {"layout": "constrained", "width_ratios": [3, 2]}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.7), **style)
for row, marks in enumerate([alone, *together]):
    begin = (together[0] if row else alone)[-1, 5, 0]
    for phase, color in enumerate((GREEN, BLUE, ORANGE)):
        start, stop = 1000 * (marks[-1, 5:8, phase : phase + 2] - begin).T
        style = {"color": color, "edgecolor": "white"}
        style["label"] = None if row else phases[phase]
        left.barh([row] * 3, stop - start, left=start, **style)
left.set(xlabel="time (ms)", yticks=range(len(together) + 1))
left.set_yticklabels(["one process", *(f"rank {rank}" for rank in range(len(together)))])
left.invert_yaxis()
left.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
names = ("one process", f"{WORLD_SIZE} ranks")
for marks, color, name in zip((alone, together[0]), (BLUE, ORANGE), names):
    steps = (marks[:, 1:, 0] - marks[:, :-1, 0]).median(1).values
    speed = torch.tensor(sizes) / steps / 1000
    right.plot(sizes, speed, "o-", color=color, label=name)
right.set_xscale("log", base=2)
right.set(xticks=sizes, xticklabels=sizes, ylim=0)
right.set(xlabel="seeds per step (sum over ranks)", ylabel="thousand seeds/s")
right.legend(frameon=False)
plt.show()

# %% [markdown] slot="openmp" lang="en"
# The left plot shows three steps with the largest batch. Each rank has half of the seeds; on idle
# cores, green and blue shrink to little more than half their single-process length; busy ones take
# longer. Orange is mostly waiting for the slower rank. On the right, small batches often lose: the
# all-reduce costs more than splitting saves. Two are rarely twice as fast.
#
# On an H200, a training step on a graph with 2.45 million nodes took 11 ms, of which forward,
# backward and optimizer took 5.5. Of these, the GPU computed for 0.6 ms; otherwise it waited for
# Python. Before you add a second GPU, see what the first waits for.
#
# ## Three failures
#
# Each of these can make a program hang or crash, usually without a message. We provoke the first
# and third in separate processes with a time limit, then remove the cause; for the second, a check
# refuses the fork.
#
# **OpenMP after a fork.** PyTorch processes large tensors with a team of OpenMP threads. A fork
# copies all memory but only the calling thread. The child's memory describes a team whose threads
# do not exist; the child gives it work and waits forever. `fix_openmp` runs the function in a new
# thread, which gets a new team. `prepare_mp` makes every later fork shut the team down first.

# %% [markdown] slot="openmp" lang="ko"
# 왼쪽 그림은 가장 큰 배치로 수행한 세 단계입니다. 랭크마다 시드 노드를 절반씩 맡으므로, 코어에
# 여유가 있으면 초록색과 파란색 구간은 프로세스가 하나일 때의 절반을 조금 넘는 길이로 줄어듭니다.
# 주황색 구간은 대부분 대기 시간입니다. 느린 랭크까지 마쳐야 한 단계가 끝나기 때문입니다. 오른쪽
# 그림에서 보듯이, 배치가 작을 때 두 랭크로 나누면 오히려 느려지기 쉽습니다. 계산에서 줄어드는
# 시간보다 올리듀스에 드는 시간이 더 길기 때문입니다. 배치가 크면 빨라질 수 있습니다. 그러나 랭크를
# 두 개 써도 속도가 두 배에 이르는 일은 드물며, 코어가 다른 일도 하고 있다면 더욱 그렇습니다.
#
# 그렇다면 GPU를 쓰면 어떨까요? NVIDIA H200 한 개로 노드가 245만 개인 그래프를 학습해 보니, 한
# 단계에 약 11밀리초가 걸렸고 그 가운데 모델을 갱신하는 데 5.5밀리초가 걸렸습니다. 그런데 이
# 5.5밀리초 가운데 GPU가 실제로 계산한 시간은 0.6밀리초뿐이고, 나머지는 Python이 다음 연산을
# 지시하기를 기다린 시간이었습니다. 따라서 GPU를 늘리기 전에, 지금 쓰는 GPU가 무엇을 기다리고
# 있는지부터 확인하는 것이 좋습니다.
#
# ## 장애 세 가지
#
# 다음 장애가 생기면 프로그램이 더 이상 진행되지 않으며, 아무런 메시지도 나오지 않을 때가 많습니다.
# 첫째와 셋째 장애는 별도의 프로세스에서 제한 시간을 두고 재현한 뒤 원인을 없애 봅니다. 둘째인 CUDA
# 관련 장애는 직접 일으키지 않고, 라이브러리가 미리 검사하여 포크를 거부하는 모습을 확인합니다.
#
# **포크한 뒤의 OpenMP.** PyTorch는 큰 텐서를 OpenMP 스레드 여러 개로 이루어진 팀으로 계산합니다.
# 포크하면 메모리는 복제되지만, 스레드는 포크를 호출한 하나만 복제됩니다. 자식 프로세스의 메모리에는
# 팀의 정보만 있고 실제 스레드는 없으므로, 팀에 계산을 맡기면 영원히 기다리게 됩니다. `fix_openmp`를
# 쓰면 함수가 새 스레드에서 실행되고, 새 스레드에는 새 팀이 생깁니다. `prepare_mp`를 호출해 두면 그
# 뒤로는 포크할 때마다 먼저 팀을 해산합니다.

# %% [markdown] slot="openmp" lang="zh"
# 左图是批次最大时的三个训练步。每个 rank 只处理一半种子节点；如果 CPU 核空闲，绿色和蓝色阶段的时间
# 会缩短到单个进程时的一半多一点。橙色大部分是等待：较慢的 rank 也完成之后，一步才算结束。右图中，批
# 次较小时，多个 rank 往往反而比单个进程慢，因为全归约所花的时间比省下的计算时间更长；批次较大时则可
# 能更快。两个 rank 很少能达到两倍的速度，两个核还有其他负载时更是如此。
#
# 换成 GPU 会怎样？在一块 NVIDIA H200 上，用有 245 万个节点的图训练，每步约需 11 毫秒，其中更新模型
# 占 5.5 毫秒。然而在这 5.5 毫秒中，GPU 真正用于计算的时间只有 0.6 毫秒，其余时间都在等待 Python 发
# 出下一个运算。所以，在增加第二块 GPU 之前，应当先弄清第一块在等什么。
#
# ## 三种故障
#
# 下面的故障会让程序卡住或中断，而且大多没有明确的提示。其中，OpenMP 和批次数不相等这两种故障，我们
# 在单独的进程中限时复现，再消除其原因；至于 CUDA，则只演示库如何在检查后拒绝 fork。
#
# **fork 之后的 OpenMP。** PyTorch 用一组 OpenMP 线程完成大张量的运算。fork 会复制内存，但线程只复制
# 调用 fork 的那一个。子进程的内存中留有线程组的信息，线程却并不存在；把计算交给这个线程组之后，子进
# 程就会永远等待。`fix_openmp` 在新线程中运行函数，新线程会建立新的线程组。`prepare_mp` 则使以后每次
# fork 之前都先解散线程组。


# %% slot="openmp-code"
def outcome(process, seconds):
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return "hangs"
    return "finishes" if process.exitcode == 0 else "fails"


def add():
    torch.ones(1_000_000).add(1)


# %% slot="openmp-run"
def openmp_after_fork(rank, world_size):
    torch.set_num_threads(2)
    add()  # starts the team
    plain = torch.multiprocessing.get_context("fork")
    found = [outcome(plain.Process(target=add), 2)]
    found.append(outcome(plain.Process(target=fix_openmp(add)), 30))
    prepare_mp(toy)
    return [*found, outcome(plain.Process(target=add), 30)]


if no_fork:
    print(no_fork)
else:
    (found,) = launch_processes(openmp_after_fork, 1)
    print("plain: {}; with fix_openmp: {}; after prepare_mp: {}".format(*found))
    assert found[1:] == ["finishes"] * 2

# %% [markdown] slot="cuda" lang="en"
# With GNU OpenMP, which comes with PyTorch on Linux, the plain child hangs; both remedies help.
#
# **CUDA in a forked child.** A process's GPU state is not valid in a forked copy. Once a notebook
# has used the GPU, its forked children cannot use it, and PyTorch says so only inside the child.
# `torch.cuda.is_initialized()` tells you whether a process has used the GPU.
#
# `torch.cuda.device_count()` is harmless: it asks NVML, NVIDIA's management library. But
# `torch.cuda.is_available()` initializes the CUDA driver: `is_initialized()` stays False, yet a
# child forked later cannot use the GPU. Setting `PYTORCH_NVML_BASED_CUDA_CHECK=1` makes it ask
# NVML. The library's `Process` checks before it forks. Without a GPU, we pretend that one has been
# used.

# %% [markdown] slot="cuda" lang="ko"
# Linux용 PyTorch에 들어 있는 GNU OpenMP를 쓸 때 아무 조치도 하지 않으면 자식 프로세스가 멈춥니다.
# 두 해결책은 모두 효과가 있습니다.
#
# **포크한 자식 프로세스의 CUDA.** 한 프로세스에서 초기화한 GPU의 상태는 포크로 복제한 프로세스에서
# 유효하지 않습니다. 그래서 노트북에서 GPU를 한 번이라도 쓴 뒤에는 포크한 자식 프로세스에서 GPU를 쓸
# 수 없으며, 오류는 자식 프로세스에서 GPU를 쓸 때에야 나타납니다. 프로세스에서 GPU를 이미 썼는지는
# `torch.cuda.is_initialized()`로 알 수 있습니다.
#
# 랭크를 몇 개 시작할지 정할 때 쓰는 `torch.cuda.device_count()`는, NVIDIA의 관리 라이브러리인
# NVML로 GPU 수를 알아낼 수 있으면 GPU를 초기화하지 않습니다. 반면 `torch.cuda.is_available()`은
# CUDA 드라이버를 초기화합니다. 이때 `is_initialized()`의 값은 그대로 False이지만, 그 뒤에 포크한
# 자식 프로세스에서는 GPU를 쓰지 못합니다. 그러므로 포크하기 전에는 이 함수를 호출하지 말고, 꼭
# 필요하면 환경 변수 `PYTORCH_NVML_BASED_CUDA_CHECK=1`을 설정하여 NVML을 쓰게 합니다. 라이브러리의
# `Process`는 포크하기 전에 CUDA가 이미 초기화되었는지 검사합니다. GPU가 없는 컴퓨터에서는 다음
# 셀에서 GPU를 이미 쓴 상황을 흉내 냅니다.

# %% [markdown] slot="cuda" lang="zh"
# PyTorch 在 Linux 上自带 GNU OpenMP；使用它时，未加处理的子进程会卡住，而两种补救办法都有效。
#
# **fork 出的子进程中的 CUDA。** 一个进程在 GPU 上建立的状态，在 fork 出的副本中无效。Notebook 一旦
# 用过 GPU，由它 fork 出的子进程就不能再用 GPU，而 PyTorch 要到子进程里才报错。
# `torch.cuda.is_initialized()` 可用来判断进程是否用过 GPU。
#
# 脚本可以用 `torch.cuda.device_count()` 来决定启动几个 rank。只要该函数能通过 NVIDIA 的管理库 NVML
# 查到 GPU 的个数，调用它的进程就不算用过 GPU。`torch.cuda.is_available()` 则会初始化 CUDA 驱动：
# `is_initialized()` 仍为 False，但之后 fork 出的子进程无法使用 GPU。因此，fork 之前不要调用它；确
# 有需要时，可设环境变量 `PYTORCH_NVML_BASED_CUDA_CHECK=1`，让它改为查询 NVML。库中的 `Process` 会
# 在 fork 之前检查 CUDA 是否已经初始化，若是则拒绝 fork。如果没有 GPU，下面的代码就模拟已经用过 GPU
# 的状态。


# %% slot="cuda-code"
def fork_after_cuda(rank, world_size):
    if torch.cuda.is_available():
        torch.ones(1, device="cuda")
    else:
        torch.cuda.is_initialized = lambda: True
    mp.set_start_method("fork", force=True)
    try:
        mp.Process(target=add).start()
    except dgl.helpers.fork.ForkError as error:
        return str(error)


print(no_fork or launch_processes(fork_after_cuda, 1)[0])

# %% [markdown] slot="uneven" lang="en"
# The message names two remedies. `launch_processes` works even after the GPU has been used.
#
# **Uneven batches.** A rank with one more batch than the others enters an all-reduce that no other
# rank joins, and waits there. Here rank 0 has three batches and rank 1 two; a timeout of three
# seconds instead of half an hour ends the wait. Equal shares, as `create_dataloader` makes them,
# prevent this. Where they are impossible, `model.join()` lets a rank that has finished keep
# contributing zeros.

# %% [markdown] slot="uneven" lang="ko"
# 오류 메시지에 해결책 두 가지가 나와 있습니다. 새 인터프리터를 시작하거나, GPU를 처음 쓰기 전에
# 포크하는 것입니다. `launch_processes`는 GPU를 쓴 뒤에도 동작합니다.
#
# **서로 다른 배치 수.** 한 랭크의 배치가 다른 랭크의 배치보다 하나 더 많으면, 그 랭크는 다른 랭크가
# 참여하지 않는 올리듀스를 혼자 호출하게 됩니다. 여기서 랭크 0의 배치는 세 개, 랭크 1의 배치는 두
# 개입니다. 제한 시간을 30분에서 3초로 줄여 두었으므로 3초만 기다리면 끝납니다. 담당 노드의 수를
# 랭크마다 같게 하면 이런 일이 없으며, `create_dataloader`에서는 그렇게 나눕니다. 같게 할 수 없을
# 때는 `model.join()`을 씁니다. 그러면 먼저 끝난 랭크도 0을 보내며 올리듀스에 계속 참여합니다.

# %% [markdown] slot="uneven" lang="zh"
# 报错信息给出了两种解决办法：启动全新的解释器，或者在第一次使用 GPU 之前 fork。`launch_processes`
# 在用过 GPU 之后也能使用。
#
# **批次数不相等。** 如果某个 rank 比其他 rank 多一个批次，它就会发起一次没有其他 rank 参与的全归
# 约。这里 rank 0 有三个批次，rank 1 有两个；为了让等待尽早结束，我们把超时时间从半小时改为三秒。各
# 份大小相等就能避免这种情况，`create_dataloader` 正是这样划分的。如果无法等分，`model.join()` 可以
# 让已经完成的 rank 用零值继续参与全归约。


# %% slot="uneven-code"
def uneven(rank, world_size, batches, join, seconds):
    dist.barrier()  # start together
    group = dist.new_group(timeout=timedelta(seconds=seconds))
    model = init_model(nn.Linear(2, 1), process_group=group)
    try:
        with model.join(enable=join):
            for _ in range(batches[rank]):
                model(torch.ones(4, 2)).sum().backward()
    except RuntimeError:
        return "timed out"
    return "finished"


def three_ways(rank, world_size):
    dist.init_process_group("gloo")
    ways = [((3, 3), False, 60), ((3, 2), True, 60), ((3, 2), False, 3)]
    return [uneven(rank, world_size, *way) for way in ways]


for rank, found in enumerate(launch_processes(three_ways, 2)):
    even, joined, odd = found
    assert even == joined == "finished" and (rank == 1 or odd == "timed out")
    print(f"rank {rank}: uneven: {odd}; even: {even}; with join: {joined}")

# %% [markdown] slot="summary" lang="en"
# Rank 0 waited until its timeout, and rank 1 noticed nothing.
#
# ## Summary
#
# - Each rank has the whole graph and a share of every batch; an all-reduce averages the gradients.
# - With equal shares, the result is that of training in one process, up to rounding.
# - All ranks take the same number of steps; rank 0 validates and saves while the others wait.
# - Prepare the graph before starting the ranks. A fork shares memory; if a GPU has been used, start
#   fresh interpreters.
# - More ranks pay off when they save more time than the all-reduce costs, including the wait for
#   the slowest rank.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, running *Setup* is enough to check an answer. The
# [solutions](../solutions/04_multi_gpu_solution.ipynb) are in a separate notebook.
#
# 1. A model has 1,000,000 parameters. How many numbers does each of 4 ranks send during one ring
#    all-reduce?
# 2. There are 1,000 training nodes, 3 ranks, and batches of 64 on each rank. How many steps does an
#    epoch have if `rank_share` makes the shares and the last batch may be smaller?
# 3. Write a function that takes a list of share sizes, which may differ, and returns the weights
#    with which the ranks' gradients add up to the gradient of the batch.
# 4. Suppose that all ranks validate. Write a function of `rank`, `world_size` and `counts`, where
#    `counts[rank]` is a tensor with this rank's numbers of correct predictions and nodes; every
#    rank returns the accuracy over all nodes, as a number. Begin by creating the process group.

# %% [markdown] slot="summary" lang="ko"
# 배치 수가 다를 때 랭크 0은 제한 시간까지 기다리다 실패했고, 랭크 1은 아무 오류 없이 끝났습니다.
#
# ## 요약
#
# - 모든 랭크에 그래프 전체가 있으며, 각 랭크는 배치마다 시드 노드의 일부를 맡습니다. 그래디언트의
#   평균은 올리듀스로 구합니다.
# - 랭크마다 맡은 노드 수가 같으면, 학습 결과는 반올림 오차를 제외하고 프로세스 하나로 학습한 결과와
#   같습니다.
# - 모든 랭크의 단계 수는 같아야 합니다. 검증과 저장은 랭크 0에서 하고, 그동안 나머지 랭크는
#   기다립니다.
# - 그래프는 랭크를 시작하기 전에 준비합니다. 포크하면 메모리를 공유하며, GPU를 이미 사용했다면 새
#   인터프리터를 시작합니다.
# - 계산을 나누어 아끼는 시간이 올리듀스 시간(가장 느린 랭크를 기다리는 시간 포함)보다 길면 랭크를
#   늘릴 만합니다.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 셀만 실행해도 채점할 수 있습니다.
# [풀이](../solutions/ko/04_multi_gpu_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 매개변수가 1,000,000개인 모델을 랭크 4개로 학습합니다. 링 올리듀스를 한 번 하는 동안 각
#    랭크에서 보내는 값은 모두 몇 개입니까?
# 2. 학습 노드는 1,000개, 랭크는 3개, 랭크별 배치 크기는 64입니다. 담당 노드를 `rank_share`처럼
#    나누고 마지막 배치는 크기가 더 작아도 된다면, 한 에폭은 몇 단계입니까?
# 3. 랭크별 담당 노드 수를 담은 리스트를 받아 가중치를 반환하는 함수를 작성합니다. 노드 수가 서로
#    다르더라도, 각 랭크의 그래디언트에 이 가중치를 곱해 더하면 배치 전체의 그래디언트가 되어야
#    합니다.
# 4. 모든 랭크가 검증에 참여한다고 합시다. `rank`, `world_size`, `counts`를 받는 함수를 작성합니다.
#    `counts[rank]`는 이 랭크에서 맞힌 노드 수와 맡은 노드 수를 담은 텐서이며, 함수는 어느
#    랭크에서나 전체 노드에 대한 정확도를 숫자 하나로 똑같이 반환해야 합니다. 함수 안에서 먼저
#    프로세스 그룹을 만듭니다.

# %% [markdown] slot="summary" lang="zh"
# 批次数不相等时，rank 0 一直等到超时，rank 1 却正常结束，没有任何报错。
#
# ## 小结
#
# - 每个 rank 都有整张图，并处理每个批次中的一份；梯度用全归约求平均。
# - 各份大小相同时，除舍入误差外，结果与在一个进程中训练相同。
# - 所有 rank 的步数相同；rank 0 做验证和保存，其他 rank 等待。
# - 启动各个 rank 之前先准备好图。fork 出的进程与父进程共享内存；用过 GPU 之后，要启动全新的解释器。
# - 只有批次大到省下的计算时间多于全归约和等待的时间，使用多个 rank 才划算。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的单元格就能评判。
# [解答](../solutions/zh/04_multi_gpu_solution.ipynb)随本课提供。
#
# 1. 一个模型有 1,000,000 个参数。用 4 个 rank 做一次环形全归约，每个 rank 要发送多少个数？
# 2. 有 1,000 个训练节点、3 个 rank，每个 rank 的批次大小为 64。份额按 `rank_share` 的方式划分，最后
#    一个批次可以不满。一轮有多少步？
# 3. 写一个函数，参数是各份大小的列表（各份大小可以不同），返回一组权重：用这组权重对各 rank 的梯度
#    加权求和，就得到整个批次的梯度。
# 4. 假设所有 rank 都参加验证。写一个参数为 `rank`、`world_size` 和 `counts` 的函数，其中
#    `counts[rank]` 是一个张量，包含这个 rank 预测正确的节点数和它负责的节点数；每个 rank 都要返回全
#    部节点上的准确率，结果是一个数。函数里要先创建进程组。


# %% slot="answers-1-2"
answer_1 = None  # a number
answer_2 = None  # a number
lesson.check(1, answer_1)
lesson.check(2, answer_2)

# %% slot="answers-3-4"
answer_3 = None  # a function of sizes
answer_4 = None  # a function of rank, world_size and counts
lesson.check(3, answer_3)
lesson.check(4, answer_4)
