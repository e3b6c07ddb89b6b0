"""The site: every link leads somewhere, and pages work in a browser, on a phone and by keyboard."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.helpers import ROOT, run_script

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LANGS = {"en": "en", "ko": "ko", "zh": "zh-CN"}
pytestmark = [
    pytest.mark.thorough("builds the site, two minutes"),
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        importlib.util.find_spec("furo") is None,
        reason="the extra [site] is not installed; make site installs it",
    ),
]


class Page(HTMLParser):
    """The addresses that a page refers to, its language, and its text without markup."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.lang: str | None = None
        self.count: dict[str, int] = {}
        self.feed(path.read_text("utf8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag == "html":
            self.lang = found.get("lang")
        self.addresses += [value for name in ("href", "src") if (value := found.get(name))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as ``make site`` builds it: Sphinx has nothing to warn of."""
    output = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, str(ROOT / "docs/site/build.py"), "--output", str(output)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=800)
    assert run.returncode == 0, run.stderr
    return output


def test_links_lead_somewhere(site: Path) -> None:
    broken = []
    for path in site.rglob("*.html"):
        for address in Page(path).addresses:
            name = unquote(address.partition("#")[0].partition("?")[0])
            if name and ":" not in name and not (path.parent / name).exists():
                broken.append(f"{path.relative_to(site)}: {address}")
    assert not broken


@pytest.mark.parametrize("lang", LANGS)
def test_lessons_are_there_with_their_outputs(site: Path, lang: str) -> None:
    sources = sorted((ROOT / "notebooks" / lang).glob("[0-9]*.ipynb"))
    assert Page(site / lang / "index.html").count["img"] > len(sources)  # one each, and the whole
    for source in sources:
        path = site / lang / "lessons" / f"{source.stem}.html"
        page, text = Page(path), path.read_text("utf8")
        assert page.lang == LANGS[lang]
        assert page.count["img"] >= 2, source.stem
        assert f'l3"><a class="reference internal" href="../solutions/{source.stem}' in text
        assert "find_spec" not in text  # the cell for Colab


def test_the_reference_has_public_names(site: Path) -> None:
    text = (site / "en/api/gnnlab.html").read_text("utf8")
    for name in ("gnnlab.graph", "gnnlab.Graph", "gnnlab.to_block", "gnnlab.sample_neighbors"):
        assert f'"{name}"' in text or f"{name.rpartition('.')[2]}</span>" in text, name
    assert "Parameters" in text and "Examples" in text


@pytest.fixture(scope="module")
def browser() -> str:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"needs a browser, one of {', '.join(BROWSERS)}")
    return program


def test_in_a_browser(site: Path, browser: str) -> None:
    script = Path(__file__).with_name("browse_site.py")
    printed = run_script(script, args=[browser, str(site), str(ROOT)], timeout=260)
    assert printed.splitlines() == [
        "start ko/index.html",
        "en too wide []",
        "ko too wide []",
        "zh too wide []",
        "switched zh-CN /zh/lessons/05_partitioning.html",
        "en found True",
        "ko found True",
        "zh found True",
        "dark True light True",
        "keyboard True",
    ]


# --- figures that need no kernel -------------------------------------------------------------

SETTINGS = [  # of the cost model: positions of its sliders
    {"machines": 2, "link": 1, "fanout": 1, "cache": 0, "work": 3},  # those of the lesson's text
    {"machines": 3, "link": 0, "fanout": 2, "cache": 3, "work": 0},
    {"machines": 1, "link": 5, "fanout": 0, "cache": 4, "work": 5},
    {"machines": 0, "link": 3, "fanout": 1, "cache": 2, "work": 2},
]


@pytest.fixture(scope="module")
def figures() -> Any:
    """docs/site/figures.py as a module."""
    path = ROOT / "docs" / "site" / "figures.py"
    spec = importlib.util.spec_from_file_location("site_figures", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stored(figures: Any) -> Any:
    return json.loads(figures.STORED.read_text("utf8"))


def test_stored_numbers_are_those_of_the_library(stored: Any) -> None:
    """Of `traffic` the bytes only: its times are measured. `place` may differ in a last digit."""
    source = """
        import json, runpy, sys
        figures = runpy.run_path(sys.argv[1])
        make = {"growth": (), "cut": (), "traffic": ([4], 1), "cost": ([4], [10])}
        print(json.dumps({name: figures[name](*given) for name, given in make.items()}))
    """
    printed = run_script(source, args=[str(ROOT / "docs/site/figures.py")], timeout=400)
    made = json.loads(printed.splitlines()[-1])
    assert made["growth"] == stored["growth"]
    assert made["cut"] | {"place": None} == stored["cut"] | {"place": None}
    assert made["cost"]["constants"] == stored["cost"]["constants"]
    assert sorted(made["traffic"]) == sorted(stored["traffic"]) == ["metis", "random"]
    for method, found in made["traffic"].items():
        assert found["4"]["kilobytes"] == stored["traffic"][method]["4"]["kilobytes"]
        counts = made["cost"]["counts"][method]["4"]["10"]
        assert counts == stored["cost"]["counts"][method]["4"]["10"]


@pytest.mark.parametrize("lang", LANGS)
def test_a_stored_picture_stands_before_each_figure(site: Path, figures: Any, lang: str) -> None:
    for lesson, (figure, _) in figures.PLACES.items():
        text = (site / lang / "lessons" / f"{lesson}.html").read_text("utf8")
        before, _, after = text.partition(f'data-figure="{figure}"')
        assert "<img" in before and after.lstrip().find("<noscript>") >= 0


def test_figures_in_a_browser(site: Path, browser: str, figures: Any, stored: Any) -> None:
    """Every control changes its figure by keys; the cost model shows the lesson's numbers."""
    script = Path(__file__).with_name("browse_figures.py")
    args = [browser, str(site), str(ROOT), json.dumps(SETTINGS)]
    printed = run_script(script, args=args, timeout=260).splitlines()
    wanted = [f"{lang} {lesson} []" for lang in LANGS for lesson in figures.PLACES]
    assert printed[: len(wanted)] == wanted
    lesson = figures.run("10_scaling_study", "imports", "data-code", "count-code", "formula-code")
    shown = [dict(json.loads(row)) for row in printed[len(wanted) :]]
    assert len(shown) == len(SETTINGS)
    for setting, terms in zip(SETTINGS, shown, strict=True):
        assert list(terms) == ["compute", "requests", "features", "allreduce"]
        wanted_ms = [1000 * seconds for seconds in model(lesson, stored["cost"], **setting)]
        shown_ms = [float(text.replace(",", "")) for text in terms.values()]
        assert shown_ms == pytest.approx(wanted_ms, abs=0.0501)
    shutil.rmtree(lesson["lesson"].folder)


def model(lesson: dict[str, Any], numbers: Any, cache: int, **at: int) -> list[float]:
    """The terms of lesson 10's formula, in seconds, with the lesson's functions."""
    k, gbit = (1, 2, 4, 8)[at["machines"]], (0.1, 1, 2.5, 10, 25, 100)[at["link"]]
    width, row_seconds = (5, 10, 15)[at["fanout"]], 1e-6 * (0.1, 0.25, 0.5, 1, 2, 4)[at["work"]]
    rows, remote, steps = lesson["count"](k, "random", fanouts=(width, width))
    hits = numbers["counts"]["random"][str(k)][str(width)]["hits"][cache]
    moving = lesson["moving"](remote / steps * (1 - hits), k, lesson["gbit"](gbit))
    return [row_seconds * rows / steps, *moving]
