"""Right and wrong answers to the exercises of lesson 01."""

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence

# --- reading to the end


def reader(bend=torch.tanh, keep=lambda t, n: t < n, matrix=lambda w: w, memory=1.0, bias=1.0, finish=None, start=0.0):
    """Sentence by sentence, word by word; ``keep`` says whether word t of a sentence of n is read."""

    def read_to_the_end(x, lengths, w_x, w_h, b):
        ends = []
        for i in range(x.shape[0]):
            h = torch.full((w_h.shape[0],), start)
            for t in range(x.shape[1]):
                if keep(t, int(lengths[i])):
                    h = bend(w_x @ x[i, t] + memory * (matrix(w_h) @ h) + bias * b)
                elif finish is not None:
                    h = finish(h, w_h, b)
            ends.append(h)
        return torch.stack(ends)

    return read_to_the_end


def read_without_resetting(x, lengths, w_x, w_h, b):
    h = torch.zeros(w_h.shape[0])
    found = []
    for i, length in enumerate(lengths.tolist()):
        for t in range(length):
            h = (F.linear(x[i, t], w_x) + F.linear(h, w_h, b)).tanh()
        found.append(h)
    return torch.stack(found)


def read_as_far_as_the_longest(x, lengths, w_x, w_h, b):
    h = torch.zeros(x.shape[0], w_h.shape[0])
    for t in range(max(lengths.tolist())):
        h = torch.tanh(F.linear(x[:, t], w_x) + F.linear(h, w_h) + b)
    return h


def read_and_freeze(x, lengths, w_x, w_h, b):
    h = torch.zeros(x.shape[0], w_h.shape[0])
    for t in range(x.shape[1]):
        new = torch.tanh(x[:, t] @ w_x.T + h @ w_h.T + b)
        h = torch.where((t < lengths)[:, None], new, h)
    return h


def read_packed(x, lengths, w_x, w_h, b):
    layer = torch.nn.RNN(w_x.shape[1], w_x.shape[0], batch_first=True)
    layer.load_state_dict({"weight_ih_l0": w_x, "weight_hh_l0": w_h, "bias_ih_l0": b, "bias_hh_l0": 0 * b})
    with torch.no_grad():
        return layer(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))[1][0]


# --- one step of an LSTM


def blocks(sums):
    size = sums.shape[-1] // 4
    return [sums[:, i * size : (i + 1) * size] for i in range(4)]


def step_of(names="ifgo", gate=torch.sigmoid, bend=torch.tanh, show=torch.tanh, cell=None, back=None, bias=1):
    def lstm_step(x, h, c, w_x, w_h, b):
        parts = dict(zip(names, blocks(F.linear(x, w_x, bias * b) + F.linear(h, w_h)), strict=True))
        i, f, o, g = gate(parts["i"]), gate(parts["f"]), gate(parts["o"]), bend(parts["g"])
        new = cell(i, f, g, c) if cell else f * c + i * g
        shown = o * show(new)
        return back(shown, new, o, c) if back else (shown, new)

    return lstm_step


def lstm_by_torch(x, h, c, w_x, w_h, b):
    layer = torch.nn.LSTMCell(x.shape[1], h.shape[1])
    layer.load_state_dict({"weight_ih": w_x, "weight_hh": w_h, "bias_ih": b, "bias_hh": 0 * b})
    with torch.no_grad():
        return layer(x, (h, c))


# --- slopes over distance


def by_products(factor, size=lambda m: torch.linalg.svdvals(m)[0], join=lambda new, old: new @ old, start=1):
    def slopes_over_distance(states, w_h):
        whole = torch.eye(w_h.shape[0])
        numbers = [size(whole)]
        for before, after in pairwise(states):
            whole = join(factor(before, after, w_h), whole)
            numbers.append(size(whole))
        return torch.stack(numbers)[1 - start :]

    return slopes_over_distance


def proper(before, after, w_h):
    return torch.diag(1 - after * after) @ w_h


def bound(states, w_h):
    numbers = [1.0]
    for h in states[1:]:
        numbers.append(numbers[-1] * torch.linalg.svdvals(torch.diag(1 - h * h) @ w_h)[0].item())
    return torch.tensor(numbers)


def single_steps(states, w_h):
    sizes = [torch.linalg.svdvals(torch.diag(1 - h * h) @ w_h)[0] for h in states[1:]]
    return torch.tensor([1.0, *sizes])


