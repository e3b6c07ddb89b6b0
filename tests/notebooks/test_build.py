"""The lesson builder on a small made-up lesson: ten Markdown cells, ten code cells, one figure.

src/01_tiny.py            title, part-1 … part-9 in three languages; code-0 … code-9, draw
src/solutions/01_tiny.py  title, code-9 answered
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from matplotlib import font_manager, rcParams

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
sys.path.insert(0, str(NOTEBOOKS))

from builder import checks, online  # noqa: E402
from builder.pages import lacks_font  # noqa: E402
from builder.source import Slot, SourceError, read_lesson, unwrap  # noqa: E402

import build  # noqa: E402

GLOSSARY = """term,ko,zh,ko_not,zh_not,known
node,노드,节点,정점,顶点|结点,
edge,에지,边,엣지,边缘,
graph,그래프,图,,,yes
seed node,시드 노드,种子节点,,,
"""
CODE = ["answer = 41", "print(answer + 1)", "1 + 1"]
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
PROGRESS = "from tqdm.notebook import tqdm\nfor _ in tqdm(range(3)):\n    pass"
CODE = [*CODE, FIGURE, PROGRESS, "answer", *["pass"] * 3, "answer = None\nprint(answer)"]


def markdown(slot: str, **texts: str) -> str:
    cells = []
    for lang, text in texts.items():
        lines = "\n".join(f"# {line}".rstrip() for line in text.split("\n"))
        cells.append(f'# %% [markdown] slot="{slot}" lang="{lang}"\n{lines}\n')
    return "\n".join(cells)


ROWS = {"01_tiny": "| TITLE | 01 |", "02_later": "| TITLE | 02 |"}
INDEX = "\n".join(
    [
        markdown("intro", en="# Lessons", ko="# 수업", zh="# 课程"),
        markdown("table", **dict.fromkeys(("en", "ko", "zh"), "| a | b |\n|---|---|")),
        *(markdown(name, en=row, ko=row, zh=row) for name, row in ROWS.items()),
        markdown("end", en="The end.", ko="끝.", zh="完。"),
    ]
)


def source() -> str:
    cells = [markdown("title", en="# Tiny", ko="# 작은 수업", zh="# 小课")]
    cells.append(f'# %% slot="code-0"\n{CODE[0]}\n')
    for i in range(1, 10):
        cells.append(
            markdown(
                f"part-{i}",
                en=f"## Part {i}\n\nText $x_{i}$ and `code`, [a page](README.md).",
                ko=f"## {i}부\n\n본문 $x_{i}$와 `code`, [쪽](README.md).",
                zh=f"## 第 {i} 部\n\n正文 $x_{i}$ 和 `code`，[页](README.md)。",
            )
        )
        tags = ' tags=["nbval-ignore-output"]' if i == 4 else ""
        cells.append(f'# %% slot="code-{i}"{tags}\n{CODE[i]}\n')
    cells.append('# %% slot="draw" tags=["folded"]\npass\n')
    return "\n".join(cells)


class Tree:
    """A folder of notebooks in which one text can be replaced by another."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    def run(self, *argv: str) -> str:
        """Complaints of one run of the builder; none when it succeeds."""
        self.capsys.readouterr()
        status = build.main(list(argv), self.root)
        complaints = self.capsys.readouterr().err
        assert status == bool(complaints)
        return complaints

    def page(self, path: str) -> nbformat.NotebookNode:
        return nbformat.read(self.root / path, as_version=4)

    def source(self, old: str, new: str) -> None:
        self.edit("src/01_tiny.py", old, new)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made-up lesson, executed once."""
    root = tmp_path_factory.mktemp("notebooks")
    (root / "src" / "solutions").mkdir(parents=True)
    (root / "glossary.csv").write_text(GLOSSARY, encoding="utf-8")
    (root / "src" / "index.py").write_text(INDEX, encoding="utf-8")
    (root / "src" / "01_tiny.py").write_text(source(), encoding="utf-8")
    solutions = markdown("title", en="# Solutions") + '\n# %% slot="code-9"\nprint(answer)\n'
    (root / "src" / "solutions" / "01_tiny.py").write_text(solutions, encoding="utf-8")
    assert build.main(["--execute"], root) == 0
    return root


@pytest.fixture
def tree(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tree:
    return Tree(Path(shutil.copytree(built, tmp_path / "notebooks")), capsys)


def test_figures_without_the_font_of_their_language_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They would be stored in English, and nothing else would fail."""
    figure = {"a": [{"output_type": "display_data", "data": {"image/png": ""}}]}
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [])
    (warning,) = lacks_font("01_tiny", "ko", figure)
    assert "01_tiny: its figures were drawn in English" in warning
    assert lacks_font("01_tiny", "solutions", figure) == lacks_font("01_tiny", "ko", {}) == []
    font = font_manager.FontEntry(fname="/fonts/a.ttc", name="Noto Sans CJK KR")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [font])
    assert lacks_font("01_tiny", "ko", figure) == []
    # The language of this process's own figures stays.
    assert rcParams["font.family"] == ["DejaVu Sans"]


