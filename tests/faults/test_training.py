"""Training goes on where it stopped, whatever stopped it."""

import itertools
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import support_training
import torch
from support_training import fresh_model, settings, some_batches

from tinytransformer.text.batching import ResampledBatches, TokenBatches
from tinytransformer.training.checkpoints import Checkpoint, CheckpointError, checkpoints, latest
from tinytransformer.training.interrupts import Stopped
from tinytransformer.training.loop import SummedLoss, TrainingError, one_step, train
from tinytransformer.training.loss import batch_loss

SCRIPT = Path(support_training.__file__)
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def weights(run: Path) -> dict[str, torch.Tensor]:
    return dict(latest(run).weights)


def equal(one, other) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_training_learns_logs_and_keeps_the_last_checkpoints(tmp_path):
    entries = []
    progress = train(fresh_model(), some_batches(), settings(steps=60), tmp_path, report=entries.append)
    assert progress.step == 60
    assert entries[-1]["loss"] < 0.85 * entries[0]["loss"]
    assert [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()] == entries
    assert max(entry["rate"] for entry in entries) == pytest.approx(5e-3)
    assert [path.name for path in checkpoints(tmp_path)] == ["step-00000049", "step-00000056", "step-00000060"]


def test_a_run_in_pieces_equals_a_run_at_once(tmp_path):
    train(fresh_model(), some_batches(), settings(steps=40), tmp_path / "whole")
    for steps in (9, 10, 26, 40):
        train(fresh_model(), some_batches(), settings(steps=steps), tmp_path / "pieces")
    assert equal(weights(tmp_path / "whole"), weights(tmp_path / "pieces"))


@pytest.mark.parametrize("changes", [{"accumulate": 3}, {"agreement": 4.0, "agreement_after": 12}, {"recompute": True}])
def test_pieces_of_other_runs_too(tmp_path, changes):
    """Batches that are made anew for each epoch, steps over the edge of an epoch, R-Drop that begins on the way."""

    def batches():
        def encode(seed):
            chance = random.Random(seed)
            rows = [[chance.randint(4, 19) for _ in range(chance.randint(2, 8))] for _ in range(60)]
            return [(row, row) for row in rows]

        return ResampledBatches(encode, 100)

    train(fresh_model(), batches(), settings(steps=20, **changes), tmp_path / "whole")
    for steps in (7, 13, 20):
        train(fresh_model(), batches(), settings(steps=steps, **changes), tmp_path / "pieces")
    assert equal(weights(tmp_path / "whole"), weights(tmp_path / "pieces"))


def test_the_log_of_a_resumed_run_tells_each_step_once(tmp_path):
    train(fresh_model(), some_batches(), settings(steps=16), tmp_path)
    log = tmp_path / "log.jsonl"
    # As if killed later: steps after the last checkpoint, and a line cut short.
    log.write_text(log.read_text() + '{"step": 17, "loss": 1.0}\n{"step": 18, "lo')
    train(fresh_model(), some_batches(), settings(steps=20), tmp_path)
    assert [json.loads(line)["step"] for line in log.read_text().splitlines()] == list(range(1, 21))


def test_seconds_count_the_whole_run(tmp_path):
    train(fresh_model(), some_batches(), settings(steps=7), tmp_path)
    first = latest(tmp_path).state["seconds"]
    train(fresh_model(), some_batches(), settings(steps=8), tmp_path)
    assert latest(tmp_path).state["seconds"] > first


def test_recomputing_changes_memory_and_nothing_else(tmp_path):
    for recompute in (False, True):
        train(fresh_model(), some_batches(), settings(steps=8, recompute=recompute), tmp_path / str(recompute))
    assert equal(weights(tmp_path / "False"), weights(tmp_path / "True"))


def test_r_drop_begins_when_it_is_told_to(tmp_path):
    losses = {}
    for after in (0, 5, 100):
        entries = losses.setdefault(after, [])
        made = settings(steps=10, agreement=4.0, agreement_after=after)
        train(
            fresh_model(), some_batches(), made, tmp_path / str(after), report=lambda e, s=entries: s.append(e["loss"])
        )
    assert losses[5][:5] == losses[100][:5]
    assert losses[5][5:] != losses[100][5:]
    assert losses[0][0] > losses[5][0]  # the disagreement comes on top


