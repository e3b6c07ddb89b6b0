"""Build the site: lessons with their stored outputs, guides, and the API reference.

    make site    into build/site, one folder a language; open build/site/index.html

Each language is a Sphinx project of its own, with its own search index. Its sources are copied to
``build/site-sources/LANG``; a link there leads to the page of the linked file, in another language
if need be, or to the file in the repository where the site has no page of it.

============================  ==============================================================
``README[.LANG].md``          the first page, as front.py arranges it
``notebooks/LANG``            lessons; figures.py adds the figures that need no kernel
``notebooks/solutions``       solutions, those of other languages in folders of their own
``docs/NAME[.LANG].md``       guides
``gnnlab``                    API reference (en), from the docstrings
============================  ==============================================================
"""

from __future__ import annotations

import argparse
import base64
import functools
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import figures
import front

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CODES = {"en": "en", "ko": "ko", "zh": "zh_CN"}  # of Sphinx
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]["urls"]
REPOSITORY = URLS["Repository"].removesuffix("/").removesuffix(".git")
CLONE = f"git clone {REPOSITORY} gnnlab && cd gnnlab"
if REPOSITORY.endswith("/OWNER/REPOSITORY"):  # it has no address yet: no links to it
    REPOSITORY = CLONE = ""
elif not REPOSITORY.startswith("https://github.com/"):  # where GitLab has its files
    REPOSITORY += "/-"
FENCE = re.compile(r"(```.*?```)", re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
MODULES = [
    *("gnnlab", "function", "ops", "nn", "sampling", "dataloading", "data", "transforms"),
    *("parallel", "multiprocessing", "partition", "distributed", "simulate", "plot"),
    *("trace", "random", "helpers", "errors"),
]
CAPTIONS = {
    "en": ("Lessons", "Guides", "Reference"),
    "ko": ("레슨", "안내", "참고"),
    "zh": ("课程", "指南", "参考"),
}


def main(argv: list[str] | None = None) -> int:
    """Build all languages; return 0 if Sphinx had nothing to warn of."""
    parser = argparse.ArgumentParser(description="Build the site.")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site", metavar="DIR")
    parser.add_argument("--lang", choices=CODES, action="append", help="this one; all by default")
    args = parser.parse_args(argv)
    output, sources = args.output.resolve(), args.output.resolve().with_name("site-sources")
    pages = find_pages()
    failed = 0
    for lang in args.lang or CODES:
        shutil.rmtree(sources / lang, ignore_errors=True)
        stage(lang, pages, sources / lang)
        words = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going"]
        words += ["-c", str(HERE), "-D", f"language={CODES[lang]}"]
        words += ["-d", str(sources / "tmp" / lang), str(sources / lang), str(output / lang)]
        env = {**os.environ, "SITE_PAGES": str(sources / lang / "pages.json"), "SITE_LANG": lang}
        failed |= subprocess.run(words, env=env).returncode
    shutil.rmtree(output / "jupyter_execute", ignore_errors=True)  # copies that myst-nb leaves
    shutil.copy(HERE / "index.html", output / "index.html")
    (output / ".nojekyll").touch()  # GitHub Pages would leave out folders like _static
    print(f"{output / 'index.html'}: {len(list(output.rglob('*.html')))} pages")
    return failed


def find_pages() -> dict[str, tuple[str, str]]:
    """File in the repository → (language, name of its page's source)."""
    found = {}
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("notebooks/**/*.*")):
        name = path.relative_to(ROOT).as_posix()
        stem, _, lang = path.stem.partition(".")
        lang = lang or "en"
        if name.startswith("README"):
            found[name] = (lang, "index.md")
        elif name in ("CHANGELOG.md", "CONTRIBUTING.md", "notebooks/claims.md"):
            found[name] = ("en", f"guides/{stem.lower()}.md")
        elif name.startswith("docs/"):
            found[name] = (lang, f"guides/{stem}.md")
        elif "solutions" in path.parts and path.suffix == ".ipynb":
            found[name] = (path.parent.name.replace("solutions", "en"), f"solutions/{path.name}")
        elif path.parent.name in CODES and path.suffix == ".ipynb":
            found[name] = (path.parent.name, f"lessons/{path.name}")
        elif path.parent.name in CODES and path.name == "README.md":
            found[name] = (path.parent.name, "lessons/index.md")
    return dict(sorted(found.items()))


