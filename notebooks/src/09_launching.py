# %% [markdown] slot="title" lang="en"
# # Launching a job on many machines
#
# The script of a distributed job is one file; the job itself is many processes on machines that
# share no disk. Somebody has to copy the parts, start everything in order, notice when one process
# dies, and end the others. Afterwards you can
#
# - name the processes of a job, and say who starts them and what each does;
# - prepare machines with `ip_config.txt`, `copy_files` and `doctor`;
# - launch a job, read its logs, and resume it after a failure;
# - prove that it learned what one process learns, and see where its time goes.

# %% [markdown] slot="title" lang="ko"
# # 여러 머신에서 작업 실행하기
#
# 분산 작업의 스크립트는 파일 하나이지만, 작업 자체는 디스크를 공유하지 않는 여러 머신(machine)에서
# 실행되는 수많은 프로세스(process)입니다. 누군가는 파티션(partition)을 복사하고, 모든 것을
# 순서대로 시작하고, 프로세스 하나가 죽으면 알아차리고, 나머지를 끝내야 합니다. 레슨을 마치면
# 다음과 같은 일을 할 수 있습니다.
#
# - 작업을 이루는 프로세스에는 어떤 것이 있고, 누가 시작하며 각각 무슨 일을 하는지 설명하기
# - `ip_config.txt`, `copy_files`, `doctor`로 머신을 준비하기
# - 작업을 실행하고 로그를 읽으며, 장애가 일어난 뒤에 이어서 실행하기
# - 작업이 프로세스 하나와 똑같이 학습했음을 증명하고, 시간이 어디에 쓰이는지 알아보기

# %% [markdown] slot="title" lang="zh"
# # 在多台机器上启动作业
#
# 分布式作业的脚本只是一个文件，作业本身却由许多进程（process）组成，它们运行在不共享磁盘的多台机器
# （machine）上。必须有人把各个分区（partition）复制过去，按顺序启动一切，及时发现某个进程死掉，并结
# 束其余进程。学完之后，你能够：
#
# - 说出一个作业由哪些进程组成，它们由谁启动，各做什么；
# - 用 `ip_config.txt`、`copy_files` 和 `doctor` 准备机器；
# - 启动作业，阅读日志，并在故障之后接着运行；
# - 证明作业学到的与一个进程学到的相同，并看清时间花在哪里。

# %% [markdown] slot="setup" lang="en"
# ## Set-up
#
# This computer plays two machines. Each gets an address of its own, 127.0.0.2 and 127.0.0.3, a
# folder of its own and processes of its own; only the network between them is faster than a real
# one. All files go to a temporary folder, which disappears with the kernel.
#
# You need Linux, macOS, or Linux within Windows (WSL). Windows itself starts no jobs: there, cells
# that would start one say so, and the outputs stored in this lesson are yours to read.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 이 컴퓨터가 머신 두 대의 역할을 합니다. 두 머신은 각각 127.0.0.2와 127.0.0.3이라는 주소와 자기
# 폴더, 자기 프로세스를 가집니다. 둘 사이의 네트워크가 실제보다 빠르다는 점만 다릅니다. 파일은 모두
# 임시 폴더에 저장되고, 이 폴더는 커널이 끝날 때 사라집니다.
#
# 이 레슨은 리눅스, macOS, 또는 Windows 안의 리눅스(WSL)에서 실행해야 합니다. WSL 없이 Windows에서
# 열면 작업을 시작하는 셀은 실행할 수 없다고 알리기만 하므로, 레슨에 저장된 출력을 읽으면 됩니다.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 这台计算机扮演两台机器。它们的地址分别是 127.0.0.2 和 127.0.0.3，各有自己的文件夹和进程；与真实情
# 况的区别只在于，两者之间的网络更快。所有文件都写入一个临时文件夹，内核结束时，它就会消失。
#
# 本课需要 Linux、macOS，或 Windows 中的 Linux（WSL）。直接在 Windows 上打开时，要启动作业的单元格只
# 会说明这里无法运行，请阅读本课中保存的输出。

# %% slot="imports"
import atexit
import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import psutil
import torch
import zmq

import gnnlab as dgl
from gnnlab.distributed import load_partition, partition_graph
from gnnlab.tools.ip_config import read_ip_config

if sys.platform != "win32":
    from gnnlab.tools import doctor, launch

# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# Eight nodes lie on two machines, four on each. A **trainer** on machine 0, a process that trains
# the model, needs the features of nodes 6, 1 and 7.

# %% [markdown] slot="toy" lang="ko"
# ## 그려 볼 수 있는 작은 그래프
#
# 노드(node) 8개가 머신 두 대에 네 개씩 있습니다. 머신 0에서 모델을 학습하는 프로세스,
# 곧 **트레이너**(trainer)에 노드 6, 1, 7의 피처(feature)가 필요합니다.

# %% [markdown] slot="toy" lang="zh"
# ## 一张画得出来的小图
#
# 8 个节点（node）放在两台机器上，每台 4 个。机器 0 上有一个训练模型的进程，称为**训练
# 器**（trainer）；它需要节点 6、1、7 的特征（feature）。

# %% slot="toy-code"
BLUE, ORANGE, GREEN, GRAY = "#3b6fb6", "#e07b39", "#3a9e75", "#c3c9d1"
plt.rcParams.update({"figure.dpi": 110, "font.size": 9, "legend.frameon": False})

figure, ax = plt.subplots(figsize=(7.4, 1.9), layout="constrained")
for node in range(8):
    machine, color = node // 4, (BLUE, ORANGE)[node // 4]
    x = node + 2 * machine
    ax.scatter(x, 0, s=330, marker="s", color=color)
    ax.text(x, 0, node, color="white", weight="bold", ha="center", va="center_baseline")
    if node % 4 == 0:
        ax.axvspan(x - 0.7, x + 3.7, color=color, alpha=0.12, lw=0)
        ax.text(x + 3.5, 1.75, f"machine {machine}", color=color, ha="right")
arrow = {"arrowstyle": "-|>", "lw": 1.5, "shrinkA": 11, "shrinkB": 11}
for start, color in (((1, 0), BLUE), ((8, 0), ORANGE), ((9, 0), ORANGE)):
    end = (0.5, 1.2) if color == BLUE else (7.5, 1.2)
    ax.annotate("", end, start, arrowprops={"color": color, **arrow})
ax.annotate("", (0.5, 1.2), (7.5, 1.2), arrowprops={"color": ORANGE, **arrow})
for x, name, color in ((0.5, "trainer", GREEN), (7.5, "server", ORANGE)):
    ax.scatter(x, 1.2, s=330, color=color)
    ax.text(x, 1.7, name, color=color, ha="center")
ax.set(ylim=(-0.5, 2.2))
ax.axis("off")
plt.show()

# %% [markdown] slot="server" lang="en"
# The trainer reads row 1 in the memory of its own machine. For rows 6 and 7 it must ask
# a **server**, a process that answers for the rows of its machine.
#
# ## Build it yourself: a server of rows
#
# The script below waits for a request and sends a reply, over sockets of ZeroMQ, as the library's
# servers do. A request is the bytes of row numbers (int64), the reply the bytes of these rows
# (float64). The operating system chooses a free port, and the server prints it. We start it as a
# process of its own, on the rows of machine 1; there, nodes 6 and 7 are rows 2 and 3. We ask for
# them, then send three bytes of garbage, then ask again.

