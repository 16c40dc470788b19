"""Pages in a Chromium that nobody drives: they ask for tasks, and post the results.

Standard library only: this runs on machines where nothing can be installed.
"""

import functools
import http.server
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

from bench.engines import Engine
from bench.processes import renderer_bytes
from bench.rounds import PageFault, PageTimeout

ISOLATION = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cache-Control": "no-cache",
}
MEDIA_TYPES = {".wasm": "application/wasm", ".mjs": "text/javascript", ".js": "text/javascript"}
QUIET_FLAGS = (
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-precise-memory-info",
)
# WebGPU on the machine's own graphics processor, without a screen.
GPU_FLAGS = (
    "--enable-unsafe-webgpu",
    "--use-angle=vulkan",
    "--enable-features=Vulkan",
    "--disable-vulkan-surface",
    "--ignore-gpu-blocklist",
)
CLOSING_LIMIT_S = 20
POLL_S = 5  # how often the browser's log is looked at while a page is waited for


class Browser:
    """A Chromium to start.

    It is a program, or a folder that has it with its libraries and driver file (chromium/, lib/,
    icd/).
    """

    def __init__(self, where: Path, flags: list[str]) -> None:
        self.program, self.environment = where, dict(os.environ)
        self.flags = flags or list(GPU_FLAGS)
        if where.is_dir():
            self.program = where / "chromium" / "chromium-headless-shell"
            libraries = f"{where}/chromium:{where}/lib:{os.environ.get('LD_LIBRARY_PATH', '')}"
            drivers = ":".join(str(icd) for icd in sorted((where / "icd").glob("*.json")))
            self.environment |= {
                "LD_LIBRARY_PATH": libraries,
                "VK_ICD_FILENAMES": drivers,
                "VK_DRIVER_FILES": drivers,
            }

    def start(
        self, url: str, profile: Path, flags: tuple[str, ...] = ()
    ) -> "subprocess.Popen[bytes]":
        """Open a page, with these flags beside the usual ones."""
        profile.mkdir(parents=True, exist_ok=True)
        log = (profile / "browser.log").open("wb")
        return subprocess.Popen(
            [
                str(self.program),
                "--headless",
                *QUIET_FLAGS,
                *self.flags,
                *flags,
                f"--user-data-dir={profile}",
                "--remote-debugging-port=0",  # without one, headless Chromium ends at once
                url,
            ],
            env=self.environment,
            stdout=log,
            stderr=log,
        )


class Mailbox:
    """The tasks of a page, and their results."""

    def __init__(self) -> None:
        self.tasks: queue.Queue[dict[str, Any]] = queue.Queue()
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()


class _HttpServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a page may end a fetch at any time
            super().handle_error(request, client_address)


class Server:
    """A folder's files, the tasks of pages, and a count of the bytes that went out."""

    def __init__(self, folder: Path) -> None:
        self.mailboxes: dict[str, Mailbox] = {}
        self.sent_bytes = 0
        handler = functools.partial(_Handler, self, directory=str(folder))
        self._http = _HttpServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._http.server_port}/"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, server: Server, *arguments: Any, directory: str) -> None:
        self.bench = server
        self.extensions_map = {**self.extensions_map, **MEDIA_TYPES}
        super().__init__(*arguments, directory=directory)

    def end_headers(self) -> None:
        for name, value in ISOLATION.items():
            self.send_header(name, value)
        super().end_headers()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        while block := source.read(1 << 20):
            self.bench.sent_bytes += len(block)
            outputfile.write(block)

    def do_POST(self) -> None:
        """Take the result of a page's last task, and answer with the next once there is one."""
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        mailbox = self.bench.mailboxes[query["page"][0]]
        done = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if done:
            mailbox.answers.put(done)
        body = json.dumps(mailbox.tasks.get()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


class RemotePage:
    """A page in a browser of its own; tasks go to it through a mailbox of the server."""

    numbers = itertools.count()

    def __init__(self, server: Server, browser: Browser, engine: Engine, profile: Path) -> None:
        name = f"{engine.key}-{next(self.numbers)}"
        self._server, self._profile = server, profile
        self._sent_before = server.sent_bytes
        self._mailbox = server.mailboxes[name] = Mailbox()
        url = f"{server.address}{engine.page}?remote&page={name}"
        self._browser = browser.start(url, profile, engine.flags)

    def call(self, method: str, *arguments: Any, limit_s: float) -> Any:
        if method == "reached":  # a page that is at work takes no task
            raise PageFault("not known")
        self._mailbox.tasks.put({"method": method, "args": arguments})
        answer = self._answer(limit_s)
        if "error" in answer:
            raise PageFault(answer["error"])
        return answer["result"]

    def _answer(self, limit_s: float) -> dict[str, Any]:
        """Wait for the page's answer, but not for a page that crashed."""
        due = time.monotonic() + limit_s
        while (left := due - time.monotonic()) > 0:
            try:
                return self._mailbox.answers.get(timeout=min(left, POLL_S))
            except queue.Empty:
                crashes = [line for line in self._log_lines() if ":FATAL:" in line]
                if crashes:
                    raise PageFault(f"the page crashed: {crashes[-1][-200:]}") from None
        last_words = [line[-200:] for line in self._log_lines()[-1:]]
        raise PageTimeout(f"not done after {limit_s:.0f} s ({''.join(last_words) or 'no word'})")

    def _log_lines(self) -> list[str]:
        return (self._profile / "browser.log").read_text(errors="replace").strip().splitlines()

    def fetched_bytes(self) -> int:
        return self._server.sent_bytes - self._sent_before

    def renderer_bytes(self) -> int | None:
        return renderer_bytes(self._profile)

    def close(self) -> None:
        self._browser.terminate()
        try:
            self._browser.wait(CLOSING_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._browser.kill()
            self._browser.wait()
