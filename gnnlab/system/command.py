"""What the commands of ``gnnlab`` have in common: options, help, and how they end."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from gnnlab.errors import GNNLabError
from gnnlab.system import interrupt


class _Parser(argparse.ArgumentParser):
    """Accepts options with ``-`` and with ``_`` between their words; help shows one spelling."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        self._names: list[str] = []
        super().__init__(*args, **settings)

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        action = super().add_argument(*names, **settings)
        self._names += action.option_strings
        return action

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        end = words.index("--") if "--" in words else len(words)
        return super().parse_known_args([*map(self._spell, words[:end]), *words[end:]], namespace)

    def _spell(self, word: str) -> str:
        """Return an option, whole or abbreviated, in the spelling in which it was added."""
        name = word.partition("=")[0].replace("_", "-") if word.startswith("--") else word
        for known in self._names:
            if name.startswith("--") and known.replace("_", "-").startswith(name):
                return known[: len(name)] + word[len(name) :]
        return word


def command_parser(
    name: str, doc: str | None, paragraphs: int = 1, allow_abbrev: bool = True
) -> argparse.ArgumentParser:
    """Return the parser of a command; its help is the beginning of the module's docstring.

    That is a summary, an example, and optionally one more paragraph.
    """
    summary, example, *more = (doc or "").split("\n\n")
    return _Parser(
        f"gnnlab {name}",
        description="\n\n".join([summary, *more[: paragraphs - 1]]),
        epilog=f"example:\n{example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=allow_abbrev,
    )


def add_ssh_options(parser: argparse.ArgumentParser) -> None:
    """Add the options by which a user says how to log in to the hosts."""
    mine = "(that of your ssh configuration)"
    parser.add_argument("--ssh_port", type=int, help=f"port of sshd {mine}")
    parser.add_argument("--ssh_username", help=f"user on the hosts {mine}")


def locale_language(known: Sequence[str]) -> str:
    """Return the language of the locale if it is one of the known ones, otherwise "en"."""
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    language = next(filter(None, names), "en")[:2].lower()
    return language if language in known else "en"


def command(main: Callable[[Sequence[str] | None], int]) -> Callable[..., int]:
    """Decorate the function of a command: an error or Ctrl-C ends it with one line.

    The exit status is 1 after a GNNLabError or OSError, and 130 after Ctrl-C.
    """
    name = main.__module__.rpartition(".")[2]
    if name == "__main__":
        name = os.path.splitext(os.path.basename(sys.argv[0]))[0]

    @functools.wraps(main)
    def run(argv: Sequence[str] | None = None) -> int:
        try:
            with interrupt.as_exception():
                return main(argv)
        except (GNNLabError, OSError) as error:
            print(f"gnnlab {name}: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print(f"gnnlab {name}: interrupted", file=sys.stderr, flush=True)
            if interrupt.is_command:
                os._exit(interrupt.STATUS)  # without waiting for threads
            return interrupt.STATUS

    return run
