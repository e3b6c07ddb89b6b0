"""Starts a browser and drives it by the DevTools protocol, so that no driver is needed."""

from __future__ import annotations

import json
import os
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

    def press(self, key: str, code: int, modifiers: int = 0) -> None:
        """Press a key with its Windows code; modifiers are a sum of bits."""
        for kind in ("rawKeyDown", "keyUp"):
            names = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", type=kind, modifiers=modifiers, **names)

    def photograph(self, path: Path) -> None:
        path.write_bytes(b64decode(self.call("Page.captureScreenshot")["data"]))


def start_browser(stack: ExitStack, program: str, home: Path) -> str:
    """Start a browser; returns the port at which it can be told what to do."""
    profile = home / "profile"
    env = {**os.environ, "HOME": str(home)}
    command = [program, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
    stack.enter_context(process(command, env, home / "browser.log"))
    found = profile / "DevToolsActivePort"
    wait_for("the browser", lambda: found.is_file() and found.read_text().count("\n"))
    return found.read_text().split()[0]
