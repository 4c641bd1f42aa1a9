"""How quickly the attention explorer redraws on hover, and how large its page is, at the largest size it promises.

60 tokens, 6 layers of 8 heads, three kinds of attention, in headless Chromium without a graphics card. In every frame
the pointer moves to another token or cell. Told are the processor's milliseconds on the page's main thread for a hover
(script, style, layout and paint; a frame has 16.7), and the time from frame to frame, which is 16.7 when every hover is
drawn within one frame, and longer when other programs keep the processor busy.

Run: python benchmarks/explorer.py (needs Chromium and requirements-test.txt)
"""

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

import torch
from playwright.sync_api import CDPSession, Page, sync_playwright

from tinytransformer import explore
from tinytransformer.model.recording import AttentionRecord

TOKENS, LAYERS, HEADS, SIZE = 60, 6, 8, 64
TARGETS = {
    "heads": ".tt-token",
    "matrix": ".tt-cell[data-query='30'], .tt-cell[data-key='30']",
    "model": ".tt-thumb",
    "neuron": ".tt-hit[data-feature]",
}
HOVER = """async selector => {
    const targets = [...document.querySelectorAll(selector)];
    const frames = [];
    const frame = () => new Promise(requestAnimationFrame);
    let before = await frame();
    for (const target of targets) {
        target.dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));
        const now = await frame();
        frames.push(now - before);
        before = now;
    }
    return frames;
}"""


def records() -> list[AttentionRecord]:
    """Random attention of the largest size."""
    generator = torch.Generator().manual_seed(0)
    tokens = tuple(f"▁word{number}" for number in range(TOKENS))
    found = []
    for layer in range(LAYERS):
        for kind in ("encoder", "decoder", "cross"):
            query, key = (torch.randn(1, HEADS, TOKENS, SIZE, generator=generator) for _ in range(2))
            scores = query @ key.transpose(-2, -1) / SIZE**0.5
            if kind == "decoder":
                scores = scores.masked_fill(~torch.ones(TOKENS, TOKENS).tril().bool(), float("-inf"))
            found.append(AttentionRecord(kind, layer, scores.softmax(-1), query, key, tokens, tokens))
    return found


def measure(page: Page, session: CDPSession, view: str) -> str:
    """One row of the table: hover over everything that a view has."""
    page.click(f"button[data-view={view}]")
    page.evaluate(HOVER, TARGETS[view])  # to warm up

    def busy() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in found if one["name"] == "TaskDuration")

    start = busy()
    frames = page.evaluate(HOVER, TARGETS[view])
    work = 1000 * (busy() - start) / len(frames)
    late = sum(one > 25 for one in frames)
    return f"| {view} | {len(frames)} | {work:.1f} | {statistics.median(frames):.1f} | {late} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    browser_path = parser.parse_args().browser
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = explore(records()).save_html(Path(folder) / "page.html")
        print(f"page: {path.stat().st_size / 1e6:.2f} MB\n")
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 1400})
        page.goto(path.as_uri())
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        print("| view | hovers | processor, ms a hover | frame to frame, ms | frames missed |")
        print("|---|--:|--:|--:|--:|")
        for view in TARGETS:
            print(measure(page, session, view))
        browser.close()


if __name__ == "__main__":
    main()