def test_round_trip(tree: Tree) -> None:
    before = {path: path.read_bytes() for path in tree.root.rglob("*") if path.is_file()}
    assert tree.run("--check") == ""
    assert tree.run() == ""
    assert {path: path.read_bytes() for path in before} == before


def test_notebooks_are_valid_and_share_code_and_outputs(tree: Tree) -> None:
    pages = {lang: tree.page(f"{lang}/01_tiny.ipynb") for lang in ("en", "ko", "zh")}
    for lang, page in pages.items():
        nbformat.validate(page)
        for cell in page.cells:
            for out in cell.get("outputs", ()):
                assert out.get("execution_count", cell.execution_count) == cell.execution_count
        assert page.metadata.kernelspec.name == "python3"
        assert page.metadata.gnnlab.lang == lang
        assert [cell.id for cell in page.cells][:3] == ["title", "install-gnnlab", "code-0"]
        code = [cell for cell in page.cells if cell.cell_type == "code"]
        assert code == [cell for cell in pages["en"].cells if cell.cell_type == "code"]
    assert pages["ko"].cells[0].source.startswith("# 작은 수업")
    assert pages["zh"].cells[3].source.startswith("## 第 1 部")


def test_links_open_this_notebook_elsewhere(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A placeholder for the address leads nowhere: then there are none."""
    for name, count in (("ann/gnn", 1), ("OWNER/REPOSITORY", 0)):
        monkeypatch.setattr(online, "repository", lambda name=name: f"https://github.com/{name}")
        tree.run()
        for page in ("en/01_tiny.ipynb", "zh/01_tiny.ipynb", "solutions/01_tiny_solution.ipynb"):
            links = re.findall(r"\]\((https://[^)]+)\)", tree.page(page).cells[0].source)
            colab = f"https://colab.research.google.com/github/{name}/blob/main/notebooks/"
            binder = f"https://mybinder.org/v2/gh/{name}/main?urlpath=lab/tree/notebooks/"
            assert links == [colab + page, binder + page] * count


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_cell_installs_the_package_only_where_it_is_missing(
    is_installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    shell = SimpleNamespace(run_line_magic=lambda *words: asked.append(words))
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: find(name) and is_installed)
    exec(online.install(), {"get_ipython": lambda: shell})
    words = ("pip", f"install --quiet git+{online.repository()}")
    assert asked == [words] * (not is_installed)


def test_the_repository_may_be_anywhere(tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    for given, url in {
        "https://gitlab.com/group/team/gnn.git": "https://gitlab.com/group/team/gnn",
        "https://git.uni-a.edu:8443/~ann/gnn/": "https://git.uni-a.edu:8443/~ann/gnn",
    }.items():
        pyproject.write_text(f'[project]\nname = "x"\nurls.Repository = "{given}"\n')
        assert online.repository.__wrapped__(pyproject) == url
    assert online.links("notebooks/en/01.ipynb", "en", "https://gitlab.com/group/team/gnn") == (
        "Run it online: [Binder](https://mybinder.org/v2/git/"
        "https%3A%2F%2Fgitlab.com%2Fgroup%2Fteam%2Fgnn/main?urlpath=lab/tree/notebooks/en/01.ipynb)"
    )
    for given in ("", "http://gitlab.com/a/b", "https://example.org", "git@github.com:a/b.git"):
        pyproject.write_text(f'[project]\nname = "x"\nurls.Repository = "{given}"\n')
        with pytest.raises(SourceError, match=r"found Repository = .*; give the address"):
            online.repository.__wrapped__(pyproject)


def test_outputs_hold_figures_and_no_progress_bars(tree: Tree) -> None:
    cells = {cell.id: cell for cell in tree.page("en/01_tiny.ipynb").cells}
    assert cells["code-1"].outputs[0].text == "42\n"
    assert "image/png" in cells["code-3"].outputs[0].data
    assert cells["code-4"].outputs == []
    assert cells["code-4"].metadata.tags == ["nbval-ignore-output"]
    assert cells["code-5"].outputs[0].data["text/plain"] == "41"
    assert "widgets" not in tree.page("en/01_tiny.ipynb").metadata


def test_the_code_of_a_folded_cell_is_hidden(tree: Tree) -> None:
    cells = {cell.id: cell for cell in tree.page("ko/01_tiny.ipynb").cells}
    assert cells["draw"].metadata.jupyter.source_hidden
    assert "jupyter" not in cells["code-5"].metadata


def test_solutions_run_the_lesson_first(tree: Tree) -> None:
    cells = tree.page("solutions/01_tiny_solution.ipynb").cells
    ids = ["title", "install-gnnlab", *[f"code-{i}" for i in range(9)], "draw", "code-9"]
    assert [cell.id for cell in cells] == ids
    assert cells[2].metadata.jupyter.source_hidden
    assert cells[-1].outputs[0].text == "41\n"


def test_index_has_a_row_for_each_lesson_that_exists(tree: Tree) -> None:
    text = (tree.root / "ko" / "README.md").read_text(encoding="utf-8")
    row = "| [작은 수업](01_tiny.ipynb) | 01 |"
    assert text == f"# 수업\n\n| a | b |\n|---|---|\n{row}\n\n끝.\n"


def test_lesson_without_a_row_in_the_index_is_caught(tree: Tree) -> None:
    tree.edit("src/index.py", 'slot="01_tiny"', 'slot="03_other"')
    assert "index: found no row for 01_tiny; add a slot of that name" in tree.run("--check")


def test_pages_before_the_lessons_list_those_that_exist() -> None:
    lessons = sorted(path.stem for path in (NOTEBOOKS / "src").glob("[0-9]*.py"))
    for lang in ("en", "ko", "zh"):
        text = (NOTEBOOKS / lang / "README.md").read_text(encoding="utf-8")
        assert re.findall(r"^\| \d\d \[.+?\]\((\d\d_\w+)\.ipynb\)", text, re.MULTILINE) == lessons


def test_only_builds_the_chosen_lesson(tree: Tree) -> None:
    assert tree.run("--only", "01") == ""
    assert "begins with '02'; there are: 01_tiny" in tree.run("--only", "02")


def test_hand_edit_of_a_text_is_caught(tree: Tree) -> None:
    tree.edit("ko/01_tiny.ipynb", "작은 수업", "큰 수업")
    found = tree.run("--check")
    assert "ko/01_tiny.ipynb was edited by hand (cells: title)" in found
    assert tree.run() == found and "큰 수업" in tree.page("ko/01_tiny.ipynb").cells[0].source
    assert tree.run("--force") == "" == tree.run("--check")


def test_hand_edit_in_all_languages_names_the_edited_cell_alone(tree: Tree) -> None:
    for lang in ("en", "ko", "zh"):
        tree.edit(f"{lang}/01_tiny.ipynb", "$x_3$", "$x_4$")
    found = tree.run()
    assert found.count("(cells: part-3)") == 3 and "code-1" not in found


def test_hand_edit_of_an_output_is_caught_and_mended_from_another_language(tree: Tree) -> None:
    tree.edit("en/01_tiny.ipynb", '"42\\n"', '"43\\n"')
    assert "en/01_tiny.ipynb was edited by hand (cells: code-1)" in tree.run("--check")
    assert tree.run("--force") == "" == tree.run("--check")
    assert tree.page("en/01_tiny.ipynb").cells[4].outputs[0].text == "42\n"


def test_notebook_older_than_its_source_is_caught(tree: Tree) -> None:
    for old in ("Text $x_3$", "본문 $x_3$", "正文 $x_3$"):
        tree.source(old, f"{old}$y$")
    found = tree.run("--check")
    assert "en/01_tiny.ipynb is older than its source (cells: part-3)" in found
    assert "translations.lock is not as this program writes it" in found
    assert tree.run() == "" == tree.run("--check")


def test_notebook_saved_by_jupyter_is_caught(tree: Tree) -> None:
    tree.edit("en/01_tiny.ipynb", '"name": "python"', '"name": "python", "version": "3.11.7"')
    assert "en/01_tiny.ipynb is not as this program writes it" in tree.run("--check")
    assert tree.run() == "" == tree.run("--check")


def test_missing_notebook_is_caught(tree: Tree) -> None:
    (tree.root / "zh" / "01_tiny.ipynb").unlink()
    assert "zh/01_tiny.ipynb is missing" in tree.run("--check")


def test_outputs_of_older_code_are_caught_and_dropped(tree: Tree) -> None:
    tree.source("answer + 1", "answer + 2")
    assert "its outputs are not of this code; run --execute" in tree.run("--check")
    assert tree.run() == ""
    cells = tree.page("en/01_tiny.ipynb").cells
    assert all(not cell.get("outputs") for cell in cells)
    assert "its outputs are not of this code" in tree.run("--check")


def test_failing_cell_is_named(tree: Tree) -> None:
    tree.source("answer + 1", "answer + nothing")
    assert "name 'nothing' is not defined" in tree.run("--execute")


def test_stale_translation_is_caught_until_changed(tree: Tree) -> None:
    tree.source("Text $x_2$", "New text $x_2$")
    tree.source("본문 $x_2$", "새 본문 $x_2$")
    found = tree.run()
    assert "slot 'part-2': the English changed, the zh text did not" in found
    assert "the ko text" not in found
    assert "the zh text did not" in tree.run("--check")
    tree.source("正文 $x_2$", "新正文 $x_2$")
    assert tree.run() == "" == tree.run("--check")


def test_stale_translation_can_be_accepted(tree: Tree) -> None:
    tree.source("Text $x_2$", "New text $x_2$")
    assert tree.run("--accept") == "" == tree.run("--check")


def test_lock_forgets_removed_lessons(tree: Tree) -> None:
    lock = tree.root / "translations.lock"
    entries = json.loads(lock.read_text())
    lock.write_text(json.dumps({**entries, "00_gone": {}}))
    assert "translations.lock" in tree.run("--check")
    assert tree.run() == ""
    assert json.loads(lock.read_text()) == entries


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("\n# ## 3부\n#\n# 본문 $x_3$와 `code`, [쪽](README.md).", "", "has no ko text"),
        ("# ## 3부", "# ### 3부", "heading levels differ: ko has ###, the English ##"),
        ("본문 $x_3$", "본문 $y_3$", "formulas differ: ko has $y_3$, the English $x_3$"),
        (
            "第 3 部\n#\n# 正文",
            "第 3 部\n#\n# - 正文",
            "list items differ: zh has 1, the English 0",
        ),
        ("본문 $x_3$와 `code`", "본문 $x_3$와", "code words differ: ko has none"),
        (
            "본문 $x_3$와 `code`, [쪽](README.md)",
            "본문 $x_3$와 `code`, 쪽",
            "links differ: ko has none",
        ),
        ("본문 $x_3$", "엣지 $x_3$", "found '엣지'; the glossary says '에지' for 'edge'"),
        ("正文 $x_3$", "边缘 $x_3$", "found '边缘'; the glossary says '边' for 'edge'"),
        ("본문 $x_3$", "노드 $x_3$", "write 노드(node)"),
        ("正文 $x_3$", "种子节点（node）$x_3$", "write 种子节点(seed node)"),
        ("Text $x_3$", "Text 글 $x_3$", "(en): found '글 $x_3$"),
        ("answer + 1", "answer + 1  # 답", "write its comments and printed text in plain English"),
        ("answer + 1", "answer + 1" + "\n" * 25 + "1", "26 lines of code; split it"),
        ("answer + 1", "answer + 1" + " + 1" * 20, "code line of 97 characters; break it"),
        ("Text $x_3$", "Text $x_3$" + " word" * 2050, "English words; shorten it to 2050"),
        ("Text $x_3$", "Text [x](no.md) $x_3$", "the link no.md leads nowhere"),
        ('# %% slot="code-8"\npass\n', "", "found 19 cells; a lesson has 20 to 40"),
        ('# %% slot="code-8"', "# %%", "found slot=None; give it one"),
        ('# %% slot="code-8"', '# %% slot="code-1"', "slot 'code-1' is taken"),
        ('# %% slot="code-8"', '# %% slot="part-8"', "slot 'part-8' is taken"),
        ('slot="part-8" lang="ko"', 'slot="part-8" lang="fr"', "cell with lang='fr'"),
    ],
)
def test_faults_of_a_source_are_named(tree: Tree, old: str, new: str, complaint: str) -> None:
    tree.source(old, new)
    assert complaint in tree.run("--check")


def test_a_page_may_be_linked_in_the_language_of_the_reader(tree: Tree) -> None:
    tree.source("[쪽](README.md)", "[쪽](README.ko.md)")
    assert "links differ" not in tree.run("--check")


def test_accepted_forms_of_a_first_use(tree: Tree) -> None:
    tree.source("본문 $x_3$", "**시드 노드**(seed nodes), 그래프의 노드(node) $x_3$")
    tree.source("正文 $x_3$", "种子节点 (seed node)、节点（node） $x_3$")
    assert "without its English" not in tree.run("--check")


def test_check_goes_alone(tree: Tree) -> None:
    with pytest.raises(SystemExit):
        tree.run("--check", "--execute")


def test_ranges_do_not_strike_through_what_is_between_them() -> None:
    slot = Slot("ranges", text={"ko": "노드 0~3은 파티션 0에, 4~7은 1에 있습니다."})
    assert slot.say("ko") == r"노드 0\~3은 파티션 0에, 4\~7은 1에 있습니다."


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("图上的\n节点，\n`a` 和\nDGL\n\n- 一\n- 二", "图上的节点，`a` 和\nDGL\n\n- 一\n- 二"),
        ("这是**\n重点\n**，\n**不是**\n别的。", "这是**重点**，**不是**别的。"),
        ("见 [解答](x)\n“一”\n。", "见 [解答](x)“一”。"),
        ("- 一，\n  二\n  三\n  - 四。\n1. 五。", "- 一，二三\n  - 四。\n1. 五。"),
    ],
)
def test_chinese_lines_are_joined(lines: str, text: str) -> None:
    assert unwrap(lines) == text


@pytest.mark.parametrize("item", ["- 二", "2. 二", "> 二", "| 二 |", "## 二", "**二**"])
def test_what_starts_a_line_keeps_its_line(item: str) -> None:
    assert unwrap(f"一。\n{item}") == f"一。\n{item}"


def test_empty_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "01_empty.py").write_text("")
    with pytest.raises(SourceError):
        read_lesson(tmp_path / "01_empty.py")


def test_words_leave_out_code_formulas_and_addresses(tree: Tree) -> None:
    tree.source("Text $x_3$", "One `two` [three](four.md) $five$\n# ```\n# six\n# ```\n#")
    lesson = read_lesson(tree.root / "src" / "01_tiny.py")
    lesson.slots = [slot for slot in lesson.slots if slot.name == "part-3"]
    assert checks.count_words(lesson) == 6  # Part One three and a page
