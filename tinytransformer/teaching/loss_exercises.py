"""Exercises of lesson 07 about the loss: label smoothing, dropout, gradients of several batches."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, Symptom, agree, random

# --- the smoothed loss


def _loss_cases() -> list[tuple]:
    targets = torch.tensor([[4, 1, 0, 0], [2, 3, 4, 0]])  # 0 is padding
    far = random(2, 4, 5, seed=4)
    far[..., 1] -= 300.0  # so unlikely that its probability is 0 in float32
    return [
        (random(2, 4, 5, seed=1), targets, 0.1, 0),
        (random(2, 4, 5, seed=2), targets, 0.0, 0),
        (random(1, 3, 6, seed=3), torch.tensor([[5, 2, 3]]), 0.3, 3),
        (far, targets, 0.1, 0),
    ]


def _loss(spread=None, log=lambda logits: logits.log_softmax(-1), pads=False, per=None, sign=-1.0):
    """The right loss, or one with another target distribution, logarithm, count or sign."""

    def thrifty_loss(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> Tensor:
        size = logits.size(-1)
        one_hot = F.one_hot(targets, size).float()
        wanted = spread(one_hot, smoothing, size) if spread else one_hot * (1 - smoothing) + smoothing / size
        losses = sign * (wanted * log(logits)).sum(-1)
        real = torch.ones_like(targets, dtype=torch.bool) if pads else targets != pad_id
        total = losses[real].sum()
        return total / (per(real, logits) if per else real.sum())

    return thrifty_loss


def _divergence(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> Tensor:
    size = logits.size(-1)
    wanted = F.one_hot(targets, size) * (1 - smoothing) + smoothing / size
    losses = (wanted * (wanted.log() - logits.log_softmax(-1))).sum(-1)
    return losses[targets != pad_id].mean()


def _divergence_safe(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> Tensor:
    size = logits.size(-1)
    wanted = F.one_hot(targets, size) * (1 - smoothing) + smoothing / size
    losses = (torch.xlogy(wanted, wanted) - wanted * logits.log_softmax(-1)).sum(-1)
    return losses[targets != pad_id].mean()


def _only_far_logits_fail(runs) -> bool:
    return all(agree(run.got, run.wanted) for run in runs if run.arguments[0].min() > -100)


INFINITE = Symptom(
    "infinite",
    _only_far_logits_fail,
    lambda run: (
        "Right for ordinary logits. Where a probability is 0 in float32, its logarithm is -inf, and with smoothing "
        "every token counts: take the logarithm without going through the probability."
    ),
)

LOSS = Exercise(
    "thrifty_loss",
    reference=_loss(),
    cases=_loss_cases,
    mistakes=(
        Mistake("mass-too-small", "The target does not sum to one: the right token has 1 - ε, the others ε/V each. The "
                "right one has its share of ε, too.",
                _loss(lambda hot, eps, size: torch.where(hot > 0, 1 - eps, eps / size))),
        Mistake("mass-too-large", "The target sums to more than one: ε was given to all tokens but taken from nobody.",
                _loss(lambda hot, eps, size: hot + eps / size)),
        Mistake("spread-over-the-others", "ε is spread over the V - 1 wrong tokens. That sums to one and is used "
                "elsewhere; asked for is the spread over all V.",
                _loss(lambda hot, eps, size: torch.where(hot > 0, 1 - eps, eps / (size - 1)))),
        Mistake("eps-for-each", "Every token gets ε, not its share ε/V.",
                _loss(lambda hot, eps, size: hot * (1 - eps) + eps)),
        Mistake("exchanged", "The right token gets ε and all tokens share 1 - ε: the two are exchanged.",
                _loss(lambda hot, eps, size: hot * eps + (1 - eps) / size)),
        Mistake("not-smoothed", "The smoothing has no effect.", _loss(lambda hot, eps, size: hot)),
        Mistake("pads-counted", "Padding is counted: the model is asked to predict it.", _loss(pads=True)),
        Mistake("divided-by-all", "The sum leaves padding out, but it is divided by the number of all places.",
                _loss(per=lambda real, logits: real.numel())),
        Mistake("summed", "The losses are summed. Asked for is the mean over real tokens.",
                _loss(per=lambda real, logits: 1)),
        Mistake("mean-over-classes", "The mean runs over the V tokens, too: per position it is a sum.",
                _loss(per=lambda real, logits: real.sum() * logits.size(-1))),
        Mistake("sign", "The loss is negative: a minus is missing.", _loss(sign=1.0)),
        Mistake("zero-times-log-zero", "This is the KL divergence. Without smoothing a target of 0 gives 0 · log 0, "
                "which is NaN; and with it a constant is subtracted that the loss does not have.", _divergence),
        Mistake("divergence", "This is the KL divergence: the entropy of the target has been subtracted. Asked for is "
                "the cross-entropy.", _divergence_safe),
        Mistake("no-logarithm", "The logits were used as if they were logarithms of probabilities: a softmax is "
                "missing.", _loss(log=lambda logits: logits)),
        Mistake("probabilities-not-logarithms", "The logarithm is missing.",
                _loss(log=lambda logits: logits.softmax(-1))),
        Mistake("wrong-axis", "The softmax runs over the positions, not over the vocabulary.",
                _loss(log=lambda logits: logits.log_softmax(-2))),
    ),
    symptoms=(INFINITE,),
)  # fmt: skip


# --- dropout


def _dropout(keep=lambda u, p: u >= p, scale=lambda p: 1 / (1 - p), rest=lambda x, p: x):
    """The right answer, or one that keeps, scales or rests in another way."""

    def my_dropout(x: Tensor, p: float, u: Tensor, training: bool) -> Tensor:
        return x * keep(u, p) * scale(p) if training else rest(x, p)

    return my_dropout


def _dropout_cases() -> list[tuple]:
    uniform = random(4, 6, seed=6).sigmoid()
    uniform[0, 0], uniform[1, 1] = 0.25, 0.0  # on the border: kept at p = 0.25, and at p = 0
    x = random(4, 6, seed=5)
    return [(x, 0.25, uniform, True), (x, 0.25, uniform, False), (x, 0.6, uniform, True), (x, 0.0, uniform, True)]


DROPOUT = Exercise(
    "my_dropout",
    reference=_dropout(),
    cases=_dropout_cases,
    mistakes=(
        Mistake("not-scaled", "What is kept does not grow: on average the output is smaller than x, and the model sees "
                "other sizes in training than in use.", _dropout(scale=lambda p: 1.0)),
        Mistake("scaled-in-use-instead", "What is kept does not grow in training; instead x shrinks in use. That is "
                "how dropout was first published; asked for is an x that is left alone in use.",
                _dropout(scale=lambda p: 1.0, rest=lambda x, p: x * (1 - p))),
        Mistake("kept-and-dropped-exchanged", "p is the share that is dropped; yours keeps a share of p.",
                _dropout(keep=lambda u, p: u < p)),
        Mistake("share-and-scale-exchanged", "p is the share that is dropped; yours keeps a share of p, and scales for "
                "that.", _dropout(keep=lambda u, p: u < p, scale=lambda p: 1 / p if p else 0.0)),
        Mistake("border-dropped", "Where u equals p exactly, the element is dropped. Only below p.",
                _dropout(keep=lambda u, p: u > p)),
        Mistake("shrinks", "What is kept is multiplied by 1 - p: it must grow, not shrink.",
                _dropout(scale=lambda p: 1 - p)),
        Mistake("divided-by-p", "What is kept is divided by p, the share that is dropped.",
                _dropout(scale=lambda p: 1 / p if p else float("inf"))),
        Mistake("always-on", "It drops in use, too. There x comes through as it is.",
                lambda x, p, u, training: _dropout()(x, p, u, True)),
        Mistake("always-off", "It never drops anything: `training` is exchanged or not used.",
                lambda x, p, u, training: x),
        Mistake("training-exchanged", "It drops in use and rests in training.",
                lambda x, p, u, training: _dropout()(x, p, u, not training)),
    ),
)  # fmt: skip


# --- the gradient of several batches


def _summed_loss(weight: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (x @ weight - y).square().sum()


def _accumulate_cases() -> list[tuple]:
    sizes = [(1, 5, 2), (3, 3), (4,)]
    batches = [[(random(n, 3, seed=10 + n), random(n, seed=20 + n)) for n in counts] for counts in sizes]
    return [(_summed_loss, random(3, seed=9), group) for group in batches]


def _accumulated(combine):
    """``combine`` makes one gradient of those of the batches and their numbers of tokens."""

    def accumulated_gradient(loss: Callable, weight: Tensor, batches: list[tuple[Tensor, Tensor]]) -> Tensor:
        leaf = weight.detach().clone().requires_grad_()
        gradients = [torch.autograd.grad(loss(leaf, x, y), leaf)[0] for x, y in batches]
        return combine(gradients, [len(y) for _, y in batches])

    return accumulated_gradient


ACCUMULATE = Exercise(
    "accumulated_gradient",
    reference=_accumulated(lambda gradients, counts: sum(gradients) / sum(counts)),
    cases=_accumulate_cases,
    mistakes=(
        Mistake("mean-of-means", "Each batch is averaged by itself, then the batches: a token of a small batch counts "
                "more than one of a large batch.",
                _accumulated(lambda gs, ns: sum(g / n for g, n in zip(gs, ns, strict=True)) / len(gs))),
        Mistake("sum-of-means", "Each batch is averaged by itself, and the averages are added: the step grows with the "
                "number of batches.", _accumulated(lambda gs, ns: sum(g / n for g, n in zip(gs, ns, strict=True)))),
        Mistake("summed", "The sum is not divided by the number of tokens.", _accumulated(lambda gs, ns: sum(gs))),
        Mistake("divided-by-batches", "The sum is divided by the number of batches, not of tokens.",
                _accumulated(lambda gs, ns: sum(gs) / len(gs))),
        Mistake("only-the-last", "Only the last batch counts: the gradients of the others were thrown away.",
                _accumulated(lambda gs, ns: gs[-1] / ns[-1])),
        Mistake("last-over-all", "Only the last batch's gradient is there, divided by the tokens of all.",
                _accumulated(lambda gs, ns: gs[-1] / sum(ns))),
        Mistake("last-count", "The sum is divided by the number of tokens of the last batch alone.",
                _accumulated(lambda gs, ns: sum(gs) / ns[-1])),
        Mistake("sign", "This is the step, which goes against the gradient: asked for is the gradient itself.",
                _accumulated(lambda gs, ns: -sum(gs) / sum(ns))),
    ),
)  # fmt: skip