# %% [markdown] slot="server" lang="ko"
# 트레이너는 행 1을 자기 머신의 메모리에서 읽습니다. 행 6과 7은 **서버**(server)에 요청해야 합니다.
# 서버는 자기 머신에 있는 행에 대한 요청에 답하는 프로세스입니다.
#
# ## 직접 만들어 보기: 행을 내주는 서버
#
# 아래 스크립트는 라이브러리의 서버처럼 ZeroMQ 소켓으로 요청을 기다렸다가 응답을 보냅니다. 요청은
# 행 번호의 바이트(int64)이고, 응답은 그 행들의 바이트(float64)입니다. 포트는 운영체제가 빈 것을
# 고르고, 서버가 그 번호를 출력합니다. 머신 1의 행을 맡는 서버를 별도의 프로세스로 시작합니다.
# 그곳에서 노드 6과 7은 행 2와 3입니다. 이 두 행을 요청하고, 이어서 쓰레기 값 3바이트를 보낸 다음,
# 다시 요청합니다.

# %% [markdown] slot="server" lang="zh"
# 训练器从自己机器的内存中读取第 1 行。第 6 行和第 7 行则必须向**服务器**（server）索取；服务器是一
# 个进程，负责应答对本机各行的请求。
#
# ## 亲手实现：按行提供数据的服务器
#
# 下面的脚本与库中的服务器一样，通过 ZeroMQ 套接字等待请求并发出应答。请求是行号的字节（int64），应
# 答是这些行的字节（float64）。操作系统挑选一个空闲的端口，服务器把端口号打印出来。我们把它作为单独
# 的进程启动，让它负责机器 1 的行；在这台机器上，节点 6 和 7 对应第 2 行和第 3 行。我们先索取这两
# 行，然后发送三个字节的垃圾数据，再索取一次。

# %% slot="server-code"
temporary = globals().get("temporary") or tempfile.TemporaryDirectory()  # keep it
scratch = Path(temporary.name)
rows = np.array([[10.0 * node, node] for node in range(8)])  # features
(scratch / "rows.py").write_text("""
import sys
import numpy as np
import zmq

rows = np.load(sys.argv[1])
socket = zmq.Context().socket(zmq.REP)
print(socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
while True:
    ids = np.frombuffer(socket.recv(), np.int64)
    socket.send(rows[ids].tobytes())
""")
np.save(scratch / "rows.npy", rows[4:])
command = [sys.executable, "rows.py", "rows.npy"]
pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


# %% slot="ask-code"
def serve():
    server = subprocess.Popen(command, cwd=scratch, **pipes)
    atexit.register(server.kill)  # should nobody else end it
    return server, int(server.stdout.readline())


def ask(request):
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.linger = 0  # do not wait at closing
        socket.connect(f"tcp://127.0.0.1:{port}")
        socket.send(request)
        if not socket.poll(2000):  # milliseconds
            return "no reply within 2 s"
        return np.frombuffer(socket.recv()).reshape(-1, 2).tolist()


server, port = serve()
print("another process:", server.pid != os.getpid())
print("nodes 6, 7:", ask(np.array([2, 3]).tobytes()))
print("garbage:   ", ask(b"abc"))
print("nodes 6, 7:", ask(np.array([2, 3]).tobytes()))
print(server.communicate()[1].splitlines()[-1])

# %% [markdown] slot="machines" lang="en"
# The first reply is right. Then garbage ended the server, for three bytes are no row number, and
# the client learned only that nobody answers. A server must not trust what comes in, and somebody
# must watch over it.
#
# ## The library does the same: name the machines
#
# In `ip_config.txt`, each machine has a line `address [port]`. The order matters: the first
# machine is machine 0 and holds part 0. The port is that of its first server; further ones take
# the next ports. Without a port, the launcher finds free ones. What follows `#` is a comment.

# %% [markdown] slot="machines" lang="ko"
# 첫 응답은 올바릅니다. 그다음에는 쓰레기 값 때문에 서버가 종료되었습니다. 3바이트는 행 번호가 될 수
# 없기 때문입니다. 클라이언트가 알 수 있었던 것은 아무도 답하지 않는다는 사실뿐입니다. 서버는
# 들어오는 데이터를 그대로 믿어서는 안 되고, 누군가는 서버를 지켜보아야 합니다.
#
# ## 라이브러리도 같은 일을 합니다: 머신 적기
#
# `ip_config.txt`에는 머신마다 `address [port]` 형식의 줄이 하나씩 있습니다. 순서가 중요합니다. 첫
# 머신이 머신 0이고 파티션 0을 가집니다. 포트는 그 머신의 첫 서버가 쓰는 번호이며, 다음 서버는
# 그다음 번호를 씁니다. 포트를 적지 않으면 런처가 빈 포트를 찾습니다. `#` 뒤는 주석입니다.

# %% [markdown] slot="machines" lang="zh"
# 第一个应答是正确的。随后，垃圾数据使服务器出错退出，因为三个字节构不成一个行号；而客户端只知道等不
# 到应答。服务器不能相信收到的东西，还必须有人看护它。
#
# ## 用库做同样的事：写明有哪些机器
#
# 在 `ip_config.txt` 中，每台机器占一行，格式是 `address [port]`。次序很重要：第一台是机器 0，持有
# 分区 0。端口属于这台机器的第一个服务器，后面的服务器依次使用下一个端口；不写端口时，启动器会找出
# 空闲的端口。`#` 之后是注释。

# %% slot="machines-code"
ip_config, wrong = scratch / "ip_config.txt", scratch / "wrong.txt"
wrong.write_text("127.0.0.2\n127.0.0.3 99999\n")
ip_config.write_text("""# my cluster
127.0.0.2
127.0.0.3 31000  # a port of its own
""")
for path in (ip_config, wrong):
    try:
        for machine, host in enumerate(read_ip_config(path)):
            print(f"machine {machine}: {host.address}, port {host.port or 'any'}")
    except dgl.GNNLabError as error:
        print("refused:", str(error).replace(f"{scratch}/", ""))

# %% [markdown] slot="copy" lang="en"
# The second file was refused, with the line and what is expected there.
#
# ## Copy and check the parts
#
# Machine $i$ needs the JSON file of the graph, part $i$ and the script, in the folder that is
# called its **workspace**. On a cluster, one command brings them through ssh:
#
# ```
# gnnlab copy_files --part_config data/digits.json --ip_config ip_config.txt \
#     --workspace workspace --rel_data_path data --script_folder code
# ```
#
# Over there it compares checksums; after an interruption it goes on where it stopped, and a half
# copy is never taken for a whole one. For two folders of this computer, a few lines of Python will
# do.

# %% [markdown] slot="copy" lang="ko"
# 둘째 파일은 거부되었습니다. 메시지는 문제가 있는 줄과 그 자리에 와야 할 것을 알려 줍니다.
#
# ## 파티션을 복사하고 확인하기
#
# 머신 $i$에는 그래프(graph)의 JSON 파일, 파티션 $i$, 스크립트가 있어야 하며, 이것들이 놓이는
# 폴더를 **작업 디렉터리**(workspace)라고 합니다. 클러스터(cluster)에서는 명령 하나로 이것들을
# ssh를 통해 보냅니다.
#
# ```
# gnnlab copy_files --part_config data/digits.json --ip_config ip_config.txt \
#     --workspace workspace --rel_data_path data --script_folder code
# ```
#
# 이 명령은 받는 쪽에서 체크섬(checksum)을 비교하고, 중단되면 멈춘 곳에서 이어서 보내며, 반만 복사된
# 것을 다 된 것으로 여기는 일이 없습니다. 여기서는 이 컴퓨터의 폴더 두 개에 복사하면 되므로 파이썬
# 몇 줄로 충분합니다.

