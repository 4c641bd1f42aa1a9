"""Run notebooks again and store them in one canonical form, so that a re-run without a change leaves no diff.

`make notebooks` runs all, solutions too; `make notebooks ARGS=solutions/02_attention.ipynb` runs one.
"""

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"
STILL = "A control: run this notebook to move it."
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells from top to bottom in a fresh kernel; an error that no tag allows stops here."""
    with tempfile.TemporaryDirectory() as sockets:
        # Sockets in a folder of ours instead of ports that another program could take; Windows has only ports.
        private = {"transport": "ipc", "ip": str(Path(sockets) / "kernel")}
        client = NotebookClient(
            notebook,
            config=Config(KernelManager={} if os.name == "nt" else private),
            timeout=600,
            kernel_name="python3",
            record_timing=False,
            store_widget_state=True,  # a control's output needs it while it runs; `canonicalise` drops it
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute()


def canonicalise(notebook: nbformat.NotebookNode) -> None:
    """Keep tags and an assignment's marks; drop what depends on the machine, on the front end or on chance."""
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {key: cell.metadata[key] for key in ("nbgrader", "tags") if cell.metadata.get(key)}
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
        for output in cell.get("outputs", []):
            # A stored control has lost its kernel and cannot move; its id is random. Some bring a picture instead.
            if output.get("data", {}).pop(WIDGET, None) and "image/png" not in output.data:
                output.data["text/plain"] = STILL


def joined(outputs: list) -> list:
    """One stream where it arrived in pieces: how many pieces is a matter of timing."""
    whole = []
    for output in outputs:
        if whole and output.output_type == "stream" and whole[-1].get("name") == output.name:
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


def stored() -> list[str]:
    """All notebooks, solutions too, as paths below the folder of the notebooks."""
    found = (path.relative_to(NOTEBOOKS) for path in NOTEBOOKS.rglob("*.ipynb"))
    return sorted(path.as_posix() for path in found if ".ipynb_checkpoints" not in path.parts)


def main() -> None:
    # Figures show themselves. The inline backend would take over after the first control, with other margins.
    os.environ["MPLBACKEND"] = "agg"
    for name in sys.argv[1:] or stored():
        path = NOTEBOOKS / name
        before = path.read_text(encoding="utf-8")
        notebook = nbformat.reads(before, as_version=4)
        execute(notebook, path.parent)
        canonicalise(notebook)
        nbformat.validate(notebook)
        after = nbformat.writes(notebook) + "\n"
        if after != before:
            path.write_text(after, encoding="utf-8")
        print(f"{name}: {'unchanged' if after == before else 'stored anew'}")


if __name__ == "__main__":
    main()
