"""What the page gets: one plain dictionary, the same for the widget and the saved page."""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tinytransformer.inspection.explorer.aggregates import over_heads, over_layers, rollouts
from tinytransformer.inspection.explorer.data import KINDS, ExplorerError, Group, Layer, drawable

# Weights travel as whole numbers of ten-thousandths. So the page shows the very four decimals that Python prints, and
# is never further than 0.00005 from the model's own weight.
DIGITS = 4
NEURON_BYTES = 750_000  # of queries and keys, unless layers are chosen: one layer of the largest page we promise
# seaborn's "colorblind" colours, as in plots.PALETTE; written out, since seaborn takes long to load.
HEAD_COLOURS = "#0173b2 #de8f05 #029e73 #d55e00 #cc78bc #ca9161 #fbafe4 #949494 #ece133 #56b4e9".split()


def state_of(
    groups: Sequence[Group],
    layers: Iterable[int] | None = None,
    queries: slice | None = None,
    keys: slice | None = None,
    title: str = "",
) -> dict[str, Any]:
    """The state for these groups. ``layers`` are those whose queries and keys go along for the neuron view."""
    rolled = rollouts(groups)  # of all tokens, also of those that a slice leaves out
    cut = [drawable(group, queries, keys) for group in groups]
    chosen = neuron_layers(cut, layers)
    rows, columns = queries or slice(None), keys or slice(None)
    packed = []
    for group in cut:
        overall = over_layers(group)
        if group.kind in rolled:
            overall["rollout"] = rolled[group.kind][rows, columns]
        packed.append(_packed_group(group, overall, chosen))
    return {"title": title, "digits": DIGITS, "colours": HEAD_COLOURS, "groups": packed, "live": False}


def neuron_layers(groups: Sequence[Group], layers: Iterable[int] | None) -> set[int]:
    """The layers to send queries and keys of: those asked for, or as many as are small enough, the last one first."""
    known = {layer.number for group in groups for layer in group.layers}
    if layers is not None:
        chosen = set(layers)
        if chosen - known:
            raise ExplorerError(f"there is no layer {min(chosen - known)}: choose from {sorted(known)}")
        return chosen
    chosen, room = set(), NEURON_BYTES
    for number in sorted(known, reverse=True):
        room -= sum(
            vectors.nbytes
            for group in groups
            for layer in group.layers
            if layer.number == number
            for vectors in (layer.query, layer.key)
            if vectors is not None
        )
        if room >= 0:
            chosen.add(number)
    return chosen


def _packed_group(group: Group, overall: dict[str, np.ndarray], chosen: set[int]) -> dict[str, Any]:
    return {
        "kind": group.kind,
        "label": KINDS.get(group.kind, group.kind),
        "queries": list(group.queries),
        "keys": list(group.keys),
        # A decoder's row is named after the token that was read last; the model is then about to write the next one.
        "writes": group.kind in ("decoder", "cross"),
        "mask": None if group.mask is None else packed(group.mask, np.uint8),
        "layers": [_packed_layer(layer, group.mask, layer.number in chosen) for layer in group.layers],
        "overall": {name: packed_weights(weights, group.mask) for name, weights in overall.items()},
    }


def _packed_layer(layer: Layer, mask: np.ndarray | None, with_neurons: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"number": layer.number, "heads": len(layer.weights)}
    found["weights"] = packed_weights(layer.weights, mask)
    found.update({name: packed_weights(weights, mask) for name, weights in over_heads(layer.weights).items()})
    if with_neurons and layer.query is not None and layer.key is not None:
        found["size"] = layer.query.shape[-1]
        found["query"], found["key"] = packed(layer.query, np.float32), packed(layer.key, np.float32)
    return found


def packed_weights(weights: np.ndarray, mask: np.ndarray | None = None) -> str:
    """Weights (…, T, S) as whole numbers, rounded as Python prints them: halves go to the even digit.

    What the mask forbids is zero and does not travel.
    """
    allowed = np.asarray(weights, dtype=np.float64)[..., slice(None) if mask is None else mask]
    return packed(np.rint(allowed * 10**DIGITS), np.uint16)


def packed(array: np.ndarray, kind: type) -> str:
    """The numbers of an array, row by row, little end first, as base64."""
    values = np.ascontiguousarray(array, dtype=np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(values.tobytes()).decode("ascii")
