import os

# Some virtual machines announce AMX and end the program that uses it; tests in bfloat16 run everywhere without it.
# It must be said before torch is loaded.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import shutil
import signal

import pytest
import torch
from hypothesis import settings

# Same examples in every run: a red test stays red until it is mended.
settings.register_profile("course", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("course")
torch.set_num_threads(1)

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
QUIET += " --disable-component-update --disable-sync --disable-dev-shm-usage"


@pytest.fixture(autouse=True)
def _same_random_numbers():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium. Where none is installed, the test is skipped and says so."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        pytest.skip(f"no browser found (looked for {', '.join(BROWSERS)})")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=QUIET.split())
        yield browser
        browser.close()


def pytest_collection_modifyitems(items):
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no CUDA device here"))


@pytest.fixture
def with_ctrl_c():
    """Ctrl-C as a terminal has it: a suite that was started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
