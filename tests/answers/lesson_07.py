"""Right and wrong answers to the exercises of lesson 07."""

import math

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

# --- teacher forcing


def forced(read, write, pad=None, side="right"):
    def teacher_pairs(sentences, start, end, pad_id):
        filler = pad_id if pad is None else pad

        def table(rows):
            rows = [torch.tensor(row) for row in rows]
            return pad_sequence(rows, batch_first=True, padding_value=filler, padding_side=side)

        return table([read(start, s, end) for s in sentences]), table([write(start, s, end) for s in sentences])

    return teacher_pairs


def start_words(start, words, end):
    return [start, *words]


def words_end(start, words, end):
    return [*words, end]


def all_of_it(start, words, end):
    return [start, *words, end]


def words_only(start, words, end):
    return words


def cut_a_padded_table(sentences, start, end, pad_id):
    rows = [torch.tensor([start, *words, end]) for words in sentences]
    table = pad_sequence(rows, batch_first=True, padding_value=pad_id)
    return table[:, :-1], table[:, 1:]


def fill_tables(sentences, start, end, pad_id):
    shape = (len(sentences), max(map(len, sentences)) + 1)
    read, write = torch.full(shape, pad_id), torch.full(shape, pad_id)
    for row, words in enumerate(sentences):
        for place, word in enumerate(words):
            read[row, place + 1] = write[row, place] = word
        read[row, 0] = start
        write[row, len(words)] = end
    return [read, write]


# --- the learning rate


def rates(first=1, d=lambda d_model: 1 / math.sqrt(d_model), up=None, down=None, pick=min):
    def learning_rates(steps, d_model, warmup):
        found = []
        for step in range(first, steps + first):
            rise = up(step, warmup) if up else step / (warmup * math.sqrt(warmup))
            if step == 0:
                found.append(0.0)
                continue
            fall = down(step, warmup) if down else 1 / math.sqrt(step)
            found.append(d(d_model) * pick(rise, fall))
        return found

    return learning_rates


def rates_in_two_pieces(steps, d_model, warmup):
    number = torch.arange(1, steps + 1, dtype=torch.float64)
    peak = (d_model * warmup) ** -0.5
    return torch.where(number < warmup, peak * number / warmup, peak * (warmup / number).sqrt())


# --- batches of tokens


def grouped(cost, fits=lambda places, budget: places <= budget, close=True):
    def cut_batches(lengths, budget):
        groups, group = [], []
        for row in range(len(lengths)):
            trial = [lengths[member] for member in group] + [lengths[row]]
            if not group or fits(cost(trial), budget):
                group = [*group, row]
            else:
                groups, group = [*groups, group], [row]
        return groups + ([group] if close else [])

    return cut_batches


def padded_places(lengths):
    return max(lengths) * len(lengths)


def greedy_slices(lengths, budget):
    batches, begin = [], 0
    while begin < len(lengths):
        stop = begin + 1
        while stop < len(lengths) and max(lengths[begin : stop + 1]) * (stop + 1 - begin) <= budget:
            stop += 1
        batches.append(tuple(range(begin, stop)))
        begin = stop
    return batches


def added_before_looking(lengths, budget):
    batches, current = [], []
    for row, length in enumerate(lengths):
        current.append(row)
        if len(current) * length > budget:
            batches.append(current)
            current = []
    if current:
        batches.append(current)
    return batches


# --- dropout


def dropped(survives=lambda u, p: u >= p, factor=lambda p: 1 / (1 - p), outside=lambda x, p: x, when=lambda on: on):
    def my_dropout(x, p, u, training):
        if not when(training):
            return outside(x, p)
        return x * survives(u, p).float() * factor(p)

    return my_dropout


# --- the smoothed loss


