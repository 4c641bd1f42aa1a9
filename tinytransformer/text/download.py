"""Downloads: one file at a time, resumed where it stopped, and kept only if it is the right one.

What is not yet whole lies beside its goal under the name ``….part``; the goal itself appears at once and complete.
"""

import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

CHUNK = 1 << 16
SECONDS = 30  # without a byte, and the server counts as gone


class DownloadError(OSError):
    """A file could not be fetched, or is not the one that was promised."""


def cache_folder() -> Path:
    """Where downloads are kept: the user's cache folder, never the installation."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tinytransformer"


def sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(address: str, goal: Path, checksum: str, progress: Callable[[int, int | None], None] | None = None) -> Path:
    """Download an address to a file unless the right one lies there already; returns the goal.

    ``progress`` is called with the bytes received and the bytes expected, if the server tells.
    """
    if goal.exists() and sha256(goal) == checksum:
        return goal
    goal.parent.mkdir(parents=True, exist_ok=True)
    part = goal.with_name(goal.name + ".part")
    try:
        _receive(address, part, progress or (lambda received, expected: None))
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        kept = f" {part.stat().st_size:,} bytes are kept, and the next try goes on from there." if part.exists() else ""
        raise DownloadError(
            f"{address} could not be fetched ({getattr(error, 'reason', error)}).{kept} "
            "Check the network, or give a folder that holds the files, with --data or in TINYTRANSFORMER_DATA."
        ) from error
    found = sha256(part)
    if found != checksum:
        part.unlink()
        raise DownloadError(
            f"{address} is not the file that was expected: its SHA-256 is {found}, it should be {checksum}. It was "
            "thrown away; try again, and if this happens twice, the file at that address has changed."
        )
    part.replace(goal)
    return goal


def _receive(address: str, part: Path, progress: Callable[[int, int | None], None]) -> None:
    """Append to what has been received already, if the server can go on from there; else begin anew."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416:  # 416: there is nothing behind what we have
            raise
        return
    with answer, part.open("ab" if answer.status == 206 else "wb") as file:
        received = have if answer.status == 206 else 0
        length = answer.headers.get("Content-Length")
        expected = received + int(length) if length else None
        while chunk := answer.read(CHUNK):
            file.write(chunk)
            received += len(chunk)
            progress(received, expected)
    if expected is not None and received < expected:  # Python takes a connection that was cut for the end of the file
        raise ConnectionError(f"the connection was cut after {received:,} of {expected:,} bytes")