# %% [markdown] slot="copy" lang="zh"
# 第二个文件被拒绝了，错误信息指出了是哪一行，以及那里应该写什么。
#
# ## 复制并检查分区
#
# 机器 $i$ 需要图（graph）的 JSON 文件、分区 $i$ 和脚本，它们所在的文件夹称为**工作目
# 录**（workspace）。在集群（cluster）上，用一条命令就能通过 ssh 把它们送过去：
#
# ```
# gnnlab copy_files --part_config data/digits.json --ip_config ip_config.txt \
#     --workspace workspace --rel_data_path data --script_folder code
# ```
#
# 它会在目标机器上比较校验和；中断之后，从停下的地方继续；只复制了一半的内容，绝不会被当成完整的。这
# 里只涉及本机的两个文件夹，几行 Python 就够了。

# %% slot="copy-code" tags=["nbval-ignore-output"]
dgl.seed(0)
partition_graph(dgl.data.load("digits")[0], "digits", 2, scratch / "data")


def copy(part, workspace):
    data = workspace / "data"
    data.mkdir(parents=True, exist_ok=True)
    shutil.copy(scratch / "data/digits.json", data)
    (source,) = (scratch / "data").glob(f"part{part}*")
    shutil.copytree(source, data / source.name, dirs_exist_ok=True)


def needs_unix():
    if sys.platform == "win32":
        raise SystemExit("Windows starts no jobs: use WSL, or read the stored outputs.")


machines = [scratch / f"machine{i}" for i in range(2)]
for part, workspace in enumerate(machines):
    copy(part, workspace)
    graph = load_partition(workspace / "data/digits.json", part)[0]
    print(f"machine {part} opens part {part}: {graph.num_nodes()} nodes")

# %% [markdown] slot="doctor" lang="en"
# Each machine opens its own part, and it has no other.
#
# `gnnlab doctor` looks for what stands in the way of a job: with `--ip_config` on all machines,
# otherwise on this computer. We flip one bit of the features, ask `doctor`, and flip it back.
# `--lang` makes it speak English, Korean or Chinese.

# %% [markdown] slot="doctor" lang="ko"
# 머신마다 자기 파티션을 열 수 있고, 다른 파티션은 없습니다.
#
# `gnnlab doctor`는 작업에 방해가 될 것을 찾습니다. `--ip_config`를 주면 모든 머신을, 주지 않으면
# 이 컴퓨터를 살핍니다. 피처에서 비트 하나를 뒤집고 `doctor`에 물어본 뒤, 다시 되돌립니다.
# `--lang`으로 영어, 한국어, 중국어 가운데 하나를 고를 수 있습니다.

# %% [markdown] slot="doctor" lang="zh"
# 每台机器都能打开自己的分区，也只有自己的分区。
#
# `gnnlab doctor` 检查有哪些问题会妨碍作业：给出 `--ip_config` 时检查所有机器，否则只检查这台计算
# 机。我们把特征中的一个比特翻转，运行 `doctor`，再把它翻转回来。`--lang` 决定它使用英语、韩语还是中
# 文。

# %% slot="doctor-code" tags=["nbval-ignore-output"]
import io

needs_unix()
file = next(scratch.glob("data/part1*/**/feat.npy"))
good = file.read_bytes()
file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
words = ["--workspace", str(scratch), "--part_config", "data/digits.json"]
assert doctor.main([*words, "--lang", "en"]) == 1

file.write_bytes(good)
with contextlib.redirect_stdout(io.StringIO()):
    assert doctor.main(words) == 0

# %% [markdown] slot="script" lang="en"
# One bit among millions: the checksum gave it away, and `doctor` says what to do. With the bit put
# right, nothing failed.
#
# ## One script for all roles
#
# Servers, trainers and their helpers run the same script. Its first piece defines a function that
# prints lines with the time, and the model. In the second, `initialize` parts the roles: a server
# stays there and serves, a trainer comes back connected. Trainer $r$ gets share $r$ of the
# training nodes. A process that is alone gets both shares, interleaved: its batches of 32 then
# hold the same nodes as two batches of 16, which the proof needs. The third piece trains, and
# after each epoch every machine saves its share of a **checkpoint**.

# %% [markdown] slot="script" lang="ko"
# 수백만 비트 가운데 하나였지만 체크섬으로 드러났고, `doctor`는 무엇을 해야 하는지도 알려 줍니다.
# 비트를 되돌린 뒤에는 아무 문제도 없었습니다.
#
# ## 모든 역할을 위한 스크립트 하나
#
# 서버도, 트레이너와 그 도우미도 같은 스크립트를 실행합니다. 첫 부분에서는 시각을 붙여 한 줄씩
# 출력하는 함수와 모델을 정의합니다. 둘째 부분에서는 `initialize`에서 역할이 갈립니다. 서버는 그곳에
# 머물며 요청에 답하고, 트레이너는 연결된 상태로 돌아옵니다. 트레이너 $r$은 학습 노드의 몫 $r$을
# 받습니다. 프로세스가 하나뿐이면 그 프로세스가 두 몫을 번갈아 섞어 모두 받습니다. 그러면 크기 32의
# 배치 하나에 크기 16의 배치 두 개와 같은 노드가 들어가며, 이것은 나중에 증명할 때 필요합니다. 셋째
# 부분에서는 학습을 하며, 에폭(epoch)이 끝날 때마다 각 머신이 **체크포인트**(checkpoint) 가운데 자기
# 몫을 저장합니다.

# %% [markdown] slot="script" lang="zh"
# 数百万个比特中只错了一个，校验和就把它查了出来，`doctor` 还说明了该怎么办。把这个比特改回来之后，
# 没有一项检查失败。
#
# ## 所有角色共用一个脚本
#
# 服务器、训练器和辅助它们的进程运行同一个脚本。第一段定义一个打印文字并标上时刻的函数，以及模型。第
# 二段中，各个角色在 `initialize` 处分开：服务器留在那里提供服务，训练器则在建立连接之后返回。训练器
# $r$ 得到第 $r$ 份训练节点。独自运行的进程得到全部两份，并且交错排列：这样，它的一个大小为 32 的批
# 次，就与两个大小为 16 的批次含有相同的节点；后面的证明需要这一点。第三段进行训练，每一轮（epoch）
# 之后，每台机器保存自己那一份**检查点**（checkpoint）。

# %% slot="script-code"
HEAD = """
import argparse, atexit, os, time
began = float(os.environ.get("BEGAN", time.time()))

def say(text):
    print(f"{time.time() - began:5.1f} s: {text}", flush=True)

say(f"process {os.getpid()} begins")
import torch, torch.distributed as dist, torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
import gnnlab as dgl, gnnlab.nn as dglnn
from gnnlab.distributed import DistGraph, DistNodeDataLoader, node_split
from gnnlab.distributed import load_checkpoint, save_checkpoint

class SAGE(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = dglnn.SAGEConv(inputs, 64, "mean")
        self.second = dglnn.SAGEConv(64, outputs, "mean")

    def forward(self, blocks, x):
        return self.second(blocks[1], F.relu(self.first(blocks[0], x)))
"""

# %% slot="join-code"
JOIN = """
parser = argparse.ArgumentParser()
for option, kind in (("epochs", int), ("pause", float), ("resume", int)):
    parser.add_argument(f"--{option}", type=kind, default=0)
options = parser.parse_args()
atexit.register(say, "ends")
say("modules are loaded")
dgl.distributed.initialize("ip_config.txt")  # here a server stays
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
g = DistGraph("digits", part_config="data/digits.json")
say(f"trainer {rank} of {size} is connected")

mask, book, whose = g.ndata["train_mask"], g.get_partition_book(), range(rank, 2, size)
shares = [node_split(mask, book, rank=r, num_trainers=2)[:88] for r in whose]
seeds = torch.stack(shares, 1).flatten()
torch.manual_seed(0)
model = DistributedDataParallel(SAGE(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
sampler = dgl.dataloading.NeighborSampler([5, 5])
loader = DistNodeDataLoader(g, seeds, sampler, batch_size=32 // size, seed=0)
parts = {"model": model, "optimizer": optimizer, "loader": loader}
say("the model is made")
"""

