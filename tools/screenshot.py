"""Take the README's picture of the attention explorer: a pronoun looks for its antecedent.

Run: make screenshot (needs Chromium or Chrome).
"""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tinytransformer import explore
from tinytransformer.text.microworld import generate

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "figures" / "explorer.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        raise SystemExit(f"No browser was found: install one of {', '.join(BROWSERS)}.")
    example = next(iter(generate("test_pronoun", 1, 1)))
    explorer = explore(model="microworld-en-de", example=example)
    pronoun = explorer.groups[0].queries.index(f"▁{example.source_words[example.pronouns[0]['position']]}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = explorer.save_html(Path(folder) / "page.html")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1060, "height": 900}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.select_option(".tt-kind", label="encoder self-attention")
        page.click(f".tt-token[data-side=query][data-index='{pronoun}']")
        page.mouse.move(0, 0)
        page.locator(".tt-explorer").screenshot(path=PICTURE)
        browser.close()
    print(f"{PICTURE.name}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
