"""Lessons run in a real JupyterLab, as a learner would run them."""

import pytest
from support_browser import RUN_ALL, wait_until_idle

pytestmark = pytest.mark.browser

CLEAR = "() => { window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs'); }"
# A cell's printed text, from the notebook itself: the page draws cells that are out of view later, or never.
PRINTED = """id => window.jupyterapp.shell.currentWidget.content.widgets.find(cell => cell.model.id === id)
    .model.outputs.toJSON().map(output => output.text ?? '').join('')"""
# One cell as a node of the page, brought into view.
CELL = """id => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets.find(cell => cell.model.id === id);
    cell.node.scrollIntoView();
    return cell.node;
}"""
# What a control shows: its printed numbers and its picture.
SHOWN = (
    """cell => [cell.querySelector('.jp-OutputArea pre')?.innerText, cell.querySelector('.jp-OutputArea img')?.src]"""
)


def open_alone(page, address: str, name: str, token: str) -> None:
    """Open a lesson in a workspace of its own: JupyterLab would open those of earlier tests again beside it."""
    page.goto(f"{address}/lab/workspaces/{name}/tree/{name}.ipynb?token={token}")
    wait_until_idle(page)


def test_start_here_runs_and_shows_its_attention_matrix(lab, page, tmp_path):
    address, token = lab
    open_alone(page, address, "00_start_here", token)
    page.evaluate(CLEAR)
    assert not page.evaluate(PRINTED, "perturb")
    page.evaluate(RUN_ALL)
    page.wait_for_function(f"id => ({PRINTED})(id).includes('Python 3')", arg="differ-versions", timeout=120_000)
    wait_until_idle(page)
    assert "self-test: 0 of 6 right" in page.evaluate(PRINTED, "self-test-answers")
    assert page.evaluate(PRINTED, "translate-one").count("→") == 2
    assert "(1, 8, 17)" in page.evaluate(PRINTED, "shapes")
    assert page.evaluate(PRINTED, "perturb").count("the same") == 7
    picture = page.evaluate_handle(CELL, "plot").as_element().wait_for_selector("img")
    assert picture.bounding_box()["width"] > 200, "the attention matrix is a picture of some size"
    page.evaluate_handle(CELL, "explorer").as_element().wait_for_selector(".tt-explorer .tt-token", timeout=30_000)
    page.screenshot(path=tmp_path / "start_here.png")


def shown_after(cell, before: list[str]) -> list[str]:
    """What the cell shows once its numbers and its picture both differ from before."""
    for _ in range(100):
        now = cell.evaluate(SHOWN)
        if all(now) and all(one != other for one, other in zip(now, before, strict=True)):
            return now
        cell.owner_frame().page.wait_for_timeout(200)
    pytest.fail(f"nothing changed: {[part[:80] for part in before]}")


def move_explorer(page, name: str) -> None:
    """Point at two tokens of an explorer, one after the other: the numbers beside the keys must change."""
    cell = page.evaluate_handle(CELL, name).as_element()
    cell.wait_for_selector(".tt-token[data-side=query]", timeout=60_000)
    seen = []
    for index in (1, 4):
        cell.query_selector(f".tt-token[data-side=query][data-index='{index}']").hover()
        numbers = cell.query_selector_all(".tt-token[data-side=key] .tt-number")
        seen.append([number.text_content() for number in numbers])
    assert all(seen[0]), "every key has a number"
    assert seen[0] != seen[1]


EXPLORERS = {"09_inside": ("look-explorer", "look-captions")}  # cells that show one


@pytest.mark.parametrize(
    ("name", "last", "sliders", "boxes"),
    [
        ("01_before_attention", "stub-5", 1, 0),
        ("02_attention", "stub-6", 1, 1),
        ("03_masks", "stub-5", 2, 1),
        ("04_heads", "stub-6", 3, 1),
        ("05_positions", "stub-6", 2, 0),
        ("06_model", "stub-6", 2, 0),
        ("07_training", "stub-6", 2, 0),
        ("08_decoding", "stub-6", 2, 0),
        ("09_inside", "stub-6", 2, 0),
        ("10_translator", "stub-6", 1, 1),
        ("11_tables", "stub-5", 2, 0),
        ("12_after", "stub-5", 1, 0),
    ],
)
def test_every_control_changes_numbers_and_picture(lab, page, tmp_path, name, last, sliders, boxes):
    address, token = lab
    open_alone(page, address, name, token)
    page.evaluate(CLEAR)
    page.evaluate(RUN_ALL)
    page.wait_for_function(f"id => ({PRINTED})(id).includes('not attempted yet')", arg=last, timeout=400_000)
    wait_until_idle(page)
    cell = page.evaluate_handle(CELL, "control-move").as_element()
    handles, ticks = cell.query_selector_all(".noUi-handle"), cell.query_selector_all("input[type=checkbox]")
    assert (len(handles), len(ticks)) == (sliders, boxes)
    shown = shown_after(cell, ["", ""])
    for handle in handles:
        handle.press("ArrowLeft")
        shown = shown_after(cell, shown)
    for tick in ticks:
        tick.click()
        shown = shown_after(cell, shown)
    for explorer in EXPLORERS.get(name, ()):
        move_explorer(page, explorer)
    page.screenshot(path=tmp_path / f"{name}.png")
