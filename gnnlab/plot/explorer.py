"""Interactive figures: sliders for the arguments of a plotting function, with a static fallback.

A widget needs a running kernel, which GitHub and pages of nbconvert lack. So an explorer also has a
static image of a few settings, and each frontend shows the one of the two that it supports.

References
----------
IPython, "Integrating your objects with IPython", ``_repr_mimebundle_``.
"""

from __future__ import annotations

import html
import importlib
import inspect
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from itertools import product
from types import SimpleNamespace
from typing import Any

from gnnlab.errors import InvalidInput
from gnnlab.plot import canvas
from gnnlab.plot.words import say

_MOST_VALUES = 1000
_WIDE = 640  # pixels; wider panels are stacked in one column
_SOON = 0.5  # seconds; a drawing that takes longer is announced


def explore(function: Callable[..., Any], /, **controls: Any) -> Explorer:
    """Control each argument of a plotting function by a slider or a list.

    As the last expression of a cell it shows the controls and the figure, which is drawn again when
    a control changes. Without a running kernel or without ipywidgets, it shows an image of up to
    four settings instead; the function is called once for each of them.

    Parameters
    ----------
    function : callable
        Takes the controls as keyword arguments and returns a figure or axes of matplotlib.
    **controls
        Name of an argument → its values: ``(low, high)`` or ``(low, high, step)`` of integers, a
        list, or a dictionary of labels → values. The initial value is the default of the
        function's argument if it is among them, else the first. A pair ``(label, values)`` of any
        of these shows the label, in the reader's language, in place of the argument's name.

    Examples
    --------
    >>> from gnnlab import plot
    >>> def times(machines, network):
    ...     seconds = 8 / machines + {"1 Gbit/s": 1.0, "10 Gbit/s": 0.1}[network]
    ...     return plot.time_parts({machines: {"epoch": seconds}})
    >>> plot.explore(times, machines=[1, 2, 4, 8], network=["1 Gbit/s", "10 Gbit/s"])
    explorer of times: machines = 1, network = 1 Gbit/s
    """
    return Explorer(function, controls)


class Explorer:
    """A plotting function with a control for each argument; made by :func:`explore`.

    Attributes
    ----------
    controls : dict of str to ipywidgets.Widget
        Setting ``controls[name].value`` has the same effect as moving the slider.
    picture : ipywidgets.Image
        The figure as PNG.
    widget : ipywidgets.VBox or None
        Controls, picture, and a message: the last error, or that a slow figure is being drawn.
        None without ipywidgets: then there is no ``picture``, and a control only has its value.
    """

    def __init__(self, function: Callable[..., Any], controls: Mapping[str, Any]) -> None:
        self._function = function
        labeled = {name: _labeled(name, values) for name, values in controls.items()}
        self._labels = {name: label for name, (label, _) in labeled.items()}
        self._options = {name: _options(name, values) for name, (_, values) in labeled.items()}
        if not controls:
            raise InvalidInput(
                "no controls were given; name at least one argument, as in fanout=(1, 10)"
            )
        self._slowest = 0.0  # seconds of a drawing so far
        first = self._first_setting()
        drawn = self._draw(first)
        self.widget: Any = None
        try:
            widgets = importlib.import_module("ipywidgets")
        except ImportError:
            places = {name: [*options.values()] for name, options in self._options.items()}
            self.controls = {
                name: SimpleNamespace(value=value, index=places[name].index(value))
                for name, value in first.items()
            }
            return
        # With the default margin, an image as wide as the page would get a scroll bar.
        layout = {"align_self": "flex-start", "margin": "0"}
        self.picture = widgets.Image(value=drawn, format="png", layout=layout)
        self.controls = {
            name: _control(widgets, self._labels[name], options, first[name])
            for name, options in self._options.items()
        }
        self._message = widgets.HTML()
        self.widget = widgets.VBox([*self.controls.values(), self._message, self.picture])
        for control in self.controls.values():
            control.observe(self._update, "value")

    @property
    def setting(self) -> dict[str, Any]:
        """The value of each control."""
        return {name: control.value for name, control in self.controls.items()}

    def _first_setting(self) -> dict[str, Any]:
        signature = inspect.signature(self._function)
        try:
            signature.bind(**self._options)
        except TypeError as error:
            raise InvalidInput(
                f"{_name(self._function)}{signature} cannot be called with the controls "
                f"{', '.join(self._options)}: {error}"
            ) from None
        first = {}
        for name, options in self._options.items():
            values = list(options.values())
            default = getattr(signature.parameters.get(name), "default", None)
            first[name] = default if default in values else values[0]
        return first

    def _update(self, _: Any) -> None:
        if self._slowest > _SOON:
            self._message.value = say("drawing …")
        # Frontends do not show exceptions of callbacks.
        try:
            self.picture.value = self._draw(self.setting)
            self._message.value = ""
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            self._message.value = f"<pre style='color: #b00020'>{html.escape(text)}</pre>"

    def _draw(self, setting: Mapping[str, Any]) -> bytes:
        """Call the function; return its figure as PNG and close all figures that it opened."""
        pyplot = canvas.require("matplotlib.pyplot")
        open_before = set(pyplot.get_fignums())
        start = time.perf_counter()
        try:
            drawn = self._function(**setting)
            figure = getattr(drawn, "figure", drawn)
            if not hasattr(figure, "savefig"):
                raise InvalidInput(
                    f"{_name(self._function)} returned {type(drawn).__name__}; it must return the "
                    "matplotlib figure or axes that it has drawn"
                )
            return _png(figure)
        finally:
            self._slowest = max(self._slowest, time.perf_counter() - start)
            for number in set(pyplot.get_fignums()) - open_before:
                pyplot.close(number)

    def static(self) -> bytes:
        """Return an image (PNG) of up to four settings: the fallback without a running kernel.

        The first two controls take their first and last values, a single one four; others stay.
        """
        several = 4 if len(self._options) == 1 else 2
        ranges = [_ends(options, several) for options in list(self._options.values())[:2]]
        named = list(self._options)[: len(ranges)]
        panels = []
        for labels in product(*ranges):
            chosen = dict(zip(named, labels, strict=True))
            setting = self.setting | {name: self._options[name][chosen[name]] for name in named}
            title = ", ".join(f"{self._labels[name]} = {label}" for name, label in chosen.items())
            panels.append((title, self._draw(setting)))
        # 256 colors are enough for a drawing, and take a quarter of the bytes.
        image = canvas.require("PIL.Image").open(BytesIO(_png(_grid(panels))))
        image.convert("RGB").quantize(256).save(file := BytesIO(), format="png", optimize=True)
        return file.getvalue()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = {} if self.widget is None else dict(self.widget._repr_mimebundle_())
        bundle["text/plain"] = repr(self)
        bundle["image/png"] = b64encode(self.static()).decode()
        return bundle

    def __repr__(self) -> str:
        labels = {name: list(options) for name, options in self._options.items()}
        values = ", ".join(f"{name} = {labels[name][c.index]}" for name, c in self.controls.items())
        return f"explorer of {_name(self._function)}: {values}"


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _labeled(name: str, values: Any) -> tuple[str, Any]:
    """Return the text before a control, and its values."""
    if isinstance(values, tuple) and len(values) == 2 and isinstance(values[0], str):
        return values
    return say(name.replace("_", " ")), values


