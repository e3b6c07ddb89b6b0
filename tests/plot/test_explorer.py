"""Explorers: controls move the picture; without a kernel a picture of a few settings is left."""

from __future__ import annotations

from base64 import b64decode
from io import BytesIO

import pytest
from matplotlib import image, pyplot

from gnnlab import plot
from gnnlab.errors import NotFound

WIDGET = "application/vnd.jupyter.widget-view+json"


class Painter:
    """Draws a bar as high as it is told, and notes with what it was called."""

    def __init__(self) -> None:
        self.calls: list[dict] = []

    def __call__(self, height: int = 2, color: str = "red", wrong: bool = False):
        self.calls.append({"height": height, "color": color})
        if height == 13:
            raise NotFound("13 is <missing>")
        _, ax = pyplot.subplots(figsize=(2, 1))
        ax.bar([0], [height], color=color)
        return "a bar" if wrong else ax


def size(png: bytes) -> tuple[int, ...]:
    return image.imread(BytesIO(png)).shape[:2]


def test_controls_move_the_picture() -> None:
    paint = Painter()
    explorer = plot.explore(paint, height=(1, 13), color=["red", "blue"])
    first = explorer.picture.value
    assert size(first) == (100, 200) and paint.calls == [{"height": 2, "color": "red"}]
    explorer.controls["height"].value = 5
    explorer.controls["color"].value = "blue"
    assert paint.calls[1:] == [{"height": 5, "color": "red"}, {"height": 5, "color": "blue"}]
    assert explorer.picture.value != first
    assert explorer.setting == {"height": 5, "color": "blue"}
    assert repr(explorer) == "explorer of Painter: height = 5, color = blue"
    explorer.controls["height"].value, explorer.controls["color"].value = 2, "red"
    assert explorer.picture.value == first
    assert pyplot.get_fignums() == []


def test_an_error_is_shown_until_the_next_picture() -> None:
    explorer = plot.explore(Painter(), height=(1, 13))
    *_, message, picture = explorer.widget.children
    before = picture.value
    explorer.controls["height"].value = 13
    assert "NotFound: 13 is &lt;missing&gt;" in message.value and picture.value == before
    explorer.controls["height"].value = 12
    assert message.value == "" and picture.value != before
    assert pyplot.get_fignums() == []


def test_both_forms_are_shown_at_once() -> None:
    explorer = plot.explore(Painter(), height=(1, 4), color=["red", "blue"])
    bundle = explorer._repr_mimebundle_()
    assert bundle["text/plain"] == repr(explorer)
    assert bundle[WIDGET]["model_id"] == explorer.widget.model_id
    assert b64decode(bundle["image/png"]) == explorer.static()


@pytest.mark.parametrize(
    ("controls", "settings", "shape"),
    [
        ({"height": (1, 10)}, [(1, "red"), (4, "red"), (7, "red"), (10, "red")], (2, 2)),
        ({"height": (1, 2)}, [(1, "red"), (2, "red")], (1, 2)),
        (
            {"height": (1, 9), "color": ["blue", "green", "red"]},
            [(1, "blue"), (1, "red"), (9, "blue"), (9, "red")],
            (2, 2),
        ),
    ],
)
def test_static_picture_shows_a_few_settings(controls, settings, shape) -> None:
    paint = Painter()
    explorer = plot.explore(paint, **controls)
    paint.calls.clear()
    png = explorer.static()
    assert [tuple(call.values()) for call in paint.calls] == settings
    rows, columns = shape
    assert size(png) == (rows * (100 + 28), columns * 200)
    if len(settings) == 2:  # pixel by pixel
        whole, panel = (image.imread(BytesIO(each)) for each in (png, explorer.picture.value))
        assert abs(whole[28:, 200:, :3] - panel[:, :, :3]).max() < 0.02  # height = 2
    assert pyplot.get_fignums() == []


# ------------------------------------------------------------------------------ the studies
def test_each_setting_is_asked_for_once() -> None:
    asked = []

    def times(machines: int, network: str) -> float:
        asked.append((machines, network))
        return 8 / machines

    explorer = plot.explore_time(times, [1, 2], network=["slow", "fast"])
    explorer.controls["network"].value = "fast"
    explorer.controls["network"].value = "slow"
    explorer.static()
    assert asked == [(1, "slow"), (2, "slow"), (1, "fast"), (2, "fast")]
