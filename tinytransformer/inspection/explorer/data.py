"""What the explorer draws: attention from records or plain arrays, checked, and sorted by kind and layer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

KINDS = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "cross-attention"}
MOST_TOKENS = 128  # on one axis: beyond that neither labels nor cells can be told apart
SUM_TOLERANCE = 0.01  # half precision adds up to one no better than this


class ExplorerError(ValueError):
    """Something cannot be explored; the message says what is wrong and what to do."""


@dataclass(frozen=True, eq=False)
class Layer:
    """One attention: weights (H, T, S), and the query (H, T, d_k) and key (H, S, d_k) behind them where known."""

    number: int
    weights: np.ndarray
    query: np.ndarray | None = None
    key: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Group:
    """All layers of one kind of attention over the same tokens. ``mask`` (T, S) is True where a query may look."""

    kind: str
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    layers: tuple[Layer, ...]
    mask: np.ndarray | None = None


def from_records(records: Iterable[Any], sentence: int | None = None) -> list[Group]:
    """Records of `record_attention` with tokens at both axes, by kind; of one kind and layer the newest counts."""
    newest = {(record.kind, record.layer): record for record in records}
    if not newest:
        raise ExplorerError(
            "there is nothing to explore: the list of records is empty. Run the model inside "
            "`with record_attention(model) as records:` first; a model without attention records nothing"
        )
    by_kind: dict[str, list[Any]] = {}
    for (kind, _), record in sorted(newest.items(), key=lambda item: item[0][1]):
        by_kind.setdefault(kind, []).append(record)
    order = sorted(by_kind, key=lambda kind: list(KINDS).index(kind) if kind in KINDS else len(KINDS))
    return [_group_of_records(kind, by_kind[kind], sentence) for kind in order]


def _group_of_records(kind: str, records: list[Any], sentence: int | None) -> Group:
    first = records[0]
    for record in records:
        if record.query_tokens is None or record.key_tokens is None:
            raise ExplorerError(
                f"the {kind} record of layer {record.layer} has no tokens: put them in with "
                "dataclasses.replace(record, query_tokens=…, key_tokens=…)"
            )
        if (record.query_tokens, record.key_tokens) != (first.query_tokens, first.key_tokens):
            raise ExplorerError(
                f"the {kind} layers {first.layer} and {record.layer} have different tokens: explore them one by one"
            )
    layers = []
    for record in records:
        place = f"{kind} layer {record.layer}"
        parts = (
            None if part is None else _one_sentence(array_of(part), sentence, place)
            for part in (record.weights, record.query, record.key)
        )
        layers.append(Layer(record.layer, *parts))
    return checked(kind, first.query_tokens, first.key_tokens, layers)


def from_weights(
    weights: Any,
    query_tokens: Sequence[str] | None,
    key_tokens: Sequence[str] | None = None,
    kind: str = "attention",
    sentence: int | None = None,
    mask=None,
) -> list[Group]:
    """Weights from anywhere: (T, S), (H, T, S), (L, H, T, S), or one (B, H, T, S) for each layer."""
    if query_tokens is None:
        raise ExplorerError("weights need names for their rows: give query_tokens, and key_tokens where they differ")
    queries = tuple(query_tokens)
    keys = queries if key_tokens is None else tuple(key_tokens)
    layers = [Layer(number, one) for number, one in enumerate(_layers_of(weights, sentence))]
    return [checked(kind, queries, keys, layers, mask)]


def _layers_of(weights: Any, sentence: int | None) -> list[np.ndarray]:
    """A list of (H, T, S), whether the weights are one array or a list of arrays."""
    if weights is None or (isinstance(weights, (list, tuple)) and any(one is None for one in weights)):
        raise ExplorerError(
            "the weights are None: a Hugging Face model keeps its attentions when it is loaded with "
            'attn_implementation="eager" and called with output_attentions=True'
        )
    parts = [array_of(one) for one in weights]
    if not parts:
        raise ExplorerError("there is nothing to explore: the weights are empty")
    if parts[0].ndim == 1:  # the rows of one head
        parts = [np.stack(parts)[None]]
    elif parts[0].ndim == 2:  # the heads of one layer
        parts = [np.stack(parts)]
    return [_one_sentence(part, sentence, f"layer {number}") for number, part in enumerate(parts)]


def _one_sentence(array: np.ndarray, sentence: int | None, place: str) -> np.ndarray:
    """(B, H, …) to (H, …); what has no batch stays as it is."""
    if array.ndim != 4:
        return array
    if sentence is None and len(array) != 1:
        raise ExplorerError(f"{place} holds {len(array)} sentences: choose one, such as sentence=0")
    if not 0 <= (sentence or 0) < len(array):
        raise ExplorerError(f"{place} has no sentence {sentence}: choose from 0 … {len(array) - 1}")
    return array[sentence or 0]


def array_of(values: Any) -> np.ndarray:
    """A float32 array from a tensor (of any device and precision), an array or nested lists."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().float()
    return np.asarray(values, dtype=np.float32)


