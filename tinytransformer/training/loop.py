"""The training loop: one readable loop for a laptop, a GPU, or several processes.

It knows nothing of BLEU: a ``validate`` function tells how good the model is, and higher is better. A run's folder
holds its checkpoints, the best one apart, and ``log.jsonl``. Called again with the same folder it goes on where it
stopped; in one process the weights are then, bit for bit, those of a run that was never interrupted.
"""

import contextlib
import functools
import itertools
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from tinytransformer.model.baselines import Model
from tinytransformer.text.batching import Batch, Encoded, TokenBatches, collate
from tinytransformer.training.checkpoints import Checkpoint, checkpoints, latest
from tinytransformer.training.devices import hardware, precision, prepare_bfloat16
from tinytransformer.training.interrupts import Stopped, held_back
from tinytransformer.training.loss import batch_loss
from tinytransformer.training.schedule import warmup_schedule

LOG = "log.jsonl"
Loss = Callable[[Model, Batch, float, float], tuple[Tensor, int]]  # what `batch_loss` is


class TrainingError(RuntimeError):
    """Training cannot go on; the message says at which step, why, and what to try."""


@dataclass(frozen=True)
class Settings:
    """How to train. The optimiser is the paper's: Adam with β₁ = 0.9, β₂ = 0.98, ε = 1e-9 (section 5.3)."""

    steps: int
    peak: float  # highest learning rate
    warmup: int
    falls_to_zero: bool = (
        False  # the rate after the warm-up: the paper's inverse square root, or a line to the last step
    )
    minutes: float = math.inf  # stops, and saves, when this time is over
    smoothing: float = 0.1
    clip: float = 1.0  # longest gradient; the paper names no clipping
    accumulate: int = 1  # batches per step, in each process
    agreement: float = 0.0  # weight of R-Drop; the paper has none
    agreement_after: int = 0  # steps without R-Drop, which doubles the work of a step, before it begins
    seed: int = 0
    bf16: bool = False
    recompute: bool = False  # activation checkpointing: less memory, a third more time
    compile: bool = False
    save_every: int = 500
    keep: int = 5  # checkpoints; averaging wants the last few
    validate_every: int = 500

    def __post_init__(self):
        for name in ("steps", "warmup", "accumulate", "save_every", "keep", "validate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")


