"""How practitioners train and run the same model: other ways to compute one step, each beside the plain way.

bfloat16 computes products with fewer digits; recomputing (activation checkpointing) keeps less for the backward pass
and works twice; accumulating takes a batch in parts; compiling fuses small operations, after a long warm-up. All are
settings of the training loop, and its own step is what is measured here.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import torch
from torch import Tensor

from tinytransformer.experiments.measuring import in_turns, one_thread, peak_bytes
from tinytransformer.experiments.plan import saved_bytes
from tinytransformer.experiments.runs import in_sections, versions
from tinytransformer.model.config import TransformerConfig
from tinytransformer.model.transformer import Transformer
from tinytransformer.text.batching import Batch, Encoded, collate
from tinytransformer.training import loop
from tinytransformer.training.devices import PrecisionError, precision, prepare_bfloat16, try_bfloat16

COMMAND = "python -m tinytransformer.experiments practice"
NOTE = (
    "A model of Multi30k's size on made-up ids, without dropout, so that ways can be compared number by number. One "
    "thread. Seconds are the processor's, taken in interleaved rounds of one process beside other work; compare them "
    "with each other, not with another machine's. A step is forward, backward, clipping and Adam. 'peak_bytes' are the "
    "most that PyTorch's allocator had handed out at one moment of a step, beyond weights and Adam's means; "
    "'kept_bytes' is what autograd keeps of a batch, or of the first part of it, between forward and backward. "
    "Compiled with shapes left open, as the training loop does, for every batch has another."
)
CPU = torch.device("cpu")
COMPILERS = ("g++", "clang++")


@dataclass(frozen=True)
class Settings:
    """The model, the batch and the number of rounds."""

    vocab_size: int = 5000
    d_model: int = 128
    num_heads: int = 4
    d_ff: int = 512
    num_layers: int = 4
    pairs: int = 128
    shortest: int = 8  # tokens of a sentence, both sides
    longest: int = 16
    parts: int = 4  # of a batch that is accumulated
    rounds: int = 7
    compile: bool = True
    seed: int = 0

    def config(self) -> TransformerConfig:
        sizes = {name: getattr(self, name) for name in ("vocab_size", "d_model", "num_heads", "d_ff", "num_layers")}
        return TransformerConfig(**sizes, dropout=0.0, norm="pre", max_length=self.longest + 1)


FULL = Settings()
# What each way changes in the loop's settings; accumulating changes how many batches make a step.
WAYS: Mapping[str, Mapping[str, bool]] = MappingProxyType(
    {
        "plain": {},
        "bfloat16": {"bf16": True},
        "recomputed": {"recompute": True},
        "accumulated": {},
        "compiled": {"compile": True},
    }
)


def made_up(settings: Settings) -> list[Encoded]:
    """Pairs of random ids of different lengths."""
    generator = torch.Generator().manual_seed(settings.seed)

    def sentence() -> list[int]:
        length = int(torch.randint(settings.shortest, settings.longest + 1, (), generator=generator))
        return torch.randint(4, settings.vocab_size, (length,), generator=generator).tolist()

    return [(sentence(), sentence()) for _ in range(settings.pairs)]


def in_parts(pairs: list[Encoded], number: int) -> list[Batch]:
    """The same pairs in so many batches; padding differs, targets do not."""
    if not 1 <= number <= len(pairs):
        raise ValueError(f"{len(pairs)} pairs do not make {number} batches: choose 1 to {len(pairs)}")
    return [collate(pairs[first::number]) for first in range(number)]


class Step:
    """One training step of one way, again and again: ``step()`` returns the loss and leaves the gradients."""

    def __init__(self, way: str, settings: Settings):
        torch.manual_seed(settings.seed)
        self.model = Transformer(settings.config()).train()
        self.batches = in_parts(made_up(settings), settings.parts if way == "accumulated" else 1)
        self.count = sum(batch.num_targets for batch in self.batches)
        # Nothing is clipped at that length, so that gradients are what the backward pass made.
        self.settings = loop.Settings(steps=1, peak=1e-4, warmup=1, clip=1e9, **WAYS[way])
        if self.settings.bf16:
            prepare_bfloat16(CPU)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
        loop.prepare_layers(self.model, self.settings)
        self.loss = loop.SummedLoss(self.model, self.settings.smoothing)

    def __call__(self) -> float:
        return loop.one_step(self.loss, self.batches, self.count, 1, self.settings, self.optimiser)[0]

    def gradients(self) -> Tensor:
        """All gradients of the last step in one row."""
        return torch.cat([parameter.grad.flatten() for parameter in self.model.parameters()])

    def kept_bytes(self) -> float:
        """Bytes that the first batch keeps for its backward pass; from it and a half, so that weights drop out."""
        first = self.batches[0]
        half = Batch(*(tensor[: len(tensor) // 2] for tensor in (first.source, first.target_in, first.target_out)))
        with precision(CPU, self.settings.bf16):
            whole, less = (saved_bytes(self.model, batch) for batch in (first, half))
        return (whole - less) * len(first.source) / (len(first.source) - len(half.source))


def impossible(settings: Settings) -> dict[str, str]:
    """The ways that cannot be taken here, each with the reason."""
    missing = {}
    try:
        try_bfloat16()
    except PrecisionError as error:
        missing["bfloat16"] = str(error)
    if not settings.compile:
        missing["compiled"] = "not asked for"
    elif not any(map(shutil.which, COMPILERS)):
        missing["compiled"] = f"torch.compile needs a C++ compiler, and there is none: install {' or '.join(COMPILERS)}"
    return missing


def bfloat16_support() -> dict:
    """What this processor says of bfloat16, and whether a product in it works."""
    info = Path("/proc/cpuinfo")  # Linux only
    words = set(info.read_text(encoding="utf-8").split()) if info.is_file() else set()
    return {
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "announced": sorted(words & {"avx512_bf16", "amx_bf16", "bf16", "svebf16"}),
        "a_product_works": "bfloat16" not in impossible(FULL),
    }


def first_step(way: str, settings: Settings) -> tuple[Step, float, dict]:
    """A step of a way, its first loss, and what that first time took; compiled code is made anew, not remembered."""
    step = Step(way, settings)
    with _fresh_compiler() if way == "compiled" else nullcontext():
        before = os.times()
        loss = step()
        took = [after - earlier for after, earlier in zip(os.times(), before, strict=True)]
    # The processor's seconds are those of this process and of the compilers that it has waited for.
    return step, loss, {"clock": took[4], "processor": sum(took[:4])}


@contextmanager
def _fresh_compiler() -> Iterator[None]:
    """torch.compile on one core, with nothing left from earlier runs."""
    names = ("TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_COMPILE_THREADS")
    before = {name: os.environ[name] for name in names if name in os.environ}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ.update(zip(names, (folder, "1"), strict=True))
        torch.compiler.reset()
        try:
            yield
        finally:
            for name in names:
                del os.environ[name]
            os.environ.update(before)


def training(settings: Settings) -> list[dict]:
    """A row for each way: its first step beside the plain one's, number by number; then bytes, and seconds in turns."""
    missing = impossible(settings)
    rows = {way: {"way": way, "missing": missing[way]} if way in missing else {"way": way} for way in WAYS}
    steps, plain = {}, None
    for way in [way for way in WAYS if way not in missing]:
        steps[way], loss, first = first_step(way, settings)
        gradients = steps[way].gradients()
        plain = plain or (loss, gradients)
        rows[way] |= {"loss": loss, **compared(loss, gradients, *plain)}
        if way == "compiled":  # it hides from autograd's hooks what it keeps
            rows[way]["first_step"] = first
        else:
            rows[way]["kept_bytes"] = steps[way].kept_bytes()
        steps[way].optimiser.zero_grad(set_to_none=True)
        rows[way]["peak_bytes"] = peak_bytes(steps[way])
    for way, seconds in in_turns(steps, settings.rounds).items():
        rows[way]["seconds"] = seconds
    return list(rows.values())


