"""The widget of a notebook: hands the state to the page's script, and requests of the page to Python."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import traitlets

HERE = Path(__file__).parent


class ExplorerWidget(anywidget.AnyWidget):
    """``answer`` gets what the page asks for and returns the new state; an error of bad input is shown in the page."""

    _esm = HERE / "explorer.js"
    _css = HERE / "explorer.css"
    state = traitlets.Dict().tag(sync=True)
    request = traitlets.Dict().tag(sync=True)  # written by the page
    reply = traitlets.Dict().tag(sync=True)  # the number of the request that was answered, and its error

    def __init__(self, state: dict[str, Any], answer: Callable[[dict[str, Any]], dict[str, Any]] | None = None):
        super().__init__(state=state)
        self._answer = answer

    @traitlets.observe("request")
    def _on_request(self, change: Any) -> None:
        if self._answer is None or not change.new:
            return
        state, error = self.state, ""
        try:
            state = self._answer(change.new)
        except ValueError as problem:
            error = str(problem)
        with self.hold_sync():
            self.state, self.reply = state, {"number": change.new.get("number"), "error": error}
