"""The book, built once for all tests, and served on this machine to a browser that can reach nothing else."""

import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Requests are recorded by the browser."""


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """`python tools/book.py`: what it printed, and the folder of pages. Its own process, as `make book` runs it."""
    folder = tmp_path_factory.mktemp("book")
    command = [sys.executable, str(ROOT / "tools" / "book.py"), "--folder", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout, folder / "html"


@pytest.fixture(scope="session")
def site(built):
    """The folder of pages."""
    return built[1]


@pytest.fixture(scope="session")
def served(site):
    """The address of the pages."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def reader(browser):
    """A page whose requests to anything but this machine are stopped. ``problems`` collects them, errors of scripts,
    messages of the console and files that are missing; at the end there must be none."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.problems = []
    page.route("**/*", lambda route: route.continue_() if is_ours(route.request.url) else route.abort())
    page.on("request", lambda one: None if is_ours(one.url) else page.problems.append(f"asked for {one.url}"))
    page.on("websocket", lambda one: page.problems.append(f"opened {one.url}"))
    page.on("pageerror", lambda error: page.problems.append(f"{page.url}: {error}"))
    page.on("console", lambda one: page.problems.append(f"{page.url}: {one.text}") if one.type == "error" else None)
    page.on("response", lambda one: page.problems.append(f"{one.url}: {one.status}") if one.status >= 400 else None)
    yield page
    page.close()
    assert page.problems == []


def is_ours(address: str) -> bool:
    return address.startswith(("http://127.0.0.1:", "file:", "data:", "blob:"))
