# %% [markdown] slot="title" lang="en"
# # Launching a job on many machines
#
# A distributed job runs one script in many processes on many machines. A **launcher** must start
# the processes, notice when one fails, and terminate the others. By the end of this lesson, you
# will be able to
#
# - name a job's processes, and say what starts each and what each does;
# - prepare machines with `ip_config.txt`, `copy_files` and `doctor`;
# - launch a job, read its logs, and resume it after a failure;
# - check that a job learns the same parameters as one process, and see where its time goes.

# %% [markdown] slot="title" lang="ko"
# # 여러 머신에서 작업 실행하기
#
# 분산 작업을 위해 작성하는 스크립트는 하나뿐이지만, 작업을 시작하면 여러 머신에서 많은 프로세스가
# 실행됩니다. 이 머신들은 대개 디스크를 공유하지 않습니다. 그래서 먼저 파티션(partition)을 각 머신에
# 복사해야 합니다. 그다음에는 모든 프로세스를 시작하고, 그중 하나에 장애가 생기면 이를 감지하여
# 나머지를 종료하는 프로그램이 필요합니다. 이 프로그램을 **런처**(launcher)라고 합니다. 레슨을
# 마치면 다음과 같은 일을 할 수 있습니다.
#
# - 작업을 이루는 프로세스에는 무엇이 있고, 무엇이 각 프로세스를 시작하며, 각 프로세스가 무슨 일을
#   하는지 설명하기
# - `ip_config.txt`, `copy_files`, `doctor`로 머신을 준비하기
# - 작업을 실행하고, 로그를 읽고, 장애가 생긴 뒤에 이어서 실행하기
# - 작업의 결과가 프로세스 하나로 학습한 결과와 같은지 확인하고, 시간이 어디에 쓰이는지 알아보기

# %% [markdown] slot="title" lang="zh"
# # 在多台机器上启动作业
#
# 分布式作业的脚本只是一个程序，作业本身却由许多进程组成，这些进程运行在多台机器上，而这些机器通常不
# 共享磁盘。因此需要一个工具，把各个分区（partition）分发到各台机器，启动所有进程，在某个进程出错时
# 及时发现，并结束其余进程。这个工具称为**启动器**（launcher）。学完之后，你能够：
#
# - 说出一个作业由哪些进程组成，各由谁启动、做什么；
# - 用 `ip_config.txt`、`copy_files` 和 `doctor` 准备机器；
# - 启动作业，阅读日志，并在故障之后恢复运行；
# - 验证作业训练出的参数与单个进程的相同，并看清时间花在哪里。

# %% [markdown] slot="setup" lang="en"
# ## Setup
#
# This computer acts as two machines. Each has its own folder and processes and, except on macOS,
# where both use 127.0.0.1, its own address (127.0.0.2 or 127.0.0.3); but they share processors and
# memory, and their network is faster than a real one. All files are in a temporary folder, which
# becomes the working directory and is deleted when the kernel exits.
#
# You need Linux, macOS, or Linux on Windows (WSL). On Windows itself, read the stored outputs.

# %% [markdown] slot="setup" lang="ko"
# ## 준비
#
# 이 컴퓨터 한 대가 머신 두 대의 역할을 합니다. 주소(127.0.0.2와 127.0.0.3, 단 macOS에서는 둘 다
# 127.0.0.1), 폴더, 프로세스는 머신마다 따로 있습니다. 실제와 다른 것은 둘 사이의 네트워크가 더
# 빠르고, 두 머신이 프로세서와 메모리를 함께 쓴다는 점입니다. 파일은 모두 임시 폴더에 저장합니다.
# 이제부터 이 폴더가 노트북의 현재 디렉터리이며, 커널을 종료하면 지워집니다.
#
# 이 레슨은 Linux나 macOS, 또는 Windows에 설치한 Linux(WSL)에서 실행해야 합니다. WSL 없이
# Windows에서 열면 작업을 시작하는 셀에서는 WSL이 필요하다는 메시지만 나오므로, 레슨에 저장된 출력을
# 보십시오.

# %% [markdown] slot="setup" lang="zh"
# ## 准备
#
# 本课用一台计算机模拟两台机器。两台机器各有自己的地址（127.0.0.2 和 127.0.0.3；在 macOS 上都用
# 127.0.0.1）、文件夹和进程；与真实情况的主要区别是，两者共用同一台计算机的处理器和内存，相互之间的
# 网络也更快。所有文件都写入一个临时文件夹。从这里开始，它就是本 Notebook 的当前目录；内核退出时会自
# 动删除。
#
# 本课需要 Linux、macOS，或 Windows 中的 Linux（WSL）。直接在 Windows 上打开时，要启动作业的单元格只
# 会提示无法运行，请阅读本课中保存的输出。

# %% slot="imports"
import atexit
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Client
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import psutil
import torch

import gnnlab as dgl
from gnnlab.distributed import load_partition, partition_graph
from gnnlab.exercises import Lesson
from gnnlab.launch.ip_config import read_ip_config
from gnnlab.plot import BLUE, GRAY, GREEN, ORANGE

# %% slot="folder-code"
lesson = Lesson("09", "en")  # exercises, and the style of figures
lesson.style()
scratch = lesson.folder
os.chdir(scratch)
Path("code").mkdir(exist_ok=True)


def needs_unix():
    if sys.platform == "win32":
        raise SystemExit("Windows cannot run jobs: use WSL, or read the stored outputs.")


# %% [markdown] slot="toy" lang="en"
# ## A toy graph small enough to draw
#
# Eight nodes are stored on two machines, four on each. On machine 0, a **trainer** (a process that
# trains the model) needs the features of nodes 6, 1 and 7.

# %% [markdown] slot="toy" lang="ko"
# ## 작은 그래프로 살펴보기
#
# 노드 8개를 머신 두 대에 네 개씩 저장합니다. 머신 0에서 모델을 학습하는 프로세스, 곧
# **트레이너**(trainer)에 노드 6, 1, 7의 피처(feature)가 필요합니다.

# %% [markdown] slot="toy" lang="zh"
# ## 先看一张小图
#
# 8 个节点存放在两台机器上，每台 4 个。机器 0 上有一个训练模型的进程，即**训练器**（trainer）；它需
# 要节点 6、1、7 的特征（feature）。

# %% slot="toy-code" tags=["folded"]
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
# The trainer reads the features of node 1 from its own machine's memory. For nodes 6 and 7, it asks
# a **server**, a process that answers requests for its machine's rows.
#
# ## Build it yourself: a server for rows
#
# The script below answers requests over TCP. TCP delivers a stream of bytes, so
# `multiprocessing.connection` from Python's standard library marks where each message ends. A
# request is the bytes of the row numbers (int64), and the reply is the bytes of those rows
# (float64). The server prints its port, which the operating system chose. `%%writefile` saves a
# cell to a file instead of running it.
#
# Then we start the server as a separate process, with the rows of machine 1, where nodes 6 and 7
# are rows 2 and 3. We request them, send three bytes of garbage, and request them again.

# %% [markdown] slot="server" lang="ko"
# 트레이너는 노드 1의 피처 행을 자기 머신의 메모리에서 읽습니다. 노드 6과 7의 행은
# **서버**(server)에 요청합니다. 서버는 자기 머신에 있는 행에 대한 요청에 응답하는 프로세스입니다.
#
# ## 직접 만들어 보기: 행을 보내 주는 서버
#
# 아래 스크립트는 요청을 기다렸다가 TCP로 응답을 보냅니다. TCP는 바이트를 차례로 전달할 뿐 메시지의
# 경계를 알려 주지 않습니다. 그래서 메시지를 하나씩 구분해 주고받을 수 있게 해 주는 Python 표준
# 라이브러리의 `multiprocessing.connection`을 사용합니다. 요청은 행 번호를 int64로 나타낸
# 바이트열이고, 응답은 그 행들을 float64로 나타낸 바이트열입니다. 포트는 운영체제가 비어 있는 것
# 중에서 고르고, 서버가 그 번호를 출력합니다. `%%writefile`로 시작하는 셀은 실행되지 않고 파일로
# 저장됩니다.
#
# 이어서 머신 1의 행을 맡는 서버를 별도의 프로세스로 시작합니다. 머신 1에서 노드 6과 7은 행 2와
# 3입니다. 두 행을 요청하고, 의미 없는 3바이트를 보낸 다음, 같은 행을 다시 요청해 봅시다.

# %% [markdown] slot="server" lang="zh"
# 训练器从本机内存中读取节点 1 的特征；节点 6 和 7 的特征则要向**服务器**（server）请求。这里的服务
# 器是一个进程，不是一台机器；其他机器要读取本机的特征行时，请求由它响应。
#
# ## 亲手实现：按行提供数据的服务器
#
# 下面的脚本等待请求，再通过 TCP 发回响应。TCP 传输的是字节流，本身不划分消息，所以这里用 Python
# 标准库中的 `multiprocessing.connection` 逐条收发消息。请求的内容是若干个行号（int64）的原始字节，
# 响应的内容是这些行的数据（float64）的原始字节。端口由操作系统挑选，服务器把端口号打印出来。以
# `%%writefile` 开头的单元格不会执行，而是保存为文件。
#
# 随后把服务器作为单独的进程启动，让它负责机器 1 的行；在机器 1 上，节点 6 和 7 分别是第 2 行和第 3
# 行（从 0 数起）。先请求这两行，再发送三个字节的无效数据，然后再请求一次。

# %% slot="server-code"
# %%writefile rows.py
import sys
from multiprocessing.connection import Listener

import numpy as np

