"""Tasks of assignment 2 about layers: a norm folded into a matrix, and an encoder layer."""

from inspect import getsource

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytransformer.teaching.assignments.head_tasks import packed_attention, packed_weights
from tinytransformer.teaching.exercises import Exercise, Mistake, random
from tinytransformer.teaching.grading.tasks import Case, Task

ATTENTION = "import torch\nfrom torch import Tensor\n\n\n" + getsource(packed_attention)


# --- gain and shift folded into the next matrix


def _fold(gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return weight * gain, bias + weight @ shift


def _fold_case(inputs: int, outputs: int, seed: int) -> tuple:
    shapes = ((inputs,), (inputs,), (outputs, inputs), (outputs,))
    gain, *rest = (random(*shape, seed=seed + i) for i, shape in enumerate(shapes))
    return (1 + gain / 2, *rest)


def _fold_by_hand() -> tuple:
    """The example of the task's text."""
    return torch.tensor([2.0, 3.0]), torch.tensor([1.0, 0.0]), torch.ones(1, 2), torch.tensor([5.0])


def _fold_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    size = 3 + int(torch.randint(0, 6, (), generator=dice))
    return [
        Case("as many features in as out", _fold_case(size, size, seed)),
        Case("more features out than in", _fold_case(size, 2 * size + 1, seed + 10)),
        Case("fewer features out than in", _fold_case(size + 3, size, seed + 20)),
        Case("one feature out", _fold_case(size, 1, seed + 30)),
    ]


FOLD = Task(
    Exercise(
        "fold_norm",
        reference=_fold,
        cases=lambda: [_fold_case(3, 3, 1), _fold_case(2, 4, 10), _fold_by_hand()],
        mistakes=(
            Mistake("gain-on-the-rows", "The gain multiplies what comes out. It belongs to the features that go in.",
                    lambda g, s, w, b: (w * g[:, None], b + w @ s)),
            Mistake("shift-lost", "The matrix is right, the shift is lost: it goes through the matrix, too.",
                    lambda g, s, w, b: (w * g, b)),
            Mistake("shift-not-multiplied", "The shift is added to the bias. It goes through the matrix first.",
                    lambda g, s, w, b: (w * g, b + s)),
            Mistake("shift-through-the-new", "The shift is multiplied by the gain on its way. It is added after the "
                    "gain.", lambda g, s, w, b: (w * g, b + (w * g) @ s)),
            Mistake("bias-lost", "The bias that was there is lost.", lambda g, s, w, b: (w * g, w @ s)),
            Mistake("divided", "The matrix is divided by the gain. It was to do what the gain did, not undo it.",
                    lambda g, s, w, b: (w / g, b + w @ s)),
        ),
    ),
    points=10,
    minutes=10,
    hidden=_fold_hidden,
)  # fmt: skip


# --- an encoder layer


def layer_norm(x: Tensor, weights: dict, number: int) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weights[f"gain_{number}"], weights[f"shift_{number}"])


def _unbiased(x: Tensor, weights: dict, number: int) -> Tensor:
    centred = x - x.mean(dim=-1, keepdim=True)
    result = centred / (x.var(dim=-1, keepdim=True) + 1e-5).sqrt()
    return result * weights[f"gain_{number}"] + weights[f"shift_{number}"]


def network(x: Tensor, weights: dict, bend=torch.relu) -> Tensor:
    return bend(x @ weights["w_1"].T + weights["b_1"]) @ weights["w_2"].T + weights["b_2"]


def post_norm(x, part, norm) -> Tensor:
    return norm(x + part(x))


def pre_norm(x, part, norm) -> Tensor:
    return x + part(norm(x))


def _encoder(post=post_norm, pre=pre_norm, norm=layer_norm, norms=(1, 2), see=lambda keys: keys, bend=torch.relu):
    """The right answer, or one that differs in one of these. ``see`` gets the mask (B, S, S) that hides padding."""

    def encoder_layer(x: Tensor, real: Tensor, weights: dict, num_heads: int, norm_first: bool) -> Tensor:
        join = pre if norm_first else post
        mask = see(real[:, None, :].expand(-1, x.size(1), -1))
        parts = (
            lambda h: packed_attention(h, h, weights["attention"], num_heads, mask),
            lambda h: network(h, weights, bend),
        )
        for part, number in zip(parts, norms, strict=True):
            x = join(x, part, lambda h, number=number: norm(h, weights, number))
        return x

    return encoder_layer