def stage(lang: str, pages: dict[str, tuple[str, str]], folder: Path) -> None:
    """Write the sources of one language."""
    for name, (page_lang, page) in pages.items():
        if page_lang == lang:
            target = folder / page
            target.parent.mkdir(parents=True, exist_ok=True)
            text = (ROOT / name).read_text("utf8")
            if page == "index.md":
                move = functools.partial(move_links, name=name, pages=pages, folder=folder)
                front.write(lang, folder, move, CLONE)
            elif name.endswith(".md"):
                target.write_text(move_links(text, name, pages, folder), "utf8")
            else:
                target.write_text(move_notebook(text, name, pages, folder), "utf8")
    if lang == "en":
        write_reference(folder / "api")
    lessons, guides, reference = CAPTIONS[lang]
    trees = {lessons: "lessons/index", guides: "guides/*"}
    if lang == "en":
        trees[reference] = "api/index"
    with (folder / "index.md").open("a", encoding="utf8") as file:
        for caption, names in trees.items():
            file.write(f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n{names}\n```\n")
    paths = sorted((folder / "lessons").glob("[0-9]*.ipynb"))
    lines = (f"{path.name[:2]} {front.title(path)} <{path.stem}>\n" for path in paths)
    with (folder / "lessons" / "index.md").open("a", encoding="utf8") as file:
        file.write(f"\n```{{toctree}}\n:hidden:\n\n{''.join(lines)}```\n")
    known = {each: [page for at, page in pages.values() if at == each] for each in CODES}
    (folder / "pages.json").write_text(json.dumps(known))


def move_notebook(text: str, name: str, pages: dict[str, tuple[str, str]], folder: Path) -> str:
    """Move the links of a notebook, fold the cells that are folded in Jupyter, add its figure."""
    book = json.loads(text)
    lang, page = pages[name]
    lesson = page.removeprefix("lessons/").removesuffix(".ipynb")
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            source = move_links("".join(cell["source"]), name, pages, folder)
            cell["source"] = figures.insert(lesson, lang, cell["id"], source)
        elif cell["metadata"].get("jupyter", {}).get("source_hidden"):
            cell["metadata"].setdefault("tags", []).append("hide-input")
        if any(map(is_wide, cell.get("outputs", ()))):
            cell["metadata"]["mystnb"] = {"image": {"classes": "wide"}}
    solutions = f"solutions/{lesson}_solution"  # in the list they stand under their lesson
    if page.startswith("lessons/") and (lang, f"{solutions}.ipynb") in pages.values():
        cell = {"id": "solutions", "cell_type": "markdown", "metadata": {}}
        cell["source"] = f"```{{toctree}}\n:hidden:\n\n../{solutions}\n```"
        book["cells"].append(cell)
    return json.dumps(book)


def is_wide(output: dict[str, Any]) -> bool:
    """Whether an output is a picture whose words would be too small on a phone."""
    start = base64.b64decode(output.get("data", {}).get("image/png", "")[:64])
    return int.from_bytes(start[16:20]) > 700  # a PNG's width in pixels


def move_links(text: str, name: str, pages: dict[str, tuple[str, str]], folder: Path) -> str:
    """Make the relative links of a file lead from its page to other pages, or to the repository."""
    lang, page = pages[name]

    def moved(match: re.Match[str]) -> str:
        mark, label, target, anchor = match.group(1, 2, 3, 4)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if mark and target.startswith("./"):  # made for this page
            return match.group()
        if mark:
            copy = folder / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, copy)
            return f"![{label}]({posixpath.relpath(path, posixpath.dirname(page))})"
        if path not in pages and not REPOSITORY:
            return label
        if path not in pages:
            kind = "tree" if (ROOT / path).is_dir() else "blob"
            return f"[{label}]({REPOSITORY}/{kind}/main/{path}{anchor or ''})"
        to_lang, to_page = pages[path]
        if to_lang == lang:
            relative = posixpath.relpath(to_page, posixpath.dirname(page) or ".")
            return f"[{label}]({relative}{anchor or ''})"
        html = posixpath.splitext(f"{to_lang}/{to_page}")[0] + ".html"
        relative = posixpath.relpath(html, posixpath.dirname(f"{lang}/{page}"))
        return f'<a href="{relative}{anchor or ""}">{label}</a>'

    parts = FENCE.split(text)
    return "".join(part if i % 2 else LINK.sub(moved, part) for i, part in enumerate(parts))


def write_reference(folder: Path) -> None:
    """Write a page per module, which Sphinx fills from the docstrings of its public names."""
    import importlib

    folder.mkdir(parents=True)
    seen: set[int] = set()
    for module in MODULES:
        name = "gnnlab" if module == "gnnlab" else f"gnnlab.{module}"
        found = importlib.import_module(name)
        members = sorted(getattr(found, "_LAZY", ()) or found.__all__)
        (folder / f"{module}.rst").write_text(
            f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n   :no-members:\n\n"
            + "".join(describe(name, found, member, seen) for member in members)
        )
    rows = "".join(f"   {module}\n" for module in MODULES)
    (folder / "index.rst").write_text(
        f"API reference\n=============\n\n.. toctree::\n   :maxdepth: 1\n\n{rows}"
    )


def describe(name: str, module: object, member: str, seen: set[int]) -> str:
    """The directive that documents one public name; of an object with several names, the first."""
    value = getattr(module, member)
    if isinstance(value, type(sys)):
        return ""
    if not callable(value):
        return f".. py:data:: {name}.{member}\n\n"
    options = "   :no-index:\n" if id(value) in seen else ""
    seen.add(id(value))
    if not isinstance(value, type):
        return f".. autofunction:: {name}.{member}\n{options}\n"
    if options:
        return f".. autoclass:: {name}.{member}\n{options}\n"
    kind = "exception" if issubclass(value, BaseException) else "class"
    bases = "Module, Exception, Dataset, Mapping, BaseProcess"  # of others: not documented here
    members = f"   :members:\n   :inherited-members: {bases}\n"
    return f".. auto{kind}:: {name}.{member}\n{members}\n"


if __name__ == "__main__":
    sys.exit(main())