rows = np.load(sys.argv[1])
listener = Listener(("127.0.0.1", 0))
print(listener.address[1], flush=True)
while True:
    with listener.accept() as connection:
        ids = np.frombuffer(connection.recv_bytes(), np.int64)
        connection.send_bytes(rows[ids].tobytes())

# %% slot="ask-code"
rows = np.array([[10.0 * node, node] for node in range(8)])  # features
np.save("rows.npy", rows[4:])
pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
process = subprocess.Popen([sys.executable, "rows.py", "rows.npy"], **pipes)
atexit.register(process.kill)  # in case nothing else stops it
port = int(process.stdout.readline())


def ask(request):
    try:
        with Client(("127.0.0.1", port)) as connection:
            connection.send_bytes(request)
            return np.frombuffer(connection.recv_bytes()).reshape(-1, 2).tolist()
    except (EOFError, OSError):  # the server closed the connection, or is gone
        return "no reply"


print("another process:", process.pid != os.getpid())
print("nodes 6, 7:", ask(np.array([2, 3]).tobytes()))
print("garbage:   ", ask(b"abc"))
print("nodes 6, 7:", ask(np.array([2, 3]).tobytes()))
print(process.communicate()[1].splitlines()[-1])

# %% [markdown] slot="machines" lang="en"
# The garbage crashed the server, since three bytes are not a row number, and the client learned
# only that no reply came. A server must check what it receives, and another process must monitor
# it.
#
# ## With the library: list the machines
#
# `ip_config.txt` has a line `address [port]` for each machine. The first line is machine 0, which
# holds part 0. The port is that of the machine's first server; further servers use the next ports.
# If none is given, the launcher finds free ports. Behind a firewall, open a range of ports and give
# the first. (A job without a launcher uses 30050, as DGL does.) Text after `#` is a comment.

# %% [markdown] slot="machines" lang="ko"
# 첫 응답은 올바릅니다. 그런데 3바이트는 행 번호가 될 수 없으므로, 잘못된 요청을 받은 서버는 오류를
# 내고 종료되었습니다. 클라이언트는 응답이 오지 않는다는 것밖에 알 수 없습니다. 서버는 받은 데이터를
# 검사해야 하고, 서버를 감시하는 다른 프로세스도 있어야 합니다.
#
# ## 라이브러리 사용하기: 머신 목록 작성
#
# `ip_config.txt`에는 머신마다 `address [port]` 형식의 줄을 하나씩 적습니다. 순서가 중요합니다. 첫
# 줄이 머신 0이고, 파티션 0은 머신 0에 저장됩니다. 포트는 그 머신의 첫 서버가 쓰는 번호이며, 서버가
# 여럿이면 다음 번호를 차례로 씁니다. 포트를 적지 않으면 런처가 비어 있는 포트를 찾습니다. 방화벽이
# 있다면 포트 범위를 열고 그 첫 번호를 적으십시오. (런처 없이 실행할 때의 기본 포트는 DGL과 같은
# 30050입니다.) `#` 뒤는 주석입니다.

# %% [markdown] slot="machines" lang="zh"
# 第一个响应是正确的。三个字节构不成行号，所以服务器收到无效数据后报错退出，而客户端只知道等不到响
# 应。服务器必须检查收到的数据，还要有别的进程监视它。
#
# ## 使用库：列出机器
#
# 在 `ip_config.txt` 中，每台机器占一行，格式为 `address [port]`。次序很重要：第一行是机器 0，它持有
# 分区 0。端口是这台机器的第一个服务器进程所用的端口，其余服务器进程依次使用后面的端口。不写端口时，
# 启动器会找出空闲的端口。如果有防火墙，请开放一段端口，并写上其中的第一个。（不用启动器时，默认端口
# 与 DGL 相同，为 30050。）`#` 之后是注释。

# %% slot="machines-code"
ip_config, wrong = Path("ip_config.txt"), Path("wrong.txt")
wrong.write_text("127.0.0.2\n127.0.0.3 99999\n")
ip_config.write_text("127.0.0.2\n127.0.0.3 31000  # any free port\n")
for path in (ip_config, wrong):
    try:
        for machine, host in enumerate(read_ip_config(path)):
            print(f"machine {machine}: {host.address}, port {host.port}")
    except dgl.GNNLabError as error:
        print("refused:", error)

# %% [markdown] slot="copy" lang="en"
# The second file is refused; the message names the line and says what is expected.
#
# ## Copy and check the parts
#
# Machine $i$ needs the graph's JSON file, part $i$ and the scripts, in a folder called its
# **workspace**. On a cluster, one command copies them over ssh, which must not prompt: use key
# authentication, and log in once by hand so that the host key is known.
#
# ```
# gnnlab copy_files --part_config data/digits.json --ip_config ip_config.txt \
#     --workspace workspace --rel_data_path data --script_folder code
# ```
#
# - `--part_config`: the JSON file on this computer, in the parts' folder.
# - `--ip_config`: the machines, one per part; line $i$, counted from 0, gets part $i$.
# - `--workspace`: the folder on the machines, created if missing; a relative path starts at the
#   home directory.
# - `--rel_data_path`: the graph's folder within the workspace.
# - `--script_folder`: a folder on this computer, copied into the workspace.
# - `--ssh_port`, `--ssh_username`: if your ssh configuration lacks them.
#
# Checksums reveal incomplete copies; after an interruption, repeat the command to continue. On a
# shared file system, no copies are needed.

# %% [markdown] slot="copy" lang="ko"
# 둘째 파일은 거부되었습니다. 메시지는 몇째 줄이 잘못되었고 그 자리에 무엇을 적어야 하는지 알려
# 줍니다.
#
# ## 파티션을 복사하고 확인하기
#
# 머신 $i$에는 그래프의 JSON 파일, 파티션 $i$, 스크립트가 필요합니다. 이 파일들을 두는 폴더를 **작업
# 디렉터리**(workspace)라고 합니다. 클러스터에서는 명령 하나로 ssh를 통해 복사할 수 있습니다. 이때
# ssh가 아무것도 묻지 않아야 합니다. 비밀번호 대신 키로 로그인하도록 설정하고, 머신마다 한 번씩 직접
# 로그인하여 호스트 키(host key)를 등록해 두십시오.
#
# ```
# gnnlab copy_files --part_config data/digits.json --ip_config ip_config.txt \
#     --workspace workspace --rel_data_path data --script_folder code
# ```
#
# - `--part_config`: 이 컴퓨터에 있는 JSON 파일. 파티션도 같은 폴더에 있어야 합니다.
# - `--ip_config`: 머신 목록. 파티션 수만큼 적으며, $i$번째 줄(0번째부터)의 머신이 파티션 $i$를
#   받습니다.
# - `--workspace`: 각 머신에서 작업 디렉터리로 쓸 폴더. 없으면 새로 만들며, 상대 경로는 홈
#   디렉터리를 기준으로 합니다.
# - `--rel_data_path`: 작업 디렉터리 안에서 그래프를 둘 폴더.
# - `--script_folder`: 작업 디렉터리로 복사할, 이 컴퓨터의 폴더.
# - `--ssh_port`, `--ssh_username`: ssh 설정에 없을 때 지정합니다.
#
# 각 머신은 체크섬을 비교하므로, 복사가 덜 된 파일을 완료된 것으로 처리하지 않습니다. 복사가
# 중단되면 같은 명령을 다시 실행하십시오. 멈춘 곳부터 이어서 복사합니다. 모든 머신이 파일 시스템을
# 공유한다면 복사할 필요가 없습니다. 여기서는 이 컴퓨터의 폴더 두 개에 복사하면 되므로 Python 몇
# 줄로 충분합니다.

# %% [markdown] slot="copy" lang="zh"
# 第二个文件被拒绝了；错误信息指出了是哪一行，以及那里应该写什么。
#
# ## 复制并检查分区
#
# 机器 $i$ 需要图的 JSON 文件、分区 $i$ 和脚本，存放它们的文件夹称为**工作目录**（workspace）。在集
# 群上，用一条命令就能通过 ssh 复制过去，前提是 ssh 登录时不需要人工输入：用密钥代替密码登录，并事先
# 手动登录每台机器一次，让 ssh 记住它的主机密钥（host key）。
#
# ```
# gnnlab copy_files --part_config data/digits.json --ip_config ip_config.txt \
#     --workspace workspace --rel_data_path data --script_folder code
# ```
#
# - `--part_config`：本机上的 JSON 文件，各个分区就在它旁边。
# - `--ip_config`：机器列表文件，机器数与分区数相同；第 $i$ 行（从 0 数起）的机器得到分区 $i$。
# - `--workspace`：各台机器上的文件夹，不存在时会新建；相对路径以主目录为起点。
# - `--rel_data_path`：工作目录中存放图的文件夹。
# - `--script_folder`：本机上的一个文件夹，会被复制到工作目录中。
# - `--ssh_port`、`--ssh_username`：ssh 配置中没有时才需要。
#
# 每台机器都会比较校验和，所以没有复制完的文件绝不会被当成完整的；中断之后，再次运行同一条命令，就从
# 停下的地方继续。如果所有机器共享文件系统，则什么都不必复制。这里只涉及本机的两个文件夹，几行
# Python 就够了。

# %% slot="copy-code" tags=["nbval-ignore-output"]
dgl.seed(0)
partition_graph(dgl.data.load("digits")[0], "digits", 2, "data")


def copy(part, workspace):
    shutil.copytree("code", workspace / "code", dirs_exist_ok=True)
    data = workspace / "data"
    data.mkdir(exist_ok=True)
    shutil.copy("data/digits.json", data)
    (source,) = Path("data").glob(f"part{part}*")
    shutil.copytree(source, data / source.name, dirs_exist_ok=True)


