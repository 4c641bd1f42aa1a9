"""A translator in the explorer's hands: a request comes in, attention and what else the page shows goes out."""

from dataclasses import asdict, replace
from typing import Any

from tinytransformer.inspection.explorer.data import Group, from_records
from tinytransformer.inspection.explorer.gold import gold_of
from tinytransformer.inspection.explorer.interventions import (
    Head,
    Request,
    by_place,
    difference,
    heads_of,
    importance,
    summary,
    translate,
)


class Session:
    """Answers requests about one translator, and remembers the last translation to mark what has changed.

    With an ``example`` of the microworld the model is made to write the reference while its attention is recorded,
    since the gold alignment belongs to the reference.
    """

    def __init__(self, translator: Any, alpha: float = 0.6, example: Any = None):
        self.translator, self.alpha, self.example = translator, alpha, example
        self.last: Any = None

    def answer(self, request: Request) -> tuple[list[Group], dict[str, Any]]:
        """The attention for a request, and the entries that it adds to the page's state."""
        intact = translate(self.translator, request.text, request.beam, self.alpha)
        now = self._translate(request) if request.silenced else intact
        before = intact if request.silenced else self.last
        groups, gold = self._look(request, now)
        entries = {
            "request": asdict(request),
            "translation": summary(now),
            "before": None if before is None else summary(before),
            "difference": difference(now.text if before is None else before.text, now.text),
            "intact": bool(request.silenced),  # what "before" means: the same sentence with all heads on
            "forced": self.example.target if self._is_example(request) else None,
            "gold": gold,
            "importance": self._importance(request, intact, groups) if request.measure else None,
        }
        self.last = now
        return groups, entries

    def page(self, request: Request, silencing: bool) -> tuple[list[Group], dict[str, Any]]:
        """The same for a page without a kernel: all heads on, and what each of them does when it alone is off."""
        whole = replace(request, silenced=(), measure=silencing)
        groups, entries = Session(self.translator, self.alpha, self.example).answer(whole)
        if silencing:
            entries["silencing"] = [self._silenced(whole, head, entries) for head in heads_of(groups)]
        return groups, entries

    def _silenced(self, request: Request, head: Head, entries: dict[str, Any]) -> dict[str, Any]:
        now = summary(self._translate(replace(request, silenced=(head,))))
        changed = difference(entries["translation"]["text"], now.pop("text"))
        return {"head": head, **now, "difference": changed}

    def _translate(self, request: Request) -> Any:
        return translate(self.translator, request.text, request.beam, self.alpha, request.silenced)

    def _is_example(self, request: Request) -> bool:
        return self.example is not None and request.text.strip() == self.example.source

    def _look(self, request: Request, now: Any) -> tuple[list[Group], dict[str, Any]]:
        source = self.translator.tokenizer.encode(request.text)
        forced = self._is_example(request)
        target = self.translator.tokenizer.encode(self.example.target) if forced else now.ids
        with self.translator.silence(by_place(request.silenced)):
            groups = from_records(self.translator.record(source, target, qk=True))
            return groups, gold_of(self.translator, self.example, groups) if forced else {}

    def _importance(self, request: Request, intact: Any, groups: list[Group]) -> list[dict[str, Any]]:
        source = self.translator.tokenizer.encode(request.text)
        changes = importance(self.translator, source, intact.ids, heads_of(groups))
        return [{"head": head, "change": change} for head, change in changes.items()]
