"""A process that has imported torch, and forks another for each script that a test runs.

Forking takes milliseconds, where a fresh interpreter imports torch and numba for three seconds.
gnnlab itself is not imported here: to it, the forked process is a fresh one. At its end, it waits
for threads, calls what is registered with ``atexit``, and exits. Finalizing the interpreter, which
deletes all modules, would take a second more; it is done where ``FINALIZE`` is in the environment.

The two ends talk over a Unix socket. A request is a message in JSON with the files for stdout and
stderr; the answers are ``[number, pid]`` when the process runs and ``[number, pid, status]`` when
it has ended. A kernel of a lesson has a socket of its own: ranks that it starts with
``launch_processes`` are forked here as well.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import multiprocessing.process
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

# What scripts import sooner or later; torch itself imports some of them at their first use.
MODULES = (
    "cloudpickle",
    "cryptography.x509",
    "numba",
    "numpy.random",
    "psutil",
    "torch",
    "torch._dynamo",
    "torch.distributed",
    "torch.multiprocessing",
    "torch.nn.parallel",
    "torch.optim",
    "torch.utils.data",
)
TOKEN = "GNNLAB_TEST_TOKEN"
PLUG = "GNNLAB_TEST_PLUG"  # where it is set, a script and its ranks have the pretend device
FINALIZE = "GNNLAB_TEST_FINALIZE"
IS_POSSIBLE = Path("/proc/self/stat").exists()
START = 120  # seconds for the imports, on a busy computer
# Read when an interpreter or a library starts: with another value, that must be a fresh one.
EARLY = ("LD_", "MKL_", "NUMBA_", "PYTHON", "TORCH_")
RANK = "from gnnlab.parallel.rank import main; main()"  # how the code of a fresh rank ends


# ------------------------------------------------------------------------------- who asks
class Nursery:
    """The end of the tests, or of a kernel whose ``line`` is given.

    The process ends with the test that started it.
    """

    def __init__(self, line: socket.socket | None = None) -> None:
        self._lock = threading.RLock()
        self._children: list[Child] = []
        if line:
            self._line = line
            return
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = {**os.environ, "OMP_NUM_THREADS": "1", TOKEN: "0" * 32, "PYTHONUNBUFFERED": "1"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__], stdin=theirs, env=env, start_new_session=True
            )

    def start(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        out: int,
        err: int,
        cwd: str | None = None,
        modules: Sequence[str] = (),
        stdin: int | None = None,
        keep: Sequence[int] = (),
        starts_ranks: bool = False,
    ) -> Child:
        """Run a script; ``words`` are its path, or ``-c`` and code, and its arguments.

        ``modules`` are imported before, with the variables in ``env``, and stay for later scripts.
        ``out``, ``err`` and ``stdin`` are descriptors, and those of ``keep`` are inherited.
        """
        with self._lock:
            child = Child(self, words)
            request = {"number": len(self._children), "argv": [*words], "env": {**env}}
            request |= {"cwd": cwd or os.getcwd(), "modules": [*modules]}
            request |= {"files": [*([] if stdin is None else [0]), 1, 2, *keep]}
            request |= {"starts_ranks": starts_ranks or PLUG in env}
            self._children.append(child)
            text = json.dumps(request).encode()
            files = [*([] if stdin is None else [stdin]), out, err, *keep]
            socket.send_fds(self._line, [text], files)
            deadline = time.monotonic() + START
            while not child.pid:
                self.hear(max(0.0, deadline - time.monotonic()))
                if not child.pid and time.monotonic() > deadline:
                    raise RuntimeError(f"the nursery started nothing within {START} s")
            return child

    def hear(self, seconds: float) -> None:
        """Take in what has been said; wait for some seconds if that is nothing."""
        with self._lock:
            while True:
                self._line.settimeout(seconds)
                try:
                    said = self._line.recv(1000)
                except (TimeoutError, BlockingIOError):
                    return
                if not said:
                    raise RuntimeError("the nursery has ended")
                number, pid, *status = json.loads(said)
                self._children[number].pid = pid
                if status:
                    self._children[number].returncode = status[0]
                seconds = 0.0


class Child:
    """A process that runs a script, with what ``subprocess.Popen`` has."""

    def __init__(self, nursery: Nursery, words: Sequence[str]) -> None:
        self._nursery, self.args = nursery, words
        self.pid = 0
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self._nursery.hear(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (1e9 if timeout is None else timeout)
        while (status := self.poll()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired([*self.args], timeout or 0.0)
            self._nursery.hear(min(left, 1.0))
        return status

    def await_group(self) -> None:
        """Wait until the process has a group of its own, to which signals are sent."""
        deadline = time.monotonic() + 60
        while self.poll() is None and os.getpgid(self.pid) != self.pid:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired([*self.args], 60)
            time.sleep(0.001)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


# ------------------------------------------------------------------------------ who forks
def serve(line: socket.socket) -> dict[str, Any] | None:
    """Fork on request; return the request in the forked process, None when nobody asks any more."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, tuple[Any, int]] = {}
    asking = selectors.DefaultSelector()
    asking.register(line, selectors.EVENT_READ)
    asking.register(heard, selectors.EVENT_READ)
    while True:
        for key, _ in asking.select():
            if key.fd == heard:
                os.read(heard, 1000)
                for pid in list(running):
                    ended, status = os.waitpid(pid, os.WNOHANG)
                    if ended:
                        whose, number = running.pop(pid)
                        _say(whose, number, pid, os.waitstatus_to_exitcode(status))
                continue
            whose = cast(socket.socket, key.fileobj)
            text, files, _, _ = socket.recv_fds(whose, 1 << 20, 100)
            if not text and whose is line:
                return None
            if not text:  # a kernel has ended
                asking.unregister(whose)
                whose.close()
                continue
            request = json.loads(text)
            if missing := [name for name in request["modules"] if name not in sys.modules]:
                os.environ.update(request["env"])
                load(missing)
            ours, theirs = None, None
            if request["starts_ranks"]:
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                sockets: list[Any] = [each.fileobj for each in asking.get_map().values()]
                sockets.remove(heard)
                for other in (heard, told, *(each.detach() for each in [*sockets, ours] if each)):
                    os.close(other)
                asking.close()
                _settle(request, files)
                if theirs:
                    _fork_ranks(theirs)
                return request
            for file in files:
                os.close(file)
            if ours and theirs:
                theirs.close()
                asking.register(ours, selectors.EVENT_READ)
            running[pid] = whose, request["number"]
            _say(whose, request["number"], pid)