def from_the_first_state(states, w_h):
    whole, numbers = torch.eye(w_h.shape[0]), []
    for h in states:
        whole = torch.diag(1 - h * h) @ w_h @ whole
        numbers.append(torch.linalg.svdvals(whole)[0])
    return torch.stack(numbers)


def frobenius_after_the_one(states, w_h):
    whole, numbers = torch.eye(w_h.shape[0]), [torch.tensor(1.0)]
    for h in states[1:]:
        whole = torch.diag(1 - h * h) @ w_h @ whole
        numbers.append(whole.norm())
    return torch.stack(numbers)


def slopes_by_autograd(states, w_h):
    shares = [torch.atanh(h) - w_h @ before for before, h in pairwise(states)]

    def run(first, steps):
        h = first
        for share in shares[:steps]:
            h = torch.tanh(w_h @ h + share)
        return h

    jacobian = torch.autograd.functional.jacobian
    found = [jacobian(lambda first, n=n: run(first, n), states[0]) for n in range(len(states))]
    return torch.stack([torch.linalg.matrix_norm(matrix, 2) for matrix in found])


# --- clipping


def clipper(length, condition=True, aim=lambda limit: limit):
    def clip_gradients(gradients, limit):
        whole = length(gradients)
        if condition and whole <= limit:
            return list(gradients)
        return [aim(limit) * gradient / whole for gradient in gradients]

    return clip_gradients


def together(gradients):
    return torch.sqrt(sum((gradient**2).sum() for gradient in gradients))


def clip_one_by_one(gradients, limit):
    return [g * min(1.0, limit / (math.sqrt(float((g**2).sum())) + 1e-9)) for g in gradients]


def clip_the_short(gradients, limit):
    whole = together(gradients)
    return list(gradients) if whole >= limit else [limit * gradient / whole for gradient in gradients]


def clip_by_torch(gradients, limit):
    copies = [torch.zeros_like(gradient, requires_grad=True) for gradient in gradients]
    for copy, gradient in zip(copies, gradients, strict=True):
        copy.grad = gradient.clone()
    torch.nn.utils.clip_grad_norm_(copies, limit)
    return [copy.grad for copy in copies]


# --- a look back


def looker(hide=None, bend=torch.tanh, soften=None, reweigh=None, ask=1.0, weigh=True, mix=lambda states, u: states):
    def look_back(query, states, mask, w, u, v):
        rows = []
        for t in range(states.shape[1]):
            hidden = bend(ask * F.linear(query, w) + F.linear(states[:, t], u))
            rows.append((hidden * v if weigh else hidden).sum(-1))
        scores = torch.stack(rows, dim=1)
        scores = hide(scores, mask) if hide else torch.where(mask, scores, torch.tensor(-1e9))
        weights = soften(scores) if soften else torch.softmax(scores, 1)
        weights = reweigh(weights, mask) if reweigh else weights
        return torch.einsum("bs,bsd->bd", weights, mix(states, u)), weights

    return look_back


def only_the_best(weights, mask):
    best = torch.zeros_like(weights)
    best[torch.arange(len(weights)), weights.argmax(1)] = 1
    return best


def look_at_zeros(query, states, mask, w, u, v):
    return looker(hide=lambda scores, mask: scores)(query, torch.where(mask[..., None], states, 0.0), mask, w, u, v)


def look_word_by_word(query, states, mask, w, u, v):
    contexts, rows = [], []
    for i in range(len(query)):
        real = [t for t in range(states.shape[1]) if mask[i, t]]
        scores = torch.stack([v @ torch.tanh(w @ query[i] + u @ states[i, t]) for t in real])
        row = torch.zeros(states.shape[1])
        row[real] = scores.exp() / scores.exp().sum()
        rows.append(row)
        contexts.append(row @ states[i])
    return torch.stack(contexts), torch.stack(rows)


