"""Opens a notebook in JupyterLab in a browser, runs it, moves a slider, and prints what it saw.

    python tests/plot/browse.py CHROMIUM FOLDER

FOLDER holds ``live.ipynb``, whose cell shows an explorer. The browser is driven by the DevTools
protocol, so no driver is needed.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
import websocket

DEADLINE = 200.0  # seconds for all; each step waits until then
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --disable-dev-shm-usage "
    "--window-size=1100,900 --remote-debugging-port=0"
)
SHOWN = "document.querySelector('.jp-Notebook img.widget-image')"
SHIFT = 8
READOUT = "document.querySelector('.widget-readout').textContent"

end = time.monotonic() + DEADLINE


def wait_for(what: str, look: Callable[[], Any]) -> Any:
    """Look again and again until there is something."""
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come within {DEADLINE:g} s")
        time.sleep(0.1)


@contextmanager
def process(arguments: list[str], env: dict[str, str], log: Path) -> Iterator[None]:
    """Run a program until the end of the block; then it gets SIGTERM, and SIGKILL if need be."""
    with open(log, "wb") as out:
        child = subprocess.Popen(
            arguments,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield
    except BaseException:
        print(log.read_text(errors="replace")[-3000:], file=sys.stderr)
        raise
    finally:
        child.terminate()
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


class Page:
    """A new tab of a browser."""

    def __init__(self, port: str, url: str) -> None:
        tab = requests.put(f"http://127.0.0.1:{port}/json/new?{quote(url)}", timeout=60).json()
        # With an origin, the browser would take this for a page that wants to control it.
        address, options = tab["webSocketDebuggerUrl"], {"suppress_origin": True}
        self.socket = websocket.create_connection(address, timeout=60, **options)
        self.count = 0

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; None where it fails, as while a page loads."""
        options = {"awaitPromise": True, "returnByValue": True}
        try:
            answer = self.call("Runtime.evaluate", expression=script, **options)
        except RuntimeError:  # the page was left meanwhile
            return None
        return answer["result"].get("value")

    def wait(self, script: str) -> Any:
        return wait_for(script, lambda: self.run(script))

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        box = f"document.querySelector('{selector}').getBoundingClientRect()"
        x, y = self.wait(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, code: int, modifiers: int = 0) -> None:
        """Press a key with its Windows code; modifiers are a sum of bits."""
        for kind in ("rawKeyDown", "keyUp"):
            names = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", type=kind, modifiers=modifiers, **names)

    def photograph(self, path: Path) -> None:
        path.write_bytes(b64decode(self.call("Page.captureScreenshot")["data"]))


def start_jupyter(stack: ExitStack, folder: Path, home: Path) -> str:
    """Serve the folder; returns the address, with its token to be put in place of {page}."""
    token = secrets.token_hex(16)
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    places += ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    env = {**os.environ, **{place: str(home / place) for place in places}, "HOME": str(home)}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
    command += [f"--ServerApp.root_dir={folder}", f"--IdentityProvider.token={token}"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    stack.enter_context(process(command, env, home / "jupyter.log"))
    runtime = home / "JUPYTER_RUNTIME_DIR"
    (info,) = wait_for("JupyterLab", lambda: list(runtime.glob("jpserver-*[0-9].json")))
    port = wait_for("its port", lambda: _read(info).get("port"))
    return f"http://127.0.0.1:{port}/lab/tree/{{page}}?token={token}&reset"


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except ValueError:  # it is being written
        return {}


def start_browser(stack: ExitStack, program: str, home: Path) -> str:
    """Start a browser; returns the port at which it can be told what to do."""
    profile = home / "profile"
    env = {**os.environ, "HOME": str(home)}
    command = [program, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
    stack.enter_context(process(command, env, home / "browser.log"))
    found = profile / "DevToolsActivePort"
    wait_for("the browser", lambda: found.is_file() and found.read_text().count("\n"))
    return found.read_text().split()[0]


def look_at_live(page: Page) -> None:
    idle = "document.querySelector('#jp-main-statusbar').textContent.includes('| Idle')"
    # The status bar speaks of the notebook once somebody has clicked into it.
    wait_for("the kernel", lambda: page.click(".jp-Notebook .jp-InputPrompt") or page.run(idle))
    page.press("Enter", 13, SHIFT)
    page.wait(f"{SHOWN}.naturalWidth > 0")
    content = f"fetch({SHOWN}.src).then(r => r.text())"
    before = page.wait(content)
    print("before", page.run(READOUT))
    # Beside the widget stands no second picture.
    print("other pictures", page.run("document.querySelectorAll('.jp-RenderedImage img').length"))
    page.run("document.querySelector('.jp-Notebook .noUi-handle').focus()")
    page.press("ArrowRight", 39)
    wait_for("another picture", lambda: page.run(content) not in (before, None))
    print("after", page.run(READOUT))


def main(program: str, folder: Path) -> None:
    home = folder / "home"
    home.mkdir()
    with ExitStack() as stack:
        address = start_jupyter(stack, folder, home)
        look_at_live(Page(start_browser(stack, program, home), address.format(page="live.ipynb")))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
