"""A real JupyterLab server and a real browser, for tests that see what a learner sees."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(browser):
    """A new page; an error thrown by a script of the page fails the test."""
    page = browser.new_page(viewport={"width": 1280, "height": 1400})
    errors = []
    page.on("pageerror", lambda error: errors.append(error))
    yield page
    page.close()
    assert not [error for error in errors if not is_notebooks_own(error)]


def is_notebooks_own(error) -> bool:
    """Notebook 7.6 throws this once while it opens any notebook, with or without widgets."""
    return "reading 'schema'" in error.message and "/static/notebook/notebook_core" in (error.stack or "")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def lab(tmp_path_factory, browser):
    """The address of a JupyterLab that serves a copy of the notebooks, and the token to enter it."""
    with serving(tmp_path_factory.mktemp("lab"), "jupyterlab", "LabApp") as found:
        yield found


@pytest.fixture(scope="session")
def notebook7(tmp_path_factory, browser):
    """The same with Notebook 7."""
    with serving(tmp_path_factory.mktemp("notebook7"), "notebook", "JupyterNotebookApp") as found:
        yield found


@contextmanager
def serving(home: Path, module: str, application: str) -> Iterator[tuple[str, str]]:
    """A Jupyter server that runs while the block does: its address and its token."""
    shutil.copytree(ROOT / "notebooks", home / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    config = home / "config" / "labconfig"
    config.mkdir(parents=True)
    (config / "page_config.json").write_text(
        '{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}'
    )
    port, token = free_port(), secrets.token_hex(8)
    command = [
        sys.executable, "-m", module, "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--allow-root",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}",
        f"--{application}.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
        f"--ServerApp.root_dir={home / 'notebooks'}",
    ]  # fmt: skip
    folders = {name: str(home / name.lower()) for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    environment = {**os.environ, **folders, "JUPYTER_CONFIG_DIR": str(home / "config")}
    environment.pop("MPLBACKEND", None)  # the kernel chooses the inline one
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_up(f"{address}/api/status?token={token}", server, home / "server.log")
            yield address, token
        finally:
            server.terminate()
            server.wait(timeout=30)


def wait_until_up(address: str, server: subprocess.Popen, log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"Jupyter did not start:\n{log.read_text(errors='replace')[-2000:]}")
