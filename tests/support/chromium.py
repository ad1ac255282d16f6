"""A real headless Chromium, driven over the DevTools protocol through a pipe."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--remote-debugging-pipe")  # fmt: skip
TIMEOUT = 60.0
SHIFT = 8
Json = dict[str, Any]


def chromium() -> str:
    """The browser's program; skips the test where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no Chromium on this machine ({', '.join(NAMES)}): apt-get install chromium")
    return found


class Browser:
    """One page in a browser of its own. `events` has what the page logged, asked of the network and threw."""

    def __init__(self, profile: Path, size: tuple[int, int] = (1400, 900), *flags: str) -> None:
        program = chromium()
        asked, self._out = os.pipe()
        self._in, told = os.pipe()
        wired = f'exec "$@" 3<&{asked} 4>&{told}'  # the browser reads commands from 3 and writes answers to 4
        options = [f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", *flags, "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", wired, "browser", program, *FLAGS, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(asked, told),
            start_new_session=True,
        )
        os.close(asked)
        os.close(told)
        self._rest = b""
        self._number = 0
        self.events: list[Json] = []
        target = next(t for t in self._send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self._send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):
            self._send("Browser.close")
        os.close(self._out)
        os.close(self._in)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait()

    def send(self, method: str, **params: Any) -> Json:
        """Give the page a command and return its answer."""
        return self._send(method, self._session, **params)

    def open(self, path: Path) -> None:
        """Open a file and wait until the page has drawn something."""
        self.send("Page.navigate", url=path.resolve().as_uri())
        drawn = "document.getElementById('view')?.textContent.includes('in view')"
        self.wait_for(f"{drawn} || document.querySelector('.alone.bad')")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; awaits a promise."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"].get("exception", answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """The expression's value once it is true."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            value = self.run(script)
            if value:
                return value
            self.run("new Promise((next) => setTimeout(next, 20))")
        raise AssertionError(f"{script} did not come true; the page: {self.text('body')[:2000]}")

    def frame(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run("new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))")

    def text(self, selector: str) -> str:
        """The text of an element, "" if there is none."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def key(self, key: str) -> None:
        """Press and release a key."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frame()

    def type(self, text: str) -> None:
        """Put text where the cursor is."""
        self.send("Input.insertText", text=text)

    def press(self, selector: str, containing: str = "") -> None:
        """Click the first element of a selector that has the text."""
        of_text = f"(e) => e.innerText.includes({json.dumps(containing)})"
        self.run(f"[...document.querySelectorAll({json.dumps(selector)})].find({of_text}).click()")
        self.frame()

    def click(self, x: float, y: float, modifiers: int = 0) -> None:
        """Click at a place of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, modifiers=modifiers)
        self.frame()

    def screenshot(self, path: Path) -> Path:
        """Write a PNG of the window."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))
        return path

    def troubles(self) -> list[Json]:
        """What no page of ours may do: throw, log an error, be stopped by its policy, ask for anything but itself."""
        return [event for event in self.events if _is_trouble(event["method"], event["params"])]

    def _send(self, method: str, session: str | None = None, **params: Any) -> Json:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            if "method" in answer:
                self.events.append(answer)

    def _read(self) -> Json:
        while b"\0" not in self._rest:
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise AssertionError("the browser is gone")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))


def _is_trouble(method: str, params: Json) -> bool:
    if method == "Network.requestWillBeSent":
        return params["request"]["url"].partition(":")[0] not in ("file", "about")
    if method == "Log.entryAdded":
        return params["entry"]["level"] == "error"
    return method in ("Runtime.exceptionThrown", "Page.javascriptDialogOpening")