class SummedLoss(nn.Module):
    """The loss as a module, so that it can be wrapped for several processes or compiled."""

    def __init__(self, model: Model, smoothing: float, agreement: float = 0.0, loss: Loss = batch_loss):
        super().__init__()
        self.model, self.smoothing, self.agreement, self.loss = model, smoothing, agreement, loss

    def forward(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        return self.loss(self.model, Batch(source, target_in, target_out), self.smoothing, self.agreement)[0]


def train(
    model: Model,
    batches: TokenBatches,
    settings: Settings,
    run: Path,
    validate: Callable[[Model], Mapping[str, float]] | None = None,
    report: Callable[[dict], None] = lambda entry: None,
    loss: Loss = batch_loss,
) -> "Progress":
    """Train in place until the steps or the minutes are over; returns where the run stands.

    Ctrl-C finishes the step and saves (`Stopped`); a second one stops at once, and the last checkpoint stands.

    ``validate`` gives numbers for the log; the model with the highest ``"score"`` is kept apart, in ``run / "best"``.
    ``loss`` gives what is minimised: the sum over a batch's targets, of which the loop takes the mean.
    """
    if settings.bf16:
        prepare_bfloat16(next(model.parameters()).device)
    rank, world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    run.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(settings.seed + rank)  # dropout differs between processes
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    schedule = warmup_schedule(
        optimiser, settings.warmup, settings.peak, settings.steps if settings.falls_to_zero else None
    )
    progress = Progress(run, rank, world)
    _resume(latest(run), model, optimiser, schedule, progress)
    prepare_layers(model, settings)
    summed = SummedLoss(model, settings.smoothing, loss=loss)
    loss = DistributedDataParallel(summed) if world > 1 else summed
    groups = _groups(batches, settings, progress, world)
    model.train()
    with held_back() as interrupted:
        while progress.step < settings.steps and not _must_stop(progress, settings, optimiser, interrupted()):
            group, count = next(groups)
            summed.agreement = settings.agreement if progress.step >= settings.agreement_after else 0.0
            share = [collate(pairs) for pairs in group[rank::world]]
            value, length = one_step(loss, share, count, world, settings, optimiser)
            if not (math.isfinite(value) and math.isfinite(length)):
                what = f"the gradient's length is {length}" if math.isfinite(value) else f"the loss is {value}"
                raise TrainingError(
                    f"{what} at step {progress.step + 1}; weights and the last checkpoint are untouched. "
                    "Try a lower peak rate, a longer warm-up, or a smaller clip"
                )
            progress.advance(value, count, optimiser.param_groups[0]["lr"], report)
            schedule.step()
            if validate and progress.step % settings.validate_every == 0:
                _validate(model, validate, optimiser, schedule, progress, report)
            if progress.step % settings.save_every == 0:
                _save(model, optimiser, schedule, progress, settings.keep)
        if progress.saved != progress.step:
            _save(model, optimiser, schedule, progress, settings.keep)
        if interrupted():
            raise Stopped
    return progress


def _must_stop(progress: "Progress", settings: Settings, optimiser: torch.optim.Optimizer, interrupted: bool) -> bool:
    """Whether Ctrl-C came or the minutes are over. Processes stop together: the first that must stop stops all."""
    stop = interrupted or time.monotonic() - progress.began >= 60 * settings.minutes
    if not dist.is_initialized():
        return stop
    any_of_them = torch.tensor(float(stop), device=optimiser.param_groups[0]["params"][0].device)
    dist.all_reduce(any_of_them, dist.ReduceOp.MAX)
    return bool(any_of_them)


def one_step(loss, batches: list[Batch], count: int, world: int, settings: Settings, optimiser) -> tuple[float, float]:
    """One update from several batches; returns the loss per target token of all processes together, and the length of
    the gradient before it was clipped. If one of them is no number, there is no update."""
    optimiser.zero_grad(set_to_none=True)
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    device = parameters[0].device
    total = torch.zeros((), device=device)
    for number, batch in enumerate(batches, start=1):
        batch = batch.to(device)
        wait = loss.no_sync() if world > 1 and number < len(batches) else contextlib.nullcontext()
        with wait, precision(device, settings.bf16):
            value = loss(batch.source, batch.target_in, batch.target_out) / count
            # Gradients are averaged over the processes, but each value is a share of the whole already.
            (value * world).backward()
        total += value.detach()
    if world > 1:
        dist.all_reduce(total)
    value, length = total.item(), nn.utils.clip_grad_norm_(parameters, settings.clip).item()
    if math.isfinite(value) and math.isfinite(length):
        optimiser.step()
    return value, length


def prepare_layers(model: Model, settings: Settings) -> None:
    """Recompute a layer's insides in the backward pass instead of keeping them, or compile the two stacks, if asked."""
    if settings.compile and any(isinstance(module, nn.RNNBase) for module in model.modules()):
        raise TrainingError("compile=True does not work here: PyTorch cannot compile recurrent layers. Leave it out")
    for stack in (module for name, module in model.named_children() if name in ("encoder", "decoder")):
        for layer in stack.layers:
            layer.__dict__.pop("forward", None)  # what an earlier run has put there
            if settings.recompute:
                layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False)
        if settings.compile:
            stack.compile(dynamic=True)


