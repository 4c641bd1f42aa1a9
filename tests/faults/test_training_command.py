"""The train command under real conditions: several processes, a full disk, a time budget."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tinytransformer.training.checkpoints import checkpoints, latest

TINY = (
    "--pairs 300 --vocab-size 300 --d-model 16 --num-heads 2 --d-ff 32 --num-layers 1 --tokens 300 --steps 20 "
    "--warmup 5 --save-every 5 --validate-every 1000 --dropout 0 --device cpu --threads 1 --accumulate 1 --processes 1"
).split()
SHARED = ["--accumulate", 2, "--processes", 2]
needs_two_cores = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two processor cores")
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def run(launcher: list[str], *arguments: object, **more) -> subprocess.CompletedProcess:
    command = [sys.executable, *launcher, "-m", "tinytransformer", "train", *TINY, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, **more)


def losses(folder: Path) -> list[float]:
    entries = map(json.loads, (folder / "log.jsonl").read_text(encoding="utf-8").splitlines())
    return [entry["loss"] for entry in entries if "loss" in entry]


def test_torchrun_gives_the_losses_of_one_process(tmp_path):
    """Two processes with one batch each against one process with two batches a step."""
    one = run([], "--folder", tmp_path / "one", "--accumulate", 2)
    two = run(TORCHRUN, "--folder", tmp_path / "two")
    assert (one.returncode, two.returncode) == (0, 0), one.stderr + two.stderr
    assert len(losses(tmp_path / "one")) == len(losses(tmp_path / "two")) == 20
    assert max(abs(a - b) for a, b in zip(losses(tmp_path / "one"), losses(tmp_path / "two"), strict=True)) <= 1e-4
    assert two.stdout.count("The model is in") == 1  # one process speaks


@needs_two_cores
def test_processes_that_share_a_step_give_the_losses_of_one(tmp_path):
    one = run([], "--folder", tmp_path / "one", "--accumulate", 2)
    two = run([], "--folder", tmp_path / "two", *SHARED)
    assert (one.returncode, two.returncode) == (0, 0), one.stderr + two.stderr
    assert max(abs(a - b) for a, b in zip(losses(tmp_path / "one"), losses(tmp_path / "two"), strict=True)) <= 1e-4
    assert two.stdout.count("The model is in") == 1
    assert "2 processes with 1 thread each" in (tmp_path / "two" / "model" / "card.md").read_text(encoding="utf-8")


@needs_two_cores
def test_processes_divide_what_models_make_of_the_text(tmp_path):
    models = ["--back", "microworld-en-de", "--forth", "microworld-en-de", "--copies", 1, "--steps", 8]
    one = run([], "--folder", tmp_path / "one", "--accumulate", 2, *models)
    two = run([], "--folder", tmp_path / "two", *SHARED, *models)
    assert (one.returncode, two.returncode) == (0, 0), one.stderr + two.stderr
    made = [{path.name: json.loads(path.read_text())["texts"] for path in (tmp_path / folder).glob("made-*.json")}
            for folder in ("one", "two")]  # fmt: skip
    assert made[0] == made[1]
    assert sorted(made[0]) == ["made-back-0.json", "made-forth.json"]
    assert max(abs(a - b) for a, b in zip(losses(tmp_path / "one"), losses(tmp_path / "two"), strict=True)) <= 1e-4


@needs_two_cores
def test_ctrl_c_saves_in_all_processes(tmp_path):
    command = [sys.executable, "-m", "tinytransformer", "train", *TINY, "--folder", tmp_path, "--steps", 10**6, *SHARED]
    running = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "log.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    _, told = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Stopped and saved. To go on: python -m tinytransformer train" in told
    assert "Traceback" not in told
    assert latest(tmp_path).step >= 1


@needs_two_cores
def test_one_process_that_fails_ends_the_others(tmp_path):
    done = run(
        [], "--folder", tmp_path, "--corpus", "files", "--train", "nowhere.tsv", "--valid", "nowhere.tsv", *SHARED
    )
    assert done.returncode == 2
    assert "nowhere.tsv" in done.stderr
    assert "Traceback" not in done.stderr


def test_processes_stop_together_when_the_time_is_over(tmp_path):
    done = run(TORCHRUN, "--folder", tmp_path, "--steps", 10**6, "--minutes", 0.02)
    assert done.returncode == 0, done.stderr
    assert 0 < latest(tmp_path).step < 10**6


def test_a_disk_that_fills_up_leaves_the_last_checkpoint_and_the_run_goes_on(tmp_path):
    assert run([], "--folder", tmp_path, "--falls", "root", "--steps", 5).returncode == 0
    before = latest(tmp_path)
    assert before.step == 5

    def small_files_only():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    full = run([], "--folder", tmp_path, "--falls", "root", preexec_fn=small_files_only)
    assert full.returncode == 2
    assert "step-00000010 could not be written" in full.stderr
    assert "what was saved before is untouched" in full.stderr
    after = latest(tmp_path)
    assert after.step == 5
    assert all(torch.equal(tensor, before.weights[name]) for name, tensor in after.weights.items())
    assert run([], "--folder", tmp_path, "--falls", "root").returncode == 0
    assert latest(tmp_path).step == 20


def test_a_full_disk_stops_cleanly_and_the_run_goes_on_afterwards(tmp_path):
    assert run([], "--folder", tmp_path / "whole").returncode == 0
    again = tmp_path / "again"
    assert run([], "--folder", again, "--minutes", 0).returncode == 2  # nothing trained yet: there is no checkpoint

    def small_files_only():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    full = run([], "--folder", again, preexec_fn=small_files_only)
    assert full.returncode == 2
    assert "could not be written" in full.stderr
    assert "Traceback" not in full.stderr
    assert checkpoints(again) == []
    assert run([], "--folder", again).returncode == 0
    weights = latest(tmp_path / "whole").weights
    assert all(torch.equal(tensor, weights[name]) for name, tensor in latest(again).weights.items())
