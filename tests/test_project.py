"""What the files around the library promise: pins, pages in three languages, commands."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import runpy
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gnnlab
from tests.docs.test_own_data import BLOCK as PYTHON
from tests.helpers import ROOT, run_script

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
READMES = ("README.md", "README.ko.md", "README.zh.md")
GUIDES = ("docs/teaching.md", "docs/teaching.ko.md", "docs/teaching.zh.md")
OWN_DATA = ("docs/own_data.md", "docs/own_data.ko.md", "docs/own_data.zh.md")
INSTALL = ("docs/install.md", "docs/install.ko.md", "docs/install.zh.md")
FROM_GUIDE = ("docs/from_the_guide.md", "docs/from_the_guide.ko.md", "docs/from_the_guide.zh.md")


def pins() -> dict[str, str]:
    """Package -> exact version, from the lines of constraints.txt that hold on this system."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text("utf8").splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line)
            if not pin.marker or pin.marker.evaluate():
                found[canonicalize_name(pin.name)] = str(pin.specifier).removeprefix("==")
    return found


def needed() -> set[str]:
    """Every package that gnnlab with its extras installs on this system, gnnlab aside."""
    extras = dict(PROJECT["optional-dependencies"])
    if not os.environ.get("CI") and importlib.util.find_spec("mypy") is None:
        del extras["dev"]  # which make test does not install; CI runs make check before
    if not os.environ.get("CI") and importlib.util.find_spec("torch_geometric") is None:
        del extras["pyg"]  # make test-clients installs it
    if importlib.util.find_spec("sphinx") is None:
        del extras["site"]  # make site installs it
    if importlib.util.find_spec("ray") is None:
        del extras["ray"]  # make test-backends installs it
    if not os.environ.get("CI") and importlib.util.find_spec("fastapi") is None:
        del extras["serve"]
    texts = [*PROJECT["dependencies"], *(r for extra in extras.values() for r in extra)]
    direct = [Requirement(text) for text in texts]
    todo = [wanted for wanted in direct if not wanted.marker or wanted.marker.evaluate()]
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        wanted = todo.pop()
        key = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if key in seen or key[0] == "gnnlab":
            continue
        seen.add(key)
        for text in importlib.metadata.requires(wanted.name) or []:
            further = Requirement(text)
            marker = further.marker
            if not marker or any(marker.evaluate({"extra": e}) for e in {"", *wanted.extras}):
                todo.append(further)
    return {name for name, _ in seen}


def test_every_needed_package_is_pinned() -> None:
    """The CUDA libraries aside, which PyPI's torch pins itself."""
    assert {n for n in needed() if not n.startswith(("nvidia-", "cuda-", "triton"))} <= set(pins())


def test_direct_pins_satisfy_their_ranges() -> None:
    extras = PROJECT["optional-dependencies"].values()
    for text in [*PROJECT["dependencies"], *(r for extra in extras for r in extra)]:
        wanted = Requirement(text)
        if wanted.name != "gnnlab":
            assert wanted.specifier.contains(pins()[canonicalize_name(wanted.name)]), text


def test_conda_installs_the_same_pins() -> None:
    """From conda-forge, but gnnlab itself."""
    names = {"torch": "pytorch"}
    texts = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]]
    wanted = [canonicalize_name(Requirement(text).name) for text in texts]
    *packages, pip = yaml.safe_load((ROOT / "environment.yml").read_text("utf8"))["dependencies"]
    assert packages[1:] == ["pip", "make", *(f"{names.get(n, n)}={pins()[n]}" for n in wanted)]
    assert pip == {"pip": ["-e ."]}
    python = packages[0].removeprefix("python=")
    assert f">={python}" == PROJECT["requires-python"]


def test_one_version_everywhere() -> None:
    assert gnnlab.__version__ == PROJECT["version"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf8"), re.MULTILINE)
    assert newest and newest[1] == gnnlab.__version__


def test_one_address_everywhere() -> None:
    urls = PROJECT["urls"]
    assert all(url.startswith(urls["Repository"]) for url in urls.values())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    assert citation["repository-code"] == urls["Repository"]
    assert citation["version"] == gnnlab.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]


def test_git_holds_sources_only() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    files = [Path(name) for name in listed.stdout.split("\0") if name]  # none: no checkout
    big = [f for f in files if (ROOT / f).is_file() and (ROOT / f).stat().st_size > 1_000_000]
    assert not big
    made = r"__pycache__|\.ipynb_checkpoints|\.py[co]$|\.pkl$|\.pt$|\.nb[ic]$"
    assert not [f for f in files if re.search(made, str(f))]


@pytest.mark.parametrize("lang", ["en", "ko", "zh"])
def test_picture_is_what_its_script_draws(lang: str) -> None:
    script = runpy.run_path(str(ROOT / "docs" / "picture.py"))
    text = script["file"](lang).read_text("utf8")
    assert text == script["picture"](lang)
    name = "README.md" if lang == "en" else f"README.{lang}.md"
    assert f"](docs/{script['file'](lang).name})" in (ROOT / name).read_text("utf8")
    english = [words for words in script["WORDS"] if f">{words}</text>" in text]
    assert not english or lang == "en"


def shape(page: str) -> dict[str, list]:
    """What the three languages of a page must have in common."""
    text = (ROOT / page).read_text("utf8")
    if page in OWN_DATA:  # tests/docs/test_own_data.py compares its Python
        text = PYTHON.sub("", text)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    uncommented = re.sub(r" +# .*|(?<=--lang) \w+", "", text)
    return {
        "headings": re.findall(r"^#+(?= )", prose, re.MULTILINE),
        "code": re.findall(r"```.*?```", uncommented, re.DOTALL),
        "table rows": [line.count("|") for line in prose.splitlines() if line.startswith("|")],
        "pictures": re.findall(r"!\[[^\]]*\]\(([^).]*)[^)]*\)", prose),
        "lessons": re.findall(r"\d\d_\w+", prose),
        "links": len(re.findall(r"\]\(", prose)),
    }


@pytest.mark.parametrize("pages", [READMES, GUIDES, OWN_DATA, FROM_GUIDE, INSTALL])
def test_page_is_as_complete_in_each_language(pages: tuple[str, ...]) -> None:
    for page in pages[1:]:
        assert shape(page) == shape(pages[0]), page


def test_every_lesson_is_in_the_table_of_the_readme() -> None:
    linked = re.findall(
        r"^\| \[(\d\d_\w+)\]\(notebooks/en/\1\.ipynb\)", (ROOT / READMES[0]).read_text("utf8"), re.M
    )
    assert linked == sorted(path.stem for path in (ROOT / "notebooks/src").glob("[0-9]*.py"))


PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "notebooks").glob("*/README.md")),
    *sorted((ROOT / "examples").glob("*.md")),
]


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    here = [ROOT / Path(page).parent / link for link in links if "://" not in link]
    assert [str(link) for link in here if not link.exists()] == []


def test_readme_example_runs() -> None:
    (source,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf8"), re.DOTALL
    )
    assert "test accuracy" in run_script(source)
