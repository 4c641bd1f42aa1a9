"""Ready for other devices: tested on `meta`, which refuses mixed devices, under autocast, and compiled."""

import shutil

import pytest
import torch
import torch.nn.functional as F
from support import COMBINATIONS, VOCAB, max_difference, random_ids, small_model

from tinytransformer import silence_heads
from tinytransformer.training import devices
from tinytransformer.training.devices import (
    DeviceError,
    PrecisionError,
    choose_device,
    hardware,
    prepare_bfloat16,
    try_bfloat16,
    use_threads,
)


def loss_of(model, source, target):
    logits = model(source, target[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1)


def test_the_fastest_device_is_chosen(monkeypatch):
    for cuda, mps, expected in ((True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=cuda: there)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda there=mps: there)
        assert choose_device().type == expected
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", "device='gpu' is unknown: choose auto"),
        ("xpu", "device='xpu' is unknown"),
        ("cuda", "device='cuda' is not on this machine: choose auto"),
        ("cpu:3", "device='cpu:3' is not on this machine"),
    ],
)
def test_a_device_that_is_not_there(monkeypatch, name, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match=message):
        choose_device(name)


def test_threads(monkeypatch):
    used = []
    monkeypatch.setattr(torch, "set_num_threads", used.append)
    use_threads(None)
    use_threads(3)
    assert used == [3]
    for count in (0, -1):
        with pytest.raises(DeviceError, match=f"threads={count} must be at least 1"):
            use_threads(count)


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize(("norm", "positions"), COMBINATIONS)
def test_the_whole_model_runs_on_the_meta_device(norm, positions, window):
    model = small_model(norm=norm, positions=positions, window=window, tie_embeddings=False, output_bias=True)
    model = model.to("meta").train()
    source, target = random_ids(2, 7).to("meta"), random_ids(2, 6).to("meta")
    loss_of(model, source, target).backward()
    for _, _, module in model.attentions():
        module.recorders.append(lambda *tensors: None)  # the written-out formula must not mix devices either
    with silence_heads(model, {("cross", 0): [1]}):
        loss_of(model, source, target).backward()
    assert all(parameter.grad.device.type == "meta" for parameter in model.parameters())
    memory, cache = model.encode(source), None
    for token in target.split(1, dim=1):
        logits, cache = model.step(token, memory, cache)
    rows = torch.tensor([1, 0, 0], device="meta")
    logits, _ = model.step(random_ids(3, 1).to("meta"), memory, cache.select(rows))
    assert logits.shape == (3, 1, VOCAB)


def test_the_meta_device_would_notice_a_tensor_left_behind():
    model = small_model().to("meta")
    model.positions.table = torch.zeros(40, 16)
    with pytest.raises(RuntimeError, match=r"device"):
        model(random_ids(2, 7).to("meta"), random_ids(2, 6).to("meta"))


@pytest.mark.parametrize(("norm", "positions"), COMBINATIONS)
def test_bf16_autocast(norm, positions):
    model = small_model(norm=norm, positions=positions, dropout=0.1).train()
    source, target = random_ids(4, 7, padding=2), random_ids(4, 6, padding=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(model, source, target)
        assert model.encoder.layers[0].feed_forward(torch.randn(2, 16)).dtype == torch.bfloat16
    loss.backward()
    assert all(p.grad.isfinite().all() and p.grad.dtype == torch.float32 for p in model.parameters())
    model.eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = model(source, target).float()
    exact = model(source, target)
    assert max_difference(rough, exact) < 0.05 * exact.abs().max()


needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="torch.compile needs a C++ compiler"
)


@needs_compiler
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised inside torch's compiler, not by us
@pytest.mark.parametrize(("norm", "positions"), [("post", "sinusoidal"), ("pre", "rotary")])
def test_compiled_logits_equal_eager_ones(norm, positions):
    model = small_model(norm=norm, positions=positions, num_layers=1)
    source, target = random_ids(3, 7, padding=2), random_ids(3, 6, padding=1)
    compiled = torch.compile(model, fullgraph=True)
    assert max_difference(compiled(source, target), model(source, target)) <= 1e-5
    loss_of(compiled, source, target).backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    loss_of(model, source, target).backward()
    for compiled_gradient, parameter in zip(gradients, model.parameters(), strict=True):
        assert max_difference(compiled_gradient, parameter.grad) <= 1e-5


@pytest.mark.gpu
@pytest.mark.parametrize(("norm", "positions"), COMBINATIONS)
def test_the_gpu_gives_what_the_cpu_gives(norm, positions):
    model = small_model(norm=norm, positions=positions)
    source, target = random_ids(3, 7, padding=2), random_ids(3, 6, padding=1)
    expected = model(source, target)
    assert max_difference(model.cuda()(source.cuda(), target.cuda()).cpu(), expected) <= 1e-4


def test_a_processor_that_dies_in_bfloat16_is_found_out_by_another_process():
    try_bfloat16()
    dying = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    with pytest.raises(PrecisionError, match=r"ended with code -4. Leave bf16 out, or set ONEDNN_MAX_CPU_ISA"):
        try_bfloat16(dying)


def test_training_in_bfloat16_tries_first(monkeypatch):
    def refuse():
        raise PrecisionError("no")

    monkeypatch.setattr(devices, "try_bfloat16", refuse)
    prepare_bfloat16(torch.device("meta"))
    with pytest.raises(PrecisionError, match="no"):
        prepare_bfloat16(torch.device("cpu"))


def test_hardware_tells_processes_and_threads(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert hardware().endswith("1 thread)")
    assert hardware(2).endswith("2 processes with 1 thread each)")
