"""Long sequences: what full attention costs, what blocks and windows save, and how far a window reaches by layers.

Two ways out of n² pairs. Blocks compute all of them without keeping them; the result is the same. A window leaves most
of them out, and then several layers have to carry news from one window to the next.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from tinytransformer.experiments.measuring import in_turns, one_thread, peak_bytes, slope, slope_over_rounds
from tinytransformer.experiments.runs import in_sections, versions
from tinytransformer.model.attention import attention, attention_weights
from tinytransformer.model.blockwise import blockwise_attention, windowed_attention
from tinytransformer.model.config import POSITIONS, TransformerConfig
from tinytransformer.model.masks import window_mask
from tinytransformer.model.transformer import encoder_of

COMMAND = "python -m tinytransformer.experiments long"
NOTE = (
    "One thread, batch 1, float32. Seconds are the processor's, taken in interleaved rounds of one process beside "
    "other work; compare them with each other, not with another machine's. Bytes are the most that PyTorch's allocator "
    "had handed out at one moment, beyond queries, keys and values. 'forward' keeps nothing for a backward pass; "
    "'training' is forward and backward. The mask of 'window, by a mask' is made inside and counted. Reach is measured "
    "with gradients of random encoder layers in double precision."
)
PASSES = ("forward", "training")


@dataclass(frozen=True)
class Settings:
    """The sizes to measure at. ``fitted`` counts the largest lengths that a slope is fitted over."""

    lengths: tuple[int, ...] = (256, 512, 1024, 2048, 4096)
    num_heads: int = 4
    head_size: int = 32
    radius: int = 64
    block: int = 128
    fitted: int = 3
    rounds: int = 5
    reach_radii: tuple[int, ...] = (4, 16)
    reach_layers: tuple[int, ...] = (1, 2, 3, 4, 6)
    seed: int = 0

    def __post_init__(self):
        if not 2 <= self.fitted <= len(self.lengths):
            raise ValueError(f"fitted={self.fitted} lengths make no slope: choose 2 to {len(self.lengths)}")


FULL = Settings()
Way = Callable[[Tensor, Tensor, Tensor], Tensor]  # query, key and value (B, H, n, d) to (B, H, n, d)


def ways(settings: Settings) -> Mapping[str, Way]:
    """Every way to attend that is compared, by name: the first three are one function, and so are the last two."""
    return {
        "explicit": lambda query, key, value: attention_weights(query, key) @ value,
        "fused": attention,
        "in blocks": lambda query, key, value: blockwise_attention(query, key, value, settings.block),
        "window": lambda query, key, value: windowed_attention(query, key, value, settings.radius),
        "window, by a mask": lambda query, key, value: attention(
            query, key, value, window_mask(query.size(-2), settings.radius)
        ),
    }


def task(way: Way, kind: str, n: int, settings: Settings) -> Callable[[], None]:
    """One pass over random queries, keys and values, to be timed; ``kind`` is one of `PASSES`."""
    if kind not in PASSES:
        raise ValueError(f"{kind!r} is no pass that is measured: choose {' or '.join(PASSES)}")
    generator = torch.Generator().manual_seed(settings.seed)
    shape = (1, settings.num_heads, n, settings.head_size)
    tensors = [torch.randn(shape, generator=generator, requires_grad=kind == "training") for _ in range(3)]

    def run() -> None:
        if kind == "training":
            way(*tensors).sum().backward()
            for tensor in tensors:
                tensor.grad = None
        else:
            with torch.inference_mode():
                way(*tensors)

    return run


def _cells(settings: Settings) -> list[tuple[str, str, int]]:
    return [(name, kind, n) for n in settings.lengths for kind in PASSES for name in ways(settings)]


def times(settings: Settings) -> list[dict]:
    """Seconds of every way in every round, the whole grid in turns."""
    known = ways(settings)
    seconds = in_turns({cell: task(known[cell[0]], *cell[1:], settings) for cell in _cells(settings)}, settings.rounds)
    return [{"way": name, "pass": kind, "n": n, "seconds": found} for (name, kind, n), found in seconds.items()]


def memory(settings: Settings) -> list[dict]:
    """Peak bytes of every way."""
    known = ways(settings)
    return [
        {"way": name, "pass": kind, "n": n, "bytes": peak_bytes(task(known[name], kind, n, settings))}
        for name, kind, n in _cells(settings)
    ]


def slopes(settings: Settings, timed: list[dict], held: list[dict]) -> list[dict]:
    """The power of n by which seconds and bytes grow over the largest lengths."""
    largest = settings.lengths[-settings.fitted :]
    seconds = {(row["way"], row["pass"], row["n"]): row["seconds"] for row in timed}
    peaks = {(row["way"], row["pass"], row["n"]): row["bytes"] for row in held}
    return [
        {
            "way": name,
            "pass": kind,
            "seconds": slope_over_rounds(largest, [seconds[name, kind, n] for n in largest]),
            "bytes": slope(largest, [peaks[name, kind, n] for n in largest]),
        }
        for kind in PASSES
        for name in ways(settings)
    ]


def reach(radius: int | None, layers: int, n: int, seed: int = 0, d_model: int = 8) -> int:
    """How far from the middle of n positions a gradient comes through a stack of encoder layers; no radius: no window.

    Exactly zero is what no path leads to; in double precision a long path's small factors do not round to zero.
    """
    torch.manual_seed(seed)
    config = TransformerConfig(4, d_model, num_heads=2, d_ff=16, num_layers=layers, dropout=0.0, norm="pre")
    stack = encoder_of(config, POSITIONS["none"](d_model, d_model // 2, n)).double()
    x = torch.randn(1, n, d_model, dtype=torch.float64, requires_grad=True)
    mask = None if radius is None else window_mask(n, radius)
    # Of a normalised vector the plain sum is constant; a weighted one is not.
    weights = torch.randn(d_model, dtype=torch.float64)
    middle = n // 2
    (gradient,) = torch.autograd.grad(stack(x, mask)[0, middle] @ weights, x)
    seen = gradient[0].ne(0).any(-1).nonzero()[:, 0]
    return int((seen - middle).abs().max())


def reaches(settings: Settings) -> list[dict]:
    """Reach by layers: measured, beside layers · radius and full attention, which only the sequence's ends stop."""
    n = 2 * max(settings.reach_radii) * (max(settings.reach_layers) + 1) + 1
    return [
        {
            "radius": radius,
            "layers": layers,
            "n": n,
            "expected": layers * radius,
            "measured": reach(radius, layers, n, settings.seed),
            "full": reach(None, layers, n, settings.seed),
        }
        for radius in settings.reach_radii
        for layers in settings.reach_layers
    ]


def run(path: Path, settings: Settings = FULL) -> dict:
    """Measure every section that the file at ``path`` does not have yet, write it, and return all of them."""
    head = {"command": COMMAND, "versions": versions(), "note": NOTE, "settings": asdict(settings)}
    with one_thread():
        return in_sections(
            path,
            head,
            {
                "reach": lambda results: reaches(settings),
                "memory": lambda results: memory(settings),
                "times": lambda results: times(settings),
                "slopes": lambda results: slopes(settings, results["times"], results["memory"]),
            },
            settings.seed,
        )