def load(modules: Sequence[str]) -> None:
    """Import modules whose objects the garbage collector of a forked process leaves alone.

    It would copy their pages when it looks at them.
    """
    gc.disable()
    for name in modules:
        importlib.import_module(name)
    gc.freeze()
    gc.enable()


def _say(line: socket.socket, *numbers: int) -> None:
    with suppress(OSError):  # who asked has ended
        line.sendall(json.dumps(numbers).encode())


def _settle(request: dict[str, Any], files: list[int]) -> None:
    """Make the forked process look like one that was started for the script."""
    os.setsid()
    numbers = request["files"]
    free = max(*numbers, *files) + 1
    files = [_moved(file, free) for file in files]
    if 0 not in numbers:
        numbers, files = [0, *numbers], [os.open(os.devnull, os.O_RDONLY), *files]
    for number, file in zip(numbers, files, strict=True):
        os.dup2(file, number)
        os.close(file)
    env, torch = request["env"], sys.modules["torch"]
    _show_token(env.get(TOKEN, ""))
    os.environ.clear()
    os.environ.update(env)
    os.chdir(request["cwd"])
    torch.set_num_threads(int(env.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    # Names of semaphores begin with it: one that is left can be told from those of other tests.
    multiprocessing.process.current_process()._config["semprefix"] = f"/mp{env.get(TOKEN, '')}"
    torch.default_generator.seed()
    random.seed()
    sys.modules["numpy"].random.seed()
    sys.argv = request["argv"]
    if sys.argv[0] == "-c":
        sys.path[0] = ""
        return
    folders = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    own = str(Path(sys.argv[0]).resolve().parent)
    # That of a module that is installed is there already, as with ``python -m``.
    sys.path[:1] = [*([] if own in sys.path[1:] else [own]), *folders]


def _moved(file: int, least: int) -> int:
    """Give a file another descriptor, which is ``least`` or more."""
    other = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, least)
    os.close(file)
    return other


def _fork_ranks(line: socket.socket) -> None:
    """From now on, ranks that ``launch_processes`` starts in this process come from the nursery."""
    nursery, before = Nursery(line), dict(os.environ)

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __new__(cls, args: Any, *rest: Any, **options: Any) -> Any:
            is_rank = isinstance(args, list) and args[:4] == [sys.executable, "-X", "utf8", "-c"]
            if not is_rank or not args[4].endswith(RANK):
                return super().__new__(cls)
            env = options["env"]
            early = {name for name in {*env, *before} if name.startswith(EARLY)}
            if any(env.get(name) != before.get(name) for name in early):
                return super().__new__(cls)
            ends = [options[name] for name in ("stdout", "stderr")]
            rank = nursery.start(
                args[3:], env, *ends, stdin=options["stdin"], keep=options["pass_fds"]
            )
            rank.await_group()
            return rank

    subprocess.Popen = Popen  # type: ignore[misc]


def _show_token(token: str) -> None:
    """Write the token where the system looks when it is asked for the environment of a process."""
    numbers = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(numbers[47]), int(numbers[48])
    place = ctypes.string_at(start, end - start).index(f"{TOKEN}=".encode()) + len(TOKEN) + 1
    ctypes.memmove(start + place, token.encode(), len(token))


def run(path: str) -> None:
    """Run the script, or the code, as the interpreter runs one, and end the process."""
    if PLUG in os.environ:
        sys.path.append(str(Path(__file__).parents[1]))
        importlib.import_module("tests.accelerator").plugged().__enter__()
    main: Any = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    if path == "-c":
        code = compile(sys.argv.pop(1), "<string>", "exec")
    else:
        main.__file__ = path
        code = compile(Path(path).read_bytes(), path, "exec")
    if FINALIZE in os.environ:
        exec(code, main.__dict__)
        return
    status = 0
    try:
        exec(code, main.__dict__)
    except SystemExit as error:
        status = _status(error.code)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
        status = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    ends: Any = (threading._shutdown, atexit._run_exitfuncs)  # type: ignore[attr-defined]
    for end in (*ends, sys.stdout.flush, sys.stderr.flush):
        try:
            end()
        except BaseException:  # as the interpreter: it tells, and goes on
            traceback.print_exc()
    if status < 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def _status(code: object) -> int:
    """Return the exit status for the argument of ``sys.exit``."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    this = sys.modules["__main__"]  # stays when another takes its name
    load(MODULES)
    os.fsync = lambda file: None  # type: ignore[assignment]  # as in conftest.py
    # The first function that numba compiles, or finds compiled, imports the rest of it.
    sys.modules["numba"].njit("int64(int64)")(lambda x: x)
    gc.freeze()
    if asked := serve(socket.socket(fileno=os.dup(0))):
        run(asked["argv"][0])
