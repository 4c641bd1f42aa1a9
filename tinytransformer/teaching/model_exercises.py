"""Exercises of lesson 06 about the whole model: its shapes, its parameters, its gradients."""

from collections.abc import Callable

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, Symptom, random

# --- the shapes


def _shapes(b, s, t, h, d_ff, v):
    return [(b, h, s, s), (b, s, d_ff), (b, h, t, t), (b, h, t, s), (b, t, v)]


def _shape_changed(place: int, shape: Callable):
    """The right shapes but for one."""

    def wrong(b, s, t, h, d_ff, v):
        shapes = _shapes(b, s, t, h, d_ff, v)
        shapes[place] = shape(b, s, t, h, d_ff, v)
        return shapes

    return wrong


def _as_tensors(arguments: tuple, answer: object) -> object:
    """Shapes have different lengths: each becomes a tensor of its own, so that they are compared one by one."""
    if not isinstance(answer, tuple | list) or not all(isinstance(shape, tuple | list) for shape in answer):
        return answer
    return tuple(torch.tensor(list(shape)) for shape in answer)


def _lacks_an_axis(answer: object) -> bool:
    fits = isinstance(answer, tuple) and len(answer) == 5 and all(isinstance(shape, Tensor) for shape in answer)
    return fits and any(len(answer[place]) == 3 for place in (0, 2, 3))


SHAPES = Exercise(
    "tensor_shapes",
    reference=_shapes,
    cases=lambda: [(2, 5, 7, 4, 64, 100), (3, 9, 6, 8, 32, 50)],
    normal=_as_tensors,
    mistakes=(
        Mistake("cross-turned", "The cross-attention weights are turned: the target asks, so it has the rows; the "
                "source is asked.", _shape_changed(3, lambda b, s, t, h, d_ff, v: (b, h, s, t))),
        Mistake("no-heads", "Each head has weights of its own: the axis of the heads is missing.",
                lambda b, s, t, h, d_ff, v: [(b, s, s), (b, s, d_ff), (b, t, t), (b, t, s), (b, t, v)]),
        Mistake("heads-last", "The axis of the heads stands behind the sentences: (B, H, queries, keys).",
                lambda b, s, t, h, d_ff, v: [(b, s, s, h), (b, s, d_ff), (b, t, t, h), (b, t, s, h), (b, t, v)]),
        Mistake("network-per-head", "The feed-forward network knows no heads: they were put side by side before.",
                _shape_changed(1, lambda b, s, t, h, d_ff, v: (b, h, s, d_ff))),
        Mistake("logits-of-the-source", "Logits are made for each target position, not for each source position.",
                _shape_changed(4, lambda b, s, t, h, d_ff, v: (b, s, v))),
        Mistake("logits-of-the-last-only", "Logits are made for all target positions at once, not only for one.",
                _shape_changed(4, lambda b, s, t, h, d_ff, v: (b, v))),
    ),
    symptoms=(
        Symptom("three-axes", lambda runs: any(_lacks_an_axis(run.got) for run in runs),
                lambda run: "Attention weights have four axes: sentences, heads, queries, keys. One of yours has "
                "three."),
    ),
)  # fmt: skip


# --- the number of parameters


def _count(
    attention_bias=True, network_bias=True, cross=True, norms=(2, 3), norm_vectors=2, matrices=None, networks=1,
    with_heads=True, decoder=True, own_values=True, last_bias=True,
):  # fmt: skip
    """The right count, or one that leaves something out or counts it twice."""

    def count_parameters(vocab_size, d_model, heads, d_k, d_v, d_ff, layers, tied):
        keys, values = (size * (heads if with_heads else 1) for size in (d_k, d_v if own_values else d_k))
        attention = d_model * (2 * keys + values) + values * d_model
        attention += (2 * keys + values + (d_model if last_bias else values)) if attention_bias else 0
        network = 2 * d_model * d_ff + ((d_ff + d_model) if network_bias else 0)
        norm = norm_vectors * d_model
        encoder = attention + networks * network + norms[0] * norm
        after = (2 if cross else 1) * attention + networks * network + norms[1] * norm
        embeddings = matrices(tied) if matrices else (1 if tied else 3)
        return embeddings * vocab_size * d_model + layers * (encoder + (after if decoder else 0))

    return count_parameters


