"""Opens the site in a browser and prints what it saw.

    python tests/site/browse_site.py CHROMIUM SITE ROOT

Width and colors are emulated: 390 pixels are a phone's.
"""

from __future__ import annotations

import functools
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, sys.argv[3])

from tests.site.browser import Page, start_browser

QUERIES = {"en": "neighbor sampling", "ko": "파티션", "zh": "采样"}
PAGES = (
    "index",
    "lessons/index",
    "lessons/01_node_classification",
    "lessons/07_cluster_on_a_laptop",
)
READY = "document.readyState === 'complete'"
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"
BACKGROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *words: object) -> None:
        pass


def is_dark(page: Page, scheme: str) -> bool:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.call("Emulation.setEmulatedMedia", features=features)
    return sum(page.wait(BACKGROUND)[:3]) < 200


def look(page: Page, address: str, site: Path) -> None:
    def go(path: str) -> None:
        page.call("Page.navigate", url=f"{address}/{path}")
        page.wait(f"location.href.includes({path!r}) && {READY}")

    page.call("Emulation.setLocaleOverride", locale="ko-KR")
    page.call("Emulation.setUserAgentOverride", userAgent="test", acceptLanguage="ko-KR")
    page.call("Page.navigate", url=f"{address}/index.html")
    page.wait(f"location.pathname !== '/index.html' && {READY}")
    print("start", page.run("location.pathname.slice(1)"))
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.call("Emulation.setDeviceMetricsOverride", **phone)
    for lang in QUERIES:
        wide = []
        for name in PAGES:
            go(f"{lang}/{name}.html")
            if page.run(TOO_WIDE):
                wide.append(name)
            page.photograph(site / f"phone-{lang}-{name.replace('/', '-')}.png")
        print(lang, "too wide", wide)
    page.call("Emulation.clearDeviceMetricsOverride")
    go("ko/lessons/05_partitioning.html")
    page.run("document.querySelector('.site-languages a[lang=zh]').click()")
    page.wait(f"location.pathname.startsWith('/zh/') && {READY}")
    print("switched", page.run("document.documentElement.lang + ' ' + location.pathname"))
    for lang, query in QUERIES.items():
        go(f"{lang}/search.html?q=")
        page.run(f"location.search = '?q=' + encodeURIComponent({query!r})")
        print(lang, "found", page.wait("document.querySelectorAll('ul.search li').length > 0"))
    go("en/lessons/05_partitioning.html")
    print("dark", is_dark(page, "dark"), "light", not is_dark(page, "light"))
    page.photograph(site / "desktop-light.png")
    is_dark(page, "dark")
    page.photograph(site / "desktop-dark.png")
    seen = []
    for _ in range(12):
        page.press("Tab", 9)
        seen.append(page.run("document.activeElement.getAttribute('hreflang') || ''"))
    print("keyboard", {"ko", "zh"} <= set(seen))


@contextmanager
def browse(program: str, site: Path) -> Iterator[tuple[Page, str]]:
    """A page of a browser, and the address at which the site is served to it.

    The browser's home is beside the site: what it writes while it ends is in nobody's way there.
    """
    handler = functools.partial(Quiet, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = tempfile.TemporaryDirectory(dir=site.parent, ignore_cleanup_errors=True)
    with home as folder, ExitStack() as stack:
        port = start_browser(stack, program, Path(folder))
        yield Page(port, "about:blank"), f"http://127.0.0.1:{server.server_port}"


def main(program: str, site: Path) -> None:
    with browse(program, site) as (page, address):
        look(page, address, site)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