def mixed(target=None, logs=None, counted=None, divide=None, sign=1.0):
    """−Σ target · log p, written with a full target."""

    def thrifty_loss(logits, targets, smoothing, pad_id):
        v = logits.shape[-1]
        share = torch.zeros_like(logits).scatter(-1, targets[..., None], 1.0)
        q = target(share, smoothing, v) if target else torch.full_like(logits, smoothing / v) + (1 - smoothing) * share
        log_p = logs(logits) if logs else torch.log_softmax(logits, -1)
        each = -sign * torch.einsum("btv,btv->bt", q, log_p)
        mask = counted(targets, pad_id) if counted else (targets != pad_id).float()
        return (each * mask).sum() / (divide(mask, v) if divide else mask.sum())

    return thrifty_loss


def kl(safe):
    def thrifty_loss(logits, targets, smoothing, pad_id):
        v = logits.shape[-1]
        q = torch.full_like(logits, smoothing / v).scatter_add(
            -1, targets[..., None], torch.full_like(logits[..., :1], 1 - smoothing)
        )
        log_p = logits.log_softmax(-1)
        parts = F.kl_div(log_p, q, reduction="none") if safe else q * (q.log() - log_p)
        each = parts.sum(-1)
        return each[targets != pad_id].mean()

    return thrifty_loss


def through_probabilities(logits, targets, smoothing, pad_id):
    p = logits.softmax(-1)
    right = p.gather(-1, targets[..., None])[..., 0].log()
    each = -(1 - smoothing) * right - smoothing * p.log().mean(-1)
    return each[targets != pad_id].mean()


def right_and_mean(logits, targets, smoothing, pad_id):
    log_p = logits.log_softmax(-1)
    each = (smoothing - 1) * log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - smoothing * log_p.mean(-1)
    return torch.masked_select(each, targets != pad_id).mean()


def by_torch(logits, targets, smoothing, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id, label_smoothing=smoothing)


# --- the gradient of several batches


def collected(finish, forget=False):
    def accumulated_gradient(loss, weight, batches):
        w = weight.clone().detach().requires_grad_(True)
        pieces = []
        for x, y in batches:
            w.grad = None
            loss(w, x, y).backward()
            pieces.append((w.grad.clone(), y.shape[0]))
        return finish(pieces[-1:] if forget else pieces, [count for _, count in pieces])

    return accumulated_gradient


def total(pieces):
    return torch.stack([gradient for gradient, _ in pieces]).sum(0)


def means(pieces):
    return torch.stack([gradient / count for gradient, count in pieces])


def in_one_batch(loss, weight, batches):
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    w = weight.detach().requires_grad_()
    return torch.autograd.grad(loss(w, x, y) / len(y), w)[0]


RIGHT = {
    "teacher_pairs": [forced(start_words, words_end), fill_tables],
    "learning_rates": [rates(), rates_in_two_pieces],
    "cut_batches": [grouped(padded_places), greedy_slices],
    "my_dropout": [dropped(), lambda x, p, u, training: torch.where(u < p, 0, x / (1 - p)) if training else x.clone()],
    "thrifty_loss": [mixed(), right_and_mean, by_torch],
    "accumulated_gradient": [collected(lambda pieces, counts: total(pieces) / sum(counts)), in_one_batch],
}

