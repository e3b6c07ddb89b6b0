"""Copy the lessons into a folder, keep them current, and open them in JupyterLab.

    gnnlab lessons my_lessons --lang ko --only 01,05
    gnnlab lessons my_lessons --check
    gnnlab lessons my_lessons --merge

The folder remembers its languages, lessons and whether it has solutions. A lesson that you only ran
is updated. One that you changed stays as it is until --merge brings what is new in gnnlab into it;
one that you deleted comes back only with --restore.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gnnlab.errors import GNNLabError, InvalidInput, NotFound
from gnnlab.system.command import command, command_parser, locale_language
from gnnlab.system.staging import replacing

LANGUAGES = ("en", "ko", "zh")
_RECORD = ".gnnlab-lessons.json"  # what was chosen, and the text of each file as it was copied
_CELL = re.compile(r"^\x1e(\w+) ?(.*)\n", re.MULTILINE)  # before each cell of a text: type, ID
_SAID = {
    "deleted": "deleted by you, --restore brings it back: ",
    "updated": "",
    "kept": "changed by you: ",
    "behind": "changed by you; gnnlab has a newer version, which --merge brings in: ",
    "unknown": "not a copy of the lesson, left alone; to get that, rename yours, then --restore: ",
    "merged": "changed by you and by gnnlab, merged; yours is kept as .before: ",
    "conflict": "merged with conflicts, find and resolve <<<<<<<; yours is kept as .before: ",
}


def lessons_folder() -> Path:
    """Return the folder of the lessons, in the installed package or else in the checkout."""
    package = Path(__file__).resolve().parents[1]
    places = (package / "_lessons", package.parent / "notebooks")
    for place in places:
        if (place / "en" / "README.md").is_file():
            return place
    raise NotFound(
        f"the lessons are neither in {places[0]} nor in {places[1]}; install gnnlab again: "
        "pip install --force-reinstall --no-deps gnnlab"
    )


def copy_lessons(
    folder: str | os.PathLike[str],
    lang: str | None = None,
    *,
    only: str | None = None,
    solutions: bool | None = None,
    merge: bool = False,
    restore: str = "",
    check: bool = False,
) -> dict[str, list[str]]:
    """Copy lessons into a folder, or bring those in it up to date.

    The parameters are the options of the command, which ``gnnlab lessons --help`` explains. The
    folder remembers ``lang``, ``only`` and ``solutions`` for the next time.

    Returns
    -------
    dict
        Paths within the folder, under "new", "same", "updated" (a newer version of a file that was
        at most run), "deleted" (by you), "kept" (changed by you, nothing is newer), "behind"
        (changed by you, there is a newer version), "merged", "conflict" (merged, with conflict
        markers in cells), and "unknown" (a file of your own in the place of a lesson).

    Examples
    --------
    >>> import tempfile
    >>> from gnnlab.tools.lessons import copy_lessons
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, again = copy_lessons(folder, "ko", only="01"), copy_lessons(folder)
    >>> first["new"][0], len(again["same"]), again["new"]
    ('ko/01_node_classification.ipynb', 3, [])
    """
    source, target = lessons_folder(), Path(folder)
    if target.resolve() == source.resolve():
        raise InvalidInput(f"{target} holds the lessons themselves; name another folder")
    record = _record(target)
    asked = {"lang": lang, "only": only, "solutions": solutions}
    record.update((key, value) for key, value in asked.items() if value is not None)
    copied = record["files"]
    done: dict[str, list[str]] = {how: [] for how in ("new", "same", *_SAID)}
    again, chosen = _numbers(source, restore), [*_chosen(source, record)]
    for lost in (name for name in again if not any(p.name.startswith(name) for p in chosen)):
        known = ",".join(sorted({path.name[:2] for path in chosen if path.name[0].isdigit()}))
        why = f"{lost} is not among the chosen lessons, {known}"
        raise InvalidInput(f"restore: {why}; to choose it, too, add --only {known},{lost}")
    for path in chosen:
        name = path.relative_to(source).as_posix()
        there, new, old = target / name, _text(path), name.replace("_solution.", ".")
        if old in copied and not there.exists():  # solutions had the names of their lessons
            copied[name], before = copied.pop(old), target / old
            if before.exists():
                there = before if check else before.rename(there)
        mine, base = _text(there) if there.exists() else None, copied.get(name)
        how = _state(mine, base, new)
        if how == "deleted" and path.name.startswith(again):
            how = "new"
        if how in ("kept", "behind") and "\n<<<<<<< yours\n" in (mine or ""):
            done["conflict"].append(name)
            continue
        content = path.read_bytes()
        if how == "behind" and merge and mine and base:
            how, content = _merge(there, path, mine, base, new)
            if not check:
                _write(there.with_suffix(f".before{path.suffix}"), there.read_bytes())
        done[how].append(name)
        if how in ("new", "same", "updated", "merged", "conflict"):
            copied[name] = new
            if how != "same" and not check:
                _write(there, content)
    if not check:
        _write(target / _RECORD, json.dumps(record, indent=1, ensure_ascii=False).encode())
    return done


def _record(folder: Path) -> dict[str, Any]:
    """Return what a folder remembers."""
    found = {"lang": locale_language(LANGUAGES), "only": "", "solutions": True, "files": {}}
    paths, source = folder.glob("[ekz][noh]/[0-9]*.ipynb"), lessons_folder()
    if there := [p for p in paths if (source / p.relative_to(folder)).exists()]:  # without memory
        found["lang"] = ",".join(sorted({path.parent.name for path in there}))
        found["only"] = ",".join(sorted({path.name[:2] for path in there}))
        found["solutions"] = (folder / "solutions").is_dir()
    with suppress(OSError, ValueError, TypeError):
        found |= json.loads((folder / _RECORD).read_text("utf8"))
    return found


def _numbers(source: Path, text: str) -> tuple[str, ...]:
    """Split a list of lessons, "01,05"."""
    known = [*sorted(path.name[:2] for path in (source / "en").glob("[0-9]*.ipynb")), "README"]
    found = tuple(filter(None, (part.strip() for part in text.split(","))))
    if unknown := [number for number in found if {number, number[:2]}.isdisjoint(known)]:
        raise InvalidInput(f"there is no lesson {unknown[0]!r}; there are {', '.join(known)}")
    return found


def _chosen(source: Path, record: dict[str, Any]) -> Iterator[Path]:
    """Yield the files of the chosen lessons in the chosen languages."""
    only, paths = _numbers(source, record["only"]), set()
    for lang in record["lang"].split(","):
        if lang not in LANGUAGES:
            raise InvalidInput(f"lang must be one of {', '.join(LANGUAGES)}; found {lang!r}")
        paths |= set((source / lang).glob("*.*"))
        for path in (source / "solutions").glob("*.*") if record["solutions"] else ():
            other = path.parent / lang / path.name  # without one, the English one
            paths.add(other if other.is_file() else path)
    for path in sorted(paths):
        is_asked = path.name == "README.md" or path.name.startswith(only or "")
        if is_asked and path.suffix in (".ipynb", ".md"):  # not .words.json
            yield path


def _state(mine: str | None, base: str | None, new: str) -> str:
    """Compare a file with how it was copied and with this gnnlab's version; IDs do not count."""
    now, then, newest = (text and _CELL.sub("\x1e\\1\n", text) for text in (mine, base, new))
    if now is None:
        return "new" if then is None else "deleted"
    if now == newest:
        return "same"
    sign = "\x1e" if then and then[0] == "\x1e" else "\n"
    copied = set((then or "").split(sign)[1:])
    if then is None or 10 * len(copied & set(now.split(sign))) < len(copied):  # cells, or lines
        return "unknown"
    return "updated" if now == then else "kept" if then == newest else "behind"