def layer_weights(d_model: int, d_ff: int, attentions: tuple[str, ...], seed: int) -> dict:
    shapes = {"w_1": (d_ff, d_model), "b_1": (d_ff,), "w_2": (d_model, d_ff), "b_2": (d_model,)}
    for number in range(1, len(attentions) + 2):
        shapes |= {f"gain_{number}": (d_model,), f"shift_{number}": (d_model,)}
    weights: dict = {name: random(*shape, seed=seed + i) / 2 for i, (name, shape) in enumerate(shapes.items())}
    for name in weights:
        weights[name] = weights[name] + 1 if name.startswith("gain") else weights[name]
    return weights | {name: packed_weights(d_model, seed + 20 + 4 * i) for i, name in enumerate(attentions)}


def _encoder_case(batch: int, length: int, heads: int, size: int, norm_first: bool, seed: int) -> tuple:
    """The first sentence is padded behind, the last one in front if there are several. Before a pre-norm one row has so
    little variance that the small number beside it counts."""
    x, real = 2 * random(batch, length, heads * size, seed=seed), torch.ones(batch, length, dtype=torch.bool)
    x[0, 0] *= 0.0015 if norm_first else 1.0
    real[0, length - 1 :] = False
    real[-1, : 2 if batch > 1 else 0] = False
    return x, real, layer_weights(heads * size, heads * size + 3, ("attention",), seed + 1), heads, norm_first


def _silent(x: Tensor, real: Tensor, weights: dict, *rest) -> tuple:
    """The test of the task's text: both parts give zeros."""
    last = {name: torch.zeros_like(weights[name]) for name in ("w_2", "b_2")}
    attention = weights["attention"]
    out = {name: torch.zeros_like(attention[name]) for name in ("out_weight", "out_bias")}
    return x, real, {**weights, **last, "attention": {**attention, **out}}, *rest


def _encoder_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    length, size = (4 + int(number) for number in torch.randint(0, 3, (2,), generator=dice))
    alone = _encoder_case(1, length, 2, size, False, seed + 200)
    return [
        Case("post-norm, with padding", _encoder_case(2, length, 2, size, False, seed)),
        Case("pre-norm, with padding", _encoder_case(2, length, 2, size, True, seed + 100)),
        Case("post-norm, no padding", (alone[0], torch.ones_like(alone[1]), *alone[2:])),
        Case("pre-norm, three sentences", _encoder_case(3, length + 1, 3, 2, True, seed + 300)),
    ]


ENCODER = Task(
    Exercise(
        "encoder_layer",
        reference=_encoder(),
        cases=lambda: [
            _encoder_case(2, 4, 2, 3, False, 1),
            _encoder_case(2, 3, 2, 2, True, 50),
            _silent(*_encoder_case(1, 3, 2, 2, True, 100)),
            _silent(*_encoder_case(1, 3, 2, 2, False, 150)),
        ],
        mistakes=(
            Mistake("always-post-norm", "Post-norm is right. With `norm_first` it still computes post-norm.",
                    _encoder(pre=post_norm)),
            Mistake("norm-of-the-part", "Post-norm normalises only what the part made, then x is added. The norm "
                    "belongs around the sum.", _encoder(post=lambda x, part, norm: x + norm(part(x)))),
            Mistake("normalised-residual", "In pre-norm the normalised x is added. What is added is x itself: nothing "
                    "stands on that way.", _encoder(pre=lambda x, part, norm: norm(x) + part(norm(x)))),
            Mistake("no-residual", "What a part made stands alone: x is added to nothing.",
                    _encoder(post=lambda x, part, norm: norm(part(x)), pre=lambda x, part, norm: part(norm(x)))),
            Mistake("one-norm-for-both", "Both parts use the first norm. Each has its own.", _encoder(norms=(1, 1))),
            Mistake("unbiased", "The squares are divided by n − 1. LayerNorm divides by n.", _encoder(norm=_unbiased)),
            Mistake("no-relu", "Between the two linear layers of the network stands nothing. ReLU belongs there.",
                    _encoder(bend=lambda h: h)),
            Mistake("padding-seen", "Words look at padding.", _encoder(see=torch.ones_like)),
            Mistake("rows-for-keys", "The mask hides the rows of padding, not its columns: words look at padding, and "
                    "padding looks at nothing.", _encoder(see=lambda keys: keys.mT)),
            Mistake("padding-sees-nothing", "Words are right. Rows of padding are hidden, too; they were to be "
                    "computed like others. Hide keys only.", _encoder(see=lambda keys: keys & keys.mT)),
        ),
    ),
    points=15,
    minutes=30,
    hidden=_encoder_hidden,
    given=ATTENTION,
)  # fmt: skip
