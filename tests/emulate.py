"""Run a command as on another system: hide what that system lacks from gnnlab and from scripts.

    python -m tests.emulate windows -- python -m gnnlab --help
    python -m tests.emulate windows -- jupyter execute notebooks/en/01_node_classification.ipynb
    python -m tests.emulate macos -- python train.py
    python -m tests.emulate linux-arm -- python train.py

All interpreters that the command starts take part. Hidden are modules (fcntl), functions (os.fork),
arguments (pass_fds of subprocess) and packages without a wheel (pymetis), as far as modules of
gnnlab, scripts and notebooks import them; the standard library and other packages keep what they
run on. Paths, the file system and sys.platform stay those of this computer.
"""

from __future__ import annotations

import builtins
import importlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

_SWITCH = "GNNLAB_TEST_EMULATE"
_LINUX_ONLY = ("memfd_create", "sched_getaffinity", "sched_setaffinity", "pidfd_open")
_UNIX_ONLY = (
    *("fork", "forkpty", "register_at_fork", "setsid", "getpgid", "setpgid", "killpg", "getuid"),
    *("geteuid", "getgid", "mkfifo", "posix_fallocate", "pread", "pwrite", "uname", "statvfs"),
    *("waitstatus_to_exitcode", "WIFSTOPPED", "WUNTRACED", "sysconf", "getloadavg", "O_NOFOLLOW"),
)
# Packages that gnnlab uses and the index has no wheel of; tests/test_pins.py asks the index.
NO_WHEELS: dict[str, tuple[str, ...]] = {
    "linux-arm": ("pymetis",),
    "macos": (),
    "windows": ("pymetis",),
}
# What is hidden, by module; None hides the module.
LACKING: dict[str, dict[str, tuple[str, ...] | None]] = {
    "linux-arm": {},
    "macos": {"os": (*_LINUX_ONLY, "posix_fallocate")},
    "windows": {
        "os": (*_LINUX_ONLY, *_UNIX_ONLY),
        "signal": ("SIGKILL", "SIGHUP", "SIGCHLD", "SIGALRM", "SIGUSR1", "alarm", "pthread_kill"),
        "select": ("poll", "epoll"),
        "socket": ("AF_UNIX", "send_fds", "recv_fds"),
        **dict.fromkeys(("fcntl", "resource", "pwd", "grp", "termios", "pty"), None),
    },
}
for _system, _packages in NO_WHEELS.items():
    LACKING[_system] |= dict.fromkeys(_packages)


class _Without(ModuleType):
    """A module as the other system has it."""

    def __init__(self, module: ModuleType, hidden: tuple[str, ...], **other: Any) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(_module=module, _hidden=hidden, **other)

    def __getattr__(self, name: str) -> Any:
        if name in self._hidden:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} (emulated)")
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # Where it is unpickled, it is imported: there as that process has it.
        return eval, (f"__import__({self.__name__!r}, {{'__name__': '__main__'}})",)

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._module) if name not in self._hidden]


class _Popen(subprocess.Popen):
    """Inherits nothing but the standard streams."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        if options.get("pass_fds"):
            raise ValueError("pass_fds not supported on Windows (emulated)")
        if options.get("preexec_fn"):
            raise ValueError("preexec_fn is not supported on Windows platforms (emulated)")
        super().__init__(*arguments, **options)


def install(system: str) -> None:
    """Hide in this interpreter what ``system`` lacks."""
    lacking, real_import = LACKING[system], builtins.__import__
    proxies = {
        name: _Without(importlib.import_module(name), hidden)
        for name, hidden in lacking.items()
        if hidden is not None
    }
    if system == "windows":
        proxies["subprocess"] = _Without(subprocess, (), Popen=_Popen)
        multiprocessing.set_start_method("spawn")
        for name in ("fork", "forkserver"):
            del multiprocessing.context._concrete_contexts[name]  # type: ignore[attr-defined]

    def look_up(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        asking = str((globals or {}).get("__name__", ""))
        if level or asking.partition(".")[0] not in ("gnnlab", "__main__"):
            return real_import(name, globals, locals, fromlist, level)
        if name in lacking and lacking[name] is None:
            raise ModuleNotFoundError(f"No module named {name!r} (emulated)", name=name)
        if name in proxies:
            for each in fromlist or ():
                getattr(proxies[name], each, None) or _refuse(name, each, proxies[name])
            return proxies[name]
        module = real_import(name, globals, locals, fromlist, level)
        if system == "windows" and name == "torch.multiprocessing":
            sys.modules[name].set_sharing_strategy("file_system")  # the only one there
        return module

    builtins.__import__ = look_up


def _refuse(module: str, name: str, proxy: _Without) -> None:
    if name in proxy._hidden:
        raise ImportError(f"cannot import name {name!r} from {module!r} (emulated)")


def environment(system: str, folder: Path) -> dict[str, str]:
    """Return an environment whose interpreters emulate ``system``; ``folder`` has to stay."""
    (folder / "sitecustomize.py").write_text(
        "import os, importlib.util as u\n"
        f"spec = u.spec_from_file_location('gnnlab_test_emulate', {str(Path(__file__))!r})\n"
        "module = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        f"module.install(os.environ[{_SWITCH!r}])\n"
    )
    path = filter(None, [str(folder), os.environ.get("PYTHONPATH")])
    return {**os.environ, _SWITCH: system, "PYTHONPATH": os.pathsep.join(path)}


def main(words: list[str]) -> int:
    """Run the command line; return the command's exit status."""
    if len(words) < 3 or words[0] not in LACKING or words[1] != "--":
        print(f"usage: python -m tests.emulate {{{','.join(LACKING)}}} -- COMMAND", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="gnnlab-emulate-") as folder:
        return subprocess.run(words[2:], env=environment(words[0], Path(folder))).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