# %% slot="loop-code"
LOOP = """
done = -1
if options.resume:
    done = load_checkpoint("checkpoint", **parts)["epoch"]
for epoch in range(done + 1, options.epochs):
    for input_nodes, output_nodes, blocks in loader:
        scores = model(blocks, g.ndata["feat"][input_nodes])
        loss = F.cross_entropy(scores, g.ndata["label"][output_nodes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save_checkpoint("checkpoint", **parts, epoch=epoch)
    say(f"epoch {epoch}, loss {loss.item():.3f}")
    time.sleep(options.pause)
torch.save(model.module.state_dict(), f"model-{rank}.pt")
"""
for workspace in machines:
    (workspace / "train.py").write_text(HEAD + JOIN + LOOP)

# %% [markdown] slot="dry" lang="en"
# ## Launch
#
# With `dry_run=True`, `launch` only prints what it would run on the machines of `ip_config.txt`.
# These lines are long, so we pick from them.

# %% [markdown] slot="dry" lang="ko"
# ## 실행하기
#
# `dry_run=True`를 주면 `launch`는 `ip_config.txt`의 머신에서 무엇을 실행할지 출력하기만 합니다.
# 줄이 길므로 일부만 골라 봅니다.

# %% [markdown] slot="dry" lang="zh"
# ## 启动
#
# 设 `dry_run=True` 时，`launch` 只打印它将在 `ip_config.txt` 所列的机器上运行的命令。这些行很长，我
# 们从中挑选一些。

# %% slot="dry-code"
needs_unix()
workspace = f"{scratch}/machine$GNNLAB_MACHINE"  # filled in on each machine
job = {"workspace": workspace, "part_config": "data/digits.json"}
job |= {"num_trainers": 1, "num_servers": 1}
script = "python3 train.py --epochs 6"
said = io.StringIO()
with contextlib.redirect_stdout(said):
    launch.run(script, ip_config=ip_config, dry_run=True, **job)

_, ssh, server, trainer, *_ = map(shlex.split, said.getvalue().splitlines())
print(*ssh[:5], "...", ssh[-2], "python3 ...", ssh[-1][ssh[-1].rindex("from") : -1])
for word in server:
    if word.startswith(("DGL_ROLE", "DGL_SERVER", "DGL_CONF", "GNNLAB_KEYS")):
        print("server: ", word)
print("trainer:", *trainer[trainer.index("-m") :][:6], "...", *trainer[-4:])

# %% [markdown] slot="launch" lang="en"
# On each host, `launch` starts an **agent** through ssh. The agent starts the servers and, beside
# them, torchrun, which starts the trainers; these wait until all servers answer. Environment
# variables tell a process its role and where the others are; keys are made when it gets serious.
#
# With `num_machines=2`, the agents are child processes of the notebook and ssh is not needed; all
# else stays the same. Each trainer also gets a **sampler**, a process that prepares mini-batches
# ahead of it. The lines appear live. But after epoch 2 a thread of ours lists all processes and
# kills server 1, as the system does when memory runs out.

# %% [markdown] slot="launch" lang="ko"
# `launch`는 호스트마다 ssh로 **에이전트**(agent)를 하나씩 시작합니다. 에이전트는 서버를 시작하면서
# torchrun도 함께 시작하고, torchrun이 트레이너를 시작합니다. 트레이너는 모든 서버가 응답할 때까지
# 기다립니다. 각 프로세스는 자기 역할과 다른 프로세스의 위치를 환경 변수로 알게 됩니다. 키는 실제로
# 실행할 때 만들어집니다.
#
# `num_machines=2`를 주면 에이전트가 노트북의 자식 프로세스가 되어 ssh가 필요 없고, 나머지는 모두
# 같습니다. 여기서는 트레이너마다 **샘플러**(sampler)도 하나씩 둡니다. 샘플러는 트레이너보다 앞서
# 미니배치(mini-batch)를 준비하는 프로세스입니다. 출력은 실시간으로 나타납니다. 그런데 에폭 2가
# 끝나면 우리가 만든 스레드가 모든 프로세스의 목록을 적은 뒤 서버 1을 죽입니다. 메모리가 모자랄 때
# 운영체제가 하는 일과 같습니다.

# %% [markdown] slot="launch" lang="zh"
# `launch` 通过 ssh 在每台主机上启动一个**代理**（agent）。代理启动服务器，同时启动 torchrun，由它
# 启动训练器；训练器会一直等到所有服务器都有应答。每个进程通过环境变量得知自己的角色，以及其他进程在
# 哪里；密钥要到真正运行时才生成。
#
# 设 `num_machines=2` 时，代理是笔记本的子进程，不需要 ssh，其余一切照旧。这里每个训练器还有一
# 个**采样器**（sampler），它是提前为训练器准备小批次（mini-batch）的进程。输出会实时出现。不过，第
# 2 轮一结束，我们的一个线程就会列出所有进程，然后杀死服务器 1，就像内存不足时操作系统所做的那样。

# %% slot="launch-code" tags=["nbval-ignore-output"]
needs_unix()
tree, struck, over, logs = [], [], threading.Event(), scratch / f"logs-{time.time()}"
job["extra_envs"] = {"BEGAN": f"{time.time()}"}


def strike():
    while not over.wait(0.1):
        said = {log.stem: log.read_text() for log in logs.glob("*/*.log")}
        if "epoch 2" in said.get("trainer-0", ""):
            over.set()
            ours = psutil.Process().children(recursive=True)  # this kernel's, no others
            tree.extend((p.pid, p.ppid(), " ".join(p.cmdline())) for p in ours)
            victim = said["server-1"].split("process ")[1].split()[0]
            struck.extend((p.kill(), time.time()) for p in ours if str(p.pid) == victim)


threading.Thread(target=strike, daemon=True).start()
try:
    launch.run(f"{script} --pause 1", num_machines=2, num_samplers=1, log_dir=logs, **job)
except launch.LaunchError as error:
    failure, took = error, time.time() - struck[0][1]
finally:
    over.set()
left = psutil.Process().children(recursive=True)
print(f"ended {took:.1f} s after the blow; processes left: {len(left)}")

# %% [markdown] slot="failure" lang="en"
# Within seconds everything had ended, on both machines. A job that nobody watches over would now
# wait for an answer for ever. What does the launcher say, and what stands in the logs?

# %% [markdown] slot="failure" lang="ko"
# 몇 초 안에 두 머신에서 모든 프로세스가 종료되었습니다. 아무도 지켜보지 않는 작업이라면 지금쯤 오지
# 않을 응답을 끝없이 기다리고 있을 것입니다. 런처는 무엇이라고 말하고, 로그에는 무엇이 적혀
# 있을까요?

# %% [markdown] slot="failure" lang="zh"
# 几秒之内，两台机器上的一切都结束了。如果没有人看护，这样的作业现在会永远等待一个不会到来的应答。
# 启动器说了什么？日志里写着什么？

# %% slot="failure-code" tags=["nbval-ignore-output"]
print(str(failure).split(". ")[0])
print("exit status:", failure.status, "= 128 +", 9)
assert (failure.role, failure.rank, failure.status, left) == ("server", 1, 137, [])
for name in ("server-1", "trainer-0"):
    print(f"\n{name}.log:")
    print((failure.log_dir / f"{name}.log").read_text(), end="")

