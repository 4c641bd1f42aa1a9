"""Tasks of assignment 3 about a whole run: perplexity, and a small model that learns from the microworld."""

import math
from copy import deepcopy
from inspect import getsource

import torch
from torch import Tensor

from tinytransformer.model.config import TransformerConfig
from tinytransformer.model.transformer import Transformer
from tinytransformer.teaching.assignments.batch_tasks import SHIFT_GIVEN, run_arguments, shifted_rows
from tinytransformer.teaching.assignments.loss_tasks import TARGETS_GIVEN, scored_text, smoothed_targets, surprised
from tinytransformer.teaching.assignments.schedule_tasks import ADAM_GIVEN, adam_step, rates_after
from tinytransformer.teaching.assignments.telling import dice_of, number, telling
from tinytransformer.teaching.exercises import Exercise, Mistake, untouched
from tinytransformer.teaching.grading.tasks import Case, Task

# --- perplexity

Batches = list[tuple[Tensor, Tensor]]  # logits (B, T, V) and targets (B, T)


def perplexity_of(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total = count = 0
    for logits, targets in batches:
        real = targets != pad_id
        logs = logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
        total, count = total - float(logs[real].sum()), count + int(real.sum())
    return math.exp(total / count)


def _losses(batches: Batches, pad_id: int | None, log=lambda x: x.log_softmax(-1)) -> list[Tensor]:
    """The losses of the real tokens of each batch, or of all where there is no padding id."""
    found = []
    for logits, targets in batches:
        losses = -log(logits).gather(-1, targets[..., None])[..., 0]
        found.append(losses[targets != pad_id] if pad_id is not None else losses.flatten())
    return found


def _over_all_places(batches: Batches, pad_id: int) -> float:
    return float((torch.cat(_losses(batches, pad_id)).sum() / sum(targets.numel() for _, targets in batches)).exp())


def _together(end, pads: bool = False, **log):
    return lambda batches, pad_id: float(end(torch.cat(_losses(batches, None if pads else pad_id, **log))))


def _by_batch(each, end, empty: bool = False):
    """``empty``: a batch that is all padding has its say, too, and its mean is NaN."""

    def perplexity(batches: Batches, pad_id: int) -> float:
        means = [each(one.mean()) for one in _losses(batches, pad_id) if len(one) or empty]
        return float(end(torch.stack(means).mean()))

    return perplexity


def _means_times_counts(batches: Batches, pad_id: int) -> float:
    losses = _losses(batches, pad_id)
    return math.exp(sum(float(one.mean()) * len(one) for one in losses) / sum(map(len, losses)))


def _perplexity_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    size, base = number(5, 8, dice), 10 * number(1, 10**6, dice)
    unlikely = scored_text([(2, 6), (3, 5)], size, 0, base + 4, dice)
    return [
        Case("batches of different sizes", scored_text([(1, 3), (4, 6), (2, 5)], size, 0, base, dice)),
        Case("another padding id", scored_text([(2, 4), (1, 5), (3, 3)], size, size - 2, base + 1, dice)),
        Case("one batch", scored_text([(2, 3)], size, 0, base + 2, dice)),
        Case("a batch that is all padding", scored_text([(2, 4), (1, 3), (3, 5)], size, 0, base + 3, dice, silent=1)),
        Case("a right token that is next to impossible", surprised(*unlikely)),
    ]


PERPLEXITY = Task(
    Exercise(
        "perplexity_of",
        reference=perplexity_of,
        cases=lambda: [
            scored_text([(1, 2), (3, 4), (2, 5)], 5, 0, 1, dice_of(1)),
            scored_text([(2, 3), (1, 4)], 6, 2, 2, dice_of(2)),
            surprised(*scored_text([(2, 6), (1, 2), (3, 5)], 6, 0, 3, dice_of(3), silent=1)),
        ],
        mistakes=(
            Mistake("mean-of-batches", "Each batch is averaged by itself, then the batches: a token of a small batch "
                    "counts more.", _by_batch(lambda loss: loss, torch.exp)),
            Mistake("mean-of-perplexities", "This is the mean of the batches' perplexities. Average the losses of all "
                    "tokens, then take the exponential once.", _by_batch(torch.exp, lambda mean: mean)),
            Mistake("padding-counted", "Padding is counted as if it had to be predicted.",
                    _together(lambda losses: losses.mean().exp(), pads=True)),
            Mistake("divided-by-all", "The losses of padding are left out, but its places are counted when you divide.",
                    _over_all_places),
            Mistake("not-exponentiated", "This is the mean loss. The perplexity is e to its power.",
                    _together(lambda losses: losses.mean())),
            Mistake("base-two", "The losses are in nats: e belongs to them, not 2.",
                    _together(lambda losses: 2 ** losses.mean())),
            Mistake("mean-of-nothing", "Each batch is averaged by itself, and one that is all padding has no mean: "
                    "0 / 0 is NaN.", _by_batch(lambda loss: loss, torch.exp, empty=True)),
            Mistake("nothing-times-nan", "A batch that is all padding has no mean: 0 / 0 is NaN, and 0 tokens times "
                    "NaN is NaN again.", _means_times_counts),
            Mistake("logarithm-of-zero", "Where a probability is 0 in float32 its logarithm is −∞: take the logarithm "
                    "without going through the probability.",
                    _together(lambda losses: losses.mean().exp(), log=lambda logits: logits.softmax(-1).log())),
            Mistake("mean-probability", "The probabilities were averaged, not their logarithms.",
                    _together(lambda losses: 1 / (-losses).exp().mean())),
        ),
    ),
    points=8,
    minutes=10,
    hidden=lambda seed: telling(PERPLEXITY.exercise, _perplexity_hidden, seed),
)  # fmt: skip


# --- a whole run


def tiny_model(vocab_size: int, seed: int) -> Transformer:
    # GELU, which has no corner: with ReLU a unit may switch on by a rounding error, and the runs part.
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(TransformerConfig(vocab_size, **sizes, dropout=0.0, activation="gelu"))


MODULES = ("attention", "cache", "config", "dropout", "layers", "masks", "positions", "transformer")
GIVEN = "\n\n\n".join([
    "import math\n\nfrom tinytransformer.model.config import TransformerConfig\n"
    "from tinytransformer.model.transformer import Transformer",
    TARGETS_GIVEN, SHIFT_GIVEN, getsource(rates_after), ADAM_GIVEN, getsource(perplexity_of), getsource(tiny_model),
])  # fmt: skip


def _of_all(tokens: int, group: list[int]) -> float:
    return 1 / sum(group)


def _of_each(tokens: int, group: list[int]) -> float:
    return 1 / (tokens * len(group))


def _train(
    share=_of_all, shift=shifted_rows, late=0, smooth=True, each=False, clear="group",
    remembers=True, told=None,
):  # fmt: skip
    """The right run, or one that weighs batches, shifts, counts steps, smooths, steps, clears or remembers otherwise.

    ``share`` is what a batch's summed loss is multiplied by, from its tokens and those of all batches of the group;
    ``told`` the same for the loss that is written down.
    """

    def train_by_groups(model, groups, held_out, warmup, peak, smoothing) -> tuple[list[float], float]:
        model, losses, step = deepcopy(model), [], 0
        weights = list(model.parameters())
        m, v = ([torch.zeros_like(one) for one in weights] for _ in range(2))
        rates = [0.0] * late + rates_after(0, len(groups), warmup, peak)
        for group, rate in zip(groups, rates, strict=False):
            counts = [int((target[:, 1:] != 0).sum()) for _, target in group]
            losses.append(0.0)
            for place, (source, target) in enumerate(group):
                if clear == "batch" or (clear == "group" and (each or place == 0)):
                    model.zero_grad()
                read, write = shift(target, 2, 0)
                logs = model(source, read).log_softmax(-1)
                loss = -(smoothed_targets(write, logs.size(-1), smoothing * smooth, 0) * logs).sum()
                (loss * share(counts[place], counts)).backward()
                losses[-1] += loss.item() * (told or _of_all)(counts[place], counts)
                if not each and place + 1 < len(group):
                    continue
                step += 1
                past = (m, v, step) if remembers else ([0 * one for one in m], [0 * one for one in v], 1)
                with torch.no_grad():
                    found, m, v = adam_step(weights, [one.grad for one in weights], *past, rate, 1.0, 1e-6)
                    for weight, new in zip(weights, found, strict=True):
                        weight.copy_(new)
        with torch.no_grad():
            pairs = [(source, *shift(target, 2, 0)) for source, target in held_out]
            return losses, perplexity_of([(model(source, read), write) for source, read, write in pairs], 0)

    return train_by_groups


def _in_one_row(arguments: tuple, answer):
    """The perplexity as a logarithm: in e to its power rounding errors of a few steps would count too much."""
    if untouched(answer):
        return answer
    losses, perplexity = answer
    return torch.tensor([*map(float, losses), math.log(perplexity)])


def _run_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    warmup, peak, base = number(2, 4, dice), number(15, 30, dice) / 1000, number(1, 10**6, dice)
    small, large = number(1, 2, dice), number(5, 7, dice)
    return [
        Case("groups of one to three batches of different sizes", run_arguments(
            [[small, large], [large], [small, 3, large], [large, small], [small]], base, warmup, peak, 0.1)),
        Case("strong smoothing, one batch for each step", run_arguments(
            [[large - 1]] * 5, base + 1, warmup, peak, 0.6)),
        Case("a warm-up that is longer than the run", run_arguments([[small, 4]] * 3, base + 3, 9, 2 * peak, 0.1)),
        Case("no smoothing, three batches for each step", run_arguments(
            [[small, 3, large]] * 4, base + 2, 1, peak, 0.0)),
    ]  # fmt: skip


def _visible() -> list[tuple]:
    shapes = [[[1, 5], [4, 2], [1, 6], [3]], [[3], [2], [4], [3]]]
    drawn = [run_arguments(shape, 3 + i, 2, 0.02, 0.1 + 0.5 * i) for i, shape in enumerate(shapes)]
    return [(tiny_model(*made.values), *rest) for made, *rest in drawn]


TRAIN = Task(
    Exercise(
        "train_by_groups",
        reference=_train(),
        cases=_visible,
        normal=_in_one_row,
        mistakes=(
            Mistake("gradients-pile-up", "Gradients of earlier steps are never cleared: `backward` adds to them.",
                    _train(clear="")),
            Mistake("only-the-last-batch", "Gradients are cleared before every batch, so only the last batch of a "
                    "group has a say.", _train(clear="batch")),
            Mistake("step-after-each-batch", "There is a step after each batch. A group makes one step.",
                    _train(each=True)),
            Mistake("mean-of-batches", "Each batch is averaged by itself, then the batches: a token of a small batch "
                    "pulls harder.", _train(_of_each)),
            Mistake("losses-of-batches", "Losses and gradients are means of the batches' means: a token of a small "
                    "batch counts more.", _train(_of_each, told=_of_each)),
            Mistake("gradient-of-the-sum", "The losses are right, but the gradients are those of the summed loss. The "
                    "clip hides it only as long as both are clipped.", _train(lambda tokens, group: 1.0)),
            Mistake("counted-from-zero", "The rates come one step late: the first step changes nothing.",
                    _train(late=1)),
            Mistake("answers-in-sight", "The decoder reads what it shall write: the answer of each position lies in "
                    "plain sight.", _train(shift=lambda target, end, pad_id: (target[:, 1:],) * 2)),
            Mistake("not-smoothed", "The loss is not smoothed.", _train(smooth=False)),
            Mistake("averages-forgotten", "Adam's averages begin anew at each step: hand them on.",
                    _train(remembers=False)),
        ),
    ),
    points=15,
    minutes=40,
    hidden=_run_hidden,
    given=GIVEN,
    package=tuple(f"model.{name}" for name in MODULES),
)  # fmt: skip
