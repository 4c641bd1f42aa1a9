"""Checkpoints: whole or not at all, verified, and unable to run code."""

import hashlib
import json
import os
import pickle
import resource
import subprocess
import sys

import pytest
import torch
from support import random_ids, small_model

from tinytransformer.text.corpus import microworld
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.training.checkpoints import (
    Checkpoint,
    CheckpointError,
    average,
    checkpoints,
    find_model,
    latest,
    load_model,
    save_model,
    write_folder,
)

FILES = ["model.safetensors", "config.json", "tokenizer.model", "card.md", "checksums.json"]


@pytest.fixture(scope="module")
def tokenizer():
    corpus = microworld("train", 300)
    return Tokenizer.train([*corpus.source, *corpus.target], vocab_size=200)


@pytest.fixture
def folder(tmp_path, tokenizer):
    return save_model(tmp_path / "model", small_model(positions="learned"), tokenizer, "# A card\n", half=False)


def a_checkpoint(step: int = 7) -> Checkpoint:
    model = small_model()
    optimiser = {"0.exp_avg": torch.randn(3, 4), "0.step": torch.tensor(7.0)}
    return Checkpoint(step, model.state_dict(), optimiser, torch.get_rng_state(), {"epoch": 1, "batch": 12})


def test_a_model_folder_comes_back_the_same(folder, tokenizer):
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    model, loaded = load_model(folder)
    expected = small_model(positions="learned")
    assert model.config == expected.config
    assert not model.training
    ids = random_ids(2, 6)
    assert torch.equal(model(ids, ids), expected(ids, ids))
    assert loaded.model == tokenizer.model


def test_half_precision_takes_half_the_space(tmp_path, tokenizer):
    model = small_model()
    sizes = [
        (save_model(tmp_path / str(half), model, tokenizer, "", half) / FILES[0]).stat().st_size
        for half in (True, False)
    ]
    assert sizes[0] < 0.6 * sizes[1]
    ids = random_ids(2, 6)
    torch.testing.assert_close(load_model(tmp_path / "True")[0](ids, ids), model(ids, ids), atol=0.05, rtol=0.05)


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path):
    saved = a_checkpoint()
    saved.save(tmp_path)
    loaded = latest(tmp_path)
    assert loaded.step == 7
    assert loaded.state == {"epoch": 1, "batch": 12}
    for one, other in ((saved.weights, loaded.weights), (saved.optimiser, loaded.optimiser)):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(saved.random, loaded.random)


def test_the_newest_whole_checkpoint_is_the_latest(tmp_path):
    assert latest(tmp_path) is None
    for step in (3, 12, 100):
        a_checkpoint(step).save(tmp_path)
    (tmp_path / "step-00000200.part").mkdir()
    assert [path.name for path in checkpoints(tmp_path)] == ["step-00000003", "step-00000012", "step-00000100"]
    assert latest(tmp_path).step == 100


@pytest.mark.parametrize("damage", ["cut", "flip", "missing"])
@pytest.mark.parametrize("name", ["model.safetensors", "training.safetensors", "state.json", "checksums.json"])
def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_offered(tmp_path, damage, name):
    a_checkpoint(5).save(tmp_path)
    path = a_checkpoint(9).save(tmp_path) / name
    data = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else data)
    with pytest.raises(CheckpointError, match=r"step-00000009.*; delete it to go on from step-00000005"):
        latest(tmp_path)


class Malicious:
    def __init__(self, flag):
        self.flag = flag

    def __reduce__(self):
        return os.system, (f"touch {self.flag}",)


@pytest.mark.parametrize("name", FILES)
def test_a_malicious_pickle_under_any_name_runs_nothing(folder, name, tmp_path):
    flag = tmp_path / "executed"
    payload = pickle.dumps(Malicious(flag))
    (folder / name).write_bytes(payload)
    if name != "checksums.json":  # whoever plants a file can also write its checksum
        sums = json.loads((folder / "checksums.json").read_text())
        sums[name] = hashlib.sha256(payload).hexdigest()
        (folder / "checksums.json").write_text(json.dumps(sums))
    if name == "card.md":
        load_model(folder)  # a card is text that is never read here
    else:
        with pytest.raises(
            ValueError, match=r"not a whole safetensors|does not describe|not a sentencepiece|not readable"
        ):
            load_model(folder)
    assert not flag.exists()
    pickle.loads(payload)
    assert flag.exists(), "the payload would have worked"


