"""Copy the lessons into a folder and open them in JupyterLab.

    gnnlab lessons my_lessons --lang ko

Lessons that you have changed are never overwritten; unchanged ones are updated. To begin a lesson
again, delete its file and run the command again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.system.command import command, command_parser, locale_language
from gnnlab.system.staging import replacing

LANGUAGES = ("en", "ko", "zh")
_RECORD = ".gnnlab-lessons.json"  # path → SHA-256 of each file as it was copied


def lessons_folder() -> Path:
    """Return the folder of the lessons, in the installed package or else in the checkout.

    Examples
    --------
    >>> from gnnlab.tools.lessons import lessons_folder
    >>> (lessons_folder() / "ko" / "01_node_classification.ipynb").is_file()
    True
    """
    package = Path(__file__).resolve().parents[1]
    places = (package / "_lessons", package.parent / "notebooks")
    for place in places:
        if (place / "en" / "README.md").is_file():
            return place
    raise NotFound(
        f"the lessons are neither in {places[0]} nor in {places[1]}; install gnnlab again: "
        "pip install --force-reinstall --no-deps gnnlab"
    )


def copy_lessons(folder: str | os.PathLike[str], lang: str = "en") -> dict[str, list[str]]:
    """Copy the lessons and solutions of one language; changed files are not overwritten.

    Parameters
    ----------
    folder : path
        Destination; made if it does not exist.
    lang : str
        "en", "ko" or "zh".

    Returns
    -------
    dict
        Paths within the folder, under "new", "updated" (a newer version of an unchanged lesson),
        "same", and "kept" (changed by you, or not copied by gnnlab).

    Examples
    --------
    >>> import tempfile
    >>> from gnnlab.tools.lessons import copy_lessons
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, again = copy_lessons(folder, "ko"), copy_lessons(folder, "ko")
    >>> "ko/01_node_classification.ipynb" in first["new"], again["new"], again["kept"]
    (True, [], [])
    """
    if lang not in LANGUAGES:
        raise InvalidInput(f"lang must be one of {', '.join(LANGUAGES)}; found {lang!r}")
    source, target = lessons_folder(), Path(folder)
    if target.resolve() == source:
        raise InvalidInput(f"{target} holds the lessons themselves; name another folder")
    record_file, record = target / _RECORD, {}
    with suppress(OSError, ValueError):
        record = dict(json.loads(record_file.read_text("utf8")))
    done: dict[str, list[str]] = {"new": [], "updated": [], "same": [], "kept": []}
    solutions = [_translated(path, lang) for path in (source / "solutions").glob("*.*")]
    for path in sorted([*(source / lang).glob("*.*"), *solutions]):
        if path.suffix not in (".ipynb", ".md"):  # .words.json, Jupyter's checkpoints
            continue
        name, content = path.relative_to(source).as_posix(), path.read_bytes()
        there, digest = target / name, hashlib.sha256(content).hexdigest()
        found = hashlib.sha256(there.read_bytes()).hexdigest() if there.exists() else None
        if found == digest:
            how = "same"
        elif found is None:
            how = "new"
        else:
            how = "updated" if found == record.get(name) else "kept"
        if how in ("new", "updated"):
            _write(there, content)
        if how != "kept":
            record[name] = digest
        done[how].append(name)
    _write(record_file, json.dumps(record, indent=1, sort_keys=True).encode())
    return done


def _translated(path: Path, lang: str) -> Path:
    """Return the solutions in a language; the English ones if there are no others."""
    other = path.parent / lang / path.name
    return other if other.is_file() else path


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
    add("--lang", choices=LANGUAGES, default=lang, help="language (that of LANG)")
    add("--no-browser", action="store_true", help="start JupyterLab, and only print its address")
    help_ = "copy, start nothing: for VS Code and other programs"
    add("--no-open", "--copy-only", dest="copy_only", action="store_true", help=help_)
    arguments = parser.parse_args(argv)
    folder = Path(arguments.folder).absolute()
    done = copy_lessons(folder, arguments.lang)
    print(f"{folder}: {', '.join(f'{len(names)} {how}' for how, names in done.items() if names)}")
    for name in done["kept"]:
        print(f"  kept as you have it: {name}")
    if arguments.copy_only:
        return 0
    if importlib.util.find_spec("jupyterlab") is None:
        print(
            'gnnlab lessons: JupyterLab is not installed: pip install "gnnlab[lab]". Or open '
            f"{folder / arguments.lang} in another program that knows notebooks",
            file=sys.stderr,
        )
        return 2
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
    command += [f"--LabApp.default_url=/lab/tree/{arguments.lang}/README.md"]
    if arguments.no_browser:
        command.append("--no-browser")
    if getattr(os, "geteuid", lambda: 1)() == 0:  # root, as in a container: needs --allow-root
        command.append("--allow-root")
    # Settings for this JupyterLab alone: the list of the lessons is shown as a page, not as source.
    paths = [str(Path(__file__).with_name("jupyter")), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    env = {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, paths))}
    jupyter = subprocess.Popen(command, env=env)
    while True:
        try:
            return jupyter.wait()
        except KeyboardInterrupt:  # Jupyter has received it as well, and asks whether to end
            continue


if __name__ == "__main__":
    sys.exit(main())
