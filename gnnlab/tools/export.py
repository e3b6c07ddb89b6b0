"""Copy a helper, a single file that depends only on torch, into a project of your own.

    gnnlab export --list
    gnnlab export block_sampler my_project
    gnnlab export --check my_project

The copy is yours: change it. --check says which copies below a folder you have changed, and of
which this gnnlab has a newer version. Copying again updates an unchanged copy; a changed one is
overwritten only with --force. dist_graph_simulator comes with block_sampler.py, which it imports.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gnnlab import helpers
from gnnlab.errors import GNNLabError, InvalidInput, NotFound
from gnnlab.system.command import command, command_parser

_FOLDER = Path(helpers.__file__).parent
HELPERS = sorted(path.stem for path in _FOLDER.glob("[!_]*.py"))
_NEEDS = {"dist_graph_simulator": ["block_sampler"]}
# The first lines of a helper and of its copies. The checksum is of the file without them.
_HEAD = re.compile(
    r"\A\"\"\".*\n\nOrigin:  gnnlab/helpers/(?P<name>\w+)\.py\n"
    r"Version: gnnlab (?P<version>[\w.]+)(?P<stamp>, checksum (?P<checksum>\w+))?\n"
)


class Copy(NamedTuple):
    """A file that is a copy of a helper or has the name of one."""

    path: Path
    name: str  # of the helper
    version: str  # of gnnlab, from which it was copied; "" if the file does not state it
    is_changed: bool  # False only if it is known to be unchanged since it was copied
    is_newest: bool  # whether this gnnlab has no newer version


def export(name: str, folder: str | os.PathLike[str] = ".", force: bool = False) -> list[Copy]:
    """Copy a helper, and the file that it imports, into a folder, which is made if missing.

    The name is that of a file of :mod:`gnnlab.helpers`, without ".py". Returns the copies now in
    the folder; those with ``is_changed`` were not overwritten, as ``force`` would have done.

    Examples
    --------
    >>> import tempfile
    >>> from gnnlab.tools.export import export
    >>> copies = export("dist_graph_simulator", tempfile.mkdtemp())
    >>> [copy.path.name for copy in copies]
    ['dist_graph_simulator.py', 'block_sampler.py']
    """
    if name not in HELPERS:
        raise NotFound(
            f"no helper {name!r}; there are {', '.join(HELPERS)}. Other parts of gnnlab cannot be "
            "copied: import them from gnnlab (pip install gnnlab)"
        )
    folder = Path(folder)
    for path in (folder, *folder.absolute().parents):
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"{path} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    copies = []
    for each in (name, *_NEEDS.get(name, [])):
        path = folder / f"{each}.py"
        if force or not path.exists() or not _read(path, each).is_changed:
            path.write_text(_stamped(each), encoding="utf8", newline="\n")
        copies.append(_read(path, each))
    return copies


def check(folder: str | os.PathLike[str] = ".") -> list[Copy]:
    """Compare the copies of helpers below a folder, under any file names, with this gnnlab.

    Folders whose names begin with a dot, and environments of packages, are left out.
    """
    files = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "." and name != "site-packages"]
        files += [Path(place, name) for name in names if name.endswith(".py")]
    found = [copy for copy in map(_read, sorted(files)) if copy.version]
    if not found:
        raise NotFound(f"{folder} has no copy of a helper; gnnlab export NAME {folder} makes one")
    return found


def _text(name: str) -> str:
    return (_FOLDER / f"{name}.py").read_text("utf8")


def _version(name: str) -> str:
    head = _HEAD.match(_text(name))
    if head is None:
        raise GNNLabError(f"{_FOLDER / name}.py has lost its origin; install gnnlab again")
    return head["version"]


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _stamped(name: str) -> str:
    line = f"Version: gnnlab {_version(name)}"
    return _text(name).replace(line, f"{line}, checksum {_checksum(_text(name))}", 1)


def _read(path: Path, name: str = "") -> Copy:
    """Read helper and version from a file; ``name`` is the helper expected."""
    text = path.read_text("utf-8-sig", errors="replace")
    head = _HEAD.match(text)
    if head is None or head["name"] not in HELPERS or name not in ("", head["name"]):
        return Copy(path, name, "", True, True)
    name = head["name"]
    if head["stamp"]:
        text = text.replace(head["stamp"], "", 1)
        is_changed = _checksum(text) != head["checksum"]
        is_newest = head["checksum"] == _checksum(_text(name))
    else:  # no checksum: whether a copy of an older version was changed is unknown
        is_changed = text != _text(name)
        is_newest = head["version"] == _version(name)
    is_newest |= _numbers(head["version"]) > _numbers(_version(name))
    return Copy(path, name, head["version"], is_changed, is_newest)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


# --------------------------------------------------------------------------- the command line
@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status.

    It is 1 after an error, if a changed copy was not overwritten, or ``--check`` found an old one.
    """
    parser = command_parser("export", __doc__, 2)
    parser.add_argument("name", nargs="?", metavar="NAME", help="a helper of --list")
    parser.add_argument("folder", nargs="?", metavar="DEST", help="folder of the copy (.)")
    parser.add_argument("--list", action="store_true", help="show the helpers")
    parser.add_argument("--check", metavar="DEST", help="compare the copies below a folder")
    parser.add_argument("--force", action="store_true", help="overwrite a copy that you changed")
    given = parser.parse_args(argv)
    if bool(given.name) + given.list + (given.check is not None) != 1:
        parser.error("write a NAME, --list or --check DEST")
    if given.list:
        print("\n".join(map(_described, HELPERS)))
        return 0
    if given.check is not None:
        copies = check(given.check)
        print("\n".join(map(_compared, copies)))
        return int(not all(copy.is_newest for copy in copies))
    copies = export(given.name, given.folder or ".", given.force)
    for copy in copies:
        kept = "was changed, left alone (--force overwrites it)"
        print(f"{copy.path}: {kept if copy.is_changed else f'gnnlab {copy.version}'}")
    return int(any(copy.is_changed for copy in copies))


def _described(name: str) -> str:
    doc = ast.get_docstring(ast.parse(_text(name))) or ""
    purpose = doc.partition("\n")[0].rstrip(".")
    files = [name, *_NEEDS.get(name, [])]
    lines = " + ".join(str(_text(each).count("\n")) for each in files)
    beside = "".join(f"; with {each}.py" for each in files[1:])
    return f"{name:21}{lines + ' lines':17}{purpose}{beside}"


def _compared(copy: Copy) -> str:
    text = f"{copy.path}: gnnlab {copy.version}{', changed since' * copy.is_changed}"
    if copy.is_newest:
        return f"{text}; there is no newer version"
    todo = f"gnnlab export {copy.name} {copy.path.parent}"
    if copy.is_changed:
        todo = f"compare with {_FOLDER / copy.name}.py"
    return f"{text}; gnnlab {_version(copy.name)} has a newer version: {todo}"


if __name__ == "__main__":
    sys.exit(main())
