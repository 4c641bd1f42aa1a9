"""What happens when heads are switched off: a translator comes in, translations and their differences go out.

Any object serves as the translator that can do what `Translator` can: be called with a text, ``record`` attention,
``silence`` heads, and tell the ``log_probability`` of a translation.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tinytransformer.inspection.explorer.data import ExplorerError, Group

Head = tuple[str, int, int]  # kind, layer, head


@dataclass(frozen=True)
class Request:
    """What is asked of the model: a text, how to decode it, the heads that are off, and whether to measure all."""

    text: str
    beam: int = 4
    silenced: tuple[Head, ...] = ()
    measure: bool = False

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Request":
        """A request as it comes from the page."""
        heads = tuple((str(kind), int(layer), int(head)) for kind, layer, head in values.get("silenced", ()))
        return cls(str(values["text"]), int(values["beam"]), heads, bool(values.get("measure")))


def by_place(heads: Iterable[Head]) -> dict[tuple[str, int], list[int]]:
    """Heads as `silence_heads` wants them."""
    found: dict[tuple[str, int], list[int]] = {}
    for kind, layer, head in heads:
        found.setdefault((kind, layer), []).append(head)
    return found


def translate(translator: Any, text: str, beam: int, alpha: float, heads: Iterable[Head] = ()) -> Any:
    """The translation of one text, as one sentence, while these heads are off."""
    if not text.strip():
        raise ExplorerError("there is no text: type a sentence")
    if beam < 1:
        raise ExplorerError(f"beam={beam} must be at least 1; with 1 it is greedy decoding")
    with translator.silence(by_place(heads)):
        return translator(text, beam=beam, alpha=alpha, split=False)


def importance(translator: Any, source: Sequence[int], target: Sequence[int], heads: Iterable[Head]) -> dict:
    """For each head, how the log-probability of ``target`` changes when that head alone is off (below 0: it helped)."""
    intact = translator.log_probability(source, target)
    found = {}
    for head in heads:
        with translator.silence(by_place([head])):
            found[head] = translator.log_probability(source, target) - intact
    return found


def heads_of(groups: Sequence[Group]) -> list[Head]:
    """Every head there is."""
    return [
        (group.kind, layer.number, head)
        for group in groups
        for layer in group.layers
        for head in range(len(layer.weights))
    ]


def difference(before: str, after: str) -> list[str]:
    """The words of both texts in one order, each behind a mark: = in both, - only before, + only after."""
    old, new = before.split(), after.split()
    found = []
    for step, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if step == "equal":
            found += [f"={word}" for word in new[k:m]]
        else:
            found += [*(f"-{word}" for word in old[i:j]), *(f"+{word}" for word in new[k:m])]
    return found


def summary(translation: Any) -> dict[str, Any]:
    """What the page shows of a translation."""
    return {
        "text": translation.text,
        "score": translation.score,
        "log_probability": translation.log_probability,
    }