def checked(kind: str, queries: Sequence[str], keys: Sequence[str], layers: Sequence[Layer], mask=None) -> Group:
    """The group, if its numbers are attention weights that fit its tokens."""
    queries, keys = tuple(map(str, queries)), tuple(map(str, keys))
    shape = (len(queries), len(keys))
    for layer in layers:
        _check_shapes(f"{kind} layer {layer.number}", layer, shape)
    allowed = _mask(kind, layers, mask, shape)
    for layer in layers:
        _check_values(f"{kind} layer {layer.number}", layer.weights, allowed, queries)
    return Group(kind, queries, keys, tuple(layers), allowed)


def _check_shapes(place: str, layer: Layer, shape: tuple[int, int]) -> None:
    weights = layer.weights
    if weights.ndim != 3 or 0 in weights.shape:
        raise ExplorerError(
            f"{place}: weights have shape {weights.shape}, but (heads, queries, keys) is needed, none of them empty"
        )
    if weights.shape[1:] != shape:
        raise ExplorerError(
            f"{place}: the weights have {weights.shape[1]} queries and {weights.shape[2]} keys, but there are "
            f"{shape[0]} query tokens and {shape[1]} key tokens: give one token for each (queries down, keys across)"
        )
    for name, vectors, length in (("query", layer.query, shape[0]), ("key", layer.key, shape[1])):
        if vectors is not None and vectors.shape[:2] != (len(weights), length):
            raise ExplorerError(
                f"{place}: {name} has shape {vectors.shape}, but ({len(weights)}, {length}, d_k) belongs to the weights"
            )


def _mask(kind: str, layers: Sequence[Layer], mask, shape: tuple[int, int]) -> np.ndarray | None:
    """The given mask; without one a decoder's own is causal, if the weights are."""
    if mask is not None:
        mask = np.asarray(mask, dtype=bool)
        if mask.shape != shape:
            raise ExplorerError(f"the mask has shape {mask.shape}, but the weights of one head have {shape}")
        return mask
    causal = np.tril(np.ones(shape, dtype=bool))
    hidden = kind == "decoder" and shape[0] == shape[1] and not any(layer.weights[:, ~causal].any() for layer in layers)
    return causal if hidden else None


def _check_values(place: str, weights: np.ndarray, mask: np.ndarray | None, queries: Sequence[str]) -> None:
    def refuse(wrong: np.ndarray, problem: str) -> None:
        if wrong.any():
            head, query, *key = (int(i) for i in np.argwhere(wrong)[0])
            where = f"head {head}, query {query} ({queries[query]!r})" + (f", key {key[0]}" if key else "")
            value = weights[head, query].sum() if not key else weights[(head, query, *key)]
            raise ExplorerError(f"{place}: {problem.format(where=where, value=value)}")

    refuse(~np.isfinite(weights), "the weight of {where} is {value}: a mask that forbids a whole row gives NaN")
    refuse((weights < 0) | (weights > 1.001), "the weight of {where} is {value:.4g}: give probabilities, after softmax")
    if mask is not None:
        refuse((weights > 0) & ~mask, "the weight of {where} is {value:.4g}, but the mask forbids it: True is allowed")
    blind = np.zeros(len(queries), dtype=bool) if mask is None else ~mask.any(-1)
    sums = weights.sum(-1)
    refuse(
        (np.abs(sums - 1) > SUM_TOLERANCE) & ~blind,
        "the weights of {where} sum to {value:.4g}, not to one: give probabilities after softmax and before dropout "
        "(model.eval() switches dropout off), queries first, then keys",
    )


def drawable(group: Group, queries: slice | None = None, keys: slice | None = None) -> Group:
    """The group, cut to slices of queries and keys where asked, if it then has no more tokens than can be drawn."""
    rows, columns = queries or slice(None), keys or slice(None)
    layers = tuple(
        Layer(
            layer.number,
            layer.weights[:, rows, columns],
            None if layer.query is None else layer.query[:, rows],
            None if layer.key is None else layer.key[:, columns],
        )
        for layer in group.layers
    )
    mask = None if group.mask is None else group.mask[rows, columns]
    cut = replace(group, queries=group.queries[rows], keys=group.keys[columns], layers=layers, mask=mask)
    for name, tokens in (("queries", cut.queries), ("keys", cut.keys)):
        if not tokens:
            raise ExplorerError(f"the slice of {name} leaves no token of the {group.kind} attention")
        if len(tokens) > MOST_TOKENS:
            raise ExplorerError(
                f"{len(tokens)} {name} of the {group.kind} attention are more than can be drawn, which is "
                f"{MOST_TOKENS}: choose a part with {name}=slice(0, {MOST_TOKENS})"
            )
    return cut
