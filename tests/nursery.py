"""A process that has imported torch, and forks another for each script that a test runs.

Forking takes milliseconds, where a fresh interpreter imports torch and numba for three seconds.
gnnlab itself is not imported here: to it, the forked process is a fresh one. At its end, it waits
for threads, calls what is registered with ``atexit``, and exits. Finalizing the interpreter, which
deletes all modules, would take a second more; it is done where ``FINALIZE`` is in the environment.

The two ends talk over a Unix socket. A request is a message in JSON with the files for stdout and
stderr; the answers are ``[number, pid]`` when the process runs and ``[number, pid, status]`` when
it has ended.
"""

from __future__ import annotations

import atexit
import ctypes
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
from pathlib import Path
from typing import IO, Any

# What scripts import sooner or later; torch itself imports some of them at their first use.
MODULES = (
    "cloudpickle",
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
    "zmq",
)
TOKEN = "GNNLAB_TEST_TOKEN"
FINALIZE = "GNNLAB_TEST_FINALIZE"
IS_POSSIBLE = Path("/proc/self/stat").exists()
START = 120  # seconds for the imports, on a busy computer


# ------------------------------------------------------------------------------- who asks
class Nursery:
    """The end of the tests. The process ends with the one that started it."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.RLock()
        self._children: list[Child] = []
        env = {**os.environ, "OMP_NUM_THREADS": "1", TOKEN: "0" * 32, "PYTHONUNBUFFERED": "1"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__], stdin=theirs, env=env, start_new_session=True
            )

    def start(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        out: IO[bytes],
        err: IO[bytes],
        cwd: str | None = None,
        modules: Sequence[str] = (),
    ) -> Child:
        """Run a script; ``words`` are its path and its arguments.

        ``modules`` are imported before, with the variables in ``env``, and stay for later scripts.
        """
        with self._lock:
            child = Child(self, words)
            request = {"number": len(self._children), "argv": [*words], "env": {**env}}
            request |= {"cwd": cwd or os.getcwd(), "modules": [*modules]}
            self._children.append(child)
            text = json.dumps(request).encode()
            socket.send_fds(self._line, [text], [out.fileno(), err.fileno()])
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
                    raise RuntimeError(f"the nursery has ended: {self._process.wait()}")
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
    running: dict[int, int] = {}
    both = selectors.DefaultSelector()
    both.register(line, selectors.EVENT_READ)
    both.register(heard, selectors.EVENT_READ)
    while True:
        for key, _ in both.select():
            if key.fd == heard:
                os.read(heard, 1000)
                for pid in list(running):
                    ended, status = os.waitpid(pid, os.WNOHANG)
                    if ended:
                        _say(line, running.pop(pid), pid, os.waitstatus_to_exitcode(status))
                continue
            text, files, _, _ = socket.recv_fds(line, 1 << 20, 2)
            if not text:
                return None
            request = json.loads(text)
            if missing := [name for name in request.get("modules", ()) if name not in sys.modules]:
                os.environ.update(request["env"])
                load(missing)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                both.close()
                for file in (heard, told, line.detach()):
                    os.close(file)
                _settle(request, files)
                return request
            for file in files:
                os.close(file)
            running[pid] = request["number"]
            _say(line, request["number"], pid)


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
    line.sendall(json.dumps(numbers).encode())


def _settle(request: dict[str, Any], files: list[int]) -> None:
    """Make the forked process look like one that was started for the script."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate([null, *files]):
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
    folders = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    own = str(Path(sys.argv[0]).resolve().parent)
    # That of a module that is installed is there already, as with ``python -m``.
    sys.path[:1] = [*([] if own in sys.path[1:] else [own]), *folders]


def _show_token(token: str) -> None:
    """Write the token where the system looks when it is asked for the environment of a process."""
    numbers = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(numbers[47]), int(numbers[48])
    place = ctypes.string_at(start, end - start).index(f"{TOKEN}=".encode()) + len(TOKEN) + 1
    ctypes.memmove(start + place, token.encode(), len(token))


def run(path: str) -> None:
    """Run the script as the interpreter runs one, and end the process."""
    main: Any = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = path, __builtins__
    sys.modules["__main__"] = main
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
    # The first function that numba compiles, or finds compiled, imports the rest of it.
    sys.modules["numba"].njit("int64(int64)")(lambda x: x)
    gc.freeze()
    if asked := serve(socket.socket(fileno=os.dup(0))):
        run(asked["argv"][0])