def compared(loss: float, gradients: Tensor, plain_loss: float, plain: Tensor) -> dict:
    """How far a step is from the plain one: loss, the largest difference of a gradient, and that of all together."""
    return {
        "loss_difference": abs(loss - plain_loss),
        "largest_gradient": plain.abs().max().item(),
        "largest_gradient_difference": (gradients - plain).abs().max().item(),
        "relative_gradient_difference": ((gradients - plain).norm() / plain.norm()).item(),
    }


def inference(settings: Settings) -> list[dict]:
    """One forward pass over the batch: with autograd noting everything, without, and in bfloat16."""
    torch.manual_seed(settings.seed)
    model = Transformer(settings.config()).eval()
    batch = collate(made_up(settings))

    def forward(context: Callable[[], AbstractContextManager], bf16: bool = False) -> Callable[[], Tensor]:
        def run() -> Tensor:
            with context(), precision(CPU, bf16):
                return model(batch.source, batch.target_in)

        return run

    ways = {"with autograd": forward(nullcontext), "inference_mode": forward(torch.inference_mode)}
    if "bfloat16" not in impossible(settings):
        ways["inference_mode, bfloat16"] = forward(torch.inference_mode, True)
    plain = ways["with autograd"]().detach()
    seconds = in_turns(ways, settings.rounds)
    return [
        {
            "way": name,
            "largest_logit": plain.abs().max().item(),
            "largest_logit_difference": (run().detach().float() - plain).abs().max().item(),
            "peak_bytes": peak_bytes(run),
            "seconds": seconds[name],
        }
        for name, run in ways.items()
    ]


def run(path: Path, settings: Settings = FULL) -> dict:
    """Measure every section that the file at ``path`` does not have yet, write it, and return all of them."""
    head = {"command": COMMAND, "versions": versions(), "note": NOTE, "settings": asdict(settings)}
    sections = {
        "bfloat16": lambda results: bfloat16_support(),
        "training": lambda results: training(settings),
        "inference": lambda results: inference(settings),
    }
    with one_thread():
        return in_sections(path, head, sections, settings.seed)