class Progress:
    """Where a run stands, and its log."""

    def __init__(self, run: Path, rank: int, world: int = 1):
        self.run, self.rank = run, rank
        self.step = self.epoch = self.batch = 0  # the next batch to be used
        self.saved = 0  # the step of the last checkpoint
        self.best: float | None = None
        self.earlier = 0.0  # seconds that the run took before this call
        self.hardware = hardware(world)
        self.began = self.since = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long the run has taken, from its first step on, pauses not counted."""
        return self.earlier + time.monotonic() - self.began

    def advance(self, loss: float, count: int, rate: float, report: Callable[[dict], None]) -> None:
        self.step += 1
        now = time.monotonic()
        speed, self.since = count / (now - self.since), now
        self.log({"step": self.step, "loss": loss, "rate": rate, "target_tokens_per_second": speed}, report)

    def log(self, entry: dict, report: Callable[[dict], None]) -> None:
        if self.rank == 0:
            report(entry)
            try:
                with (self.run / LOG).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
            except OSError as error:
                raise TrainingError(
                    f"{self.run / LOG} could not be written at step {self.step} ({error.strerror}); the last "
                    "checkpoint is untouched. Free some space, then run the same command again"
                ) from error

    def forget_later(self) -> None:
        """Drop from the log what was done after the checkpoint that a run goes on from: it will be done again."""
        path = self.run / LOG
        if self.rank == 0 and path.exists():
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= self.step]
            part = path.with_name(path.name + ".part")
            part.write_text("".join(kept), encoding="utf-8")
            part.replace(path)


def _groups(
    batches: TokenBatches, settings: Settings, progress: Progress, world: int
) -> Iterator[tuple[list[list[Encoded]], int]]:
    """The pairs of the batches of each step, and how many target tokens they hold; epoch after epoch."""

    def stream() -> Iterator[tuple[list[Encoded], tuple[int, int]]]:
        for epoch in itertools.count(progress.epoch):
            plan = batches.plan(epoch, settings.seed)
            for number in range(progress.batch if epoch == progress.epoch else 0, len(plan)):
                yield [batches.pairs[row] for row in plan[number]], (epoch, number + 1)

    planned = stream()
    while True:
        group = list(itertools.islice(planned, settings.accumulate * world))
        progress.epoch, progress.batch = group[-1][1]
        yield [pairs for pairs, _ in group], sum(len(target) + 1 for pairs, _ in group for _, target in pairs)


def _resume(found: Checkpoint | None, model, optimiser, schedule, progress: Progress) -> None:
    if found is None:
        return
    model.load_state_dict(found.weights)
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in found.optimiser.items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    schedule.load_state_dict(found.state["schedule"])
    for group, rate in zip(optimiser.param_groups, schedule.get_last_lr(), strict=True):
        group["lr"] = rate
    progress.step = progress.saved = found.step
    progress.best = found.state["best"]
    progress.epoch, progress.batch = found.state["epoch"], found.state["batch"]
    progress.earlier = found.state["seconds"]
    progress.forget_later()
    if progress.rank == 0:
        torch.set_rng_state(found.random)


def _checkpoint(model, optimiser, schedule, progress: Progress) -> Checkpoint:
    tensors = {f"{i}.{key}": value for i, s in optimiser.state_dict()["state"].items() for key, value in s.items()}
    state = {
        "epoch": progress.epoch,
        "batch": progress.batch,
        "best": progress.best,
        "seconds": progress.seconds,
        "hardware": progress.hardware,
        "schedule": schedule.state_dict(),
    }
    return Checkpoint(progress.step, model.state_dict(), tensors, torch.get_rng_state(), state)


def _save(model, optimiser, schedule, progress: Progress, keep: int) -> None:
    progress.saved = progress.step
    if progress.rank == 0:
        _checkpoint(model, optimiser, schedule, progress).save(progress.run)
        for old in checkpoints(progress.run)[:-keep]:
            shutil.rmtree(old)


def _validate(model, validate, optimiser, schedule, progress: Progress, report) -> None:
    """Score the model; the best one so far is kept apart. Randomness is left as it was."""
    random = torch.get_rng_state()
    model.eval()
    found = dict(validate(model))
    model.train()
    torch.set_rng_state(random)
    progress.since = time.monotonic()  # the time it took is not training's
    progress.log({"step": progress.step, **found}, report)
    if progress.rank == 0 and (progress.best is None or found["score"] > progress.best):
        progress.best = found["score"]
        _checkpoint(model, optimiser, schedule, progress).save(progress.run / "best")
        for old in checkpoints(progress.run / "best")[:-1]:
            shutil.rmtree(old)