PLANTED = {
    "teacher_pairs": {
        "not-shifted": forced(all_of_it, all_of_it),
        "not-shifted-without-specials": forced(words_only, words_only),
        "same-length-not-shifted": forced(words_end, words_end),
        "exchanged": forced(words_end, start_words),
        "no-end": forced(lambda start, words, end: [start, *words[:-1]], words_only),
        "no-start": forced(words_only, lambda start, words, end: [*words[1:], end]),
        "reads-the-end": forced(all_of_it, words_end),
        "predicts-the-start": forced(start_words, all_of_it),
        "padding-is-always-zero": forced(start_words, words_end, pad=0),
        "padding-in-front": forced(start_words, words_end, side="left"),
        "cut-behind-the-padding": cut_a_padded_table,
    },
    "learning_rates": {
        "counted-from-zero": rates(first=0),
        "one-step-ahead": rates(first=2),
        "maximum": rates(pick=max),
        "divided-by-d-model": rates(d=lambda d: 1 / d),
        "times-root-of-d-model": rates(d=math.sqrt),
        "without-d-model": rates(d=lambda d: 1),
        "warm-up-too-steep": rates(up=lambda step, warmup: step / math.sqrt(warmup)),
        "rises-by-share": rates(up=lambda step, warmup: step / warmup),
        "no-fall": rates(down=lambda step, warmup: 1 / math.sqrt(warmup)),
        "no-warm-up": rates(pick=lambda rise, fall: fall),
        "falls-too-fast": rates(down=lambda step, warmup: step**-1),
    },
    "cut_batches": {
        "padding-not-counted": grouped(sum),
        "last-batch-lost": grouped(padded_places, close=False),
        "never-full": grouped(padded_places, lambda places, budget: places < budget),
        "checked-too-late": added_before_looking,
        "number-of-sentences": grouped(len),
        "shortest-counts": grouped(lambda lengths: min(lengths) * len(lengths)),
        "newest-counts": grouped(lambda lengths: lengths[-1] * len(lengths)),
    },
    "my_dropout": {
        "not-scaled": dropped(factor=lambda p: 1),
        "scaled-in-use-instead": dropped(factor=lambda p: 1, outside=lambda x, p: (1 - p) * x),
        "kept-and-dropped-exchanged": dropped(survives=lambda u, p: u < p),
        "share-and-scale-exchanged": dropped(
            survives=lambda u, p: torch.less(u, p), factor=lambda p: 1 / p if p > 0 else 0
        ),
        "shrinks": dropped(factor=lambda p: 1 - p),
        "divided-by-p": lambda x, p, u, training: torch.where(u < p, 0.0, x) / p if training else x,
        "always-on": dropped(when=lambda on: True),
        "always-off": dropped(when=lambda on: False),
        "training-exchanged": dropped(when=lambda on: not on),
    },
    "thrifty_loss": {
        "mass-too-small": mixed(lambda one, eps, v: one * (1 - eps) + (1 - one) * eps / v),
        "mass-too-large": mixed(lambda one, eps, v: one + eps / v),
        "spread-over-the-others": mixed(lambda one, eps, v: one * (1 - eps) + (1 - one) * eps / (v - 1)),
        "eps-for-each": mixed(lambda one, eps, v: one * (1 - eps) + eps),
        "exchanged": mixed(lambda one, eps, v: one * eps + (1 - eps) / v),
        "not-smoothed": mixed(lambda one, eps, v: one),
        "pads-counted": mixed(counted=lambda targets, pad: torch.ones_like(targets).float()),
        "divided-by-all": mixed(divide=lambda mask, v: mask.numel()),
        "summed": mixed(divide=lambda mask, v: 1.0),
        "mean-over-classes": mixed(divide=lambda mask, v: mask.sum() * v),
        "sign": mixed(sign=-1.0),
        "zero-times-log-zero": kl(safe=False),
        "divergence": kl(safe=True),
        "no-logarithm": mixed(logs=lambda logits: logits),
        "probabilities-not-logarithms": mixed(logs=lambda logits: torch.softmax(logits, -1)),
        "wrong-axis": mixed(logs=lambda logits: torch.log_softmax(logits, dim=1)),
        "infinite": through_probabilities,
    },
    "accumulated_gradient": {
        "mean-of-means": collected(lambda pieces, counts: means(pieces).mean(0)),
        "sum-of-means": collected(lambda pieces, counts: means(pieces).sum(0)),
        "summed": collected(lambda pieces, counts: total(pieces)),
        "divided-by-batches": collected(lambda pieces, counts: total(pieces) / len(counts)),
        "only-the-last": collected(lambda pieces, counts: means(pieces).sum(0), forget=True),
        "last-over-all": collected(lambda pieces, counts: total(pieces) / sum(counts), forget=True),
        "last-count": collected(lambda pieces, counts: total(pieces) / counts[-1]),
        "sign": collected(lambda pieces, counts: -total(pieces) / sum(counts)),
    },
}
