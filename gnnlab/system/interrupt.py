"""Ctrl-C in the command ``gnnlab``: one line instead of a traceback, also while torch is loading.

The signal handler is installed only if this process is the command, ``gnnlab …`` or
``python -m gnnlab…``. A program that imports gnnlab keeps its own handler.

``gnnlab/__init__.py`` imports this module first, and it imports only what Python has loaded
already: until the handler is installed, Ctrl-C gives a traceback.
"""

# The module signal takes longer to load than everything else here.
import _signal as signal  # type: ignore[import-not-found]
import os
import sys

STATUS = 128 + signal.SIGINT


def _is_command() -> bool:
    name = getattr(sys, "argv", [""])[:1]
    if name == ["-m"]:  # Python is loading the packages above the module that it will run
        argv = iter(sys.orig_argv[1:])
        option = next((word for word in argv if word.startswith("-") and word.endswith("m")), "")
        return bool(option) and next(argv, "").partition(".")[0] == "gnnlab"
    return bool(name) and os.path.basename(name[0]) == "gnnlab"


def _stop(*_: object) -> None:
    # Some of the modules that are being imported would catch an exception.
    os.write(2, b"gnnlab: interrupted\n")
    os._exit(STATUS)


def _install() -> bool:
    # Not if SIGINT is ignored.
    if not _is_command() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    try:
        signal.signal(signal.SIGINT, _stop)
    except ValueError:  # not in the main thread
        return False
    return True


#: Whether this process is the command.
is_command = _install()


class as_exception:
    """Let Ctrl-C raise KeyboardInterrupt, for code that must clean up."""

    def __enter__(self) -> None:
        if is_command:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *_: object) -> None:
        if is_command:
            signal.signal(signal.SIGINT, _stop)