def test_killed_at_ten_random_moments_it_ends_with_the_same_weights(tmp_path):
    command = [sys.executable, str(SCRIPT)]
    subprocess.run([*command, str(tmp_path / "whole"), "800"], env=ONE_THREAD, check=True)
    log, chance, killed = tmp_path / "killed" / "log.jsonl", random.Random(5), 0

    def logged() -> int:
        return log.stat().st_size if log.exists() else 0

    while killed < 10:
        before = logged()
        process = subprocess.Popen([*command, str(tmp_path / "killed"), "800"], env=ONE_THREAD)
        while process.poll() is None and logged() == before:
            time.sleep(0.01)  # until it trains
        time.sleep(0.25 * chance.random())
        if process.poll() is not None:
            break
        process.kill()
        process.wait()
        killed += 1
    subprocess.run([*command, str(tmp_path / "killed"), "800"], env=ONE_THREAD, check=True)
    assert killed == 10, "the run ended before it could be killed ten times"
    assert equal(weights(tmp_path / "whole"), weights(tmp_path / "killed"))


def test_two_processes_give_the_losses_of_one(tmp_path):
    """Dropout is off; one process uses two batches a step, two processes one each."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    losses = []
    for name, launcher in (("one", []), ("two", torchrun)):
        output = tmp_path / f"{name}.json"
        command = [sys.executable, *launcher, str(SCRIPT), str(tmp_path / name), "20", str(output)]
        subprocess.run(command, env=ONE_THREAD, check=True, capture_output=True, timeout=120)
        losses.append(json.loads(output.read_text()))
    one, two = losses
    assert len(one) == len(two) == 20
    assert max(abs(a - b) for a, b in zip(one, two, strict=True)) <= 1e-4


def test_accumulating_small_batches_equals_one_large_batch(tmp_path):
    pairs, losses = some_batches().pairs, {1: [], 4: []}
    for accumulate, entries in losses.items():
        batches = TokenBatches(pairs, 100_000)
        parts = [list(range(len(pairs)))[part::accumulate] for part in range(accumulate)]
        batches.plan = lambda epoch, seed, parts=parts: parts
        made = settings(steps=10, accumulate=accumulate)
        train(fresh_model(0.0), batches, made, tmp_path / str(accumulate), report=entries.append)
    losses = {number: [entry["loss"] for entry in entries] for number, entries in losses.items()}
    assert losses[1] == pytest.approx(losses[4], abs=1e-5)


def test_bf16_autocast_trains(tmp_path):
    entries = []
    train(fresh_model(), some_batches(), settings(steps=60, bf16=True), tmp_path, report=entries.append)
    assert entries[-1]["loss"] < 0.85 * entries[0]["loss"]


def test_validation_keeps_the_best_and_disturbs_nothing(tmp_path):
    scores = iter([1.0, 3.0, 2.0, 0.5])

    def validate(model):
        torch.rand(100)
        assert not model.training
        return {"score": next(scores)}

    entries = []
    train(fresh_model(), some_batches(), settings(), tmp_path / "a", validate, entries.append)
    train(fresh_model(), some_batches(), settings(), tmp_path / "b")
    assert equal(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert [entry["score"] for entry in entries if "score" in entry] == [1.0, 3.0, 2.0, 0.5]
    (best,) = checkpoints(tmp_path / "a" / "best")
    assert Checkpoint.load(best).step == 20


def interrupting(step: int, signals: int = 1):
    """A loss in the middle of which Ctrl-C comes, in the given step."""
    calls = itertools.count(1)

    def loss(*arguments):
        found = batch_loss(*arguments)
        if next(calls) == step:
            for _ in range(signals):
                signal.raise_signal(signal.SIGINT)
        return found

    return loss


@pytest.mark.usefixtures("with_ctrl_c")
def test_ctrl_c_in_the_middle_of_a_step_saves_after_it_and_changes_nothing(tmp_path):
    with pytest.raises(Stopped):
        train(fresh_model(), some_batches(), settings(), tmp_path / "a", loss=interrupting(12))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert latest(tmp_path / "a").step == 12
    train(fresh_model(), some_batches(), settings(), tmp_path / "a")
    train(fresh_model(), some_batches(), settings(), tmp_path / "b")
    assert equal(weights(tmp_path / "a"), weights(tmp_path / "b"))


@pytest.mark.usefixtures("with_ctrl_c")
def test_a_second_ctrl_c_stops_at_once_and_the_run_goes_on_from_its_last_checkpoint(tmp_path):
    with pytest.raises(KeyboardInterrupt) as stop:
        train(fresh_model(), some_batches(), settings(), tmp_path / "a", loss=interrupting(12, signals=2))
    assert not isinstance(stop.value, Stopped)
    assert latest(tmp_path / "a").step == 7
    train(fresh_model(), some_batches(), settings(), tmp_path / "a")
    train(fresh_model(), some_batches(), settings(), tmp_path / "b")
    assert equal(weights(tmp_path / "a"), weights(tmp_path / "b"))


def test_minutes_are_a_budget(tmp_path):
    start = time.monotonic()
    reached = train(fresh_model(), some_batches(), settings(steps=10**6, minutes=0.01), tmp_path).step
    assert 0 < reached < 10**6
    assert latest(tmp_path).step == reached
    assert time.monotonic() - start < 30


def test_a_loss_that_is_not_a_number_stops_with_the_step(tmp_path):
    model = fresh_model()

    def poison(entry):
        if entry["step"] == 16:
            with torch.no_grad():
                model.embedding.tokens.fill_(math.nan)

    with pytest.raises(TrainingError, match=r"the loss is nan at step 17.*Try a lower peak rate"):
        train(model, some_batches(), settings(), tmp_path, report=poison)
    assert latest(tmp_path).step == 14
    assert not any(tensor.isnan().any() for tensor in weights(tmp_path).values())


def test_a_gradient_that_is_not_a_number_never_reaches_the_weights(tmp_path):
    """The loss is fine, its gradient is not, and the step is one after which a checkpoint is written."""

    def loss(model, *arguments):
        value, count = batch_loss(model, *arguments)
        if len(checkpoints(tmp_path)) == 1 and next(calls) == settings().save_every:
            value = value + (model.embedding.tokens.sum() * 0).sqrt()  # 0, with the gradient inf · 0
        return value, count

    calls = itertools.count(1)
    with pytest.raises(
        TrainingError, match=r"the gradient's length is nan at step 14; weights and the last checkpoint"
    ):
        train(fresh_model(), some_batches(), settings(), tmp_path, loss=loss)
    assert latest(tmp_path).step == 7
    assert not any(tensor.isnan().any() for tensor in weights(tmp_path).values())


def test_no_update_is_longer_than_the_clipped_gradient():
    model, made = fresh_model(0.0), settings(clip=0.01)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    plain = torch.optim.SGD(model.parameters(), lr=1.0)
    batches = some_batches()
    batch = batches.batch(batches.plan(0, 0)[0])
    _, length = one_step(SummedLoss(model, 0.1), [batch], batch.num_targets, 1, made, plain)
    moved = math.sqrt(sum((tensor - before[name]).square().sum() for name, tensor in model.state_dict().items()))
    assert length > 0.1, "there was something to clip"
    assert moved == pytest.approx(0.01, rel=1e-3)


def test_the_last_step_is_saved_once(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(Checkpoint, "save", lambda checkpoint, run: saved.append(checkpoint.step))
    train(fresh_model(), some_batches(), settings(steps=14), tmp_path)
    assert saved == [7, 14]


def test_a_damaged_checkpoint_stops_before_training(tmp_path):
    train(fresh_model(), some_batches(), settings(steps=14), tmp_path)
    path = checkpoints(tmp_path)[-1] / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match="delete it to go on from step-00000007"):
        train(fresh_model(), some_batches(), settings(), tmp_path)


@pytest.mark.parametrize("name", ["steps", "warmup", "accumulate", "save_every"])
def test_bad_settings(name):
    with pytest.raises(ValueError, match=f"{name}=0 must be at least 1"):
        settings(**{name: 0})


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # raised inside torch's compiler
def test_compiled_layers_learn_the_same(tmp_path):
    losses = {}
    for compiled in (False, True):
        entries = losses.setdefault(compiled, [])
        made = settings(steps=6, compile=compiled)
        train(fresh_model(0.0), some_batches(), made, tmp_path / str(compiled), report=entries.append)
    for one, other in zip(*losses.values(), strict=True):
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-4)
