"""Moves everything that can be moved in the site's figures, by keyboard, and prints what it saw.

    python tests/site/browse_figures.py CHROMIUM SITE ROOT SETTINGS

SETTINGS is JSON, a list of settings of the cost model: name of a slider → its position.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[3])

from tests.site.browse_site import READY, TOO_WIDE, browse
from tests.site.browser import Page

PAGES = ("01_node_classification", "05_partitioning", "07_cluster_on_a_laptop", "10_scaling_study")
NOTE = """
window.faults = [];
addEventListener('error', (event) => faults.push(event.message));
console.error = console.warn = (...words) => faults.push(words.join(' '));
"""
CONTROLS = ".live-controls input, .live-controls button"
FIND = f"[...document.querySelectorAll({CONTROLS!r})]"
FIGURE = (
    "['.live-pictures', '.live-sentence'].map((c) => document.querySelector(c).innerHTML).join()"
)
SEEN = f"seen.add({FIGURE}).size"  # how many different figures there were
LABELS = (
    "[...document.querySelectorAll('.live-controls span, .live legend, .live-table [scope=col]')]"
)
FOREIGN = (
    "performance.getEntriesByType('resource').filter(e => !e.name.startsWith(location.origin))"
)
SHOWN = "[...document.querySelectorAll('.live-legend b')].map(b => [b.dataset.kind, b.textContent])"


def try_all(page: Page) -> list[str]:
    """Return the controls whose keys change nothing in the figure."""
    still = []
    for i in range(page.run(f"{FIND}.length")):
        page.run(f"{FIND}[{i}].focus(); window.seen = new Set(); {SEEN}")
        kind, name = page.run(
            f"(c => [c.type, c.dataset.key ?? c.ariaLabel ?? c.name])({FIND}[{i}])"
        )
        keys = [(" ", 32)] if kind == "button" else [("ArrowLeft", 37), ("ArrowRight", 39)]
        if max([page.press(*key) or page.run(SEEN) for key in keys]) == 1:
            still.append(f"{kind} {name}")
    return still


def choose(page: Page, setting: dict[str, int]) -> None:
    """Move sliders to these positions by keys."""
    for name, position in setting.items():
        page.run(f"document.querySelector('.live input[data-key={name}]').focus()")
        for key in [("Home", 36)] + [("ArrowRight", 39)] * position:
            page.press(*key)


def look(page: Page, address: str, site: Path, settings: list[dict[str, int]]) -> None:
    def go(lang: str, name: str) -> None:
        page.call("Page.navigate", url=f"{address}/{lang}/lessons/{name}.html")
        page.wait(f"location.href.includes('/{lang}/lessons/{name}') && {READY}")
        page.wait("document.querySelector('.live-pictures')?.children.length > 0")

    page.call("Page.enable")
    page.call("Page.addScriptToEvaluateOnNewDocument", source=NOTE)
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.call("Emulation.setDeviceMetricsOverride", **phone)
    for lang, letters in (("en", "[a-z]"), ("ko", "[가-힣]"), ("zh", "[一-鿿]")):
        for name in PAGES:
            go(lang, name)
            strange = f"{LABELS}.map(e => e.textContent).filter(t => !/{letters}/.test(t))"
            found = [*try_all(page), *page.run(strange)]
            found += ["too wide"] if page.run(TOO_WIDE) else []
            found += [*page.run("faults"), *page.run(f"{FOREIGN}.map(e => e.name)")]
            print(lang, name, found)
            page.run("document.querySelector('.live').scrollIntoView()")
            page.photograph(site / f"figure-{lang}-{name}.png")
    go("en", PAGES[-1])
    for setting in settings:
        choose(page, setting)
        print(json.dumps(page.run(SHOWN)))


def main(program: str, site: Path, settings: list[dict[str, int]]) -> None:
    with browse(program, site) as (page, address):
        look(page, address, site, settings)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[4]))
