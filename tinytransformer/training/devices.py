"""Where training computes: the device, its name, and in which precision."""

import contextlib
import functools
import platform
import subprocess
import sys
from collections.abc import Iterator

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

_TRIAL = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); a @ a"


class DeviceError(ValueError):
    """This machine does not have what was asked for; the message says what to do."""


class PrecisionError(RuntimeError):
    """The processor cannot compute in the precision that was asked for; the message says what to do."""


def choose_device(name: str = "auto") -> torch.device:
    """The named device, or the fastest there is: CUDA, MPS, CPU."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True, "meta": True}
    if name == "auto":
        return torch.device(next(kind for kind, usable in there.items() if usable))
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in there:
        raise DeviceError(f"device={name!r} is unknown: choose auto (the fastest there is), cuda, mps or cpu")
    if not there[device.type] or (device.index or 0) >= max(1, torch.cuda.device_count()):
        raise DeviceError(f"device={name!r} is not on this machine: choose auto (the fastest there is) or cpu")
    return device


def use_threads(count: int | None) -> None:
    """Compute with so many processor cores; None leaves it at all."""
    if count is not None and count < 1:
        raise DeviceError(f"threads={count} must be at least 1; leave it out for all cores")
    if count is not None:
        torch.set_num_threads(count)


def hardware(processes: int = 1) -> str:
    """The machine in a few words, as far as it can be known."""
    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} × {torch.cuda.get_device_name()}"
    threads = torch.get_num_threads()
    each = f"{threads} {'thread' if threads == 1 else 'threads'}"
    return f"CPU only ({platform.machine()}, {f'{processes} processes with {each} each' if processes > 1 else each})"


def prepare_bfloat16(device: torch.device) -> None:
    """Make ready for bfloat16, or say that this processor cannot do it."""
    if device.type == "cpu":
        try_bfloat16()


@functools.cache
def try_bfloat16(trial: str = _TRIAL) -> None:
    """Multiply two matrices in another process: a virtual machine may announce instructions that it does not have, and
    then the program that uses them is ended by the system, without a word."""
    done = subprocess.run([sys.executable, "-c", trial], capture_output=True, check=False)
    if done.returncode:
        raise PrecisionError(
            f"this processor cannot multiply in bfloat16: a trial ended with code {done.returncode}. Leave bf16 out, "
            "or set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 before the start, which is slower than float32 but runs"
        )


@contextlib.contextmanager
def precision(device: torch.device, bf16: bool) -> Iterator[None]:
    """Products in bfloat16 where asked for; weights, sums and the loss stay in float32."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.autocast(device.type, torch.bfloat16, enabled=bf16))
        if bf16 and device.type == "cpu":
            # The fused kernel's backward pass is several times slower in bfloat16 than the formula written out.
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        yield
