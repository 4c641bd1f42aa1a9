"""The saved page: state, script and style sheet in one HTML file that asks nobody for anything."""

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from tinytransformer.inspection.explorer.data import ExplorerError

MARK = "<!-- attention explorer -->"  # how a page of ours is known again
START = '\nmount(document.getElementById("explorer"), saved(document.getElementById("state").textContent));\n'
PAGE = """\
<!doctype html>
{mark}
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Attention explorer</title>
<style>{style}</style>
</head>
<body class="tt-page">
<main id="explorer"></main>
<noscript>This page draws attention weights with JavaScript, which is switched off here.</noscript>
<script type="application/json" id="state">{state}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def asset(name: str) -> str:
    """A file that lies beside this one, as text."""
    return files("tinytransformer.inspection.explorer").joinpath(name).read_text(encoding="utf-8")


def page_of(state: dict[str, Any]) -> str:
    """The whole page. Only its own script and style may run, and nothing may be loaded: its policy says so."""
    script, style = asset("explorer.js") + START, asset("explorer.css")
    policy = (
        f"default-src 'none'; script-src {_fingerprint(script)}; style-src {_fingerprint(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return PAGE.format(mark=MARK, policy=policy, style=style, state=embedded(state), script=script)


def embedded(state: dict[str, Any]) -> str:
    """JSON that can stand inside a script element: no token can close the element or start a comment."""
    text = json.dumps(state, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _fingerprint(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def writable(path: str | Path) -> Path:
    """The path, if a page may be written there: a new file, or a page of ours that is then replaced."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ExplorerError(f"there is no folder {path.parent}: make it first, or choose another place for {path.name}")
    if path.is_dir():
        raise ExplorerError(f"{path} is a folder: give the name of a file, such as {path / 'attention.html'}")
    if path.exists():
        with path.open("rb") as file:
            ours = MARK.encode("ascii") in file.read(200)
        if not ours:
            raise ExplorerError(f"{path} exists and is no page of the explorer: choose another name, or delete it")
    return path


def write(path: Path, text: str) -> None:
    """Write a file; it appears whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