# %% [markdown] slot="tree" lang="en"
# It names the *first* failure, with host, role and number; that the trainers were terminated is
# only its consequence. The status of a killed process is 128 plus the number of the signal. And
# the log shows that epoch 2 was complete, so there is a checkpoint of it.
#
# ## What runs where
#
# From the list that the thread made we draw who started whom.

# %% [markdown] slot="tree" lang="ko"
# 런처는 **첫** 장애를 호스트, 역할, 번호와 함께 알려 줍니다. 트레이너들이 종료된 것은 그 결과일
# 뿐입니다. 시그널로 죽은 프로세스의 종료 상태는 128에 시그널 번호를 더한 값입니다. 그리고 로그를
# 보면 에폭 2가 끝났으므로 그 체크포인트가 남아 있습니다.
#
# ## 무엇이 어디에서 실행되는가
#
# 스레드가 적어 둔 목록으로 누가 누구를 시작했는지 그려 봅니다.

# %% [markdown] slot="tree" lang="zh"
# 它指出了**最先**出现的故障，包括主机、角色和编号；训练器被终止只是它的后果。被信号杀死的进程，退出
# 状态是 128 加上信号的编号。从日志还可以看到第 2 轮已经完成，所以它的检查点是存在的。
#
# ## 哪些进程在哪里运行
#
# 根据那个线程记下的列表，我们画出谁启动了谁。


# %% slot="tree-code" tags=["nbval-ignore-output"]
def place(pid, depth=0):
    heights = [place(child, depth + 1) for child in parents if parents[child] == pid]
    spots[pid] = (depth, sum(heights) / len(heights) if heights else -next(leaves))
    return spots[pid][1]


clues = {"agent": "tools.agent", "torchrun": "distributed.run", "sampler": "samplers"}
clues |= {"shell": "/bin/sh", "trainer": "train.py"}
here, leaves = os.getpid(), iter(range(99))
roles, parents, spots = {here: "launch"}, {}, {}
for pid, parent, words in tree:
    role = next((role for role, clue in clues.items() if clue in words), "other")
    known = {("agent", "launch"): "guard", ("trainer", "agent"): "server"}
    roles[pid], parents[pid] = known.get((role, roles[parent]), role), parent

place(here)
figure, ax = plt.subplots(figsize=(8.6, 2.2), layout="constrained")
colors = {"server": ORANGE, "trainer": BLUE, "sampler": GREEN}
for pid, spot in spots.items():
    ax.plot(*zip(spots[parents.get(pid, pid)], spot), color=GRAY, zorder=1)
    box = {"boxstyle": "round", "color": colors.get(roles[pid], GRAY)}
    style = {"color": "white" if roles[pid] in colors else "black", "size": 8}
    ax.text(*spot, f"{roles[pid]}\n{pid}", bbox=box, ha="center", va="center", **style)
ax.axis("off")
plt.show()

# %% [markdown] slot="resume" lang="en"
# Lines lead to the right, from each process to those that it started; the upper half is machine 0.
# An agent is two processes: should the agent be killed, its guard ends what is left, and the other
# way round. Launcher and agents give a sign of life every second. An agent that has heard none for
# five seconds ends everything on its host. So a cut cable or a closed laptop leaves nothing behind
# either.
#
# ## Resume
#
# We launch the job again with `--resume 1`, this time without samplers. Each machine reads its
# share of the newest checkpoint that all machines have.

# %% [markdown] slot="resume" lang="ko"
# 각 프로세스에서 오른쪽으로 뻗은 선은 그 프로세스가 시작한 프로세스로 이어지며, 위쪽 절반이 머신
# 0입니다. 에이전트는 두 프로세스로 되어 있습니다. 에이전트(agent)가 죽으면 guard가 남은 것을
# 끝내고, 그 반대도 마찬가지입니다. 런처와 에이전트는 1초마다 서로 살아 있다는 신호를 보냅니다. 5초
# 동안 신호를 받지 못한 에이전트는 자기 호스트에서 모든 것을 끝냅니다. 그래서 케이블이 끊기거나
# 노트북 컴퓨터를 덮어도 아무것도 남지 않습니다.
#
# ## 이어서 실행하기
#
# `--resume 1`을 주고 작업을 다시 실행합니다. 이번에는 샘플러를 쓰지 않습니다. 각 머신은 모든
# 머신에 있는 가장 새로운 체크포인트에서 자기 몫을 읽습니다.

# %% [markdown] slot="resume" lang="zh"
# 每个进程都有线向右连到由它启动的进程；上半部分是机器 0。代理由两个进程组成：如果 agent 被杀
# 死，guard 就结束剩下的一切，反之亦然。启动器和代理每秒互相发出一次存活信号；代理如果五秒没有收到，
# 就结束本机上的一切。因此，即使网线断开、笔记本电脑合上，也什么都不会留下。
#
# ## 接着运行
#
# 我们带上 `--resume 1` 再次启动作业，这次不用采样器。在所有机器都有的检查点中选出最新的一个，每台机
# 器读取其中属于自己的那一份。

# %% slot="resume-code" tags=["nbval-ignore-output"]
needs_unix()
job["extra_envs"] = {"BEGAN": f"{time.time()}"}
result = launch.run(f"{script} --resume 1", num_machines=2, log_dir=logs, **job)

# %% [markdown] slot="prove" lang="en"
# It went on with epoch 3 and ended well.
#
# ## Security
#
# Whoever reaches a port can send to it. So each agent makes new pairs of keys for the job. Through
# `launch`, agents exchange the public keys alone; the secret ones never leave their host, and they
# are on no command line, where `ps` would show them, and on no disk. With these keys, servers and
# clients prove to each other by CURVE, a method of elliptic curves, that they belong to the job,
# and everything between them is encrypted. Who has no key is not listened to.
#
# Nor are messages from within trusted. Nothing is unpickled, for a pickle can run any code; a
# message is a short header and raw bytes, and its types, sizes and IDs are checked before use.
# Garbage such as ours is dropped and counted. Only what PyTorch opens itself, torchrun's port and
# the exchange of gradients, is unprotected: run jobs behind a firewall.
#
# ## Prove it
#
# The claim: the job, on two machines, killed and resumed, learned what the same script learns in
# one process without interruption. Started by hand, the script runs in **standalone mode** and
# holds both parts itself.

# %% [markdown] slot="prove" lang="ko"
# 작업은 에폭 3부터 이어졌고 정상적으로 끝났습니다.
#
# ## 보안
#
# 포트에 닿을 수 있으면 누구나 그 포트로 무언가를 보낼 수 있습니다. 그래서 에이전트는 작업마다 새 키
# 쌍을 만듭니다. 에이전트들이 `launch`를 통해 주고받는 것은 공개 키뿐입니다. 비밀 키는 자기 호스트를
# 벗어나지 않으며, `ps`로 볼 수 있는 명령줄에도, 디스크에도 남지 않습니다. 서버와 클라이언트는 이
# 키를 써서, 타원 곡선을 이용하는 CURVE 방식으로 같은 작업에 속한다는 것을 서로 증명하고, 오가는
# 모든 내용을 암호화합니다. 키가 없는 상대가 보낸 것은 받아들이지 않습니다.
#
# 안에서 온 메시지도 그대로 믿지는 않습니다. 피클(pickle)은 어떤 코드든 실행할 수 있으므로 피클로 된
# 데이터는 아예 읽지 않습니다. 메시지는 짧은 헤더와 가공하지 않은 바이트로 이루어지며, 타입과 크기와
# ID를 검사한 뒤에 씁니다. 앞에서 우리가 보낸 것과 같은 쓰레기 값은 버리고 횟수만 셉니다. 다만
# PyTorch가 스스로 여는 것, 곧 torchrun의 포트와 그래디언트(gradient)의 교환은 보호되지 않으므로,
# 작업은 방화벽 뒤에서 실행하십시오.
#
# ## 증명하기
#
# 증명할 주장은 다음과 같습니다. 머신 두 대에서 실행되다 중단된 뒤 이어서 실행된 작업은, 같은
# 스크립트가 프로세스 하나에서 중단 없이 학습한 것과 똑같이 학습했습니다. 스크립트를 손으로 시작하면
# **단독 모드**(standalone mode)로 실행되어 프로세스 하나가 두 파티션을 모두 가집니다.

