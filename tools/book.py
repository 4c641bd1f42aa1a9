"""Build the book: `python tools/book.py`, or `make book`. It lies in docs/_build/html and needs no network.

The notebooks are not run: the book shows what is stored in them. A warning, a broken link and anything loaded from
outside are errors.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bookmaking.lessons import NOTEBOOKS, ROOT, BookError
from bookmaking.linkcheck import problems_of
from bookmaking.sources import prepare
from sphinx.cmd.build import build_main

MEGABYTE = 1e6


def build(folder: Path, notebooks: Path = NOTEBOOKS) -> Path:
    """Prepare the sources, build, check every link; returns the folder with the pages."""
    pages = folder / "html"
    shutil.rmtree(pages, ignore_errors=True)
    prepare(folder / "source", notebooks)
    options = ["-W", "--keep-going", "-q", "-E", "-b", "html", "-d", str(folder / "doctrees")]
    if build_main([*options, str(folder / "source"), str(pages)]):
        raise BookError("Sphinx has warnings, see above: mend the page or the cell that they name")
    for template in (pages / "_static").glob("*.html"):
        template.unlink()  # of the theme; no reader needs them
    problems = problems_of(pages)
    if problems:
        raise BookError("\n".join([f"{len(problems)} links or resources are wrong:", *problems]))
    return pages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "_build", help="where to build")
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        pages = build(options.folder)
    except BookError as error:
        raise SystemExit(f"The book was not built. {error}") from None
    size = sum(file.stat().st_size for file in pages.rglob("*") if file.is_file()) / MEGABYTE
    count, seconds = len(list(pages.rglob("*.html"))), time.perf_counter() - start
    print(f"{pages / 'index.html'}: {count} pages, {size:.1f} MB, in {seconds:.0f} s; links checked")


if __name__ == "__main__":
    main()
