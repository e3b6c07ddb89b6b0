"""The site: every link leads somewhere, and pages work in a browser, on a phone and by keyboard."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
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
    for source in sorted((ROOT / "notebooks" / lang).glob("[0-9]*.ipynb")):
        path = site / lang / "lessons" / f"{source.stem}.html"
        page, text = Page(path), path.read_text("utf8")
        assert page.lang == LANGS[lang]
        assert page.count["img"] >= 2, source.stem
        assert "find_spec" not in text  # the cell for Colab


def test_the_reference_has_public_names(site: Path) -> None:
    text = (site / "en/api/gnnlab.html").read_text("utf8")
    for name in ("gnnlab.graph", "gnnlab.Graph", "gnnlab.to_block", "gnnlab.sample_neighbors"):
        assert f'"{name}"' in text or f"{name.rpartition('.')[2]}</span>" in text, name
    assert "Parameters" in text and "Examples" in text


def test_in_a_browser(site: Path) -> None:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"needs a browser, one of {', '.join(BROWSERS)}")
    script = Path(__file__).with_name("browse_site.py")
    printed = run_script(script, args=[program, str(site), str(ROOT)], timeout=260)
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
