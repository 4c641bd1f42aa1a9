"""The front door: `explore` takes attention from wherever it comes, and `Explorer` shows it and saves it."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tinytransformer.inspection.explorer.data import ExplorerError, Group, from_records, from_weights
from tinytransformer.inspection.explorer.interventions import Request
from tinytransformer.inspection.explorer.page import page_of, writable, write
from tinytransformer.inspection.explorer.session import Session
from tinytransformer.inspection.explorer.state import state_of

PANELS = 48  # tokens that fit side by side into a static figure of all heads


class Explorer:
    """Attention to look at: the last expression of a notebook's cell shows it, `save_html` writes a page of its own.

    Where no widgets run (a page of a repository, a plain script) a notebook shows a static figure instead.
    """

    def __init__(self, groups: list[Group], session: Session | None = None, request: Request | None = None, **picture):
        self.groups, self.session, self.request, self.picture = groups, session, request, picture
        self.state = state_of(groups, **picture)

    @classmethod
    def live(cls, session: Session, request: Request, **picture) -> "Explorer":
        """An explorer whose sentence, heads and decoding can be changed."""
        groups, entries = session.answer(request)
        explorer = cls(groups, session, request, **picture)
        explorer.state = {**explorer.state, **explorer._fitting(entries), "live": True}
        return explorer

    def ask(self, **changes: Any) -> None:
        """Do what the page's controls do: ``explorer.ask(text="A cat.", silenced=[("cross", 0, 1)], beam=1)``."""
        if self.session is None:
            raise ExplorerError("this explorer has no model to ask: make it with explore(model=…, text=…)")
        state = self._answer({**vars(self.request), **changes})
        if "widget" in vars(self):
            self.widget.state = state

    def _answer(self, values: dict[str, Any]) -> dict[str, Any]:
        request = Request.of(values)
        groups, entries = self.session.answer(request)
        self.state = {**state_of(groups, **self.picture), **self._fitting(entries), "live": True}
        self.groups, self.request = groups, request
        return self.state

    def _fitting(self, entries: dict[str, Any]) -> dict[str, Any]:
        """What is known of a whole sentence cannot be laid over a part of it."""
        cut = self.picture.get("queries") or self.picture.get("keys")
        return {**entries, "gold": {}} if cut else entries

    @cached_property
    def widget(self) -> Any:
        """The widget itself, to be placed among others; needs anywidget, which the lab brings along."""
        from tinytransformer.inspection.explorer.widget import ExplorerWidget

        return ExplorerWidget(self.state, None if self.session is None else self._answer)

    def figure(self) -> Any:
        """A static picture: the heads of the last layer, or their mean where they would not fit side by side."""
        from tinytransformer.inspection import plots

        group = self.groups[-1]
        layer = group.layers[-1]
        names = (group.queries, group.keys, group.mask, f"{group.kind} layer {layer.number}")
        if len(layer.weights) * len(group.keys) <= PANELS:
            return plots.attention_heads(layer.weights, *names)
        return plots.attention_matrix(layer.weights.mean(0), *names[:3], f"{names[3]}, mean of heads")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        figure = {"image/png": self.figure()._repr_png_(), "text/plain": repr(self)}
        return {**self.widget._repr_mimebundle_()[0], **figure} if find_spec("anywidget") else figure

    def __repr__(self) -> str:
        shapes = (f"{g.kind} {len(g.layers)} × {len(g.layers[-1].weights)}" for g in self.groups)
        return f"<Explorer of {', '.join(shapes)} heads>"

    def save_html(self, path: str | Path, layers: Iterable[int] | None = None, silencing: bool = True) -> Path:
        """Write one page with all views, which needs no kernel and no network; a page that was there is replaced.

        ``layers`` are those with the neuron view (default: the last ones, as many as are small). ``silencing`` tries
        each head of a translator off, one by one, and measures it, so that the page can show it.
        """
        path = writable(path)
        picture = self.picture if layers is None else {**self.picture, "layers": layers}
        groups, entries = self.groups, {}
        if self.session is not None:
            groups, entries = self.session.page(self.request, silencing)
        write(path, page_of({**state_of(groups, **picture), **self._fitting(entries)}))
        return path


def explore(
    records: Iterable[Any] | None = None,
    *,
    model: Any = None,
    text: str | None = None,
    example: Any = None,
    beam: int = 4,
    alpha: float = 0.6,
    weights: Any = None,
    query_tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    kind: str = "attention",
    mask: Any = None,
    sentence: int | None = None,
    layers: Iterable[int] | None = None,
    queries: slice | None = None,
    keys: slice | None = None,
    title: str = "",
) -> Explorer:
    """Explore ``records`` with tokens, a ``model`` (a translator or its name) with a ``text``, or plain ``weights``.

    A microworld ``example`` instead of a text adds the gold alignment. ``sentence`` chooses from a batch, ``queries``
    and ``keys`` cut a part out of long texts, ``layers`` are those with the neuron view.
    """
    given = [name for name, one in (("records", records), ("model", model), ("weights", weights)) if one is not None]
    if len(given) > 1:
        raise ExplorerError(f"{' and '.join(given)} were given: choose one of them")
    if model is None and (text is not None or example is not None):
        raise ExplorerError("a text needs a model to read it: add model=…, a translator or the name of one")
    if not given and query_tokens is None:
        raise ExplorerError("there is nothing to explore: give records, model=… with text=…, or weights=… with tokens")
    if mask is not None and weights is None:
        raise ExplorerError("a mask goes with weights=…: records bring their own")
    picture = {"layers": layers, "queries": queries, "keys": keys, "title": title}
    if records is not None:
        return Explorer(from_records(records, sentence), **picture)
    if model is None:
        return Explorer(from_weights(weights, query_tokens, key_tokens, kind, sentence, mask), **picture)
    if (text is None) == (example is None):
        raise ExplorerError("a model needs something to read: give either text=… or example=…")
    session = Session(_translator(model), alpha, example)
    return Explorer.live(session, Request(example.source if text is None else text, beam), **picture)


def _translator(model: Any) -> Any:
    if not isinstance(model, (str, Path)):
        return model
    from tinytransformer.translation.translator import Translator

    return Translator.load(model)
