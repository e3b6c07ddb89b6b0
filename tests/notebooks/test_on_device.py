"""Lessons 01 and 04 compute on a GPU: their code cells run on a pretend device.

A lesson's own checks, its ``assert`` lines, tell whether the results are right there, too. Lesson
01 computes where its graph is, which is the CPU as it stands: what a reader with a GPU changes is
in ``CHANGES``. Lesson 04 takes the GPUs that it finds.

The nursery plugs it in for the lesson, and for the ranks of lesson 04.
"""

from __future__ import annotations

import nbformat
import pytest

from tests.accelerator import GPU, NAME
from tests.helpers import HAS_GPU, ROOT, run_script
from tests.nursery import PLUG

pytestmark = [
    pytest.mark.thorough("takes minutes; tests of the parts run on the pretend device"),
    pytest.mark.skipif(GPU != NAME, reason=HAS_GPU),
]

# What a reader changes; besides, fewer epochs and repetitions, and no second training.
CHANGES: dict[str, dict[str, str]] = {
    "01_node_classification": {
        "self.layers = nn.ModuleList(layers)": f"self.layers = nn.ModuleList(layers).to('{NAME}')",
        "32, 60)": "32, 12)",
        "trapped_history = train(one_way)": "trapped_history = model, history",
        "16], 20, ": "16], 2, ",
        "FANOUTS, BATCH, EPOCHS =": f"graph = graph.to('{NAME}')\n"
        "feat, label = graph.ndata['feat'], graph.ndata['label']\n"
        "src, dst = graph.edges()\nFANOUTS, BATCH, EPOCHS =",
    },
    "04_multi_gpu": {'"digits", 2, [5': '"digits", 4, [5'},
}


def lesson(name: str) -> str:
    """The code of a lesson, changed."""
    page = nbformat.read(ROOT / "notebooks" / "en" / f"{name}.ipynb", as_version=4)
    code = "\n\n".join(cell.source for cell in page.cells if cell.cell_type == "code")
    for old, new in CHANGES[name].items():
        assert code.count(old) == 1, f"{name} has {old!r} {code.count(old)} times"
        code = code.replace(old, new)
    return code


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CHANGES)
def test_a_lesson_on_the_pretend_device(name: str) -> None:
    env = {PLUG: "", "MPLBACKEND": "Agg", "TQDM_DISABLE": "1"}
    printed = run_script(lesson(name), env=env, timeout=800)
    assert printed.splitlines()[-1] == "exercise 4: not answered yet"
    assert (f"{NAME.upper()} is initialized in this process" in printed) == (name[:2] == "04")
