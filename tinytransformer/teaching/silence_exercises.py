"""Exercises of lesson 09 about one head: its output taken away, and its scores taken apart."""

import torch

from tinytransformer.teaching.exercises import Exercise, Mistake, random

# --- silence


def _silence_cases() -> list[tuple]:
    def case(sizes: tuple[int, int, int, int], silent: list[int], seed: int) -> tuple:
        width = sizes[1] * sizes[3]
        return random(*sizes, seed=seed), random(width, width, seed=seed + 1), silent

    settings = [((2, 4, 3, 2), [1]), ((1, 2, 5, 3), [0]), ((2, 3, 3, 3), [0, 2]), ((1, 2, 2, 2), [])]
    return [case(sizes, silent, seed) for seed, (sizes, silent) in enumerate(settings)]


def _gate(heads, silent, axis=1):
    gate = torch.ones(heads.size(axis))
    gate[[head for head in silent if head < heads.size(axis)]] = 0.0
    shape = [1] * heads.dim()
    shape[axis] = -1
    return gate.view(shape)


def _silence(heads, w_o, silent, gate=None, turn=True, rescale=False, late=False):
    if not late:
        heads = heads * (_gate(heads, silent) if gate is None else gate)
    merged = heads.transpose(1, 2).flatten(2) if turn else heads.reshape(heads.size(0), heads.size(2), -1)
    output = merged @ w_o
    if late:
        size = heads.size(3)
        output = output.clone()
        for head in silent:
            output[..., head * size : (head + 1) * size] = 0.0
    number = heads.size(1)
    return output * number / max(number - len(silent), 1) if rescale else output


SILENCE = Exercise(
    "silenced_output",
    reference=_silence,
    cases=_silence_cases,
    mistakes=(
        Mistake("nothing-silenced", "All heads are still heard.", lambda h, w, s: _silence(h, w, [])),
        Mistake("others-silenced", "The other way round: only the heads of the list are heard.",
                lambda h, w, s: _silence(h, w, s, gate=1 - _gate(h, s))),
        Mistake("positions-silenced", "Positions are silenced, not heads: the heads are the second axis.",
                lambda h, w, s: _silence(h, w, s, gate=_gate(h, s, 2))),
        Mistake("features-silenced", "Features of every head are silenced, not heads: the heads are the second axis.",
                lambda h, w, s: _silence(h, w, s, gate=_gate(h, s, 3))),
        Mistake("silenced-too-late", "The features are set to zero after the projection. There the heads are mixed "
                "already: no feature belongs to one of them.", lambda h, w, s: _silence(h, w, s, late=True)),
        Mistake("merged-without-transpose", "Heads are merged without moving their axis next to the features: words "
                "and heads are mixed up.", lambda h, w, s: _silence(h, w, s, turn=False)),
        Mistake("rescaled", "The other heads are made louder. Dropout does that; here it would change them, too.",
                lambda h, w, s: _silence(h, w, s, rescale=True)),
    ),
)  # fmt: skip


# --- the neuron view


def _parts_cases() -> list[tuple]:
    return [(random(d, seed=s), random(n, d, seed=s + 1)) for d, n, s in ((4, 3, 1), (8, 5, 2), (5, 5, 3))]


def _parts(query, keys):
    return query * keys / query.size(-1) ** 0.5


PARTS = Exercise(
    "feature_parts",
    reference=_parts,
    cases=_parts_cases,
    mistakes=(
        Mistake("no-scale", "The parts add up to q · k, not to the score: the scale is missing.",
                lambda q, k: q * k),
        Mistake("scale-d_k", "The parts are divided by d_k, not by its root.", lambda q, k: q * k / q.size(-1)),
        Mistake("added-up", "These are the scores. Asked for is what each feature adds to them.",
                lambda q, k: _parts(q, k).sum(-1)),
        Mistake("softmax", "A softmax was taken. The parts of a *score* add up; weights have no such parts.",
                lambda q, k: _parts(q, k).softmax(-1)),
        Mistake("softmax-over-keys", "A softmax over the keys was taken. The parts of a *score* add up; weights have "
                "no such parts.", lambda q, k: _parts(q, k).softmax(0)),
        Mistake("transposed", "Rows and columns are exchanged: a row is a key, a column a feature.",
                lambda q, k: _parts(q, k).T),
        Mistake("sizes-only", "The signs are lost: a feature can also speak against a key.",
                lambda q, k: _parts(q, k).abs()),
    ),
)  # fmt: skip