def _options(name: str, values: Any) -> dict[str, Any]:
    """Return the values of a control: label → value."""
    if isinstance(values, Mapping):
        options = {str(label): value for label, value in values.items()}
    elif (
        isinstance(values, tuple) and 2 <= len(values) <= 3 and all(type(v) is int for v in values)
    ):
        low, high, step = (*values, 1)[:3]
        options = {str(value): value for value in range(low, high + 1, step or 1)}
    elif isinstance(values, Iterable) and not isinstance(values, str | tuple):
        options = {str(value): value for value in values}
    else:
        options = {}
    if not 1 <= len(options) <= _MOST_VALUES:
        raise InvalidInput(
            f"{name} must be (low, high) or (low, high, step) of integers, a list, or a dictionary "
            f"of labels → values, with 1 to {_MOST_VALUES} values; found {values!r}"
        )
    return options


def _control(widgets: Any, label: str, options: dict[str, Any], first: Any) -> Any:
    """Make a slider for numbers, else a dropdown list."""
    numbers = all(isinstance(value, int | float) for value in options.values())
    kind = widgets.SelectionSlider if numbers else widgets.Dropdown
    more: dict[str, Any] = {"continuous_update": False} if numbers else {}
    more |= {"description": label, "style": {"description_width": "initial"}}
    return kind(options=list(options.items()), value=first, **more)


def _ends(options: dict[str, Any], count: int) -> list[str]:
    """Return up to ``count`` labels from the first to the last, evenly spaced."""
    labels = list(options)
    count = min(count, len(labels))
    return [labels[round(i * (len(labels) - 1) / max(count - 1, 1))] for i in range(count)]


def _png(figure: Any) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _grid(panels: list[tuple[str, bytes]]) -> Any:
    """Arrange images with titles above them, two in a row if they are narrow enough."""
    images = [canvas.require("matplotlib.image").imread(BytesIO(png)) for _, png in panels]
    high, wide = (max(image.shape[axis] for image in images) for axis in (0, 1))
    title, dpi = 28, 100
    columns = min(len(panels), 1 if wide > _WIDE else 2)
    rows = -(-len(panels) // columns)
    size = (columns * wide / dpi, rows * (high + title) / dpi)
    figure = canvas.require("matplotlib.figure").Figure(size, dpi=dpi)
    for i, (image, (text, _)) in enumerate(zip(images, panels, strict=True)):
        x, top = (i % columns) * wide, (rows - i // columns) * (high + title)
        figure.figimage(image, x, top - title - image.shape[0], origin="upper")
        style = {"ha": "center", "va": "center", "weight": "bold"}
        figure.text(
            (x + wide / 2) / (size[0] * dpi), (top - title / 2) / (size[1] * dpi), text, **style
        )
    return figure