# %% [markdown] slot="prove" lang="zh"
# 作业从第 3 轮继续，并且正常结束。
#
# ## 安全
#
# 只要能连到一个端口，谁都可以向它发送数据。因此，每个代理都为作业生成新的密钥对。代理之间通过
# `launch` 交换的只有公钥；私钥不会离开所在的主机，既不会出现在 `ps` 能看到的命令行上，也不会写入磁
# 盘。服务器与客户端用这些密钥，通过
# 基于椭圆曲线的 CURVE 方法互相证明自己属于这个作业，它们之间的一切都经过加密。没有密钥的一方，不予
# 理会。
#
# 来自内部的消息也不会被轻信。pickle 可以运行任意代码，所以任何数据都不用 pickle 还原；一条消息就是
# 一个简短的头部加上原始字节，其类型、大小和 ID 都要先检查，再使用。像我们发出的那种垃圾数据会被丢弃
# 并计数。没有保护的只有 PyTorch 自己打开的连接，即 torchrun 的端口和梯度（gradient）的交换：请在防
# 火墙之后运行作业。
#
# ## 证明
#
# 要证明的是：这个作业在两台机器上运行，中途被杀死，又接着运行，它学到的与同一个脚本在一个进程中不间
# 断地学到的相同。手动启动时，脚本以**独立模式**（standalone mode）运行，自己持有两个分区。

# %% slot="prove-code" tags=["nbval-ignore-output"]
needs_unix()
alone = scratch / "alone"
for part in range(2):
    copy(part, alone)
shutil.copy(machines[0] / "train.py", alone)
how = {"check": True, "capture_output": True, "text": True}
done = subprocess.run([sys.executable, *script.split()[1:]], cwd=alone, **how)
print(done.stdout)

found, wanted = (torch.load(f / "model-0.pt") for f in (machines[0], alone))
for name, values in wanted.items():
    assert torch.allclose(found[name], values, rtol=0, atol=1e-6)
total = sum(map(torch.numel, wanted.values()))
print(f"{total:,} parameters, none further apart than 1e-6")

# %% [markdown] slot="cost" lang="en"
# The losses differ, for each trainer shows that of its half of the last batch; the parameters
# agree. Only the order of additions differs.
#
# ## What it costs
#
# The lines of the logs carry times. Each row of the picture is a process of the resumed job, the
# last one the process that was alone.

# %% [markdown] slot="cost" lang="ko"
# 손실이 다른 것은 각 트레이너가 마지막 배치에서 자기가 맡은 절반의 손실을 출력하기 때문입니다.
# 매개변수는 일치합니다. 다른 것은 더하는 순서뿐입니다.
#
# ## 비용
#
# 로그의 줄에는 시각이 적혀 있습니다. 그림에서 각 행은 이어서 실행한 작업의 프로세스이고, 마지막
# 행은 혼자 실행된 프로세스입니다.

# %% [markdown] slot="cost" lang="zh"
# 损失有所不同，因为每个训练器打印的是最后一个批次中自己那一半的损失；参数则是一致的，不同的只有求
# 和的次序。
#
# ## 代价
#
# 日志的每一行都带有时刻。图中每一行是接着运行的作业的一个进程，最后一行是独自运行的那个进程。

# %% slot="cost-code" tags=["nbval-ignore-output"]
phases = {"begins": ("wait", GRAY), "loaded": ("load modules", BLUE)}
phases |= {"connected": ("connect", ORANGE), "made": ("make the model", "#9db7da")}
phases |= {"epoch": ("train", GREEN), "ends": ("train", GREEN)}
names = ["server-0", "server-1", "trainer-0", "trainer-1", "alone"]
printed = {**result.logs, "alone": done.stdout}
figure, ax = plt.subplots(figsize=(8.6, 2.4), layout="constrained")
for row, name in enumerate(names):
    before = 0.0
    for line in printed[name].splitlines():
        clue = next(clue for clue in phases if clue in line)
        label, color = phases[clue]
        now = float(line.partition(" s: ")[0])
        ax.barh(row, now - before, left=before, color=color, label=label)
        before = now
    if name.startswith("server"):  # until the trainers have finished
        style = {"color": "#f3cfb5", "label": "serve"}
        ax.barh(row, result.seconds - before, left=before, **style)
ax.axvline(result.seconds, color="black", lw=0.8)
ax.set(yticks=range(len(names)), yticklabels=names, xlabel="seconds")
ax.set_xlim(0, 1.02 * result.seconds)
ax.invert_yaxis()
legend = dict(zip(*ax.get_legend_handles_labels()[::-1]))
figure.legend(legend.values(), legend, ncols=6, loc="outside upper center")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown] slot="cluster" lang="en"
# The vertical line is the end of the job. Only green is training. The rest is paid once: every
# process loads its modules, trainers wait until the servers are ready, agents end all in order.
# For `digits` that is far too much, and the process alone wins. A job of hours does not notice it,
# and a graph that no single machine can hold leaves no choice.
#
# ## On your cluster
#
# For machines to which you may log in, the list of them is enough. After `copy_files` you type:
#
# ```
# gnnlab doctor --ip_config ip_config.txt --workspace workspace --part_config data/digits.json
# gnnlab launch --ip_config ip_config.txt --workspace workspace --part_config data/digits.json \
#     --num_trainers 2 --num_samplers 1 --num_servers 1 "python3 code/train.py --epochs 6"
# ```
#
# In a university, a **scheduler** mostly decides who computes where, and machines are called nodes.
# To Slurm you hand in a script: lines with `#SBATCH` say what the job needs. Slurm allocates the
# nodes and runs the other lines on the first of them. This one is much like
# `examples/slurm/train.sbatch`:
#
# ```
# #!/bin/bash
# #SBATCH --nodes=3
# #SBATCH --time=01:00:00
# #SBATCH --signal=B:USR1@120
# #SBATCH --requeue
# #SBATCH --open-mode=append
# source .venv/bin/activate
# exec gnnlab launch --workspace "$PWD" --part_config data/digits.json \
#     "python3 examples/train_dist.py --graph_name digits --batch_size 60 --checkpoint saved"
# ```
#
# `launch` sees that it runs in an allocation, takes its nodes for the machines, and starts the
# agents by `srun`. There is no `ip_config.txt`; if the nodes share a disk, nothing has to be
# copied. This was printed on three nodes, which all shared one busy computer; the first epoch
# compiles:
#
# ```
# $ python examples/partition.py --dataset digits --num_parts 3 --output data
# digits: 3 parts by metis; 1.7% of the edges are cut, 0.11 halo nodes a node; ...
# $ sbatch examples/slurm/train.sbatch
# Submitted batch job 1
# $ cat slurm-1.out
# gnnlab launch: the machines are those of Slurm job 1: node0, node1, node2
# ...
# node0 trainer 0 | epoch   0  loss 3.0931  75.32 s
# node0 trainer 0 | epoch   1  loss 2.0207  0.73 s
# ...
# node0 trainer 0 | epoch  29  loss 0.0511  0.59 s
# node0 trainer 0 | validation accuracy 0.9385  test accuracy 0.9590
# ...
# job 9dcbec9461528529 ended well after 216.3 s; ...
# ```
#
# Two minutes before the time is over, Slurm sends the signal USR1. `launch` tells the trainers,
# which save a checkpoint and return; then it puts the job back into the queue. When the job starts
# again, it goes on as if it had never been interrupted, to the last bit of the parameters.
#
# Companies rather have Ray. On a node of a Ray cluster the same command works, with `--on ray`. In
# both places `gnnlab doctor` checks the nodes, and supervision, logs and security are those of this
# lesson. [More about clusters](../../docs/clusters.md) has the rest.

