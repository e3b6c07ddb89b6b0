"""Copy a helper of gnnlab, and what it needs, into a project of your own.

    gnnlab export --list
    gnnlab export sampler project/fast
    gnnlab export fork my.project --package fast
    gnnlab export --update project/fast

The copy is a package of plain files without gnnlab. It is yours: change it. A folder whose name no
package can have, or in which you work, gets the package as a folder inside, by default from_gnnlab.
A file that you changed is never overwritten unless you say ``--force``; ``--update`` shows what you
changed, and what has changed in gnnlab since.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import json
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import NamedTuple

from gnnlab.errors import GNNLabError, InvalidInput, NotFound
from gnnlab.tools.cli import command, command_parser
from gnnlab.tools.closure import Files, collect, module_name, modules
from gnnlab.tools.helpers import HELPERS, Helper
from gnnlab.tools.probe import versions

__all__ = ["Change", "export", "main"]

PACKAGE = "from_gnnlab"  # name of a package whose folder's name would not do
MEMORY = ".gnnlab-export"  # what was exported last, to know what you changed
MOST_LINES = 6000


class Change(NamedTuple):
    """What is to become of one file."""

    path: str
    state: str  # new, same, updated, edited
    text: str


def export(
    helpers: Iterable[str],
    folder: str | os.PathLike[str],
    force: bool = False,
    dry_run: bool = False,
    package: str | None = None,
) -> list[Change]:
    """Copy helpers into a package.

    Parameters
    ----------
    helpers : iterable of str
        As in :mod:`gnnlab.tools.helpers`, or modules of gnnlab without "gnnlab.". Those that the
        folder has already are brought up to date as well.
    folder : path
        Made where it does not exist. It becomes the package, under its name; where that is no name
        of a package, or you work in the folder, the package is made in it as ``from_gnnlab``.
    force : bool
        Overwrite files that were changed by hand.
    dry_run : bool
        Only say what would happen.
    package : str, optional
        Make a package of this name in the folder.

    Returns
    -------
    list of Change
        Per file: "new", "same", "updated", or "edited", which means changed by hand and left
        alone unless ``force``.

    Raises
    ------
    NotFound
        There is no such helper.
    InvalidInput
        A helper needs too much of gnnlab, or the folder cannot be a package.

    Examples
    --------
    >>> import tempfile
    >>> from gnnlab.tools.export import export
    >>> folder = tempfile.mkdtemp() + "/forks"
    >>> [(change.path, change.state) for change in export(["fork"], folder)]
    [('LICENSE.gnnlab', 'new'), ('__init__.py', 'new'), ('fork.py', 'new')]
    >>> {change.state for change in export(["fork"], folder)}
    {'same'}
    """
    root = _root(folder, package)
    names = sorted({*helpers, *_remembered(root)})
    files = _files(names)
    changes = [_change(root, path, text) for path, text in sorted(files.texts.items())]
    if not dry_run:
        for change in changes:
            if change.state in ("new", "updated") or (change.state == "edited" and force):
                _write(root / change.path, change.text)
            if change.state != "edited" or force:
                _write(root / MEMORY / change.path, change.text)
        state = {"gnnlab": versions()["gnnlab"], "helpers": names}
        _write(root / MEMORY / "state.json", json.dumps(state, indent=1) + "\n")
    return changes


def _files(names: Sequence[str]) -> Files:
    for name in names:
        found = collect(_helper(name).modules)
        num_lines = sum(text.count("\n") for text in found.texts.values())
        if num_lines > MOST_LINES:
            raise InvalidInput(
                f"{name} needs {len(found.texts)} files with {num_lines} lines, too much to copy "
                f"(at most {MOST_LINES}): use gnnlab itself (pip install gnnlab), or export a "
                "helper of gnnlab export --list"
            )
    return collect([module for name in names for module in _helper(name).modules])


def _helper(name: str) -> Helper:
    if name in HELPERS:
        return HELPERS[name]
    if module_name(name) in modules():
        return Helper((name,), "a module of gnnlab", "")
    raise NotFound(
        f"no helper {name!r}; there are {', '.join(HELPERS)}, and each module of gnnlab by its "
        "name, such as kernels.gather"
    )


def _root(folder: str | os.PathLike[str], package: str | None) -> Path:
    """Return the folder of the package."""
    root = Path(folder).resolve()
    if package is not None and not _is_name(package):
        raise InvalidInput(
            f"--package {package!r}: the name of a package has letters, digits and underscores, "
            "begins with no digit, and is not a keyword of Python"
        )
    if package is not None or not _is_name(root.name) or Path.cwd().resolve().is_relative_to(root):
        root = root / (package or PACKAGE)
    for path in (root, *root.parents):
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"{path} is a file; name a folder")
    return root


def _is_name(name: str) -> bool:
    return name.isidentifier() and not iskeyword(name)


def _remembered(root: Path) -> list[str]:
    """Helpers that were exported to a folder before."""
    file = root / MEMORY / "state.json"
    if not file.exists():
        return []
    try:
        return [str(name) for name in json.loads(file.read_text("utf8"))["helpers"]]
    except (ValueError, LookupError, TypeError) as error:
        raise InvalidInput(
            f"{file} is damaged ({error}); delete {file.parent}, and export again"
        ) from error


def _change(root: Path, path: str, text: str) -> Change:
    there = _read(root / path)
    if there in (None, text):
        return Change(path, "new" if there is None else "same", text)
    return Change(path, "updated" if there == _read(root / MEMORY / path) else "edited", text)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf8", "replace").replace("\r\n", "\n")
    except FileNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf8", newline="\n")


# --------------------------------------------------------------------------- the command line
@command
def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status: 1 where a file was left alone."""
    parser = command_parser("export", __doc__, 2)
    parser.add_argument("names", nargs="*", metavar="HELPER … FOLDER", help="what, and where to")
    parser.add_argument("--list", action="store_true", help="list the helpers")
    parser.add_argument("--update", action="store_true", help="show what you and gnnlab changed")
    parser.add_argument("--package", metavar="NAME", help="name of the package in FOLDER")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument("--force", action="store_true", help="overwrite what you changed")
    given = parser.parse_args(words)
    if given.list:
        print("\n".join(f"{name:14}{each.purpose}" for name, each in HELPERS.items()))
        return 0
    if len(given.names) < 2 - given.update:
        parser.error("name one or more helpers, then a folder; --list shows the helpers")
    *helpers, folder = given.names
    try:
        root = _root(folder, given.package)
        if given.update and not _remembered(root):
            raise InvalidInput(f"{folder} has nothing that gnnlab export wrote")
        # What is there is compared before anything is written.
        differences = _differences(root, helpers) if given.update else ""
        changes = export(helpers, root, given.force, given.dry_run)
        helpers = helpers or _remembered(root)
        shown = Path(os.path.relpath(root)) if not Path(folder).is_absolute() else root
        print(differences + _summary(changes, helpers, shown, given.force, given.dry_run))
    except (GNNLabError, OSError) as error:
        print(f"gnnlab export: {error}", file=sys.stderr)
        return 1
    return int(any(change.state == "edited" for change in changes) and not given.force)