def _text(path: Path) -> str:
    """Return what a file says: of a notebook, its cells without outputs."""
    text = path.read_text("utf8", errors="replace")
    with suppress(ValueError, KeyError, TypeError):
        form = "\x1e{cell_type} {id}\n{source}\n"
        cells = ({"id": "", **cell} for cell in json.loads(text)["cells"])
        return "".join(form.format_map({**c, "source": "".join(c["source"])}) for c in cells)
    return text


def _merge(there: Path, path: Path, *texts: str) -> tuple[str, bytes]:
    """Merge the newer file at ``path`` into the one ``there``; texts: mine, as copied, new."""
    if any(not name for _, name in _CELL.findall(texts[0])):  # an editor that drops IDs
        texts = tuple(_CELL.sub("\x1e\\1 \n", text) for text in texts)
    with tempfile.TemporaryDirectory() as folder:
        command = ["git", "merge-file", "-p", "-L", "yours", "-L", "as copied", "-L", "gnnlab"]
        for number, text in enumerate(texts):
            command.append(str(Path(folder, str(number))))
            Path(command[-1]).write_text(text, "utf8", newline="\n")
        try:
            done = subprocess.run(command, capture_output=True)
        except FileNotFoundError:
            raise NotFound("--merge needs git; install it (https://git-scm.com)") from None
    if not 0 <= done.returncode < 128:
        raise GNNLabError(f"{there} was not merged, and is as it was: {done.stderr.decode()}")
    how, text = "conflict" if done.returncode else "merged", done.stdout.decode()
    if path.suffix != ".ipynb":
        return how, text.encode()
    pages = [json.loads(each.read_text("utf8")) for each in (path, there)]
    cells = [cell for page in pages for cell in page["cells"]]  # of equal ones, yours wins
    equal = {(cell["cell_type"], "".join(cell["source"])): cell for cell in cells}
    named = {cell.get("id"): cell for cell in cells}
    merged: dict[str, dict[str, Any]] = {}
    _, *parts = _CELL.split(text if text.startswith("\x1e") else f"\x1emarkdown \n{text}")
    for kind, name, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        source, metadata = body.removesuffix("\n"), named.get(name, {}).get("metadata", {})
        cell = {"cell_type": kind, "metadata": metadata, "source": source.splitlines(keepends=True)}
        cell |= {"outputs": [], "execution_count": None} if kind == "code" else {}
        cell = equal.get((kind, source), cell)
        name = name if name and name not in merged else f"{name or 'cell'}-{len(merged)}"
        merged[name] = {**cell, "id": name}
    page = {**pages[1], "cells": [*merged.values()]}
    page["nbformat_minor"] = max(5, page.get("nbformat_minor", 0))
    return how, (json.dumps(page, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = command_parser("lessons", __doc__, 2, allow_abbrev=False)
    add = parser.add_argument
    add("folder", nargs="?", default="gnnlab-lessons", help="where to (gnnlab-lessons)")
    lang = locale_language(LANGUAGES)
    add("--lang", metavar="LANGS", help=f"languages, as ko,en (as before; at first {lang})")
    add("--only", metavar="NUMBERS", help="lessons, as 01,05 (as before; at first all)")
    help_ = "with the solutions or without (as before; at first with)"
    add("--solutions", action=argparse.BooleanOptionalAction, help=help_)
    add("--merge", action="store_true", help="merge newer versions into lessons that you changed")
    add("--restore", metavar="NUMBERS", default="", help="copy these again if you deleted them")
    add("--check", action="store_true", help="write and start nothing, say what is newer")
    add("--no-browser", action="store_true", help="start JupyterLab, and only print its address")
    help_ = "copy, start nothing: for VS Code and other programs"
    add("--no-open", "--copy-only", dest="copy_only", action="store_true", help=help_)
    arguments = parser.parse_args(argv)
    folder = Path(arguments.folder).absolute()
    asked = ("lang", "only", "solutions", "merge", "restore", "check")
    done = copy_lessons(folder, **{name: getattr(arguments, name) for name in asked})
    to_be = dict.fromkeys(("updated", "merged"), "to be ") if arguments.check else {}
    found = [f"{len(names)} {to_be.get(how, '')}{how}" for how, names in done.items() if names]
    lang = _record(folder)["lang"].partition(",")[0]
    print(f"{folder}: {', '.join(found)}" + f"; begin with {lang}/README.md" * bool(done["new"]))
    for how, said in _SAID.items():
        for name in done[how] if said or arguments.check else ():
            print(f"  {said or 'gnnlab has a newer version: '}{name}")
    if arguments.check:
        return int(any(done[how] for how in ("new", "updated", "behind", "merged", "conflict")))
    if arguments.copy_only:
        return int(bool(done["conflict"]))
    if importlib.util.find_spec("jupyterlab") is None:
        print(
            'gnnlab lessons: JupyterLab is not installed: pip install "gnnlab[lab]". Or open '
            f"{folder / lang} in another program that knows notebooks",
            file=sys.stderr,
        )
        return 2
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
    command += [f"--LabApp.default_url=/lab/tree/{lang}/README.md"]
    is_root = getattr(os, "geteuid", lambda: 1)() == 0  # as in a container
    command += ["--no-browser"] * arguments.no_browser + ["--allow-root"] * is_root
    # Settings for this JupyterLab alone: the list of the lessons is shown as a page, not as source.
    paths = [str(Path(__file__).with_name("jupyter")), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    env = {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, paths))}
    jupyter = subprocess.Popen(command, env=env)
    while jupyter.poll() is None:
        with suppress(KeyboardInterrupt):  # Jupyter got it, too, and asks whether to end
            jupyter.wait()
    return jupyter.returncode


if __name__ == "__main__":
    sys.exit(main())