# %% [markdown] slot="cluster" lang="ko"
# 세로선은 작업이 끝난 시각입니다. 초록색만 학습에 쓰인 시간이고, 나머지는 한 번만 치르는
# 비용입니다. 프로세스마다 모듈을 불러오고, 트레이너는 서버가 준비될 때까지 기다리며, 에이전트는
# 모든 것을 차례대로 끝냅니다. `digits`에는 지나치게 큰 비용이어서, 혼자 실행된 프로세스가 더 빨리
# 끝납니다. 몇 시간 걸리는 작업에서는 이 비용이 눈에 띄지 않으며, 머신 한 대에 담을 수 없는
# 그래프라면 선택의 여지가 없습니다.
#
# ## 내 클러스터에서 실행하기
#
# 직접 접속할 수 있는 머신이라면 그 목록만 있으면 됩니다. `copy_files` 다음에 이렇게 입력합니다.
#
# ```
# gnnlab doctor --ip_config ip_config.txt --workspace workspace --part_config data/digits.json
# gnnlab launch --ip_config ip_config.txt --workspace workspace --part_config data/digits.json \
#     --num_trainers 2 --num_samplers 1 --num_servers 1 "python3 code/train.py --epochs 6"
# ```
#
# 대학의 클러스터에서는 대개 **스케줄러**(scheduler)가 누가 어느 머신을 쓸지 정하며, 머신을 노드라고
# 부릅니다. Slurm에는 스크립트를 제출합니다. `#SBATCH`로 시작하는 줄에 작업에 필요한 자원을 적으면,
# Slurm이 노드를 할당하고 그중 첫 노드에서 나머지 줄을 실행합니다. 다음은
# `examples/slurm/train.sbatch`와 거의 같은 스크립트입니다.
#
# ```
# #!/bin/bash
# #SBATCH --nodes=3
# #SBATCH --time=01:00:00
# #SBATCH --signal=B:USR1@120
# #SBATCH --requeue
# #SBATCH --open-mode=append
# source .venv/bin/activate
# exec gnnlab launch --workspace "$PWD" --part_config data/digits.json \
#     "python3 examples/train_dist.py --graph_name digits --batch_size 60 --checkpoint saved"
# ```
#
# `launch`는 자신이 할당된 노드에서 실행되고 있음을 알아차리고, 그 노드들을 머신으로 삼아 `srun`으로
# 에이전트를 시작합니다. `ip_config.txt`는 필요 없으며, 노드들이 디스크를 공유한다면 복사할 것도
# 없습니다. 다음은 세 노드에서 실제로 실행한 결과입니다. 바쁜 컴퓨터 한 대가 세 노드의 역할을
# 했으며, 첫 에폭의 시간에는 컴파일이 포함되어 있습니다.
#
# ```
# $ python examples/partition.py --dataset digits --num_parts 3 --output data
# digits: 3 parts by metis; 1.7% of the edges are cut, 0.11 halo nodes a node; ...
# $ sbatch examples/slurm/train.sbatch
# Submitted batch job 1
# $ cat slurm-1.out
# gnnlab launch: the machines are those of Slurm job 1: node0, node1, node2
# ...
# node0 trainer 0 | epoch   0  loss 3.0931  75.32 s
# node0 trainer 0 | epoch   1  loss 2.0207  0.73 s
# ...
# node0 trainer 0 | epoch  29  loss 0.0511  0.59 s
# node0 trainer 0 | validation accuracy 0.9385  test accuracy 0.9590
# ...
# job 9dcbec9461528529 ended well after 216.3 s; ...
# ```
#
# 제한 시간이 끝나기 2분 전에 Slurm은 USR1 시그널을 보냅니다. 그러면 `launch`가 이를 트레이너들에
# 알리고, 트레이너들은 체크포인트를 저장한 뒤 끝납니다. 이어서 `launch`는 작업을 다시 대기열에
# 넣습니다. 다시 시작된 작업은 한 번도 중단되지 않은 것처럼 이어지며, 매개변수는 마지막 비트까지
# 같습니다.
#
# 기업에서는 Ray를 더 많이 씁니다. Ray 클러스터의 노드에서는 같은 명령에 `--on ray`를 붙이면 됩니다.
# 어느 쪽에서든 `gnnlab doctor`가 노드들을 점검하고, 감시와 로그와 보안은 이 레슨에서 본
# 그대로입니다.
# 자세한 내용은 [클러스터 문서](../../docs/clusters.md)에 있습니다.

# %% [markdown] slot="cluster" lang="zh"
# 竖线是作业结束的时刻。只有绿色是训练，其余都是只付一次的代价：每个进程加载自己的模块，训练器等待服
# 务器就绪，代理按顺序结束一切。对 `digits` 来说，这代价太大了，独自运行的进程反而更快。对运行几个小
# 时的作业来说，它微不足道；而如果图大到任何一台机器都装不下，就别无选择。
#
# ## 在你的集群上
#
# 对于可以直接登录的机器，有一份机器清单就够了。`copy_files` 之后这样输入：
#
# ```
# gnnlab doctor --ip_config ip_config.txt --workspace workspace --part_config data/digits.json
# gnnlab launch --ip_config ip_config.txt --workspace workspace --part_config data/digits.json \
#     --num_trainers 2 --num_samplers 1 --num_servers 1 "python3 code/train.py --epochs 6"
# ```
#
# 大学的集群上，谁在哪里计算通常由**调度器**（scheduler）决定，机器在那里称为节点。使用 Slurm 时，要
# 提交一个脚本：以 `#SBATCH` 开头的行写明作业需要什么；Slurm 分配好节点，在其中第一个节点上执行其余
# 各行。下面的脚本与 `examples/slurm/train.sbatch` 几乎相同：
#
# ```
# #!/bin/bash
# #SBATCH --nodes=3
# #SBATCH --time=01:00:00
# #SBATCH --signal=B:USR1@120
# #SBATCH --requeue
# #SBATCH --open-mode=append
# source .venv/bin/activate
# exec gnnlab launch --workspace "$PWD" --part_config data/digits.json \
#     "python3 examples/train_dist.py --graph_name digits --batch_size 60 --checkpoint saved"
# ```
#
# `launch` 会发现自己运行在分配到的节点上，于是把这些节点当作各台机器，通过 `srun` 启动代理。不需要
# `ip_config.txt`；如果节点之间共享磁盘，也不必复制任何东西。下面是在三个节点上实际运行的输出，这三
# 个节点由同一台繁忙的计算机扮演，第一轮的时间包含编译：
#
# ```
# $ python examples/partition.py --dataset digits --num_parts 3 --output data
# digits: 3 parts by metis; 1.7% of the edges are cut, 0.11 halo nodes a node; ...
# $ sbatch examples/slurm/train.sbatch
# Submitted batch job 1
# $ cat slurm-1.out
# gnnlab launch: the machines are those of Slurm job 1: node0, node1, node2
# ...
# node0 trainer 0 | epoch   0  loss 3.0931  75.32 s
# node0 trainer 0 | epoch   1  loss 2.0207  0.73 s
# ...
# node0 trainer 0 | epoch  29  loss 0.0511  0.59 s
# node0 trainer 0 | validation accuracy 0.9385  test accuracy 0.9590
# ...
# job 9dcbec9461528529 ended well after 216.3 s; ...
# ```
#
# 离时限还有两分钟时，Slurm 会发出信号 USR1。`launch` 通知各个训练器，训练器保存检查点后返回，随后
# `launch` 把作业重新放回队列。作业再次启动后接着运行，就像从未中断过一样，参数的每一个比特都相同。
#
# 公司里更常用 Ray。在 Ray 集群的节点上，给同一条命令加上 `--on ray` 即可。无论在哪一种集群
# 上，`gnnlab doctor` 都会检查各个节点，看护、日志和安全也都与本课所讲的一样。其余内容
# 见[集群文档](../../docs/clusters.md)。

