"""A headless Chromium for tests of pages, by its debugging pipe: no driver and no further package.

Tests that need it skip, and say why, where there is no Chromium or no axe-core.

`python tests/browser.py PAGE.html ...` opens pages at both widths, light and dark, prints how long
each took to load by the browser's own clock and what axe-core found, and writes pictures next to.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import attrs
import pytest

AXE = Path(__file__).parents[1] / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def needed():
    """The paths of a browser and of axe-core, or a skipped test that says which is missing."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the path")
    axe = Path(os.environ.get("DPCORE_AXE", AXE))
    if not axe.is_file():
        pytest.skip(f"no axe-core at {axe}: make test-all installs it by npm, or set DPCORE_AXE")
    return found, axe


@attrs.frozen(kw_only=True)
class Visit:
    """What came of opening one page."""

    requests: list[str]
    complaints: list[str]
    milliseconds: float
    violations: list[str]
    unsure: list[str]
    wide: bool
    picture: bytes


class Browser:
    """One process. Messages end with a zero byte, as the debugging pipe wants it."""

    def __init__(self, path):
        self._folder = tempfile.TemporaryDirectory()
        mine, theirs = os.pipe(), os.pipe()
        command = (
            f'exec "{path}" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage '
            f'--hide-scrollbars --remote-debugging-pipe --user-data-dir="{self._folder.name}" '
            f"about:blank 3<&{mine[0]} 4>&{theirs[1]}"
        )
        self._process = subprocess.Popen(
            ["bash", "-c", command], pass_fds=(mine[0], theirs[1]),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(mine[0])
        os.close(theirs[1])
        self._out, self._in = os.fdopen(mine[1], "wb", 0), os.fdopen(theirs[0], "rb")
        self._sent, self._rest, self.events = 0, b"", []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.tell(f"{domain}.enable")

    def ask(self, method, session=None, **params):
        """The answer to one command; events meanwhile are kept."""
        self._sent += 1
        said = {"id": self._sent, "method": method, "params": params}
        if session:
            said["sessionId"] = session
        self._out.write(json.dumps(said).encode() + b"\0")
        while True:
            heard = self._heard()
            if heard.get("id") == self._sent:
                assert "error" not in heard, heard["error"]
                return heard["result"]

    def tell(self, method, **params):
        """One command to the page."""
        return self.ask(method, self._session, **params)

    def wait(self, method):
        """Until an event."""
        while not any(event["method"] == method for event in self.events):
            self._heard()

    def _heard(self):
        while b"\0" not in self._rest:
            more = self._in.read1(1 << 16)
            assert more, "the browser is gone"
            self._rest += more
        one, _, self._rest = self._rest.partition(b"\0")
        heard = json.loads(one)
        if "method" in heard:
            self.events.append(heard)
        return heard

    def report(self, script):
        """The value of an expression in the page; of a promise, what it holds."""
        found = self.tell(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def visit(self, file, axe, *, width, dark):
        """Open a file at a width in CSS pixels, and hold axe-core to it."""
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.tell("Page.navigate", url=Path(file).absolute().as_uri())
        self.wait("Page.loadEventFired")
        timing = "performance.getEntriesByType('navigation')[0].loadEventEnd"
        milliseconds = self.evaluated(
            f"new Promise(done => {{ const look = () => {timing} ? done({timing}) "
            ": setTimeout(look, 5); look(); })"
        )
        wide = self.evaluated("document.documentElement.scrollWidth > window.innerWidth")
        height = self.evaluated("document.documentElement.scrollHeight")
        self.evaluated(axe.read_text() + "; 0")
        found = self.evaluated("axe.run(document, {resultTypes: ['violations', 'incomplete']})")
        shot = self.tell(
            "Page.captureScreenshot", captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": width, "height": min(height, 9000), "scale": 1},
        )  # fmt: skip
        seen = [(event["method"], event["params"]) for event in self.events]
        return Visit(
            requests=[p["request"]["url"] for m, p in seen if m == "Network.requestWillBeSent"],
            complaints=[
                json.dumps(p)
                for m, p in seen
                if m in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
            ],
            milliseconds=milliseconds,
            violations=_flat(found["violations"]),
            unsure=_flat(found["incomplete"]),
            wide=wide,
            picture=base64.b64decode(shot["data"]),
        )

    def close(self):
        """End the process and drop its folder."""
        with contextlib.suppress(OSError, AssertionError):
            self.ask("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._out.close()
        self._in.close()
        self._folder.cleanup()


def _flat(found):
    """`RULE: ELEMENT: why`, of every element that is concerned."""
    return [
        f"{rule['id']}: {node['html'][:120]}: {' '.join(node.get('failureSummary', '').split())}"
        for rule in found
        for node in rule["nodes"]
    ]


def main(files):
    """Every file at every setting."""
    path, axe = needed()
    with contextlib.closing(Browser(path)) as opened:
        for file in map(Path, files):
            for width, dark in ((360, False), (360, True), (1200, False), (1200, True)):
                seen = opened.visit(file, axe, width=width, dark=dark)
                picture = file.with_suffix(f".{width}-{'dark' if dark else 'light'}.png")
                picture.write_bytes(seen.picture)
                print(
                    f"{picture}: {file.stat().st_size} bytes, {seen.milliseconds:.0f} ms, "
                    f"{len(seen.violations)} violations, {len(seen.complaints)} complaints, "
                    f"{len(seen.requests)} request"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
