"""Tasks of assignment 3 about a whole run: perplexity, and a small model that learns from the microworld."""

import math
from copy import deepcopy
from inspect import getsource

import torch
from torch import Tensor

from tinytransformer.model.config import TransformerConfig
from tinytransformer.model.transformer import Transformer
from tinytransformer.teaching.assignments.batch_tasks import SHIFT_GIVEN, shifted_rows
from tinytransformer.teaching.assignments.loss_tasks import TARGETS_GIVEN, smoothed_targets
from tinytransformer.teaching.assignments.schedule_tasks import ADAM_GIVEN, adam_step, rates_after
from tinytransformer.teaching.assignments.telling import dice_of, number, telling
from tinytransformer.teaching.exercises import Exercise, Mistake, random, untouched
from tinytransformer.teaching.grading.tasks import Case, Made, Task
from tinytransformer.text.batching import pad
from tinytransformer.text.corpus import microworld

# --- perplexity


def perplexity_of(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total = count = 0
    for logits, targets in batches:
        real = targets != pad_id
        logs = logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
        total, count = total - float(logs[real].sum()), count + int(real.sum())
    return math.exp(total / count)


def _losses(batches: list[tuple[Tensor, Tensor]], pad_id: int | None) -> list[Tensor]:
    """The losses of the real tokens of each batch, or of all where there is no padding id."""
    found = []
    for logits, targets in batches:
        losses = -logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
        found.append(losses[targets != pad_id] if pad_id is not None else losses.flatten())
    return found


def _over_all_places(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    places = sum(targets.numel() for _, targets in batches)
    return float((torch.cat(_losses(batches, pad_id)).sum() / places).exp())


def _together(end, pads: bool = False):
    return lambda batches, pad_id: float(end(torch.cat(_losses(batches, None if pads else pad_id))))


def _by_batch(each, end):
    def perplexity(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
        return float(end(torch.stack([each(one.mean()) for one in _losses(batches, pad_id) if len(one)]).mean()))

    return perplexity


def _text(sizes: list[tuple[int, int]], size: int, pad_id: int, seed: int, dice: torch.Generator) -> tuple:
    batches = []
    for place, (rows, length) in enumerate(sizes):
        targets = (pad_id + torch.randint(1, size, (rows, length), generator=dice)) % size
        targets[0, length - place % 3 :] = pad_id
        batches.append((random(rows, length, size, seed=seed + place, spread=1.5), targets))
    return batches, pad_id


def _perplexity_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    size, base = number(5, 8, dice), 10 * number(1, 10**6, dice)
    silent, pad_id = _text([(2, 4), (1, 3), (3, 5)], size, 0, base + 3, dice)
    silent[1][1].fill_(pad_id)
    return [
        Case("batches of different sizes", _text([(1, 3), (4, 6), (2, 5)], size, 0, base, dice)),
        Case("another padding id", _text([(2, 4), (1, 5), (3, 3)], size, size - 2, base + 1, dice)),
        Case("one batch", _text([(2, 3)], size, 0, base + 2, dice)),
        Case("a batch that is all padding", (silent, pad_id)),
    ]


PERPLEXITY = Task(
    Exercise(
        "perplexity_of",
        reference=perplexity_of,
        cases=lambda: [
            _text([(1, 2), (3, 4), (2, 5)], 5, 0, 1, dice_of(1)),
            _text([(2, 3), (1, 4)], 6, 2, 2, dice_of(2)),
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
Sentences = tuple[Tensor, Tensor]  # source (B, S) and target (B, L), padded; the target with start and end


def _train(
    share=lambda tokens, group: 1 / sum(group), shift=shifted_rows, late=0, smooth=True, each=False, clear="group",
    remembers=True,
):  # fmt: skip
    """The right run, or one that weighs batches, shifts, counts steps, smooths, steps, clears or remembers otherwise.

    ``share`` is what a batch's summed loss is multiplied by, from its tokens and those of all batches of the group.
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
                losses[-1] += loss.item() / sum(counts)
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


def _sentences(split: str, count: int, seed: int) -> tuple[list[tuple[list[int], list[int]]], int]:
    """Pairs of the microworld as ids, one for each word, and how many ids there are."""
    corpus = microworld(split, count, seed=seed)
    texts = [(one.split(), two.split()) for one, two in zip(corpus.source, corpus.target, strict=True)]
    ids = {word: 4 + i for i, word in enumerate(sorted({word for pair in texts for side in pair for word in side}))}
    return [tuple([ids[word] for word in side] for side in pair) for pair in texts], 4 + len(ids)


def run_arguments(shape: list[list[int]], seed: int, warmup: int, peak: float, eps: float) -> tuple:
    """Arguments of a run: ``shape`` says how many pairs each batch of each group has; two batches are held out."""
    sizes = [size for group in shape for size in group]
    pairs, vocab_size = _sentences("train", sum(sizes) + 7, seed)
    taken = iter(pairs)

    def batch(size: int) -> Sentences:
        rows = [next(taken) for _ in range(size)]
        return pad([[*source, 2] for source, _ in rows]), pad([[1, *target, 2] for _, target in rows])

    groups = [[batch(size) for size in group] for group in shape]
    return Made("tiny_model", (vocab_size, seed)), groups, [batch(5), batch(2)], warmup, peak, eps


def _run_hidden(seed: int) -> list[Case]:
    dice = dice_of(seed)
    warmup, peak, base = number(2, 4, dice), number(15, 30, dice) / 1000, number(1, 10**6, dice)
    small, large = number(1, 2, dice), number(5, 7, dice)
    return [
        Case("groups of one to three batches of different sizes", run_arguments(
            [[small, large], [large], [small, 3, large], [large, small], [small]], base, warmup, peak, 0.1)),
        Case("one batch for each step", run_arguments([[large - 1]] * 5, base + 1, warmup, peak, 0.2)),
        Case("a warm-up that is longer than the run", run_arguments([[small, 4]] * 3, base + 3, 9, 2 * peak, 0.1)),
        Case("no smoothing, three batches for each step", run_arguments(
            [[small, 3, large]] * 4, base + 2, 1, peak, 0.0)),
    ]  # fmt: skip


def _visible() -> list[tuple]:
    shapes = [[[1, 5], [4, 2], [1, 6], [3]], [[3], [2], [4], [3]]]
    drawn = [run_arguments(shape, 3 + i, 2, 0.02, 0.1 * (1 - i)) for i, shape in enumerate(shapes)]
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
                    "pulls harder.", _train(lambda tokens, group: 1 / (tokens * len(group)))),
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
