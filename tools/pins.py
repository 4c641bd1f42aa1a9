"""Write constraints.txt: the versions of everything that the pinned packages brought along.

Run by `make pins` after a pin in a requirements file has changed and the suite is green.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = """\
# The versions that the pins in requirements*.txt brought along, so that an installation next year gets the same
# (GPU libraries aside: torch itself names the versions of those).
# Written by `make pins`; do not edit.
"""


def main():
    pinned = set()
    for file in ROOT.glob("requirements*.txt"):
        names = re.findall(r"^([\w.-]+)==", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        pinned.update(name.lower() for name in names)  # pip lists Sphinx for sphinx
    command = [sys.executable, "-m", "pip", "list", "--format=freeze", "--exclude-editable", "--exclude=pip"]
    installed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    # A local version (+cpu, +cu130) names a build of this machine.
    lines = [line.split("+")[0] for line in installed if line.split("==")[0].lower() not in pinned]
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"constraints.txt: {len(lines)} versions")


if __name__ == "__main__":
    main()
