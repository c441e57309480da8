"""A headless Chromium that shows one file, driven over the DevTools protocol by two pipes: JSON messages, each ended by
NUL, on its file descriptors 3 and 4 (--remote-debugging-pipe). No library, no port, no network.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
LIMIT_S = 120.0  # for one answer: a machine that is busy takes its time
# The child's ends become 3 and 4 in a process of its own, where nothing of ours can be in the way.
_LAUNCH = (
    "import fcntl, os, sys; r, w = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]);"
    "os.dup2(r, 3); os.dup2(w, 4); os.execvp(sys.argv[3], sys.argv[3:])"
)
_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "Tab": ("Tab", 9, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "PageDown": ("PageDown", 34, ""),
    "Home": ("Home", 36, ""),
    "End": ("End", 35, ""),
    "/": ("Slash", 191, "/"),
    " ": ("Space", 32, " "),
}


class BrowserError(Exception):
    """What Chromium, or a script in its page, answered in place of a result."""


def chromium() -> str | None:
    """The program; None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def for_tests(directory: Path, shows: str) -> Iterator[Browser]:
    """One whose profile is in `directory`. Where none is installed the test is skipped, or fails if it is required."""
    program = chromium()
    if program is None:
        why = f"no Chromium, which shows {shows}: apt-get install chromium"
        if os.environ.get("GPUNODE_BROWSER_REQUIRED") == "1":
            pytest.fail(why)
        pytest.skip(why)
    with started(program, directory / "profile") as one:
        yield one


@contextmanager
def started(program: str, profile: Path) -> Iterator[Browser]:
    """A browser with one page, ended afterwards with all its processes; `profile`: an empty directory."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    alone = ("unshare", "--net", "--") if os.geteuid() == 0 and _may_unshare() else ()
    argv = (
        *alone,
        *(sys.executable, "-c", _LAUNCH, str(to_read), str(from_write), program),
        *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars"),
        *("--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", "--window-size=1400,900"),
        "about:blank",
    )
    log = profile.with_suffix(".log")
    with log.open("wb") as errors:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            pass_fds=(to_read, from_write),
            start_new_session=True,
            env={**os.environ, "HOME": str(profile)},
        )
    os.close(to_read)
    os.close(from_write)
    try:
        yield Browser(to_write, from_read)
    except (BrokenPipeError, EOFError) as error:
        raise BrowserError(f"Chromium has ended: {log.read_text(errors='replace')[-2000:]}") from error
    finally:
        os.close(to_write)
        os.close(from_read)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its own session, which this process began
        process.wait()


def _may_unshare() -> bool:
    return subprocess.run(("unshare", "--net", "true"), capture_output=True, check=False).returncode == 0


class Browser:
    """One page of a Chromium. What it says unasked (errors, requests) is kept in `events`."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        os.set_blocking(read, False)
        with contextlib.suppress(OSError):
            fcntl.fcntl(read, 1031, 1 << 20)  # F_SETPIPE_SZ: a PDF comes in one message
        self._selector = selectors.DefaultSelector()
        self._selector.register(read, selectors.EVENT_READ)
        self._rest = bytearray()
        self._id = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        target = pages[0]["targetId"] if pages else self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Its result. Raises BrowserError."""
        self._id += 1
        message = {"id": self._id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = memoryview(json.dumps(message).encode() + b"\0")
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._id:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + LIMIT_S
        seen = 0  # of a long message only what is new is looked through
        while (end := self._rest.find(b"\0", seen)) < 0:
            seen = len(self._rest)
            if not self._selector.select(max(0.0, until - time.monotonic())):
                raise BrowserError(f"no answer within {LIMIT_S:.0f} s")
            if not (piece := os.read(self._read, 1 << 20)):
                raise EOFError
            self._rest += piece
        message = json.loads(self._rest[:end])
        del self._rest[: end + 1]
        return dict(message)

    def open(self, url: str) -> None:
        """Loads it anew, and waits for that; an address that differs behind # alone would only be gone to."""
        self._navigate("about:blank")
        self.events.clear()
        self._navigate(url)

    def _navigate(self, url: str) -> None:
        loader = self.call("Page.navigate", url=url)["loaderId"]
        while not any(
            event["method"] == "Page.lifecycleEvent"
            and (event["params"]["name"], event["params"]["loaderId"]) == ("load", loader)
            for event in self.events
        ):
            self.events.append(self._next())

    def js(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for. Raises BrowserError with its exception."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in result:
            raise BrowserError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def settle(self) -> None:
        """Two frames later what was asked for is drawn."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def press(self, key: str) -> None:
        code, number, text = _KEYS[key]
        common = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settle()

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)
        self.settle()

    def click(self, selector: str) -> None:
        """With the mouse, in the middle of what the selector finds first."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.js(f"{found}.scrollIntoView({{block: 'nearest', inline: 'nearest'}})")
        box = self.js(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({found}.getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        self.settle()

    def emulate(self, *, media: str = "", dark: bool = False) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.settle()

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.settle()

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def pdf(self) -> bytes:
        self.settle()  # what has not been drawn yet cannot be printed
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def complaints(self) -> list[str]:
        """What the console, the policy and the network said: exceptions, refusals, requests beyond the file."""
        self.settle()
        found = []
        for event in self.events:
            method, params = event.get("method", ""), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Audits.issueAdded"):
                found.append(f"{method} {json.dumps(params)[:600]}")
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("file://", "about:blank")):
                    found.append(f"request for {url[:200]}")
        return found