# %% [markdown] slot="summary" lang="en"
# ## Summary
#
# - Line $i$ of `ip_config.txt` is machine $i$, which holds part $i$, the JSON file and the script.
# - Agents start servers, then trainers; samplers belong to their trainer.
# - The first failure ends the whole job and is named; the logs have the rest.
# - A checkpoint lies on all machines, each with its share.
# - Starting a job takes many seconds, but only once: launch what is worth it.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict. The
# [solutions](../solutions/09_launching.ipynb) are beside the lesson.
#
# 1. Write the text of an `ip_config.txt` for 10.0.0.1, whose first server listens at 31000,
#    and 10.0.0.2, with any ports.
# 2. A job runs on 4 machines with 2 servers and 2 trainers each and 3 samplers for each trainer.
#    How many servers, trainers and samplers are there in all? Answer with a list.
# 3. An epoch takes 60 s on one machine and 33 s on two, where starting takes 300 s more. From how
#    many epochs on are two machines done first?
# 4. Write a function of `request` and `rows` that returns the reply of our server, and `b""` for
#    every request that is not a list of existing row numbers.
# 5. `complete[i]` is a list of the numbers of the checkpoints that machine $i$ has. Write a
#    function of `complete` that returns the one to resume from, or −1 when there is none.

# %% [markdown] slot="summary" lang="ko"
# ## 요약
#
# - `ip_config.txt`의 줄 $i$는 머신 $i$를 나타내며, 이 머신은 파티션 $i$, JSON 파일, 스크립트를
#   가집니다.
# - 에이전트는 서버를 먼저, 트레이너를 나중에 시작합니다. 샘플러는 자기 트레이너에 딸려 있습니다.
# - 첫 장애가 작업 전체를 끝내며, 런처는 그 장애가 무엇인지 알려 줍니다. 나머지는 로그에 있습니다.
# - 체크포인트는 모든 머신에 나뉘어 있으며, 머신마다 자기 몫을 가집니다.
# - 작업을 시작하는 데는 몇 초에서 몇십 초가 걸리지만, 이 시간은 한 번만 듭니다. 그만한 가치가 있는
#   작업을 실행하십시오.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 판정을 확인합니다. [풀이](../solutions/09_launching.ipynb)는
# 레슨과 함께 제공됩니다.
#
# 1. 첫 서버가 31000번 포트를 쓰는 10.0.0.1과, 포트를 정하지 않는 10.0.0.2를 위한 `ip_config.txt`의
#    내용을 작성합니다.
# 2. 작업이 머신 4대에서 실행됩니다. 머신마다 서버 2개와 트레이너 2개가 있고, 트레이너마다 샘플러
#    3개가 있습니다. 서버, 트레이너, 샘플러는 모두 몇 개입니까? 리스트로 답합니다.
# 3. 한 에폭이 머신 한 대에서는 60초, 두 대에서는 33초 걸립니다. 두 대일 때는 시작하는 데 300초가
#    더 걸립니다. 에폭이 몇 번 이상이면 두 대가 먼저 끝납니까?
# 4. `request`와 `rows`를 받아 우리 서버의 응답을 돌려주는 함수를 작성합니다. 실제로 있는 행 번호의
#    목록이 아닌 요청에는 모두 `b""`를 돌려주어야 합니다.
# 5. `complete[i]`는 머신 $i$에 있는 체크포인트 번호의 리스트입니다. `complete`를 받아 이어서
#    실행할 체크포인트의 번호를 돌려주는 함수를 작성합니다. 그런 것이 없으면 −1을 돌려줍니다.

# %% [markdown] slot="summary" lang="zh"
# ## 小结
#
# - `ip_config.txt` 的第 $i$ 行是机器 $i$，它持有分区 $i$、JSON 文件和脚本。
# - 代理先启动服务器，再启动训练器；采样器归各自的训练器所有。
# - 最先出现的故障会结束整个作业，启动器会指出它是什么；其余的都在日志里。
# - 检查点分布在所有机器上，每台机器有自己的一份。
# - 启动一个作业要花不少时间，但只需一次：作业足够大，才值得启动。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看判定结果。[解答](../solutions/09_launching.ipynb)随本课提
# 供。
#
# 1. 写出一个 `ip_config.txt` 的内容，其中有两台机器：10.0.0.1 的第一个服务器使用端口
#    31000，10.0.0.2 的端口任意。
# 2. 一个作业运行在 4 台机器上，每台有 2 个服务器和 2 个训练器，每个训练器有 3 个采样器。服务器、训
#    练器和采样器一共各有多少个？用列表作答。
# 3. 一轮在一台机器上需要 60 秒，在两台机器上需要 33 秒，但两台机器的启动要多花 300 秒。从多少轮
#    起，两台机器会先完成？
# 4. 写一个以 `request` 和 `rows` 为参数的函数，返回我们的服务器的应答；凡不是由存在的行号组成的请
#    求，都返回 `b""`。
# 5. `complete[i]` 是一个列表，包含机器 $i$ 所拥有的检查点的编号。写一个以 `complete` 为参数的函数，
#    返回应当从其中接着运行的那个检查点的编号；如果没有，则返回 −1。


# %% slot="check"
def check(number, answer, is_right):
    verdict = "not answered yet"
    if answer is not None:
        verdict = "right" if is_right(answer) else "wrong"
    print(f"exercise {number}: {verdict}")


def sha(answer):
    return hashlib.sha256(str(answer).encode()).hexdigest()[:8]


def names_two(answer):
    wrong.write_text(answer)
    with contextlib.suppress(dgl.GNNLabError):
        hosts = [(host.address, host.port) for host in read_ip_config(wrong)]
        return hosts == [("10.0.0.1", 31000), ("10.0.0.2", None)]


def serves(answer):
    good, bad = np.array([3, 0, 3]), [np.array([8]), np.array([2, -1])]
    with contextlib.suppress(ValueError, IndexError):
        replies = {answer(request, rows) for request in [b"abc", *map(bytes, bad)]}
        return answer(bytes(good), rows) == bytes(rows[good]) and replies == {b""}


# %% slot="answers"
answer_1 = None  # a string
answer_2 = None  # a list of three numbers
answer_3 = None  # a number
answer_4 = None  # a function of request and rows
answer_5 = None  # a function of complete

cases = {3: [[1, 3], [2, 3]], 2: [[2, 3], [1, 2]], -1: [[1], [2], [1, 2]], 10: [[9, 10]]}
check(1, answer_1, names_two)
check(2, answer_2, lambda answer: sha(list(answer)) == "10d8b413")
check(3, answer_3, lambda answer: sha(answer) == "6b51d431")
check(4, answer_4, serves)
check(5, answer_5, lambda f: all(f(case) == right for right, case in cases.items()))
