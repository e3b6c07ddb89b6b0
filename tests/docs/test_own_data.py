"""docs/own_data.md: its blocks run one after the other, as they stand, and print what it shows.

After a change of a block: ``python -m tests.docs.test_own_data`` runs the English page and writes
its blocks and what they print into the pages of all languages, with the words of `SAID`.
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
SAID = [  # by the blocks and what they print: English, Korean, Chinese
    ("IDs are unique:", "ID에 중복 없음:", "ID 没有重复："),
    (
        "citations of a paper that is not in the table: ",
        "표에 없는 논문을 인용한 건수: ",
        "被引论文不在表中的引用数：",
    ),
    ("nodes: {", "노드: {", "节点数：{"),
    ("nodes: 9", "노드: 9", "节点数：9"),
    (", edges: ", ", 에지: ", "，边数："),
    ("rows of the result with NaN:", "NaN이 있는 결과 행:", "含 NaN 的结果行："),
    ("for training:", "학습용:", "用于训练："),
    ("for testing:", "테스트용:", "用于测试："),
    ("predictions: ", "예측: ", "预测数："),
    (", test accuracy ", ", 테스트 정확도 ", "，测试准确率 "),
    ("test accuracy ", "테스트 정확도 ", "测试准确率 "),
    ("sorted by ID:", "ID순 정렬과 일치:", "与按 ID 排序的结果一致："),
]


def run(page: Path, folder: Path) -> list[str]:
    """Run all blocks of a page in an empty folder; return what each of them printed."""
    lines = ["import os, sys", f"os.chdir({str(folder)!r})", "sys.path.insert(0, '')"]
    for number, (code, _) in enumerate(BLOCK.findall(page.read_text("utf8"))):
        lines += [f"print({MARK.format(number)!r}, flush=True)", code]
    printed = run_script("\n".join(lines), timeout=280)
    return re.split(f"{MARK.format('[0-9]+')}\n", printed)[1:]


@pytest.mark.thorough("what the blocks call has tests of its own; the pages are compared below")
def test_every_block_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    """Numbers with a decimal point may differ a little between processors."""
    shown = [text for _, text in BLOCK.findall(PAGES[0].read_text("utf8"))]
    printed = run(PAGES[0], tmp_path)
    assert len(printed) == len(shown) >= 15
    for found, expected in zip(printed, shown, strict=True):
        if expected:
            assert NUMBER.sub("#", found) == NUMBER.sub("#", expected)
            assert _numbers(found) == pytest.approx(_numbers(expected), abs=0.05)


@pytest.mark.parametrize("number", [1, 2])
def test_other_languages_have_the_same_blocks(number: int) -> None:
    blocks = [match.group() for match in BLOCK.finditer(PAGES[0].read_text("utf8"))]
    found = [match.group() for match in BLOCK.finditer(PAGES[number].read_text("utf8"))]
    assert found == [translate(block, number) for block in blocks]


def translate(text: str, number: int) -> str:
    """Blocks or what they print, in the language of a page."""
    for words in SAID:
        text = text.replace(words[0], words[number])
    return text


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
    for number, page in enumerate(PAGES):
        write(page, [translate(text, number) for text in texts])


def write(page: Path, texts: list[str]) -> None:
    turn = iter(texts)
    page.write_text(BLOCK.sub(lambda _: next(turn), page.read_text("utf8")), "utf8")


if __name__ == "__main__":
    renew()
