"""Sliders before a picture: try settings out in a notebook, and read it where no kernel runs.

A widget lives in the kernel: without one, on GitHub or in a page made by nbconvert, nothing is left
of it. So an explorer shows itself in two forms at once, and whoever shows a notebook takes the one
that it can: the widget, or a picture of a few settings.

References
----------
IPython, "Integrating your objects with IPython", ``_repr_mimebundle_``.
"""

from __future__ import annotations

import html
import importlib
import inspect
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from itertools import product
from types import SimpleNamespace
from typing import Any

from gnnlab.errors import InvalidInput
from gnnlab.plot import canvas

__all__ = ["Explorer", "explore"]

_MOST_VALUES = 1000
_WIDE = 640  # pixels of a picture beside which no other fits


def explore(function: Callable[..., Any], /, **controls: Any) -> Explorer:
    """Put a slider or a list before each argument of a function that draws.

    As the last line of a cell it shows the controls and the picture, which is drawn anew when one
    is moved. Where no kernel runs, or ipywidgets is not installed, it shows a picture of up to four
    settings instead, which costs a call of the function each.

    Parameters
    ----------
    function : callable
        Takes the controls as keyword arguments; draws and returns a matplotlib figure or axes, as
        the functions of ``gnnlab.plot`` do.
    **controls
        Name of an argument → what it may be: ``(low, high)`` or ``(low, high, step)`` of integers,
        a list, or a dictionary of words → values. It begins with the default of the function where
        that is among them, else with the first.

    Returns
    -------
    Explorer

    Raises
    ------
    InvalidInput
        A control has no values, or the function has no such argument or returns no picture.

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
    """A function that draws, with a control for each argument; :func:`explore` makes it.

    Attributes
    ----------
    controls : dict of str to ipywidgets.Widget
        Setting ``controls[name].value`` does what moving the slider does.
    picture : ipywidgets.Image
        The figure as PNG.
    widget : ipywidgets.VBox or None
        Controls, picture, and the message of an error. None without ipywidgets: then there is no
        ``picture`` either, and a control has nothing but its value.
    """

    def __init__(self, function: Callable[..., Any], controls: Mapping[str, Any]) -> None:
        self._function = function
        self._options = {name: _options(name, values) for name, values in controls.items()}
        if not controls:
            raise InvalidInput(
                "there is nothing to control; name at least one argument, as in fanout=(1, 10)"
            )
        first = self._first_setting()
        drawn = self._draw(first)
        self.widget: Any = None
        try:
            widgets = importlib.import_module("ipywidgets")
        except ImportError:
            self.controls = {
                name: SimpleNamespace(value=first[name], index=_place(options, first[name]))
                for name, options in self._options.items()
            }
            return
        # With a margin, a picture as wide as the page would be wider, and get a bar to scroll.
        layout = {"align_self": "flex-start", "margin": "0"}
        self.picture = widgets.Image(value=drawn, format="png", layout=layout)
        self.controls = {
            name: _control(widgets, name, options, first[name])
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
            parameter = signature.parameters.get(name)
            values = list(options.values())
            default = parameter.default if parameter else None
            first[name] = default if default in values else values[0]
        return first

    def _update(self, _: Any) -> None:
        # An exception here would go to a log that nobody sees.
        try:
            self.picture.value = self._draw(self.setting)
            self._message.value = ""
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            self._message.value = f"<pre style='color: #b00020'>{html.escape(text)}</pre>"

    def _draw(self, setting: Mapping[str, Any]) -> bytes:
        """Call the function; return its picture as PNG, and leave no figure open."""
        pyplot = canvas.needed("matplotlib.pyplot")
        open_before = set(pyplot.get_fignums())
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
            for number in set(pyplot.get_fignums()) - open_before:
                pyplot.close(number)

    def static(self) -> bytes:
        """Draw up to four settings side by side, as PNG: what is seen where no kernel runs.

        The first two controls take their lowest and highest values, or four values where there is
        only one; the others stay as they are.
        """
        several = 4 if len(self._options) == 1 else 2
        ranges = [_ends(options, several) for options in list(self._options.values())[:2]]
        named = list(self._options)[: len(ranges)]
        panels = []
        for labels in product(*ranges):
            chosen = dict(zip(named, labels, strict=True))
            setting = self.setting | {name: self._options[name][chosen[name]] for name in named}
            title = ", ".join(f"{name} = {label}" for name, label in chosen.items())
            panels.append((title, self._draw(setting)))
        return _few_colors(_png(_grid(panels)))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = {} if self.widget is None else dict(self.widget._repr_mimebundle_())
        bundle["text/plain"] = repr(self)
        bundle["image/png"] = b64encode(self.static()).decode()
        return bundle

    def __repr__(self) -> str:
        words = {name: list(options) for name, options in self._options.items()}
        values = ", ".join(f"{name} = {words[name][c.index]}" for name, c in self.controls.items())
        return f"explorer of {_name(self._function)}: {values}"


def _place(options: dict[str, Any], value: Any) -> int:
    return list(options.values()).index(value)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _options(name: str, values: Any) -> dict[str, Any]:
    """Return what a control may be: the words shown → values."""
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
            f"of words → values, with 1 to {_MOST_VALUES} values; found {values!r}"
        )
    return options


def _control(widgets: Any, name: str, options: dict[str, Any], first: Any) -> Any:
    """Make a slider of numbers, else a list to choose from."""
    numbers = all(isinstance(value, int | float) for value in options.values())
    kind = widgets.SelectionSlider if numbers else widgets.Dropdown
    more = {"continuous_update": False} if numbers else {}
    return kind(
        options=list(options.items()), value=first, description=name.replace("_", " "), **more
    )


def _ends(options: dict[str, Any], count: int) -> list[str]:
    """Up to ``count`` labels from the first to the last, evenly apart."""
    labels = list(options)
    count = min(count, len(labels))
    return [labels[round(i * (len(labels) - 1) / max(count - 1, 1))] for i in range(count)]


def _png(figure: Any) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _few_colors(png: bytes) -> bytes:
    """Keep 256 colors, which is enough for a drawing and takes a quarter of the bytes."""
    drawing = canvas.needed("PIL.Image").open(BytesIO(png)).convert("RGB").quantize(256)
    file = BytesIO()
    drawing.save(file, format="png", optimize=True)
    return file.getvalue()


def _grid(panels: list[tuple[str, bytes]]) -> Any:
    """Put pictures below their titles, pixel by pixel, two in a row where there is room."""
    images = [canvas.needed("matplotlib.image").imread(BytesIO(png)) for _, png in panels]
    high, wide = (max(image.shape[axis] for image in images) for axis in (0, 1))
    title, dpi = 28, 100
    columns = min(len(panels), 1 if wide > _WIDE else 2)
    rows = -(-len(panels) // columns)
    size = (columns * wide / dpi, rows * (high + title) / dpi)
    figure = canvas.needed("matplotlib.figure").Figure(size, dpi=dpi)
    for i, (image, (text, _)) in enumerate(zip(images, panels, strict=True)):
        x, top = (i % columns) * wide, (rows - i // columns) * (high + title)
        figure.figimage(image, x, top - title - image.shape[0], origin="upper")
        style = {"ha": "center", "va": "center", "weight": "bold"}
        figure.text(
            (x + wide / 2) / (size[0] * dpi), (top - title / 2) / (size[1] * dpi), text, **style
        )
    return figure
