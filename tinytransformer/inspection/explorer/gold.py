"""What the microworld knows of a sentence, to lay over the picture: links, antecedents, and how well heads hit them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytransformer.inspection.explorer.aggregates import over_heads, over_layers, rollouts
from tinytransformer.inspection.explorer.data import Group

Cells = list[tuple[int, int]]


def gold_of(translator: Any, example: Any, groups: Sequence[Group]) -> dict[str, dict[str, Any]]:
    """For each kind that has any: the cells to mark, and scores of every head and aggregate.

    The groups must show how the model reads the example's source and writes its reference.
    """
    from tinytransformer.translation.evaluation import alignment_errors, pieces_of_words

    _, source = pieces_of_words(translator, example.source_words)
    _, target = pieces_of_words(translator, example.target_words)
    found: dict[str, dict[str, Any]] = {}
    for group in groups:
        if group.kind == "cross":
            errors = alignment_errors(translator, [example])
            found["cross"] = {
                "links": alignment_cells(example.alignment, source, target),
                # The page's own name for a layer's mean head is "mean".
                "errors": {f"{layer}/{'mean' if head is None else head}": one for (layer, head), one in errors.items()},
            }
        elif group.kind == "encoder" and example.pronouns:
            found["encoder"] = _antecedents(group, example.pronouns, source)
    return found


def alignment_cells(alignment: Sequence[Sequence[int]], source: Sequence[int], target: Sequence[int]) -> Cells:
    """Word links as (row, column) of cross-attention. Row r is where piece r is written: the row of the piece before.

    ``source`` and ``target`` say for each piece which word it belongs to.
    """
    links = {(i, j) for i, j in alignment}
    return [(row, column) for row, j in enumerate(target) for column, i in enumerate(source) if (i, j) in links]


def _antecedents(group: Group, pronouns: Sequence[dict[str, Any]], source: Sequence[int]) -> dict[str, Any]:
    """The cells from each pronoun to its antecedent, and the attention that lies on them, averaged over pronouns."""
    pairs = []
    for pronoun in pronouns:
        rows = [row for row, word in enumerate(source) if word == pronoun["position"]]
        columns = [column for column, word in enumerate(source) if word == pronoun["antecedent"]]
        pairs.append((rows, columns))
    pictures: dict[str, np.ndarray] = {}
    for layer in group.layers:
        pictures.update({f"{layer.number}/{head}": one for head, one in enumerate(layer.weights)})
        pictures.update({f"{layer.number}/{name}": one for name, one in over_heads(layer.weights).items()})
    overall = {**over_layers(group), "rollout": rollouts([group])["encoder"]}
    pictures.update({f"all/{name}": one for name, one in overall.items()})
    masses = {name: float(np.mean([mass(one, *pair) for pair in pairs])) for name, one in pictures.items()}
    return {"links": [(row, column) for rows, columns in pairs for row in rows for column in columns], "masses": masses}


def mass(weights: np.ndarray, rows: Sequence[int], columns: Sequence[int]) -> float:
    """How much of the attention of these rows, on average, lies on these columns."""
    return float(weights[np.ix_(rows, columns)].sum(-1).mean())
