"""Exercises of lesson 01 about parts: a plain net over padded sentences, one step of an LSTM, a look back with a mask.

Matrices stand as in PyTorch's ``nn.Linear``: one row for each number that comes out.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, Run, Symptom, agree, as_tensor, random, shape

# --- a plain recurrent net that stops where a sentence ends


def _read_cases() -> list[tuple]:
    def case(lengths: list[int], longest: int, d_input: int, d_model: int, seed: int) -> tuple:
        shapes = ((len(lengths), longest, d_input), (d_model, d_input), (d_model, d_model), (d_model,))
        x, w_x, w_h, b = (random(*shape, seed=seed + i, spread=0.8) for i, shape in enumerate(shapes))
        return x, torch.tensor(lengths), w_x, w_h, b

    return [case([4], 4, 3, 2, 10), case([2, 5, 1], 5, 3, 4, 20), case([3, 3], 6, 2, 3, 30)]


def _steps(x, w_x, w_h, b, bend=torch.tanh, start=0.0) -> list[Tensor]:
    """The state before the first word and after each: S + 1 of (B, D)."""
    states = [x.new_full((len(x), len(w_h)), start)]
    for word in x.unbind(1):
        states.append(bend(word @ w_x.T + states[-1] @ w_h.T + b))
    return states


def _read(x, lengths, w_x, w_h, b, shift=0, **choices) -> Tensor:
    states = torch.stack(_steps(x, w_x, w_h, b, **choices), dim=1)  # (B, S + 1, D)
    return states[torch.arange(len(x)), (lengths + shift).clamp(max=x.size(1))]


def _real(x: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(x.size(1)) < lengths[:, None]  # (B, S)


def _read_zeroed(x, lengths, w_x, w_h, b) -> Tensor:
    return _steps(x, w_x, w_h, b)[-1] * (lengths == x.size(1))[:, None]


def _read_on_and_on(x, lengths, w_x, w_h, b) -> Tensor:
    """Sentence after sentence, the state never set back."""
    h, ends = x.new_zeros(len(w_h)), []
    for sentence, length in zip(x, lengths, strict=True):
        for word in sentence[:length]:
            h = torch.tanh(w_x @ word + w_h @ h + b)
        ends.append(h)
    return torch.stack(ends)


READ = Exercise(
    "read_to_the_end",
    reference=_read,
    cases=_read_cases,
    mistakes=(
        Mistake("reads-padding", "The state goes on after the last real word: padding is read as if it were words.",
                lambda x, lengths, *rest: _steps(x, *rest)[-1]),
        Mistake("padding-as-zeros", "Padding is set to zero, but a zero is read like any word: the state is still "
                "multiplied and bent. It must stay as it is.",
                lambda x, lengths, *rest: _steps(x * _real(x, lengths)[..., None], *rest)[-1]),
        Mistake("zeroed-at-padding", "Where a sentence has ended, its state becomes zero. It should be kept.",
                _read_zeroed),
        Mistake("one-early", "The last real word is not read: you stop one too early.",
                lambda *inputs: _read(*inputs, shift=-1)),
        Mistake("one-late", "You stop one too late: a place of padding is read where there is one.",
                lambda *inputs: _read(*inputs, shift=1)),
        Mistake("longest-end-for-all", "All sentences stop where the longest one ends, so the shorter ones go on "
                "reading padding.", lambda x, lengths, *rest: _steps(x, *rest)[int(lengths.max())]),
        Mistake("not-set-back", "The first sentence is right, the second begins with the state that the first one "
                "left. Every sentence begins with zeros.", _read_on_and_on),
        Mistake("w_h-transposed", "w_h is used as it stands, where a row vector needs it turned (or the other way "
                "round): row i of w_h makes number i of the new state.",
                lambda x, lengths, w_x, w_h, b: _read(x, lengths, w_x, w_h.T, b)),
        Mistake("no-memory", "The state is made from the word alone: the one before it is not used.",
                lambda x, lengths, w_x, w_h, b: _read(x, lengths, w_x, 0 * w_h, b)),
        Mistake("no-tanh", "The sums are not bent: the tanh is missing.",
                lambda *inputs: _read(*inputs, bend=lambda sums: sums)),
        Mistake("no-bias", "The bias is left out.", lambda x, n, w_x, w_h, b: _read(x, n, w_x, w_h, 0 * b)),
        Mistake("begins-with-ones", "The first state is made of ones. It begins with zeros: nothing was read yet.",
                lambda *inputs: _read(*inputs, start=1.0)),
    ),
)  # fmt: skip


# --- one step of an LSTM


def _lstm_cases() -> list[tuple]:
    def case(batch: int, d_input: int, d_model: int, seed: int) -> tuple:
        shapes = ((batch, d_input), (batch, d_model), (batch, d_model))
        weights = ((4 * d_model, d_input), (4 * d_model, d_model), (4 * d_model,))
        return tuple(random(*shape, seed=seed + i) for i, shape in enumerate((*shapes, *weights)))

    return [case(1, 3, 2, 40), case(3, 2, 4, 50)]


def _gates(x, h, w_x, w_h, b) -> tuple[Tensor, ...]:
    return (x @ w_x.T + h @ w_h.T + b).chunk(4, dim=-1)


def _add_up(take: Tensor, forget: Tensor, candidate: Tensor, c: Tensor) -> Tensor:
    return forget * c + take * candidate


def _lstm(x, h, c, w_x, w_h, b, order=(0, 1, 2, 3), gate=torch.sigmoid, bend=torch.tanh, show=torch.tanh, cell=_add_up):
    sums = _gates(x, h, w_x, w_h, b)
    take, forget, candidate, output = (sums[i] for i in order)
    c = cell(gate(take), gate(forget), bend(candidate), c)
    return gate(output) * show(c), c


def _plain(sums: Tensor) -> Tensor:
    return sums


def _pairs(test: Callable[[Run], bool], how: Callable = all) -> Callable[[Sequence[Run]], bool]:
    """Whether all runs gave two results of the right shapes, and all (or any) of them pass the test."""
    return lambda runs: all(shape(run.got) == shape(run.wanted) for run in runs) and how(test(run) for run in runs)


LSTM = Exercise(
    "lstm_step",
    reference=_lstm,
    cases=_lstm_cases,
    mistakes=(
        Mistake("candidate-and-output-swapped", "The third block is the candidate, the fourth the output gate: you "
                "have them the other way round.", lambda *inputs: _lstm(*inputs, order=(0, 1, 3, 2))),
        Mistake("input-and-forget-swapped", "The first block is the input gate, the second the forget gate: you "
                "have them the other way round.", lambda *inputs: _lstm(*inputs, order=(1, 0, 2, 3))),
        Mistake("candidate-squashed", "The candidate goes through a sigmoid, so it can never be negative. It is no "
                "gate.", lambda *inputs: _lstm(*inputs, bend=torch.sigmoid)),
        Mistake("gates-not-squashed", "The gates are taken as they are. A gate lies between 0 and 1.",
                lambda *inputs: _lstm(*inputs, gate=_plain)),
        Mistake("gates-by-tanh", "The gates go through a tanh, so they lie between −1 and 1. A gate lies between 0 "
                "and 1: which function does that?", lambda *inputs: _lstm(*inputs, gate=torch.tanh)),
        Mistake("cell-not-bent", "The new c is right. For h, the cell is shown without a last tanh.",
                lambda *inputs: _lstm(*inputs, show=_plain)),
        Mistake("old-cell-shown", "The new c is right, but h shows the cell from before this step.",
                lambda x, h, c, *rest: (_gates(x, h, *rest)[3].sigmoid() * c.tanh(), _lstm(x, h, c, *rest)[1])),
        Mistake("never-forgets", "The old cell is kept whole: the forget gate is not used.",
                lambda *inputs: _lstm(*inputs, cell=lambda take, forget, new, c: c + take * new)),
        Mistake("forget-inverted", "The forget gate works the wrong way round: open, near 1, means that the old cell "
                "is kept.", lambda *inputs: _lstm(*inputs, cell=lambda i, f, new, c: (1 - f) * c + i * new)),
        Mistake("no-input-gate", "The candidate is added whole: the input gate is not used.",
                lambda *inputs: _lstm(*inputs, cell=lambda take, forget, new, c: forget * c + new)),
        Mistake("no-bias", "The bias is left out.", lambda *inputs: _lstm(*inputs[:-1], 0 * inputs[-1])),
        Mistake("bias-twice", "The bias is added twice. PyTorch has two of them; here there is one.",
                lambda *inputs: _lstm(*inputs[:-1], 2 * inputs[-1])),
    ),
    symptoms=(
        Symptom("results-swapped", _pairs(lambda run: agree(run.got[::-1], run.wanted)),
                lambda run: "Right numbers, but h comes first and c second."),
        Symptom("only-h-wrong", _pairs(lambda run: agree(run.got[1], run.wanted[1])),
                lambda run: "The new c is right, h is not. Look at the gate that says how much of c is shown."),
        Symptom("only-c-wrong", _pairs(lambda run: agree(run.got[0], run.wanted[0])),
                lambda run: "The new h is right, but the c that you return is not the new one."),
    ),
)  # fmt: skip


# --- a decoder's look back, padding hidden


def _look_cases() -> list[tuple]:
    def case(lengths: list[int], sizes: tuple[int, int, int], seed: int) -> tuple:
        d_query, d_state, d = sizes
        batch, longest = len(lengths), max(lengths) + 1  # padding everywhere: an inverted mask leaves something
        shapes = ((batch, d_query), (batch, longest, d_state), (d, d_query), (d, d_state), (d,))
        query, states, w, u, v = (random(*shape, seed=seed + i) for i, shape in enumerate(shapes))
        return query, states, torch.arange(longest) < torch.tensor(lengths)[:, None], w, u, v

    query, states, mask, w, u, v = case([3, 2], (2, 3, 4), 75)
    low = torch.ones_like(query), states, mask, -1.5 * torch.ones_like(w), 0.3 * u, 10 * torch.ones_like(v)
    return [case([4, 2], (3, 2, 5), 60), case([1, 5, 3], (2, 4, 3), 70), low]  # the last has scores near −40


def _hidden_by(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, -torch.inf)


def _look(query, states, mask, w, u, v, bend=torch.tanh, hide=_hidden_by, after=None):
    scores = bend((query @ w.T)[:, None] + states @ u.T) @ v  # (B, S)
    weights = hide(scores, mask).softmax(dim=-1)
    weights = weights if after is None else after(weights, mask)
    return (weights[:, None] @ states)[:, 0], weights


def _look_at_one(query, states, mask, w, u, v):
    _, weights = _look(query, states, mask, w, u, v)
    best = torch.nn.functional.one_hot(weights.argmax(-1), weights.size(-1)).to(weights)
    return (best[:, None] @ states)[:, 0], best


def _keys_mixed(query, states, mask, w, u, v):
    weights = _look(query, states, mask, w, u, v)[1]
    return (weights[:, None] @ (states @ u.T))[:, 0], weights


def _sums_to_one(run: Run, axis: int) -> bool:
    """Whether the weights do along the axis; where there is padding alone they may be 0 / 0."""
    sums, real = as_tensor(run.got[1]).sum(axis), run.arguments[2].any(axis)
    return agree(sums[real], real[real].to(sums))


def _padding_gets_weight(run: Run) -> bool:
    return bool((as_tensor(run.got[1])[~run.arguments[2]] > 1e-4).any())


LOOK = Exercise(
    "look_back",
    reference=_look,
    cases=_look_cases,
    mistakes=(
        Mistake("mask-forgotten", "Padding gets weight: the mask is not used.",
                lambda *inputs: _look(*inputs, hide=lambda scores, mask: scores)),
        Mistake("mask-inverted", "The mask works the wrong way round: True means a real word.",
                lambda q, s, mask, *rest: _look(q, s, ~mask, *rest)),
        Mistake("masked-after-softmax", "The mask comes after the softmax: the weights of a row with padding no longer "
                "sum to one.", lambda *inputs: _look(*inputs, hide=lambda s, m: s, after=torch.mul)),
        Mistake("scores-set-to-zero", "The scores of padding become 0. A score of 0 is a score like any other, and "
                "gets weight.", lambda *inputs: _look(*inputs, hide=torch.mul)),
        Mistake("states-zeroed", "The states of padding are set to zero. A zero state has a score like any other, and "
                "gets weight: the mask belongs to the scores.",
                lambda q, s, mask, *rest: _look(q, s * mask[..., None], mask | True, *rest)),
        Mistake("no-tanh", "The tanh is missing. Without it, the query adds the same number to every score of its "
                "sentence, and the softmax takes it out again.", lambda *inputs: _look(*inputs, bend=_plain)),
        Mistake("query-not-used", "The query has no say: every query would look at the same words. Is it left out? Or "
                "is there a tanh of each by itself? The query then adds the same to every score. One tanh over the "
                "sum.", lambda query, *rest: _look(0 * query, *rest)),
        Mistake("v-left-out", "The numbers after the tanh are added up as they are: v, which weighs them, is missing.",
                lambda *inputs: _look(*inputs[:-1], torch.ones_like(inputs[-1]))),
        Mistake("keys-mixed", "The weights are right, but they mix the projected states. Mixed are the states.",
                _keys_mixed),
        Mistake("best-word-only", "One word gets all the weight. Attention mixes all states, each by its weight.",
                _look_at_one),
    ),
    symptoms=(
        Symptom("wrong-axis", _pairs(lambda run: _sums_to_one(run, 0)),
                lambda run: "The softmax runs over the sentences of the batch, not over the words."),
        Symptom("no-softmax", _pairs(lambda run: not _sums_to_one(run, 1), any),
                lambda run: "What you return as weights does not sum to one for each sentence: is the softmax missing, "
                "or are these the scores?"),
        Symptom("padding-gets-weight", _pairs(_padding_gets_weight, any),
                lambda run: "Padding still gets a little weight: its score is low, but not low enough for every case."),
    ),
)  # fmt: skip
