"""`make notebooks` stores what the cells say, and nothing of the chance in how they said it."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from nbformat import v4

ROOT = Path(__file__).resolve().parents[2]
spec = spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
notebooks = module_from_spec(spec)
spec.loader.exec_module(notebooks)


def canonical(*outputs):
    cell = v4.new_code_cell("1", outputs=list(outputs), metadata={"tags": ["build"], "collapsed": True})
    notebook = v4.new_notebook(cells=[cell], metadata={"widgets": {"state": {}}})
    notebooks.canonicalise(notebook)
    return notebook


def stream(text: str, name: str = "stdout"):
    return v4.new_output("stream", text=text, name=name)


def test_a_stream_that_came_in_pieces_is_one():
    (cell,) = canonical(stream("a\n"), stream("b\n"), stream("c\n", "stderr"), stream("d\n")).cells
    assert [(output.name, output.text) for output in cell.outputs] == [
        ("stdout", "a\nb\n"), ("stderr", "c\n"), ("stdout", "d\n")
    ]  # fmt: skip


def test_a_control_loses_its_random_id_and_says_what_it_is():
    widget = {"model_id": "5d1f", "version_major": 2, "version_minor": 0}
    data = {notebooks.WIDGET: widget, "text/plain": "interactive(children=(...))"}
    notebook = canonical(v4.new_output("display_data", data=data), stream("moved\n"))
    assert notebook.cells[0].outputs[0].data == {"text/plain": notebooks.STILL}
    assert notebook.cells[0].outputs[1].text == "moved\n"
    assert "widgets" not in notebook.metadata


def test_tags_stay_and_other_metadata_goes():
    assert canonical().cells[0].metadata == {"tags": ["build"]}


def test_solutions_are_stored_too():
    names = notebooks.stored()
    assert {"00_start_here.ipynb", "02_attention.ipynb", "solutions/02_attention.ipynb"} <= set(names)
    assert not [name for name in names if ".ipynb_checkpoints" in name]
