"""Lessons run in a real JupyterLab, as a learner would run them."""

import pytest
from support_browser import RUN_ALL, wait_until_idle

pytestmark = pytest.mark.browser

CLEAR = "() => { window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs'); }"
# Every cell's outputs, by the cell's id, as text or as the size of the picture shown.
OUTPUTS = """() => Object.fromEntries(window.jupyterapp.shell.currentWidget.content.widgets.map(cell => {
    const area = cell.node.querySelector('.jp-OutputArea');
    const picture = area?.querySelector('img');
    return [cell.model.id, picture ? [picture.naturalWidth, picture.naturalHeight] : area?.innerText ?? ''];
}))"""


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
    assert not page.evaluate(OUTPUTS)["perturb"]
    page.evaluate(RUN_ALL)
    page.wait_for_function(f"() => ({OUTPUTS})()['perturb'].includes('changed')", timeout=60_000)
    wait_until_idle(page)
    outputs = page.evaluate(OUTPUTS)
    assert "(1, 8, 17)" in outputs["shapes"]
    assert min(outputs["plot"]) > 200, "the attention matrix is a picture of some size"
    assert outputs["perturb"].count("the same") == 7
    page.screenshot(path=tmp_path / "start_here.png")


def shown_after(cell, before: list[str]) -> list[str]:
    """What the cell shows once its numbers and its picture both differ from before."""
    for _ in range(100):
        now = cell.evaluate(SHOWN)
        if all(now) and all(one != other for one, other in zip(now, before, strict=True)):
            return now
        cell.owner_frame().page.wait_for_timeout(200)
    pytest.fail(f"nothing changed: {[part[:80] for part in before]}")


@pytest.mark.parametrize(
    ("name", "last", "sliders", "boxes"), [("02_attention", "stub-6", 1, 1), ("03_masks", "stub-5", 2, 1)]
)
def test_every_control_changes_numbers_and_picture(lab, page, tmp_path, name, last, sliders, boxes):
    address, token = lab
    open_alone(page, address, name, token)
    page.evaluate(CLEAR)
    page.evaluate(RUN_ALL)
    page.wait_for_function(f"id => ({PRINTED})(id).includes('not attempted yet')", arg=last, timeout=240_000)
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
    page.screenshot(path=tmp_path / f"{name}.png")
