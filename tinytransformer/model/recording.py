"""Looking inside and intervening, without a second forward pass that could differ from the first.

Both work on any model whose ``attentions()`` yields (kind, layer, module), as `Transformer` does.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class AttentionRecord:
    """What one attention did in one forward pass: detached, on the CPU, for the whole batch.

    ``weights`` (B, H, T, S) are the probabilities before dropout: queries down, keys across. ``query`` (B, H, T, d_k)
    and ``key`` (B, H, S, d_k) are there when asked for, unless the weights do not come from their product (additive
    attention). The model knows ids only; whoever knows the words puts them in with
    ``dataclasses.replace(record, query_tokens=…, key_tokens=…)``.
    """

    kind: str
    layer: int
    weights: Tensor
    query: Tensor | None = None
    key: Tensor | None = None
    query_tokens: tuple[str, ...] | None = None
    key_tokens: tuple[str, ...] | None = None


class AttentionRecords(list[AttentionRecord]):
    """The records of a `record_attention` block, in the order in which the attentions ran."""

    def find(self, kind: str, layer: int) -> AttentionRecord:
        """The newest record of this kind and layer."""
        for record in reversed(self):
            if (record.kind, record.layer) == (kind, layer):
                return record
        known = sorted({(record.kind, record.layer) for record in self})
        raise KeyError(f"no record of {(kind, layer)}: recorded were {known or 'none, for the model has not run'}")


@contextmanager
def record_attention(model: nn.Module, qk: bool = False) -> Iterator[AttentionRecords]:
    """Record every attention of every forward pass inside the block; ``qk=True`` keeps queries and keys too.

    Inside, attention runs by the written-out formula; outside, by the fused kernel again.
    """
    records = AttentionRecords()
    attached = [
        (module.recorders, partial(_record, records, kind, layer, qk)) for kind, layer, module in _attentions(model)
    ]
    for recorders, recorder in attached:
        recorders.append(recorder)
    try:
        yield records
    finally:
        for recorders, recorder in attached:
            recorders.remove(recorder)


def _record(
    records: AttentionRecords,
    kind: str,
    layer: int,
    qk: bool,
    query: Tensor | None,
    key: Tensor | None,
    weights: Tensor,
) -> None:
    def kept(tensor: Tensor) -> Tensor:
        # A copy of its own: whoever edits a record must not reach into the running model.
        return tensor.detach().to("cpu", torch.promote_types(tensor.dtype, torch.float32), copy=True)

    query_key = {"query": kept(query), "key": kept(key)} if qk and query is not None else {}
    records.append(AttentionRecord(kind, layer, kept(weights), **query_key))


@contextmanager
def silence_heads(model: nn.Module, heads: Mapping[tuple[str, int], Iterable[int]]) -> Iterator[None]:
    """Take heads out: ``with silence_heads(model, {("cross", 0): [1, 3]}):`` replaces their output by zeros.

    Blocks nest; what an outer block silences stays silent in an inner one.
    """
    modules = {(kind, layer): module for kind, layer, module in _attentions(model)}
    gates = [(modules[place], _gate(place, modules[place], chosen)) for place, chosen in _known(heads, modules)]
    before = [(module, module.head_gate) for module, _ in gates]
    try:
        for module, gate in gates:
            module.head_gate = gate if module.head_gate is None else module.head_gate * gate
        yield
    finally:
        for module, gate in before:
            module.head_gate = gate


def _attentions(model: nn.Module) -> Iterator[tuple[str, int, nn.Module]]:
    if not hasattr(model, "attentions"):
        raise TypeError(f"{type(model).__name__} has no attentions(): give the whole model, such as a Transformer")
    return model.attentions()


def _known(heads: Mapping, modules: Mapping) -> Iterable[tuple[tuple[str, int], Iterable[int]]]:
    for place in heads:
        if place not in modules:
            raise ValueError(f"{place!r} is no attention of this model: choose from {', '.join(map(str, modules))}")
    return heads.items()


def _gate(place: tuple[str, int], module: nn.Module, chosen: Iterable[int]) -> Tensor:
    if isinstance(chosen, int):
        raise TypeError(f"heads of {place!r} must be a list, got {chosen!r}: write [{chosen}]")
    gate = next(module.parameters()).new_ones(module.num_heads, 1, 1)
    for head in chosen:
        if not 0 <= head < module.num_heads:
            raise ValueError(f"head {head} of {place!r} does not exist: choose from 0 … {module.num_heads - 1}")
        gate[head] = 0.0
    return gate
