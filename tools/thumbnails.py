"""Make the README's pictures of the lessons: one stored figure of each, small.

`make thumbnails` reads the notebooks as they are stored, so run `make notebooks` first where a lesson has changed.
"""

import base64
import io
from pathlib import Path

import nbformat
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "figures" / "lessons"
SIZE = (300, 200)  # pixels; shown half as large
CHOSEN = {  # lesson to the cell whose figure stands for it
    "00_start_here": "explorer",
    "01_before_attention": "lengths-figure",
    "02_attention": "look-plot",
    "03_masks": "look-plot",
    "04_heads": "control-figure",
    "05_positions": "look-table",
    "06_model": "trace-decoder-plot",
    "07_training": "control-figure",
    "08_decoding": "look-plot",
    "09_inside": "find-plot",
    "10_translator": "control-figure",
    "11_tables": "variations-figure",
    "12_after": "long-figure",
}


def figure(lesson: str, cell_id: str) -> Image.Image:
    """The first picture that this cell shows."""
    cells = nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4).cells
    for output in next(cell for cell in cells if cell.id == cell_id).outputs:
        if "image/png" in output.get("data", {}):
            return Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))).convert("RGB")
    raise SystemExit(f"{lesson}: the cell {cell_id!r} shows no picture; choose another in tools/thumbnails.py")


def thumbnail(picture: Image.Image) -> Image.Image:
    """The whole picture on white, as large as it fits."""
    picture.thumbnail(SIZE, Image.Resampling.LANCZOS)
    card = Image.new("RGB", SIZE, "white")
    card.paste(picture, ((SIZE[0] - picture.width) // 2, (SIZE[1] - picture.height) // 2))
    return card.quantize(64)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for lesson, cell_id in CHOSEN.items():
        path = FOLDER / f"{lesson}.png"
        thumbnail(figure(lesson, cell_id)).save(path, optimize=True)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