def _differences(root: Path, helpers: Sequence[str]) -> str:
    """Show per file what was exported against what is there, and against what gnnlab has now."""
    version = json.loads((root / MEMORY / "state.json").read_text("utf8")).get("gnnlab")
    text = ""
    for change in export(helpers, root, dry_run=True):
        base = _read(root / MEMORY / change.path)
        sides = (
            (_read(root / change.path), "yours"),
            (change.text, f"gnnlab {versions()['gnnlab']}"),
        )
        for side, label in sides:
            if base is not None and side is not None:
                lines = difflib.unified_diff(
                    base.splitlines(keepends=True),
                    side.splitlines(keepends=True),
                    f"{change.path} (as exported from gnnlab {version})",
                    f"{change.path} ({label})",
                )
                text += "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    return text


def _summary(
    changes: Sequence[Change], helpers: Sequence[str], folder: Path, force: bool, dry_run: bool
) -> str:
    done = {
        "new": "would be written" if dry_run else "written",
        "updated": "would be updated" if dry_run else "updated",
        "edited": ("would be" if dry_run else "was") + " overwritten, with your changes"
        if force
        else "changed by you: left alone (--force overwrites it)",
    }
    lines = [
        f"{folder / change.path}: {done[change.state]}"
        for change in changes
        if change.state != "same"
    ]
    same = len(changes) - len(lines)
    lines += [f"{same} files are there already, unchanged"] if same else []
    files = _files(helpers)
    requirements = " ".join(map(shlex.quote, _requirements(files)))
    needs = f"pip install {requirements}" if requirements else "nothing besides Python"
    lines += ["", f"It needs: {needs}"]
    for name in helpers:
        example = _helper(name).example.replace("{package}", folder.resolve().name)
        if example:
            lines += [f"Use of {name}:", *(f"    {line}" for line in example.splitlines())]
    return "\n".join(lines)


def _requirements(files: Files) -> list[str]:
    """Requirements of gnnlab that name a package which the files import."""
    try:
        stated = importlib.metadata.requires("gnnlab") or []
    except importlib.metadata.PackageNotFoundError:
        stated = []
    found: dict[str, str] = {}
    for text in stated:
        requirement = text.partition(";")[0].strip()
        found.setdefault(requirement.partition(">")[0].strip(), requirement)
    distributions = {module: _DISTRIBUTIONS.get(module, module) for module in files.packages}
    return sorted(found.get(name, name) for name in distributions.values())


_DISTRIBUTIONS = {"zmq": "pyzmq"}


if __name__ == "__main__":
    sys.exit(main())
