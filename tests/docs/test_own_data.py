"""docs/own_data.md: its blocks run one after the other, as they stand, and print what it shows.

After a change of a block: ``python -m tests.docs.test_own_data`` runs the English page and writes
its blocks and what they print into the pages of all languages. tests/test_project.py compares the
languages.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from tests.helpers import ROOT, run_script

PAGES = [ROOT / "docs" / f"own_data{lang}.md" for lang in ("", ".ko", ".zh")]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
NUMBER = re.compile(r"\d+\.\d+")
MARK = "---- block {}"


def run(page: Path, folder: Path) -> list[str]:
    """Run all blocks of a page in an empty folder; return what each of them printed."""
    lines = ["import os, sys", f"os.chdir({str(folder)!r})", "sys.path.insert(0, '')"]
    for number, (code, _) in enumerate(BLOCK.findall(page.read_text("utf8"))):
        lines += [f"print({MARK.format(number)!r}, flush=True)", code]
    printed = run_script("\n".join(lines), timeout=280)
    return re.split(f"{MARK.format('[0-9]+')}\n", printed)[1:]


def test_every_block_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    """Numbers with a decimal point may differ a little between processors."""
    shown = [text for _, text in BLOCK.findall(PAGES[0].read_text("utf8"))]
    printed = run(PAGES[0], tmp_path)
    assert len(printed) == len(shown) >= 15
    for found, expected in zip(printed, shown, strict=True):
        if expected:
            assert NUMBER.sub("#", found) == NUMBER.sub("#", expected)
            assert _numbers(found) == pytest.approx(_numbers(expected), abs=0.05)


def _numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def renew() -> None:
    """Write the English blocks and what they print into all pages."""
    with tempfile.TemporaryDirectory() as folder:
        printed = run(PAGES[0], Path(folder))
    blocks = BLOCK.findall(PAGES[0].read_text("utf8"))
    texts = []
    for (code, shown), found in zip(blocks, printed, strict=True):
        output = f"\n\n```text\n{found}```" if shown else ""
        texts.append(f"```python\n{code}```{output}")
    for page in PAGES:
        turn = iter(texts)
        page.write_text(BLOCK.sub(lambda _: next(turn), page.read_text("utf8")), "utf8")  # noqa: B023


if __name__ == "__main__":
    renew()