machines = [scratch / f"machine{i}" for i in range(2)]
for part, workspace in enumerate(machines):
    copy(part, workspace)
    graph = load_partition(workspace / "data/digits.json", part)[0]
    print(f"machine {part} opens part {part}: {graph.num_nodes()} nodes, HALO included")
    others = list(workspace.glob(f"data/part{1 - part}*"))
    assert not others, "it should have no other part"

# %% [markdown] slot="doctor" lang="en"
# Each machine can open its own part and has no other.
#
# `gnnlab doctor` finds what would keep a job from running, on all machines of `--ip_config`, on
# Slurm's or Ray's nodes, or on this computer. We run `doctor` twice: with one bit of the features
# flipped, then restored. `--lang` selects English, Korean or Chinese.

# %% [markdown] slot="doctor" lang="ko"
# 머신마다 자기 파티션을 열 수 있고, 다른 파티션은 없습니다.
#
# `gnnlab doctor`는 작업을 방해할 만한 문제를 찾습니다. `--ip_config`를 지정하면 거기에 적힌 모든
# 머신을, Slurm에서는 할당된 노드를, Ray에서는 클러스터의 노드를, 그 밖에는 이 컴퓨터를 검사합니다.
# 피처의 비트 하나를 뒤집어 `doctor`를 실행하고, 비트를 되돌린 다음 다시 실행합니다. 메시지의 언어는
# `--lang`으로 고르며 영어, 한국어, 중국어가 있습니다.

# %% [markdown] slot="doctor" lang="zh"
# 每台机器都能打开自己的分区，而且只存有这一个分区。
#
# `gnnlab doctor` 检查是否存在妨碍作业运行的问题：指定了 `--ip_config`，就检查其中的所有机器；在
# Slurm 或 Ray 上，检查分配到的节点；其他情况下只检查这台计算机。下面把特征中的一个比特翻转，运行
# `doctor`，再把它改回来。`--lang` 选择消息的语言：英语、韩语或中文。

# %% slot="doctor-code" tags=["nbval-ignore-output"]
needs_unix()
from gnnlab.launch import doctor

file = next(Path("data").glob("part1*/**/feat.npy"))
good = file.read_bytes()
request = ["--workspace", ".", "--part_config", "data/digits.json", "--lang", "en"]
try:
    file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    broken = doctor.main(request)
finally:
    file.write_bytes(good)

with contextlib.redirect_stdout(io.StringIO()):
    status = doctor.main(request)
print("exit status with the bit restored:", status)
assert broken != status, "the flipped bit should make the difference"

# %% [markdown] slot="script" lang="en"
# The checksum revealed one wrong bit among millions, and `doctor` says what to do. With the bit
# restored, the exit status is 0: no check failed.
#
# ## One program for all roles
#
# Servers and trainers run the same script, `train.py`, which uses three more files. `report.py`
# prints lines with timestamps; `model.py` defines the model. In `join.py`, the roles diverge: in a
# server, `initialize` does not return but answers requests; in a trainer, it returns when all
# servers have answered. Before that, it starts the trainer's **samplers**, processes that prepare
# its mini-batches in advance. (A torch `DataLoader` with `num_workers` would fork them from the
# trainer, whose connections they could not use.)
#
# Trainer $r$ gets share $r$ of the training nodes. A lone process gets both shares, interleaved, so
# its batches of 32 hold the same nodes as two batches of 16, as the final check requires. A slice
# drops the end of each share, where a node may be repeated to make the shares equal. `train.py`
# trains the model; after each epoch, every machine saves its share of a **checkpoint**.

# %% [markdown] slot="script" lang="ko"
# 수백만 비트 가운데 하나만 달라도 체크섬에서 드러나며, `doctor`는 어떻게 해야 하는지도 알려 줍니다.
# 비트를 되돌리면 종료 상태가 0입니다. 실패한 검사가 없다는 뜻입니다.
#
# ## 서버와 트레이너가 함께 쓰는 스크립트
#
# 서버와 트레이너는 같은 스크립트를 실행합니다. 스크립트는 파일 네 개로 이루어집니다. `report.py`는
# 시각과 함께 한 줄씩 출력하고, `model.py`는 모델을 정의합니다. `join.py`에서 역할이 나뉩니다.
# 서버에서는 `initialize`가 끝나지 않고 계속 요청에 응답하며, 트레이너에서는 모든 서버가 응답한 뒤에
# 끝납니다. 그 전에 `initialize`는 트레이너의 **샘플러**(sampler)를 시작합니다. 샘플러는
# 트레이너보다 앞서 미니배치(mini-batch)를 준비하는 프로세스입니다. (torch `DataLoader`의
# `num_workers`를 대신합니다. `DataLoader`의 워커 프로세스는 트레이너에서 포크(fork)되므로
# 트레이너와 서버 사이의 연결을 쓸 수 없습니다.)
#
# 학습 노드를 트레이너 수만큼 나누어 트레이너 $r$이 그중 $r$번째를 맡습니다. 프로세스가 하나뿐이면
# 두 트레이너가 맡을 노드를 하나씩 번갈아 늘어놓고 모두 맡습니다. 그러면 크기가 32인 배치 하나에
# 크기가 16인 배치 두 개와 같은 노드가 들어가므로, 마지막에 결과를 비교할 수 있습니다. 노드 수를
# 똑같이 맞추느라 끝에 다른 트레이너의 노드가 한 번 더 들어 있을 수 있으므로 슬라이스로 끝부분을
# 잘라 냅니다. `train.py`는 모델을 학습합니다. 에폭(epoch)이 끝날 때마다 각 머신은
# **체크포인트**(checkpoint) 가운데 자기가 맡은 부분을 저장합니다.

# %% [markdown] slot="script" lang="zh"
# 数百万个比特中只错了一个，校验和就能查出来，`doctor` 还说明了该怎么办。改回来之后，退出状态是 0，
# 即没有一项检查失败。
#
# ## 各种角色共用一个程序
#
# 服务器和训练器运行同一个脚本，它由四个文件组成。`report.py` 打印带时刻的信息，每条一行；`model.py`
# 定义模型。在 `join.py` 中，各个角色开始分工：在服务器上，`initialize` 不返回，而是响应请求；在训练
# 器上，所有服务器都有响应之后，它才返回。在此之前，它会启动训练器的**采样器进程**（sampler
# process），也就是提前为训练器准备小批次（mini-batch）的进程。（它们代替了 torch `DataLoader` 的
# `num_workers`：那种工作进程由训练器派生而来，无法使用训练器与服务器之间的连接。）
#
# 训练器 $r$ 负责第 $r$ 份训练节点。只有一个进程时，两份都由它负责，并且交错排列；这样，大小为 32 的
# 一个批次就与大小为 16 的两个批次含有相同的节点，最后的验证需要这一点。为了使两份一样大，划分时可能
# 会在末尾重复一个节点；这里用切片截去末尾的几个节点，以避开这种重复。最后，`train.py` 进行训练；每
# 一轮（epoch）结束后，每台机器保存**检查点**（checkpoint）中属于自己的部分。

# %% slot="report-code"
# %%writefile code/report.py
import atexit
import os
import time

began = float(os.environ.get("BEGAN", time.time()))


def say(text):
    print(f"{time.time() - began:5.1f} s: {text}", flush=True)


say(f"process {os.getpid()} begins")
atexit.register(say, "ends")

# %% slot="model-code"
# %%writefile code/model.py
import torch
import torch.nn.functional as F

import gnnlab.nn as dglnn


class SAGE(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        layers = dglnn.SAGEConv(inputs, 64, "mean"), dglnn.SAGEConv(64, outputs, "mean")
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, blocks, x):
        for i, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            x = layer(block, F.relu(x) if i else x)
        return x


# %% slot="join-code"
# %%writefile code/join.py
from report import say  # first, to record the time
import argparse
import torch
import torch.distributed as dist
import gnnlab as dgl
from gnnlab.distributed import DistGraph, DistNodeDataLoader, node_split

parser = argparse.ArgumentParser()
for option, kind in (("epochs", int), ("pause", float), ("resume", int)):
    parser.add_argument(f"--{option}", type=kind, default=0)
options = parser.parse_args()
say("modules are loaded")
dgl.distributed.initialize("ip_config.txt")  # does not return on a server
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
g = DistGraph("digits", part_config="data/digits.json")
say(f"trainer {rank} of {size} is connected")