def test_folders_that_are_not_models(tmp_path, folder):
    with pytest.raises(CheckpointError, match="there is no folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"is not a model folder: it has no model\.safetensors, config\.json"):
        load_model(tmp_path)


def test_weights_of_another_model(tmp_path, tokenizer):
    one = save_model(tmp_path / "one", small_model(), tokenizer, "")
    other = save_model(tmp_path / "other", small_model(d_ff=30), tokenizer, "")
    for name in ("model.safetensors", "checksums.json"):
        (one / name).write_bytes((other / name).read_bytes())
    sums = json.loads((one / "checksums.json").read_text())
    sums["config.json"] = hashlib.sha256((one / "config.json").read_bytes()).hexdigest()
    (one / "checksums.json").write_text(json.dumps(sums))
    with pytest.raises(CheckpointError, match="belong to another model"):
        load_model(one)


@pytest.mark.parametrize("name", ["training.safetensors", "state.json", "model.safetensors", "checksums.json"])
def test_a_malicious_pickle_in_a_checkpoint_runs_nothing(tmp_path, name):
    flag, folder = tmp_path / "executed", a_checkpoint().save(tmp_path)
    (folder / name).write_bytes(pickle.dumps(Malicious(flag)))
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    if name != "checksums.json":
        (folder / "checksums.json").write_text(json.dumps(sums))
    with pytest.raises(ValueError, match=r"not a whole safetensors|not readable|codec|decode|JSON"):
        Checkpoint.load(folder)
    assert not flag.exists()


def test_killed_between_taking_the_old_folder_away_and_putting_the_new_one_there(folder):
    expected = load_model(folder)[0].state_dict()
    folder.rename(folder.with_name("model.old.part"))
    assert find_model(folder) == folder
    found = load_model(folder)[0].state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())


def test_what_a_killed_program_left_behind_does_not_stop_the_next(folder):
    leftover = folder.with_name("model.old.part")
    leftover.mkdir()
    (leftover / "half-deleted").write_text("x")
    write_folder(folder, {"new": b"y"})
    assert (folder / "new").read_bytes() == b"y"
    assert not leftover.exists()


def test_saving_again_replaces_the_whole_folder(folder, tokenizer):
    (folder / "stray").write_text("x")
    save_model(folder, small_model(norm="pre"), tokenizer, "new")
    assert load_model(folder)[0].config.norm == "pre"
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
def test_a_full_disk_leaves_what_was_saved_before(tmp_path):
    """A limit on file sizes fails like a full disk: in the middle of writing."""
    a_checkpoint(1).save(tmp_path)
    code = (
        "import resource, signal, sys; sys.path.insert(0, sys.argv[1]); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from test_checkpoints import a_checkpoint; from pathlib import Path\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "try: a_checkpoint(2).save(Path(sys.argv[2]))\n"
        "except ValueError as error: print(error)"
    )
    here = os.path.dirname(__file__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, os.path.dirname(here)])}
    result = subprocess.run(
        [sys.executable, "-c", code, here, str(tmp_path)], env=environment, capture_output=True, text=True, check=True
    )
    assert "could not be written (File too large); what was saved before is untouched" in result.stdout
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 5000
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    assert latest(tmp_path).step == 1


def test_averaging():
    one, other = small_model(), small_model(d_ff=24)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    mean = average([one.state_dict(), other.state_dict()])
    for name, tensor in one.state_dict().items():
        torch.testing.assert_close(mean[name], tensor + 0.5)
    with pytest.raises(CheckpointError, match="no checkpoints to average"):
        average([])
    with pytest.raises(CheckpointError, match="different tensors"):
        average([one.state_dict(), small_model(positions="learned").state_dict()])
