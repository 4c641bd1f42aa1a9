"""Exercises of lesson 11 that count: when self-attention costs more, how many layers reach far, how busy GPUs were."""

from collections.abc import Callable

from tinytransformer.teaching.exercises import Exercise, Mistake

# --- from which length on self-attention costs more


def _attention(n: int, d: int, projections: int) -> int:
    return projections * n * d * d + 2 * n * n * d


def _recurrent(n: int, d: int, gates: int) -> int:
    return 2 * gates * n * d * d


def _first(
    d: int,
    gates: int,
    projections: int,
    attention: Callable[[int, int, int], int] = _attention,
    recurrent: Callable[[int, int, int], int] = _recurrent,
    more: Callable[[int, int], bool] = lambda one, other: one > other,
) -> int:
    n = 1
    while not more(attention(n, d, projections), recurrent(n, d, gates)):
        n += 1
    return n


CROSSOVER = Exercise(
    "costs_more_from",
    reference=_first,
    cases=lambda: [(8, 1, 0), (8, 4, 4), (6, 3, 4), (5, 1, 4), (16, 4, 0), (7, 2, 3)],
    mistakes=(
        Mistake("as-much", "At this length the two cost the same. Asked is for the first length at which attention "
                "costs more.", lambda d, g, p: _first(d, g, p, more=lambda one, other: one >= other)),
        Mistake("papers-terms", "This is d + 1, from the terms of Table 1. Gates and projections change it.",
                lambda d, g, p: d + 1),
        Mistake("without-mixtures", "Scores are counted, the mixture of the values is not: pairs of positions cost "
                "twice n · n · d.", lambda d, g, p: _first(d, g, p, lambda n, d, p: p * n * d * d + n * n * d)),
        Mistake("half-the-gates", "A gate has two matrices: one for the word, one for the state before.",
                lambda d, g, p: _first(d, g, p, recurrent=lambda n, d, g: g * n * d * d)),
        Mistake("one-gate", "The recurrent layer is counted as if it had one gate.",
                lambda d, g, p: _first(d, 1, p)),
        Mistake("projections-of-one-word", "The projections act on each of the n positions, not on one.",
                lambda d, g, p: _first(d, g, p, lambda n, d, p: p * d * d + 2 * n * n * d)),
        Mistake("without-projections", "The projections are left out. `projections` says how many there are.",
                lambda d, g, p: _first(d, g, 0)),
        Mistake("below-one", "A length of 0 or less: where attention always costs more, the first length is 1.",
                lambda d, g, p: (2 * g - p) * d // 2 + 1),
    ),
)  # fmt: skip


# --- how many layers it takes to see far


def _layers(n: int, kernel: int, growth: int, first: int = 1, back: int = 1, missing: int = 1) -> int:
    """Layers until the reaches, ``kernel`` - ``back`` positions times the dilation of each, cover n - ``missing``."""
    reach, dilation, layers = 0, first, 0
    while reach < n - missing:
        reach += (kernel - back) * dilation
        dilation *= growth
        layers += 1
    return layers


def _logarithm(n: int, kernel: int, growth: int) -> int:
    layers = 0
    while kernel**layers < n:
        layers += 1
    return layers


LAYERS = Exercise(
    "layers_to_reach",
    reference=_layers,
    cases=lambda: [
        (9, 3, 3), (10, 3, 3), (9, 3, 1), (10, 3, 1), (16, 2, 2), (17, 2, 2), (33, 5, 2), (28, 4, 1), (2, 2, 1)
    ],
    mistakes=(
        Mistake("kernel-itself", "Each layer is taken to reach k positions back. A kernel of k covers its own position "
                "and k - 1 others.", lambda n, k, g: _layers(n, k, g, back=0)),
        Mistake("n-positions", "From the last of n positions to the first it is not n steps, but one fewer.",
                lambda n, k, g: _layers(n, k, g, missing=0)),
        Mistake("kernel-and-n", "Two small mistakes that hide each other at times: a kernel of k reaches k - 1 back, "
                "and the first position is n - 1 away.", lambda n, k, g: _layers(n, k, g, back=0, missing=0)),
        Mistake("always-the-logarithm", "This is log_k n, rounded up, whatever the growth. It holds where the dilation "
                "grows by k itself.", _logarithm),
        Mistake("dilation-too-early", "The first layer is dilated already. Its dilation is growth to the power 0.",
                lambda n, k, g: _layers(n, k, g, first=g)),
        Mistake("never-dilated", "The dilation does not grow: layer l has a dilation of growth to the power l.",
                lambda n, k, g: _layers(n, k, 1)),
        Mistake("centred", "The kernel looks to both sides here. A causal one looks back with all of its k - 1.",
                lambda n, k, g: _centred(n, k, g)),
    ),
)  # fmt: skip


def _centred(n: int, kernel: int, growth: int) -> int:
    reach, layers = 0.0, 0
    while reach < n - 1:
        reach += (kernel - 1) / 2 * growth**layers
        layers += 1
    return layers


# --- how busy the GPUs were


def _share(products: float, pairs: float, steps: int, hours: float, gpus: int, peak: float, factor: float = 6.0):
    return factor * products * pairs * steps / (hours * 3600 * gpus * peak * 1e12)


SHARE = Exercise(
    "share_of_peak",
    reference=_share,
    cases=lambda: [
        (1.778e9, 893.0, 100_000, 12.0, 8, 10.6),
        (6.0e9, 900.0, 300_000, 84.0, 8, 10.6),
        (2.5e8, 64.0, 40_000, 0.5, 1, 100.0),
    ],
    mistakes=(
        Mistake("multiply-adds", "A multiply-add is two operations, and a GPU's peak counts both.",
                lambda *a: _share(*a, factor=3)),
        Mistake("forward-only", "The forward pass alone is counted. Going back takes twice as much again.",
                lambda *a: _share(*a, factor=2)),
        Mistake("forward-multiply-adds", "Two things are missing: a multiply-add is two operations, and training goes "
                "back as well as forward.", lambda *a: _share(*a, factor=1)),
        Mistake("backward-as-forward", "Going back is counted as one more pass. It takes two: a gradient for each "
                "factor of a product.", lambda *a: _share(*a, factor=4)),
        Mistake("hours-as-seconds", "TFLOPS are operations a second: how many seconds has an hour?",
                lambda *a: _share(*a) * 3600),
        Mistake("one-gpu", "There are `gpus` of them, and each could have reached its peak.",
                lambda products, pairs, steps, hours, gpus, peak: _share(products, pairs, steps, hours, 1, peak)),
        Mistake("tera", "A TFLOPS is 10¹² operations a second.", lambda *a: _share(*a) * 1e12),
        Mistake("inverted", "Turned round: this is what could have been done, divided by what was.",
                lambda *a: 1 / _share(*a)),
        Mistake("percent", "These are percent. Asked for is a share: 0.3, not 30.", lambda *a: 100 * _share(*a)),
    ),
)  # fmt: skip
