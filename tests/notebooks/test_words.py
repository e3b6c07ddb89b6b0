"""Strings and comments of code in the reader's language."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "notebooks"))

from builder import words
from builder.source import Lesson, Slot, SourceError

TABLE = """en,ko,zh
nodes,노드 수,节点数
{n} of {m:.1f} nodes,노드 {m:.1f}개 중 {n}개,{m:.1f} 个节点中的 {n} 个
# a number,# 수,# 一个数
"""
CODE = '''\
x = {"nodes": 1}  # a number
ax.text(0, 0, "nodes", ha="nodes", va='nodes')
print("nodes", f"{n} of {m:.1f} nodes", nodes)
y = f"{', '.join(nodes)}", "a number"
z = """nodes"""
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "01_tiny.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path


def lesson(code: str) -> Lesson:
    return Lesson("01_tiny", [Slot("text", text={"en": "# Text"}), Slot("code", code)])


def test_whole_strings_and_comments_are_replaced_and_nothing_else(folder: Path) -> None:
    said = words.read_words(folder, "01_tiny")
    assert (
        words.translate(CODE, "ko", said)
        == '''\
x = {"노드 수": 1}  # 수
ax.text(0, 0, "노드 수", ha="nodes", va='nodes')
print("노드 수", f"노드 {m:.1f}개 중 {n}개", nodes)
y = f"{', '.join(nodes)}", "a number"
z = """노드 수"""
'''
    )
    told = words.in_language(lesson(CODE), "zh", said)
    assert told.slots[1].code == words.translate(CODE, "zh", said)
    assert words.in_language(lesson(CODE), "en", said) == lesson(CODE)
    assert words.faults(lesson(CODE), folder, 90) == []


def test_a_lesson_without_a_table_is_english(folder: Path) -> None:
    assert words.read_words(folder, "02_other") == {}
    assert words.translate(CODE, "ko", {}) == CODE


def test_words_of_all_lessons_need_not_be_used(folder: Path) -> None:
    (folder / "common.csv").write_text("en,ko,zh\nwrong,오답,错\n", encoding="utf-8")
    said = words.read_words(folder, "01_tiny")
    assert words.translate('"wrong"', "zh", said) == '"错"'
    assert words.faults(lesson(CODE), folder, 90) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "nodes,노드 수,节点数",
            "edges,에지 수,边数",
            "no string or comment of the code is 'edges'",
        ),
        ("# a number,# 수,# 一个数\n", "", "found no row for the comment '# a number'; add one"),
        (
            "{m:.1f}개 중 {n}개",
            "{n}개",
            "'노드 {n}개' has other fields than '{n} of {m:.1f} nodes'",
        ),
        ("# 수", "# 수" + "수" * 40, "slot 'code' (ko): a code line is 1"),
    ],
)
def test_faults_of_a_table_are_named(folder: Path, old: str, new: str, complaint: str) -> None:
    assert old in TABLE
    (folder / "01_tiny.csv").write_text(TABLE.replace(old, new), encoding="utf-8")
    assert [fault for fault in words.faults(lesson(CODE), folder, 90) if complaint in fault]


@pytest.mark.parametrize("row", ["nodes,노드 수", "nodes,,节点数", "nodes,a,b,c"])
def test_a_row_has_three_languages(folder: Path, row: str) -> None:
    (folder / "01_tiny.csv").write_text(f"en,ko,zh\n{row}\n", encoding="utf-8")
    with pytest.raises(SourceError, match="a row has a text for each of en, ko, zh"):
        words.read_words(folder, "01_tiny")
