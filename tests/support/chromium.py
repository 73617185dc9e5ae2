"""Chromium without a window, driven over its DevTools pipe: no driver, no package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Self

PROGRAM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage --no-default-browser-check --disable-extensions "
    "--remote-debugging-pipe"
)
PATIENCE = 60.0


class Chromium:
    """One page in one browser; `events` holds all that it reported."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        assert PROGRAM is not None
        self.home = TemporaryDirectory(prefix="chromium.", ignore_cleanup_errors=True)
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        words = [PROGRAM, *FLAGS.split(), f"--user-data-dir={self.home.name}", "about:blank"]
        shell = 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"'  # the pipe must be 3 and 4
        self.process = subprocess.Popen(
            ["bash", "-c", shell, str(theirs_in), str(theirs_out), *words],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.count, self.session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.out)
        os.close(self.into)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.home.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask, and wait for the answer."""
        self.count += 1
        message: dict[str, Any] = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, path: Path) -> None:
        """A file, until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self._next()

    def value(self, script: str) -> Any:
        """What an expression evaluates to."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def size(self, width: int, height: int, scale: float = 1) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=False)  # fmt: skip

    def dark(self, wanted: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if wanted else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def scripts(self, wanted: bool) -> None:
        self.call("Emulation.setScriptExecutionDisabled", value=not wanted)

    def screenshot(self, path: Path, selector: str = "body", margin: int = 0) -> None:
        """A picture of one element, wherever it is on the page."""
        place = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        box = self.value(f"(b => [b.x + scrollX, b.y + scrollY, b.width, b.height])({place})")
        clip = {"x": max(box[0] - margin, 0), "y": max(box[1] - margin, 0), "scale": 1}
        clip |= {"width": box[2] + 2 * margin, "height": box[3] + 2 * margin}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def window(self) -> bytes:
        """A PNG of what is in sight."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def print(self, path: Path) -> None:
        """The page on paper, as PDF."""
        paper = self.call(
            "Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69
        )
        path.write_bytes(base64.b64decode(paper["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and exceptions nobody caught."""
        found = []
        for e in self.events:
            params = e["params"]
            if e["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:400])
            elif e["method"] == "Runtime.consoleAPICalled":
                found.append(json.dumps(params["args"])[:400])
            elif e["method"] == "Log.entryAdded":
                found.append(params["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Addresses asked for, data: aside."""
        sent = [
            e["params"]["request"]["url"]
            for e in self.events
            if e["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in sent if not url.startswith("data:")]

    def _next(self) -> dict[str, Any]:
        """The next message; events are kept."""
        end = monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            if not select.select([self.into], [], [], max(end - monotonic(), 0))[0]:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self.into, 1 << 20)
            if not more:
                raise RuntimeError("Chromium has gone")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        if "method" in answer:
            self.events.append(answer)
        return answer