mask, book, total = g.ndata["train_mask"], g.get_partition_book(), max(size, 2)
whose = range(rank, total, size)
shares = [node_split(mask, book, rank=r, num_trainers=total) for r in whose]
seeds = torch.stack([share[: 176 // total] for share in shares], 1).flatten()
sampler = dgl.dataloading.NeighborSampler([5, 5])
loader = DistNodeDataLoader(g, seeds, sampler, batch_size=32 // size, seed=0)

# %% slot="train-code"
# %%writefile code/train.py
from join import g, loader, options, rank, say
import time
import torch
from torch.nn.parallel import DistributedDataParallel
from gnnlab.distributed import load_checkpoint, save_checkpoint
from model import SAGE

torch.manual_seed(0)
model = DistributedDataParallel(SAGE(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
parts = {"model": model, "optimizer": optimizer, "loader": loader}
say("the model is built")
done = load_checkpoint("checkpoint", **parts)["epoch"] if options.resume else -1
for epoch in range(done + 1, options.epochs):
    for input_nodes, output_nodes, blocks in loader:
        scores = model(blocks, g.ndata["feat"][input_nodes])
        loss = torch.nn.functional.cross_entropy(scores, g.ndata["label"][output_nodes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save_checkpoint("checkpoint", **parts, epoch=epoch)
    say(f"epoch {epoch}, loss {loss.item():.3f}")
    time.sleep(options.pause)
torch.save(model.module.state_dict(), f"model-{rank}.pt")

# %% [markdown] slot="dry" lang="en"
# ## Launch
#
# `gnnlab launch`, or `launch.run` in Python, runs the script on all machines. Options:
#
# - `num_trainers`, `num_servers`: processes **per machine**; `num_samplers`: processes **per
#   trainer**.
# - `num_omp_threads`, `num_server_threads`: threads per trainer and per server.
# - `workspace`: where the script runs on each machine; `part_config` and paths in the script are
#   relative to it. `ip_config` is read on this computer.
# - `extra_envs`: environment variables for all processes; `ssh_port`, `ssh_username`: as above.
# - `master_port`: where trainers meet on machine 0 (default: a free port).
# - `timeout`: seconds allowed for all processes to start and, later, for each reply or barrier
#   (default: 300); `max_pause`: seconds that a process may be suspended before it counts as failed
#   (default: 3).
# - `log_dir`, `trace`: folders on this computer for logs and timing records.
# - `on`: what starts the job: `ssh`, `slurm`, `ray` or `local`; `security`: `tls` or `none` (see
#   below); `graph_format`: accepted so that DGL's commands run; scripts find it in
#   `DGL_GRAPH_FORMAT`.
#
# Requests to a machine go to its servers in turn, so they can answer several trainers at once, and
# one computes while another sends. With `dry_run`, `launch` only prints what it would run.
# Excerpts:

# %% [markdown] slot="dry" lang="ko"
# ## 실행하기
#
# 명령 `gnnlab launch`나 Python의 `launch.run`으로 모든 머신에서 스크립트를 실행합니다. 옵션은
# 다음과 같습니다.
#
# - `num_trainers`, `num_servers`: **머신당** 프로세스 수. `num_samplers`: **트레이너당** 프로세스
#   수.
# - `num_omp_threads`, `num_server_threads`: 트레이너와 서버의 스레드 수.
# - `workspace`: 각 머신에서 스크립트를 실행할 폴더. `part_config`와 스크립트 안의 경로는 이 폴더를
#   기준으로 합니다. `ip_config`는 런처를 실행하는 컴퓨터에서 읽습니다.
# - `extra_envs`: 모든 프로세스에 전달할 환경 변수. `ssh_port`, `ssh_username`: 앞에서와 같습니다.
# - `master_port`: 트레이너들이 서로 연결할 때 쓰는 머신 0의 포트. 기본값은 비어 있는 포트입니다.
# - `timeout`: 모든 프로세스가 시작하여 서로 연결될 때까지 기다리는 시간(초). 그 뒤에도 요청에 대한
#   응답이나 배리어(barrier)를 최대 이만큼 기다립니다. 기본값은 300입니다. `max_pause`: 멈춰 있는
#   프로세스를 장애로 판단할 때까지의 시간(초). 기본값은 3입니다.
# - `log_dir`, `trace`: 로그를 저장할 폴더와, 시간이 어디에 쓰이는지 기록할 폴더. 런처를 실행하는
#   컴퓨터에 만듭니다.
# - `on`: 에이전트를 시작하는 방법으로 `ssh`, `slurm`, `ray`, `local` 가운데 하나. `security`:
#   `tls` 또는 `none`이며 뒤에서 설명합니다. `graph_format`: DGL용 명령을 그대로 쓸 수 있도록 둔
#   옵션이며, 값은 환경 변수 `DGL_GRAPH_FORMAT`으로 스크립트에 전달됩니다.
#
# 한 머신에 서버가 여럿이면 요청을 번갈아 받습니다. 따라서 여러 트레이너에 동시에 응답하고, 한
# 서버가 계산하는 동안 다른 서버는 데이터를 보낼 수 있습니다. `dry_run`을 지정하면 `launch`는 실행할
# 명령을 출력하기만 합니다. 줄이 길므로 일부만 봅시다.

# %% [markdown] slot="dry" lang="zh"
# ## 启动
#
# 命令 `gnnlab launch`，或 Python 中的 `launch.run`，在所有机器上运行脚本。选项如下：
#
# - `num_trainers`、`num_servers`：**每台机器**上的训练器、服务器进程数；`num_samplers`：**每个训练
#   器**的采样器进程数。
# - `num_omp_threads`、`num_server_threads`：分别是每个训练器、每个服务器进程的线程数。
# - `workspace`：各台机器上运行脚本的文件夹；`part_config` 和脚本中的路径都相对于它。`ip_config` 则
#   在运行启动器的计算机上读取。
# - `extra_envs`：传给所有进程的环境变量；`ssh_port`、`ssh_username`：与上文的同名选项相同。
# - `master_port`：训练器在机器 0 上会合的端口，默认选用空闲端口。
# - `timeout`：等待所有进程启动并相互连接的最长秒数，之后等待每次响应和屏障（barrier）也以此为限，默
#   认 300；`max_pause`：进程被挂起超过多少秒即判定为故障，默认 3。
# - `log_dir`、`trace`：存放日志和时间记录的文件夹，位于运行启动器的计算机上。
# - `on`：`ssh`、`slurm`、`ray` 或 `local`；`security`：`tls` 或 `none`，见下文；`graph_format`：
#   仅为兼容 DGL 的启动命令而保留，脚本可从 `DGL_GRAPH_FORMAT` 读取。
#
# 一台机器上有多个服务器进程时，它们轮流接收请求：可以同时响应多个训练器，一个在计算时，另一个可以发
# 送数据。设 `dry_run` 时，`launch` 只打印将要运行的命令。这些命令很长，这里只看其中的片段。

# %% slot="dry-code"
needs_unix()
from gnnlab.launch import launch

for part, workspace in enumerate(machines):
    copy(part, workspace)  # now with the scripts
workspace = f"{scratch}/machine$GNNLAB_MACHINE"  # each machine fills in its number
job = {"workspace": workspace, "part_config": "data/digits.json"}
job |= {"num_trainers": 1, "num_servers": 1}
script = "python3 code/train.py --epochs 6"
said = io.StringIO()
with contextlib.redirect_stdout(said):
    launch.run(script, ip_config=ip_config, dry_run=True, **job)

_, ssh, server, trainer, *_ = map(shlex.split, said.getvalue().splitlines())
print("0:", *ssh[:5], "...", ssh[-2], "python3 ...", ssh[-1][ssh[-1].rindex("from") : -1])
for word in server:
    if word.startswith(("DGL_ROLE", "DGL_SERVER", "DGL_CONF", "GNNLAB_KEYS")):
        print("1:", word)
for word in trainer:
    if word.startswith(("DGL_ROLE", "RANK", "WORLD_SIZE", "MASTER_ADDR")):
        print("2:", word)
print("2:", *trainer[-4:])

# %% [markdown] slot="launch" lang="en"
# On each machine, `launch` starts an **agent** over ssh (line 0). The agent starts servers (lines
# marked 1) and trainers (2) together, since both take seconds to load modules; trainers then wait
# until all servers answer. Environment variables tell a process its role, number, graph and keys,
# and the others' addresses (most are not shown); keys are generated when the job actually starts.
#
# With `num_machines=2`, the agents are child processes of this notebook and need no ssh; all else
# is the same. Each trainer has one sampler. After epoch 2, a thread lists the job's processes and
# kills server 1, as the operating system might when memory runs out.

# %% [markdown] slot="launch" lang="ko"
# `launch`는 호스트마다 ssh로 **에이전트**(agent)를 하나씩 시작합니다(출력의 0번 줄). 서버(1번 줄)와
# 트레이너(2번 줄)는 모두 모듈을 불러오는 데 시간이 걸리므로, 에이전트는 둘을 동시에 시작합니다.
# 그다음 트레이너는 모든 서버가 응답할 때까지 기다립니다. 프로세스의 역할과 번호, 그래프의 경로,
# 키는 환경 변수로 전달됩니다. 다른 프로세스의 주소도 마찬가지이지만 여기에는 대부분 출력하지
# 않았습니다. 키는 작업을 실제로 시작할 때 만들어집니다.
#
# `num_machines=2`로 지정하면 에이전트가 이 노트북 커널의 자식 프로세스가 되어 ssh가 필요 없고,
# 나머지는 모두 같습니다. 이번에는 트레이너마다 샘플러를 하나씩 둡니다. 에폭 2가 끝나면, 미리 시작해
# 둔 스레드가 모든 프로세스의 목록을 기록한 다음 서버 1을 강제로 종료합니다. 메모리가 모자랄 때
# 운영체제가 하기도 하는 일입니다.

# %% [markdown] slot="launch" lang="zh"
# `launch` 通过 ssh 在每台主机上启动一个**代理**（agent），见输出中标号为 0 的行。服务器（标号 1）和
# 训练器（标号 2）加载模块都要花一段时间，所以代理同时启动两者；训练器随后等到所有服务器都有响应为
# 止。每个进程通过环境变量得知自己的角色、编号、图的路径和密钥；密钥要到作业真正启动时才生成。
#
# 设 `num_machines=2` 时，代理是本 Notebook 的子进程，不需要 ssh，其余完全相同。这次每个训练器有一个
# 采样器进程。第 2 轮结束后，事先开启的一个线程会列出所有进程，然后杀死服务器 1，就像内存不足时操作
# 系统可能会做的那样。

# %% slot="launch-code" tags=["nbval-ignore-output"]
needs_unix()
tree, struck, over, logs = [], [], threading.Event(), scratch / f"logs-{time.time()}"
job["extra_envs"] = {"BEGAN": f"{time.time()}"}
for machine in machines:
    shutil.rmtree(machine / "checkpoint", ignore_errors=True)  # from an earlier run


def strike():
    while not over.wait(0.1):
        files = logs.glob("*/*.log")
        said = {log.stem: log.read_text("utf8", "replace") for log in files}
        if "epoch 2" in said.get("trainer-0", ""):
            over.set()
            ours = psutil.Process().children(recursive=True)  # only this kernel's
            tree.extend((p.pid, p.ppid(), f"{p.cmdline()} {p.environ()}") for p in ours)
            victim = int(re.search(r"\d s: \D+(\d+)", said["server-1"])[1])
            struck.extend((p.kill(), time.time()) for p in ours if p.pid == victim)


threading.Thread(target=strike, daemon=True).start()
try:
    launch.run(f"{script} --pause 1", num_machines=2, num_samplers=1, log_dir=logs, **job)
except launch.LaunchError as error:
    failure, took = error, time.time() - struck[0][1]
over.set()

# %% [markdown] slot="failure" lang="en"
# Lines with `|` were printed by a process; the others come from the launcher and say how many
# processes per machine and role have connected, started, become ready or ended. Within seconds, all
# processes on both machines had ended. Without supervision, the others would have waited until the
# timeout.

# %% [markdown] slot="failure" lang="ko"
# `|`가 있는 줄은 각 프로세스가, 나머지는 런처가 출력한 것입니다. 런처의 줄은
# 연결되었거나(connected), 시작되었거나(started), 준비되었거나(ready), 끝난(ended) 프로세스의 수를
# 역할별로 나타냅니다. 몇 초 안에 두 머신의 모든 프로세스가 종료되었습니다. 감시하는 프로그램이
# 없었다면 작업은 지금도 오지 않을 응답을 기다리고 있을 것입니다. 런처는 무엇을 보고하고, 로그에는
# 무엇이 남아 있을까요?

# %% [markdown] slot="failure" lang="zh"
# 输出中带 `|` 的行由各个进程打印，其余各行由启动器打印，说明每种角色有几个进程已经连接
# （connected）、启动（started）、就绪（ready）或结束（ended）。几秒之内，两台机器上的所有进程都结束
# 了。如果没有监视，这个作业此刻还在等待永远不会到来的响应。启动器报告了什么？日志里又有什么？

# %% slot="failure-code" tags=["nbval-ignore-output"]
left = psutil.Process().children(recursive=True)
print(f"the job ended {took:.1f} s after the kill; processes left: {len(left)}")
print(str(failure).split(". ")[0])
print("exit status:", failure.status, "= 128 +", failure.status - 128)
for name in ("server-1", "trainer-0"):
    print(f"\n{name}.log:")
    print((failure.log_dir / f"{name}.log").read_text("utf8"), end="")

# %% [markdown] slot="tree" lang="en"
# The launcher reports the **first** failure, with the machine, role and number of its process; the
# trainers were terminated as a consequence. The exit status after a signal is 128 plus its number;
# SIGKILL is 9. The log shows that epoch 2 was completed and so has a checkpoint.
#
# ## What runs where
#
# From the thread's list, we draw which process started which.

# %% [markdown] slot="tree" lang="ko"
# 런처는 **첫** 장애를 호스트, 역할, 번호와 함께 보고합니다. 트레이너들이 종료된 것은 그 결과일
# 뿐입니다. 시그널로 종료된 프로세스의 종료 상태는 128에 시그널 번호를 더한 값이며, SIGKILL의 번호는
# 9입니다. 로그를 보면 에폭 2까지 끝났으므로 에폭 2의 체크포인트가 있습니다.
#
# ## 무엇이 어디에서 실행되는가
#
# 스레드가 기록한 목록으로 어느 프로세스가 어느 프로세스를 시작했는지 그려 봅시다.

# %% [markdown] slot="tree" lang="zh"
# 启动器报告的是**最先**出现的故障，包括主机、角色和编号；训练器被终止只是它的后果。启动器沿用 shell
# 的约定：进程因信号而结束时，退出状态是 128 加上信号的编号；SIGKILL 的编号是 9。从日志可以看到第 2
# 轮已经完成，所以有它的检查点。
#
# ## 哪些进程在哪里运行
#
# 根据线程记下的列表，画出哪个进程启动了哪个进程。


# %% slot="tree-code" tags=["nbval-ignore-output", "folded"]
def place(pid, depth=0):
    heights = [place(child, depth + 1) for child in parents if parents[child] == pid]
    spots[pid] = (depth, sum(heights) / len(heights) if heights else -next(leaves))
    return spots[pid][1]


clues = {"launch.runner": "runner", "launch.agent": "agent", ".sampler": "sampler"}
clues |= {"'DGL_ROLE': 'server'": "server", "train.py": "trainer"}
after = {("agent", "launcher"): "guard"}
here, leaves, parents, spots = os.getpid(), iter(range(99)), {}, {}
roles = {here: "launcher"}
for pid, parent, words in tree:
    role = next((clues[clue] for clue in clues if clue in words), "?")
    roles[pid], parents[pid] = after.get((role, roles.get(parent)), role), parent
place(here)
figure, ax = plt.subplots(figsize=(9, 2.8), layout="constrained")
colors = {"server": ORANGE, "trainer": BLUE, "sampler": GREEN}
for pid, spot in spots.items():
    ax.plot(*zip(spots[parents.get(pid, pid)], spot), color=GRAY, zorder=1)
    box = {"boxstyle": "round", "color": colors.get(roles[pid], GRAY)}
    color = "white" if roles[pid] in colors else "black"
    style = {"bbox": box, "color": color, "ha": "center", "va": "center"}
    ax.text(*spot, f"{roles[pid]}\n{pid}", **style)
ax.axis("off")
plt.show()

# %% [markdown] slot="silence" lang="en"
# Lines lead right from each process to those it started; the upper half is machine 0. An agent is
# three processes, "guard", "agent" and "runner" in the figure. The runner starts the server and the
# trainer. If the guard or the agent is killed, the other one ends everything else; if both are
# killed, the runner does.
#
# ## How long to wait for a heartbeat
#
# The launcher and the agents send each other a heartbeat every second. After 4.5 s without one, the
# launcher reports a failure, and an agent ends everything on its machine. So nothing is left behind
# even if a cable is pulled or the launching laptop is closed. Suppose the connection breaks at 5.5
# s. Change the deadline and the gap; without a running kernel, you see four settings.

# %% [markdown] slot="silence" lang="ko"
# 각 프로세스에서 오른쪽으로 뻗은 선은 그 프로세스가 시작한 프로세스로 이어집니다. 위쪽 절반이 머신
# 0입니다. 에이전트는 세 프로세스로 되어 있습니다. 본체(그림의 ‘에이전트’)와 감시 프로세스(그림의
# ‘감시’), 그리고 서버와 트레이너를 시작하는 실행 프로세스(그림의 ‘실행’)입니다. 본체와 감시
# 프로세스 가운데 한쪽이 종료되면 다른 쪽이 나머지를 모두 종료하고, 둘 다 종료되면 실행 프로세스가
# 그 일을 합니다.
#
# ## 응답이 없을 때 얼마나 기다릴 것인가
#
# 런처와 에이전트는 네트워크를 통해 1초마다 서로에게 살아 있다는 신호를 보냅니다. 4.5초 동안 신호를
# 받지 못하면 상대와 연결이 끊긴 것으로 판단하여, 런처는 장애를 보고하고 에이전트는 자기 호스트의
# 모든 프로세스를 종료합니다. 따라서 케이블이 빠지거나 런처를 실행한 노트북 컴퓨터를 덮어도 남는
# 프로세스가 없습니다. 4.5초는 너무 길까요, 짧을까요? 연결이 5.5초에 끊긴다고 합시다. 제한 시간과
# 연결이 끊겨 있는 시간을 바꾸어 봅시다. 커널이 실행되지 않는 환경에서는 네 가지 설정의 그림이
# 표시됩니다.

# %% [markdown] slot="silence" lang="zh"
# 线从每个进程向右连到由它启动的进程；上半部分是机器 0。代理由三个进程组成：工作进程（图中的“代
# 理”）、看守它的进程（图中的“看守”），以及负责启动服务器和训练器的进程（图中的“运行”）。前两个进程
# 中有一个被杀死，另一个就结束其余所有进程；两个都被杀死时，由第三个进程来结束。
#
# ## 没有响应时该等多久
#
# 启动器和代理每秒通过网络互相发送一次心跳信号（heartbeat）。如果 4.5 秒没有收到信号，就认为对方已经
# 失联：启动器报告故障，代理则结束本机上的所有进程。因此，即使网线被拔掉，或者运行启动器的笔记本电脑
# 合上了盖子，也不会残留任何进程。4.5 秒是太长还是太短？假设连接在第 5.5 秒中断，请改变期限和中断时
# 长试试看。没有启动内核时，显示的是四种设置的图。

# %% slot="silence-code"
BEAT, SILENCE = 1, 4.5  # seconds


def listen(deadline, gap, start=5.5):
    beats = np.arange(0, 20, BEAT)
    arrive = (beats < start) | (beats >= start + gap)
    end = beats[beats < start].max() + deadline
    is_lost = beats[beats >= start + gap].min() > end
    return beats, arrive, end, is_lost


for deadline in (1.5, SILENCE, 12):
    survived = [gap for gap in range(1, 13) if not listen(deadline, gap)[-1]]
    print(f"deadline {deadline} s: the longest gap is {max(survived, default=0)} s")


# %% slot="silence-draw" tags=["nbval-ignore-output", "folded"]
def draw_silence(deadline=SILENCE, gap=3):
    beats, arrive, end, is_lost = listen(deadline, gap)
    figure, ax = plt.subplots(figsize=(5.4, 1.6), layout="constrained")
    ax.axvspan(5.5, 5.5 + gap, color=GRAY, alpha=0.8, lw=0)
    for seen, fill in ((arrive, GREEN), (~arrive, "none")):
        shown = beats[seen & ((beats < end) | (not is_lost))]
        ax.plot(shown, 0 * shown, "o", color=GREEN, markerfacecolor=fill)
    ax.axvline(end, color=ORANGE)
    ax.text(end + 0.2, 0.6, "deadline", color=ORANGE)
    verdict = f"the job is terminated at {end:g} s" if is_lost else "the job continues"
    ax.set(xlim=(-0.5, 20.5), ylim=(-0.5, 1), yticks=[], xlabel="seconds")
    ax.set(title=verdict, xticks=range(0, 21, 5))
    return figure


deadlines = "deadline (s)", [1.5, 3, SILENCE, 6, 9, 12]
dgl.plot.explore(draw_silence, deadline=deadlines, gap=("gap (s)", (1, 12)))

# %% [markdown] slot="resume" lang="en"
# Open dots are heartbeats lost in the gray gap. With a deadline of 1.5 s, even a gap of one second
# ends the job. With 12 s, it survives much longer gaps, but if a machine is gone, all others wait
# 12 s in vain. A deadline of 4.5 s allows gaps of up to three seconds.
#
# ## Resume
#
# We relaunch the job with `--resume 1` and without samplers. Each machine reads its share of
# the newest checkpoint that all machines have.

# %% [markdown] slot="resume" lang="ko"
# 속이 찬 점은 도착한 신호이고, 속이 빈 점은 회색으로 표시한 시간에 유실된 신호입니다. 제한 시간이
# 1.5초이면 1초만 끊겨도 작업이 종료됩니다. 12초이면 훨씬 오래 끊겨도 견디지만, 호스트가 정말로
# 멈췄을 때 나머지 프로세스가 12초 동안 헛되이 기다립니다. 제한 시간이 4.5초이면 연결이 3초까지
# 끊겨도 작업이 계속됩니다.
#
# ## 이어서 실행하기
#
# `--resume 1`을 지정하여 작업을 다시 실행합니다. 이번에는 샘플러를 쓰지 않습니다. 각 머신은 모든
# 머신에 빠짐없이 저장된 체크포인트 가운데 가장 최근 것에서 자기가 맡은 부분을 읽습니다.

# %% [markdown] slot="resume" lang="zh"
# 实心点是收到的信号，空心点是在灰色的中断期间丢失的信号。期限为 1.5 秒时，只中断一秒，作业就会被终
# 止。期限为 12 秒时，作业能撑过长得多的中断；但如果主机真的出了故障，其余进程就要白等 12 秒。4.5 秒
# 可以容忍最长三秒的中断。
#
# ## 从检查点恢复运行
#
# 带上 `--resume 1` 再次启动作业，这次不启用采样器进程。每台机器都从所有机器上都有的最新检查点中，读
# 取属于自己的部分。

# %% slot="resume-code" tags=["nbval-ignore-output"]
needs_unix()
job["extra_envs"] = {"BEGAN": f"{time.time()}"}
result = launch.run(f"{script} --resume 1", num_machines=2, log_dir=logs, **job)

# %% [markdown] slot="prove" lang="en"
# The job continued with epoch 3 and finished.
#
# ## Security
#
# Anyone who can reach a port can send data to it. So servers and clients use TLS 1.3, as `https`
# does: it encrypts traffic, and both sides, not just the server, prove by a **certificate** that
# they belong to the job. `launch` is the job's certificate authority (CA). Agents generate the
# secret keys, which neither leave their machine nor appear on a command line, which `ps` would
# show.
#
# Messages consist of a short header and raw bytes; data types, sizes and IDs are checked before
# use, and nothing is unpickled, since a pickle can run arbitrary code. Only PyTorch's own
# connections (between trainers, for gradients) are unprotected, so run jobs behind a firewall.
#
# ## Check that they agree
#
# The job ran on two machines, was killed, and was resumed. Did it learn what the same script learns
# in one uninterrupted process? Started by hand, the script runs in **standalone mode**: one process
# holds both parts.

# %% [markdown] slot="prove" lang="ko"
# 작업은 에폭 3부터 이어져 정상적으로 끝났습니다.
#
# ## 보안
#
# 포트에 접근할 수 있으면 누구나 그 포트로 데이터를 보낼 수 있습니다. 그래서 서버와 클라이언트는
# `https`에도 쓰이는 TLS 1.3으로 상대를 인증하고, 주고받는 내용을 모두 암호화합니다. 웹에서는 보통
# 서버만 **인증서**(certificate)를 제시하지만, 여기서는 서버와 클라이언트가 모두 인증서를 제시하고
# 상대의 인증서를 검증합니다(상호 인증). `launch`는 작업마다 인증 기관(CA)을 새로 만들고, 이 CA가
# 인증서를 발급합니다. 같은 작업에서 발급받은 인증서와 개인 키가 없는 프로세스는 연결할 수
# 없습니다. 개인 키는 에이전트가 자기 호스트에서 만들며, 호스트 밖으로 나가지 않고 `ps`로 볼 수
# 있는 명령줄에도 나타나지 않습니다.
#
# 같은 작업에 속한 프로세스가 보낸 메시지도 검사합니다. 피클(pickle)을 역직렬화하면 임의의 코드가
# 실행될 수 있으므로, 받은 데이터를 피클로 역직렬화하지 않습니다. 메시지는 짧은 헤더와 바이트열로
# 이루어지며, 자료형, 크기, ID를 검사한 뒤에 사용합니다. 다만 PyTorch가 직접 여는 연결, 곧
# 트레이너가 서로를 찾고 그래디언트(gradient)를 교환하는 연결은 보호되지 않으므로, 작업은 방화벽
# 안에서 실행하십시오.
#
# ## 확인하기: 프로세스 하나로 학습한 결과와 같은가
#
# 작업은 머신 두 대에서 실행되다가 강제로 종료된 뒤 이어서 실행되었습니다. 그 결과는 같은 스크립트를
# 프로세스 하나로 중단 없이 실행한 것과 같을까요? 스크립트를 직접 시작하면 **단독 모드**(standalone
# mode)로 실행되어, 프로세스 하나가 두 파티션을 모두 엽니다.

# %% [markdown] slot="prove" lang="zh"
# 作业从第 3 轮继续，并正常结束。
#
# ## 安全
#
# 任何人只要能连上服务器的端口，就可以向它发送请求。因此，服务器和客户端之间使用 TLS 1.3（浏览器访问
# `https` 网站时用的也是 TLS）：既验证对方的身份，也加密往来的全部内容。一般的网站只由服务器出示
# **证书**（certificate），这里则是双向认证，双方都要用证书证明自己属于这个作业。`launch` 为每个作业
# 新建一个证书颁发机构（CA），用它签发该作业的证书；拿不出这样的证书和对应的私钥，握手就会失败，连接
# 随即断开。私钥由各台机器上的代理在本机生成，始终不离开本机，也不会出现在 `ps` 能看到的命令行参数
# 中。
#
# 即使消息来自同一作业的其他进程，gnnlab 也会先检查再使用。pickle 在反序列化时可以执行任意代码，所以
# gnnlab 从不用它解析收到的数据：每条消息由简短的消息头和原始字节组成，数据类型、大小以及节点和边的
# ID 都要先通过检查。PyTorch 自己建立的连接则既不验证身份，也不加密：一是训练器之间相互发现时的
# 连接，二是它们之间交换梯度（gradient）等数据的连接。因此，请只在有防火墙保护的可信网络中运行作业。
#
# ## 验证：与单个进程的结果一致
#
# 这个作业在两台机器上运行，中途被强行终止，之后又恢复运行。它得到的参数，与同一个脚本在一个进程中不
# 间断训练得到的参数相同吗？手动启动时，脚本以**独立模式**（standalone mode）运行，一个进程持有两个
# 分区。

# %% slot="prove-code" tags=["nbval-ignore-output"]
needs_unix()
single = scratch / "single"
for part in range(2):
    copy(part, single)
how = {"check": True, "capture_output": True, "text": True, "encoding": "utf8"}
done = subprocess.run([sys.executable, *script.split()[1:]], cwd=single, **how)
print(done.stdout)

found, wanted = (torch.load(f / "model-0.pt") for f in (machines[0], single))
for name, values in wanted.items():
    is_equal = torch.allclose(found[name], values, rtol=0, atol=1e-6)
    assert is_equal, "the single process takes two shares, as num_trainers = 1 gives"
total = sum(map(torch.numel, wanted.values()))
print(f"{total:,} parameters, no difference above 1e-6")

# %% [markdown] slot="cost" lang="en"
# The losses differ because each trainer prints the loss of its own half of the last batch. The
# parameters agree up to rounding: the order of additions differs.
#
# ## What it costs
#
# Each row of the figure is a process of the resumed job, except the last, the single process that
# trained all six epochs.

# %% [markdown] slot="cost" lang="ko"
# 손실이 다른 것은 각 트레이너가 마지막 배치에서 자기가 맡은 절반의 손실을 출력하기 때문입니다.
# 매개변수는 거의 일치하며, 남은 작은 차이는 덧셈의 순서에서 생깁니다.
#
# ## 비용
#
# 로그의 각 줄에는 작업을 시작한 뒤 흐른 시간이 적혀 있습니다. 그림의 마지막 행은 여섯 에폭을 모두
# 혼자 학습한 프로세스이고, 나머지 행은 이어서 실행한 작업의 프로세스입니다.

# %% [markdown] slot="cost" lang="zh"
# 损失有所不同，因为每个训练器打印的是最后一个批次中自己那一半的损失；参数则是一致的，余下的微小差异
# 来自求和的次序。
#
# ## 开销
#
# 日志的每一行都带有时刻。图中前四行是恢复运行的那个作业的各个进程，最后一行是单独运行的进程，它训练
# 了全部六轮。

# %% slot="cost-code" tags=["nbval-ignore-output"]
phases = {"begins": "wait", "modules are loaded": "load modules", "connected": "connect"}
phases |= {"is built": "build the model", "epoch ": "train", "ends": "train"}


def spans(printed):
    found, before = [], 0.0
    for seconds, event in re.findall(r"(?m)^ *(\d+\.\d) s: (.+)", printed):
        label = next(phases[clue] for clue in phases if clue in event)
        found.append((label, float(seconds) - before))
        before = float(seconds)
    return found


spent = {name: spans(log) for name, log in result.logs.items()}
spent["single process"] = spans(done.stdout)
for name in ("single process", "trainer-0"):
    training = sum(seconds for label, seconds in spent[name] if label == "train")
    starting = sum(seconds for _, seconds in spent[name]) - training
    print(f"{name}: {starting:.1f} s to start, {training:.1f} s to train")
assert starting > training, "starting the job should take longer than training"

# %% slot="cost-draw" tags=["nbval-ignore-output", "folded"]
shades = {"wait": GRAY, "load modules": BLUE, "connect": ORANGE, "train": GREEN}
names = ["server-0", "server-1", "trainer-0", "trainer-1", "single process"]
figure, ax = plt.subplots(figsize=(8.6, 2.4), layout="constrained")
for row, name in enumerate(names):
    before = 0.0
    for label, seconds in spent[name]:
        color = shades.get(label, "#9db7da")
        ax.barh(row, seconds, left=before, color=color, label=label)
        before += seconds
    if "server-" in name:  # until the trainers have finished
        style = {"color": "#f3cfb5", "label": "serve"}
        ax.barh(row, result.seconds - before, left=before, **style)
ax.axvline(result.seconds, color="black", lw=0.8)
ax.text(result.seconds, 2.5, "end of the job ", ha="right", va="center")
ax.set(yticks=range(len(names)), yticklabels=names, xlabel="seconds")
ax.invert_yaxis()
legend = dict(zip(*ax.get_legend_handles_labels()[::-1]))
figure.legend(legend.values(), legend, ncols=6, loc="outside upper center")
plt.show()

# %% [markdown] slot="cluster" lang="en"
# Green is training; light orange, answering requests. The rest is a one-time cost: processes load
# modules, wait for each other, and are shut down in turn. For `digits`, starting takes longer than
# training. For long jobs, this is negligible, and a graph too large for one machine leaves no
# choice.
#
# ## On your cluster
#
# On any computer that can `ssh` to the machines, run this after `copy_files`:
#
# ```
# gnnlab doctor --ip_config ip_config.txt --workspace workspace --part_config data/digits.json
# gnnlab launch --ip_config ip_config.txt --workspace workspace --part_config data/digits.json \
#     --num_trainers 2 --num_samplers 1 --num_servers 1 "python3 code/train.py --epochs 6"
# ```
#
# Run `launch` on any computer that has the machines' version of gnnlab and can log in to each over
# ssh without a prompt. It must stay connected until the job ends (`tmux` helps). The machines must
# reach each other at the addresses in `ip_config.txt`, on the servers' ports and those PyTorch
# opens. With a shared file system, `--workspace` is a folder on it.
#
# Often, a **scheduler** such as Slurm decides what runs where. You submit a script: lines with
# `#SBATCH` say what the job needs; Slurm allocates machines, called nodes, and runs the other lines
# on the first. This script closely follows `examples/slurm/train.sbatch`:
#
# ```
# # #!/bin/bash
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
# `launch` uses the allocated nodes as its machines, starts the agents with `srun`, and needs no
# `ip_config.txt`. A run on three nodes, simulated on one busy computer, printed this (the first
# epoch includes compilation):
#
# ```
# $ python examples/partition.py --dataset digits --num_parts 3 --output data
# digits: 3 parts (metis); 1.7% of the edges are cut, 0.11 halo nodes per node; ...
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
# job 9dcbec9461528529 finished after 216.3 s; ...
# ```
#
# Two minutes before the time limit, Slurm sends the signal USR1. `launch` notifies the trainers,
# which save a checkpoint and exit; then `launch` requeues the job. When restarted, it continues;
# its final parameters match those of an uninterrupted run bit for bit.
#
# On a node of a Ray cluster, the same command works with `--on ray`. `gnnlab doctor` checks Slurm
# and Ray nodes alike. For more, see [the page on clusters](../../docs/clusters.md) and [the page on
# DGL's guide](../../docs/from_the_guide.md).

# %% [markdown] slot="cluster" lang="ko"
# 초록색은 학습하는 시간이고, 연한 주황색은 서버가 요청에 응답하는 시간입니다. 나머지는 한 번만 드는
# 비용으로, 프로세스를 시작하여 모듈을 불러오고, 트레이너가 서버를 기다려 모델을 만들고, 끝날 때
# 모든 프로세스를 차례로 종료하는 시간입니다. `digits`에서는 작업을 시작하는 데 걸리는 시간이 학습
# 시간보다 깁니다. 몇 시간 걸리는 작업에서는 문제가 되지 않으며, 머신 한 대에 담을 수 없는
# 그래프라면 다른 방법이 없습니다.
#
# ## 내 클러스터에서 실행하기
#
# 머신에 `ssh`로 직접 로그인할 수 있다면 머신 목록만 있으면 됩니다. `copy_files`를 실행한 다음
# 이렇게 입력합니다.
#
# ```
# gnnlab doctor --ip_config ip_config.txt --workspace workspace --part_config data/digits.json
# gnnlab launch --ip_config ip_config.txt --workspace workspace --part_config data/digits.json \
#     --num_trainers 2 --num_samplers 1 --num_servers 1 "python3 code/train.py --epochs 6"
# ```
#
# `launch`는 모든 머신에 ssh로 접속할 수 있고(로그인 방식과 호스트 키는 앞에서 설명한 대로 설정해
# 둡니다) 같은 버전의 gnnlab이 설치된 컴퓨터라면 어디서든 실행할 수 있습니다. 머신 가운데 하나여도
# 되고 자신의 노트북 컴퓨터여도 됩니다. 작업이 끝날 때까지 연결이 유지되어야 하므로, 원격
# 컴퓨터에서는 `tmux` 안에서 실행하십시오. 머신들은 `ip_config.txt`의 주소로 서로 접속할 수 있어야
# 하며, 서버의 포트와 PyTorch가 여는 다른 포트도 열려 있어야 합니다. 머신들이 파일 시스템을
# 공유한다면 `--workspace`를 그 안의 폴더로 지정합니다.
#
# 대학의 클러스터에서는 대개 **스케줄러**(scheduler)가 어느 작업을 어디에서 실행할지 정합니다. 이런
# 클러스터에서는 머신을 노드라고 부릅니다. Slurm에는 스크립트를 제출합니다. `#SBATCH`로 시작하는
# 줄에 필요한 자원을 적으면 Slurm이 노드를 할당하고, 나머지 줄을 그중 첫 노드에서 실행합니다. 다음은
# `examples/slurm/train.sbatch`와 거의 같은 스크립트입니다.
#
# ```
# # #!/bin/bash
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
# `launch`는 할당된 노드에서 실행되고 있음을 감지하여 그 노드들을 머신으로 쓰고, `srun`으로
# 에이전트를 시작합니다. `ip_config.txt`는 필요 없습니다. 다음은 세 노드에서 실행한 결과입니다. 다른
# 작업도 실행 중이던 컴퓨터 한 대가 세 노드의 역할을 했고, 첫 에폭의 시간에는 컴파일 시간이 포함되어
# 있습니다.
#
# ```
# $ python examples/partition.py --dataset digits --num_parts 3 --output data
# digits: 3 parts (metis); 1.7% of the edges are cut, 0.11 halo nodes per node; ...
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
# job 9dcbec9461528529 finished after 216.3 s; ...
# ```
#
# 제한 시간이 끝나기 2분 전에 Slurm은 USR1 시그널을 보냅니다. `launch`가 이를 트레이너에 알리면
# 트레이너는 체크포인트를 저장하고 종료하며, `launch`는 작업을 다시 대기열에 넣습니다. 다시 시작된
# 작업은 멈춘 곳에서 이어지며, 매개변수는 중단 없이 실행했을 때와 비트 단위까지 똑같습니다.
#
# Ray 클러스터의 노드에서는 같은 명령에 `--on ray`를 붙입니다. 어느 쪽에서든 `gnnlab doctor`로
# 노드를 검사할 수 있습니다. 자세한 내용은 [클러스터 문서](../../docs/clusters.md)(영어)에 있습니다.
# DGL 사용자 가이드의 다른 코드는 [이 표](../../docs/from_the_guide.ko.md)에서 찾아볼 수 있습니다.

# %% [markdown] slot="cluster" lang="zh"
# 图中绿色部分是训练，浅橙色部分是服务器在响应请求，其余都是一次性的开销：每个进程都要加载模块，训练
# 器要等待服务器，最后还要依次结束所有进程。对 `digits` 来说，启动作业的时间比训练的时间还长。对运行
# 几个小时的作业来说，这点时间微不足道；而如果图大到任何一台机器都装不下，就只能在多台机器上训练。
#
# ## 在你的集群上
#
# 如果可以用 `ssh` 直接登录各台机器，有机器列表文件就够了。运行 `copy_files` 之后，输入：
#
# ```
# gnnlab doctor --ip_config ip_config.txt --workspace workspace --part_config data/digits.json
# gnnlab launch --ip_config ip_config.txt --workspace workspace --part_config data/digits.json \
#     --num_trainers 2 --num_samplers 1 --num_servers 1 "python3 code/train.py --epochs 6"
# ```
#
# `launch` 可以在任何一台计算机上运行，只要它能像上文那样通过 ssh 登录所有机器（不用密码，主机密钥已
# 知），并且装有与这些机器相同版本的 gnnlab：可以是其中一台机器，也可以是你的笔记本电脑。作业结束之
# 前必须保持连接，所以在远程计算机上，请在 `tmux` 中运行。各台机器必须能通过 `ip_config.txt` 中的地
# 址互相访问，服务器的端口和 PyTorch 打开的其他端口都要能连通。如果各台机器共享文件系统，就把
# `--workspace` 设为其中的文件夹。
#
# 在大学的集群上，哪个作业在哪里运行通常由**调度器**（scheduler）决定，这类集群把机器称为节点。使用
# Slurm 时要提交一个脚本：以 `#SBATCH` 开头的行写明作业所需的资源；Slurm 分配好节点，在其中第一个节
# 点上执行其余各行。下面的脚本与 `examples/slurm/train.sbatch` 几乎相同：
#
# ```
# # #!/bin/bash
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
# `launch` 检测到自己运行在分配到的节点上，就把这些节点用作各台机器，并通过 `srun` 启动代理，不需要
# `ip_config.txt`。下面是在三个节点上实际运行的输出；三个节点由同一台负载较重的计算机模拟，第一轮的
# 时间包含编译：
#
# ```
# $ python examples/partition.py --dataset digits --num_parts 3 --output data
# digits: 3 parts (metis); 1.7% of the edges are cut, 0.11 halo nodes per node; ...
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
# job 9dcbec9461528529 finished after 216.3 s; ...
# ```
#
# 离时限还有两分钟时，Slurm 会发出信号 USR1。`launch` 通知各个训练器，训练器保存检查点后退出，随后
# `launch` 把作业重新放回队列。作业再次启动后接着运行，就像从未中断过一样，参数的每一个比特都相同。
#
# 在 Ray 集群的节点上，给同一条命令加上 `--on ray` 即可。无论在哪种集群上，都可以用 `gnnlab doctor`
# 检查各个节点。其余内容见[集群文档](../../docs/clusters.md)（英文）；DGL 用户指南中的其他代码对应本
# 课程的哪些位置，可查[这张表](../../docs/from_the_guide.zh.md)。

# %% [markdown] slot="summary" lang="en"
# ## Summary
#
# - Line $i$ of `ip_config.txt`, counted from 0, is machine $i$, which holds part $i$, the JSON file
#   and the script.
# - Agents start servers and trainers together; each trainer starts its samplers, then waits for the
#   servers.
# - The first failure ends the job and is reported; the logs have the rest.
# - Each machine stores its own share of a checkpoint.
# - Starting a job takes seconds to minutes, which pays off only if training takes much longer.
#
# ## Exercises
#
# Replace `None`, run the cell and read the verdict; `lesson.hint(1)` gives a hint for exercise 1.
# After a restart, run the two cells of *Setup*. The
# [solutions](../solutions/09_launching_solution.ipynb) are in a separate notebook.
#
# 1. Write the text of an `ip_config.txt` for 10.0.0.1, whose first server listens on port 31000,
#    and 10.0.0.2, whose ports the launcher chooses.
# 2. A job runs on 4 machines, each with 2 servers and 2 trainers; each trainer has 3 samplers. How
#    many servers, trainers and samplers does the job have? Answer with a list.
# 3. An epoch takes 60 s on one machine and 33 s on two, but starting on two takes 300 s longer.
#    What is the smallest number of epochs for which two machines finish first?
# 4. Write a function of `request` and `rows`: for a request of one or more complete, valid row
#    numbers, it returns our server's reply; for any other, `b""`.
# 5. `complete[i]` lists the numbers of the checkpoints that machine $i$ has. Write a function of
#    `complete` that returns the one to resume from, or −1 if there is none.

# %% [markdown] slot="summary" lang="ko"
# ## 요약
#
# - `ip_config.txt`의 $i$번째 줄(0번째부터)은 머신 $i$이고, 이 머신에는 파티션 $i$, JSON 파일,
#   스크립트가 필요합니다.
# - 에이전트는 서버와 트레이너를 함께 시작합니다. 트레이너는 자기 샘플러를 시작한 다음 서버를
#   기다립니다.
# - 첫 장애가 생기면 작업 전체가 종료되고, 런처가 그 장애를 보고합니다. 자세한 내용은 로그에
#   남습니다.
# - 체크포인트는 모든 머신에 나뉘어 저장됩니다. 머신마다 자기가 맡은 부분을 저장합니다.
# - 작업을 시작하는 데는 몇 초에서 몇 분이 걸리지만 한 번뿐입니다. 학습 시간이 작업을 시작하는 데
#   드는 시간보다 훨씬 길 때만 머신을 여러 대 쓰십시오.
#
# ## 연습 문제
#
# `None`을 답으로 바꾸고 셀을 실행하여 채점 결과를 확인합니다. `lesson.hint(1)`을 실행하면 1번의
# 힌트가 나옵니다. 커널을 다시 시작했다면 ‘준비’의 두 셀만 실행해도 채점할 수 있습니다.
# [풀이](../solutions/ko/09_launching_solution.ipynb)는 레슨과 함께 제공됩니다.
#
# 1. 10.0.0.1의 첫 서버는 31000번 포트를 쓰고, 10.0.0.2의 포트는 정하지 않습니다. 이 두 머신을 적은
#    `ip_config.txt`의 내용을 작성합니다.
# 2. 작업을 머신 4대에서 실행합니다. 머신마다 서버와 트레이너가 2개씩 있고, 트레이너마다 샘플러가
#    3개씩 있습니다. 서버, 트레이너, 샘플러는 작업 전체에 각각 몇 개입니까? 리스트로 답합니다.
# 3. 한 에폭이 머신 한 대에서는 60초, 두 대에서는 33초 걸립니다. 다만 두 대에서는 시작하는 데
#    300초가 더 걸립니다. 몇 에폭 이상 학습하면 두 대로 실행하는 쪽이 먼저 끝납니까?
# 4. `request`와 `rows`를 받아 앞에서 만든 서버와 같은 응답을 반환하는 함수를 작성합니다. 요청이
#    비어 있거나, 행 번호로 읽을 수 없거나, 없는 행의 번호가 하나라도 있으면 `b""`를 반환합니다.
# 5. `complete[i]`는 머신 $i$에 있는 체크포인트 번호의 리스트입니다. `complete`를 받아, 어느
#    체크포인트부터 이어서 실행해야 하는지 그 번호를 반환하는 함수를 작성합니다. 그런 체크포인트가
#    없으면 −1을 반환합니다.

# %% [markdown] slot="summary" lang="zh"
# ## 小结
#
# - `ip_config.txt` 的第 $i$ 行（从 0 数起）是机器 $i$，它持有分区 $i$、JSON 文件和脚本。
# - 代理同时启动服务器和训练器；训练器先启动自己的采样器进程，再等待服务器。
# - 一出现故障，整个作业就结束，启动器报告最先出现的故障；其余信息在日志里。
# - 检查点分布在所有机器上，每台机器保存属于自己的部分。
# - 启动作业要花几秒到几分钟，但只花一次：只有训练时间远长于启动时间的作业才值得这样启动。
#
# ## 练习
#
# 把 `None` 换成你的答案，运行单元格，查看评判结果；`lesson.hint(1)` 给出第 1 题的提示。重启内核之
# 后，只需运行“准备”中的两个单元格就能评判。
# [解答](../solutions/zh/09_launching_solution.ipynb)随本课提供。
#
# 1. 写出一个 `ip_config.txt` 的内容，其中有两台机器：10.0.0.1 的第一个服务器进程使用端口 31000，
#    10.0.0.2 的端口由启动器选择。
# 2. 一个作业运行在 4 台机器上，每台有 2 个服务器进程和 2 个训练器，每个训练器有 3 个采样器进程。整
#    个作业中，服务器进程、训练器和采样器进程各有多少个？用列表作答。
# 3. 一轮在一台机器上需要 60 秒，在两台机器上需要 33 秒，但两台机器的启动要多花 300 秒。至少要训练多
#    少轮，用两台机器才会比用一台先完成？
# 4. 写一个以 `request` 和 `rows` 为参数的函数，返回与前面的服务器相同的响应；如果请求为空，或者不是
#    由若干个完整、有效的行号组成，就返回 `b""`。
# 5. `complete[i]` 是一个列表，包含机器 $i$ 上的检查点的编号。写一个以 `complete` 为参数的函数，返回
#    恢复运行时应当读取的检查点的编号；如果没有这样的检查点，返回 −1。

# %% slot="answers"
answer_1 = None  # a string
answer_2 = None  # a list of three numbers
answer_3 = None  # a number
answer_4 = None  # a function of request and rows
answer_5 = None  # a function of complete
lesson.check(1, answer_1)
lesson.check(2, answer_2)
lesson.check(3, answer_3)
lesson.check(4, answer_4)
lesson.check(5, answer_5)