COUNT = Exercise(
    "count_parameters",
    reference=_count(),
    cases=lambda: [
        (1000, 64, 4, 16, 16, 256, 2, True),
        (500, 48, 6, 8, 8, 100, 3, False),
        (300, 32, 2, 8, 20, 64, 1, True),
    ],
    mistakes=(
        Mistake("no-cross-attention", "A decoder layer has a second attention, to the encoder's output.",
                _count(cross=False)),
        Mistake("two-norms-everywhere", "A decoder layer has three parts, and so three norms.", _count(norms=(2, 2))),
        Mistake("no-norms", "The norms are not counted: each has a gain and a shift of d_model numbers.",
                _count(norms=(0, 0))),
        Mistake("norms-without-shift", "A norm has two vectors, a gain and a shift.", _count(norm_vectors=1)),
        Mistake("one-norm-per-layer", "Each part has a norm of its own: two in an encoder layer, three in a decoder "
                "layer.", _count(norms=(1, 1))),
        Mistake("no-attention-biases", "The biases of the attention's linear layers are not counted.",
                _count(attention_bias=False)),
        Mistake("no-network-biases", "The biases of the feed-forward networks are not counted.",
                _count(network_bias=False)),
        Mistake("no-biases", "The biases are not counted, neither the attention's nor the network's.",
                _count(attention_bias=False, network_bias=False)),
        Mistake("always-three-embeddings", "A tied model has one embedding matrix for source, target and output.",
                _count(matrices=lambda tied: 3)),
        Mistake("always-one-embedding", "An untied model has three embedding matrices: source, target and output.",
                _count(matrices=lambda tied: 1)),
        Mistake("two-embeddings", "An untied model has three embedding matrices: the output has one, too.",
                _count(matrices=lambda tied: 1 if tied else 2)),
        Mistake("one-head", "d_k and d_v are the sizes of one head: there are `heads` of them.",
                _count(with_heads=False)),
        Mistake("values-as-keys", "Right where d_v = d_k. Values, and with them the rows of W_O, have a size of their "
                "own.", _count(own_values=False)),
        Mistake("bias-of-w_o", "The bias of W_O has as many numbers as its output, d_model, not as its input.",
                _count(last_bias=False)),
        Mistake("sizes-from-d_model", "Right where d_k = d_v = d_model / heads. Here heads have sizes of their own.",
                lambda v, d, h, d_k, d_v, *rest: _count()(v, d, h, d // h, d // h, *rest)),
        Mistake("closing-norms", "A post-norm stack has no closing norm: its last layer ends with one already.",
                lambda *i: _count()(*i) + 4 * i[1]),
        Mistake("encoder-only", "The decoder is missing.", _count(decoder=False)),
    ),
)  # fmt: skip


# --- the gradients on their way


def _gradient_cases() -> list[tuple]:
    matrices = [random(4, 4, seed=seed) for seed in (31, 32, 33)]
    layers = [lambda h, m=matrix: h + torch.tanh(h @ m) for matrix in matrices]
    x, direction = random(3, 4, seed=34), random(3, 4, seed=35)
    return [(layers, x, direction), (layers[:1], x[:1], direction[:1]), (layers[::-1], x, -direction)]


def _gradients(layers: list[Callable], x: Tensor, direction: Tensor) -> list[Tensor]:
    states = [x.detach().clone().requires_grad_()]
    for layer in layers:
        states.append(layer(states[-1]))
    return list(torch.autograd.grad((direction * states[-1]).sum(), states))


def _lengths(choose=lambda gradients: gradients, length=lambda gradient: gradient.norm(), change=lambda d: d):
    def gradient_norms(layers: list[Callable], x: Tensor, direction: Tensor) -> Tensor:
        return torch.stack([length(gradient) for gradient in choose(_gradients(layers, x, change(direction)))])

    return gradient_norms


GRADIENTS = Exercise(
    "gradient_norms",
    reference=_lengths(),
    cases=_gradient_cases,
    mistakes=(
        Mistake("last-first", "The order is turned: the first number belongs to x.", _lengths(lambda g: g[::-1])),
        Mistake("without-x", "One number is missing: the gradient at x itself.", _lengths(lambda g: g[1:])),
        Mistake("without-the-last", "One number is missing: the gradient at the output of the last layer.",
                _lengths(lambda g: g[:-1])),
        Mistake("squared", "These are squared lengths: the root is missing.",
                _lengths(length=lambda g: g.square().sum())),
        Mistake("mean-size", "The mean size of an entry is not the length of the whole gradient.",
                _lengths(length=lambda g: g.abs().mean())),
        Mistake("direction-ignored", "The loss is the plain sum of the outputs: `direction` is not used.",
                _lengths(change=torch.ones_like)),
        Mistake("mean-loss", "The loss is a mean. Asked for is the sum.",
                _lengths(length=lambda g: g.norm() / g.numel())),
        Mistake("states-not-gradients", "These are the lengths of the vectors themselves, not of their gradients.",
                lambda layers, x, d: torch.stack([x.norm(), *(h.norm() for h in _states(layers, x)[1:])])),
    ),
)  # fmt: skip


def _states(layers: list[Callable], x: Tensor) -> list[Tensor]:
    states = [x]
    for layer in layers:
        states.append(layer(states[-1]))
    return states
