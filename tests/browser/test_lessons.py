"""Lessons run in a real JupyterLab, as a learner would run them."""

import pytest

pytestmark = pytest.mark.browser

# True when the notebook is open, its kernel is connected and has nothing to do.
IDLE = """() => {
    const widget = window.jupyterapp?.shell?.currentWidget;
    const kernel = widget?.context?.isReady && widget.sessionContext?.session?.kernel;
    return Boolean(kernel && kernel.connectionStatus === 'connected' && kernel.status === 'idle');
}"""
RUN_ALL = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
CLEAR = "() => { window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs'); }"
# Every cell's outputs, by the cell's id, as text or as the size of the picture shown.
OUTPUTS = """() => Object.fromEntries(window.jupyterapp.shell.currentWidget.content.widgets.map(cell => {
    const area = cell.node.querySelector('.jp-OutputArea');
    const picture = area?.querySelector('img');
    return [cell.model.id, picture ? [picture.naturalWidth, picture.naturalHeight] : area?.innerText ?? ''];
}))"""


def wait_until_idle(page):
    for _ in range(2):  # a kernel that has just started is idle for a moment before it is told what to do
        page.wait_for_function(IDLE, timeout=60_000)
        page.wait_for_timeout(500)


def test_start_here_runs_and_shows_its_attention_matrix(lab, page, tmp_path):
    address, token = lab
    page.goto(f"{address}/lab/tree/00_start_here.ipynb?token={token}")
    wait_until_idle(page)
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