PLANTED = {
    "read_to_the_end": {
        "reads-padding": reader(keep=lambda t, n: True),
        "padding-as-zeros": reader(finish=lambda h, w_h, b: torch.tanh(w_h @ h + b)),
        "zeroed-at-padding": reader(finish=lambda h, w_h, b: 0 * h),
        "one-early": reader(keep=lambda t, n: t < n - 1),
        "one-late": reader(keep=lambda t, n: t <= n),
        "longest-end-for-all": read_as_far_as_the_longest,
        "not-set-back": read_without_resetting,
        "w_h-transposed": reader(matrix=lambda w: w.T),
        "no-memory": reader(memory=0.0),
        "no-tanh": reader(bend=lambda sums: sums),
        "no-bias": reader(bias=0.0),
        "begins-with-ones": reader(start=1.0),
    },
    "lstm_step": {
        "candidate-and-output-swapped": step_of(names="ifog"),
        "input-and-forget-swapped": step_of(names="figo"),
        "candidate-squashed": step_of(bend=torch.sigmoid),
        "gates-not-squashed": step_of(gate=lambda sums: sums),
        "gates-by-tanh": step_of(gate=torch.tanh),
        "cell-not-bent": step_of(show=lambda c: c),
        "old-cell-shown": step_of(back=lambda h, new, o, c: (o * c.tanh(), new)),
        "never-forgets": step_of(cell=lambda i, f, g, c: c + i * g),
        "forget-inverted": step_of(cell=lambda i, f, g, c: (1 - f) * c + i * g),
        "no-input-gate": step_of(cell=lambda i, f, g, c: f * c + g),
        "no-bias": step_of(bias=0),
        "bias-twice": step_of(bias=2),
        "results-swapped": step_of(back=lambda h, new, o, c: (new, h)),
        "only-h-wrong": step_of(back=lambda h, new, o, c: (new.tanh(), new)),
        "only-c-wrong": step_of(back=lambda h, new, o, c: (h, c)),
    },
    "slopes_over_distance": {
        "tanh-left-out": by_products(lambda before, after, w: w),
        "bent-twice": by_products(lambda before, after, w: torch.diag(1 - after.tanh() ** 2) @ w),
        "slope-behind-the-matrix": by_products(lambda before, after, w: w @ torch.diag(1 - after**2)),
        "state-before": by_products(lambda before, after, w: torch.diag(1 - before**2) @ w),
        "order-reversed": by_products(proper, join=lambda new, old: old @ new),
        "w_h-transposed": by_products(lambda before, after, w: proper(before, after, w.T)),
        "norms-multiplied": bound,
        "steps-alone": single_steps,
        "one-factor-more": from_the_first_state,
        "square-left-out": by_products(lambda before, after, w: torch.diag(1 - after) @ w),
        "all-entries": frobenius_after_the_one,
        "eigenvalue": by_products(proper, size=lambda m: torch.linalg.eigvals(m).abs().max()),
        "first-left-out": by_products(proper, start=0),
    },
    "clip_gradients": {
        "each-alone": clip_one_by_one,
        "numbers-clamped": lambda gradients, limit: [torch.clip(g, -limit, limit) for g in gradients],
        "always-scaled": clipper(together, condition=False),
        "lengths-added": clipper(lambda gradients: torch.stack([g.norm() for g in gradients]).sum()),
        "no-root": clipper(lambda gradients: together(gradients) ** 2),
        "longest-alone": clipper(lambda gradients: torch.stack([g.norm() for g in gradients]).max()),
        "largest-number": clipper(lambda gradients: max(g.abs().max() for g in gradients)),
        "condition-reversed": clip_the_short,
        "length-one": clipper(together, aim=lambda limit: 1.0),
        "thrown-away": clipper(together, aim=lambda limit: 0.0),
    },
    "look_back": {
        "mask-forgotten": looker(hide=lambda scores, mask: scores),
        "mask-inverted": looker(hide=lambda scores, mask: scores.masked_fill(mask, -1e9)),
        "masked-after-softmax": looker(hide=lambda scores, mask: scores, reweigh=lambda w, mask: w * mask),
        "scores-set-to-zero": looker(hide=lambda scores, mask: scores * mask),
        "states-zeroed": look_at_zeros,
        "wrong-axis": looker(lambda scores, mask: scores.masked_fill(~mask, -math.inf), soften=lambda s: s.softmax(0)),
        "no-softmax": looker(hide=lambda scores, mask: scores * mask, soften=lambda scores: scores),
        "padding-gets-weight": looker(hide=lambda scores, mask: scores.masked_fill(~mask, -10.0)),
        "v-left-out": looker(weigh=False),
        "no-tanh": looker(bend=lambda sums: sums),
        "query-not-used": looker(ask=0.0),
        "keys-mixed": looker(mix=lambda states, u: states @ u.T),
        "best-word-only": looker(reweigh=only_the_best),
    },
}

RIGHT = {
    "read_to_the_end": [reader(), read_and_freeze, read_packed],
    "lstm_step": [step_of(), lstm_by_torch],
    "slopes_over_distance": [by_products(proper), slopes_by_autograd],
    "clip_gradients": [clipper(together), clip_by_torch],
    "look_back": [looker(), look_word_by_word],
}
