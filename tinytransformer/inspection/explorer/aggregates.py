"""One picture for many heads: mean and maximum over heads and layers, and attention rollout."""

from collections.abc import Sequence

import numpy as np

from tinytransformer.inspection.explorer.data import Group


def over_heads(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Mean and maximum over the first axis of (H, T, S). Rows of the maximum need not sum to one."""
    return {"mean": weights.mean(0), "max": weights.max(0)}


def over_layers(group: Group) -> dict[str, np.ndarray]:
    """Mean and maximum over all heads of all layers; every layer counts the same in the mean."""
    means = np.stack([layer.weights.mean(0) for layer in group.layers])
    tops = np.stack([layer.weights.max(0) for layer in group.layers])
    return {"mean": means.mean(0), "max": tops.max(0)}


def rollout(layers: Sequence[np.ndarray]) -> np.ndarray:
    """Attention rollout (Abnar and Zuidema 2020): (n, n) from each layer's mean head (n, n), first layer first.

    Each layer is taken as half attention, half residual connection; the product of the layers says which share of a
    last-layer state comes from which input token, as far as attention alone can say it.
    """
    so_far = np.eye(len(layers[0]))
    for weights in layers:
        so_far = _with_residual(weights) @ so_far
    return so_far


def cross_rollout(
    cross: Sequence[np.ndarray], decoder: Sequence[np.ndarray] | None, encoder: np.ndarray | None
) -> np.ndarray:
    """Rollout through the decoder down to the source tokens: (T, S), rows sum to one.

    A target state starts as itself, with nothing from the source. In each layer self-attention mixes the states, then
    cross-attention replaces half of each by encoder outputs, themselves traced back by the encoder's rollout. What
    has come from the source is then divided by its sum. Without ``decoder`` or ``encoder`` that part changes nothing.
    """
    from_source = np.zeros(cross[0].shape)
    for number, weights in enumerate(cross):
        if decoder is not None:
            from_source = _with_residual(decoder[number]) @ from_source
        source = weights if encoder is None else weights @ encoder
        from_source = 0.5 * from_source + 0.5 * source
    return from_source / np.maximum(from_source.sum(-1, keepdims=True), 1e-12)


def _with_residual(weights: np.ndarray) -> np.ndarray:
    mixed = 0.5 * weights + 0.5 * np.eye(len(weights))
    return mixed / mixed.sum(-1, keepdims=True)


def rollouts(groups: Sequence[Group]) -> dict[str, np.ndarray]:
    """The rollout of each kind for which there is one: self-attention is square, and cross-attention is traced."""
    means = {group.kind: [layer.weights.mean(0) for layer in group.layers] for group in groups}
    tokens = {group.kind: group.queries for group in groups}
    found = {
        group.kind: rollout(means[group.kind])
        for group in groups
        if group.kind != "cross" and group.queries == group.keys
    }
    for group in groups:
        if group.kind == "cross":
            same = tokens.get("decoder") == group.queries and len(means["decoder"]) == len(group.layers)
            known = tokens.get("encoder") == group.keys and "encoder" in found
            found["cross"] = cross_rollout(
                means["cross"], means["decoder"] if same else None, found["encoder"] if known else None
            )
    return found
