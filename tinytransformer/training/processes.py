"""Several processes: started here on a processor's cores, or by torchrun on GPUs; joined by PyTorch's own means.

On a CPU two processes with one thread each train a small model faster than one with two (benchmarks/processes.py): its
products are too small to be divided.
"""

import contextlib
import datetime
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO, TypeVar

import torch
import torch.distributed as dist

from tinytransformer.training.devices import choose_device

Item = TypeVar("Item")
STOPPED = 130  # the exit code after Ctrl-C
SHARED = "TINYTRANSFORMER_SHARED"  # set for processes that were started here, and share the batches of a step


def can_share(processes: int, device: str) -> bool:
    """Whether so many processes are worth starting: on a CPU with as many cores, and nobody has started several yet."""
    on_cpu = choose_device(device).type == "cpu"
    return processes > 1 and "RANK" not in os.environ and on_cpu and (os.cpu_count() or 1) >= processes


def started_here() -> bool:
    """Whether this process is one that `start` has started, and not torchrun."""
    return SHARED in os.environ


def sharing() -> int:
    """Among how many processes the batches of a step are divided: those that were started here."""
    return int(os.environ.get(SHARED, "1"))


def start(processes: int, arguments: Sequence[str]) -> int:
    """Run ``python -m tinytransformer`` with these arguments in so many processes; returns the exit code.

    Ctrl-C reaches all of them, and they save. When one fails, the others are ended; the first one speaks for all, and
    what another says is shown only if that one was the trouble.
    """
    common = {
        "WORLD_SIZE": processes, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _free_port(), SHARED: processes,
        "OMP_NUM_THREADS": max(1, (os.cpu_count() or 1) // processes),
    }  # fmt: skip
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    with tempfile.TemporaryFile() as aside:
        try:
            ranks = [{**common, "RANK": rank, "LOCAL_RANK": rank} for rank in range(processes)]
            started = [_start_one(rank, arguments, aside if rank["RANK"] else None) for rank in ranks]
            code = _wait(started)
        finally:
            signal.signal(signal.SIGINT, handler)
        if code and started[0].returncode in (0, -signal.SIGKILL):
            aside.seek(0)
            sys.stderr.write(aside.read().decode(errors="replace"))
    return code


def _start_one(variables: dict[str, object], arguments: Sequence[str], errors: IO | None) -> subprocess.Popen:
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "import sys; from tinytransformer.cli import main; sys.exit(main())"
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], env=environment, stderr=errors)


def _wait(started: list[subprocess.Popen]) -> int:
    """Wait until all have ended; when one has failed, end the others. The first one's exit code comes first."""
    while any(one.poll() is None for one in started):
        if any(one.returncode not in (None, 0, STOPPED) for one in started):
            time.sleep(1)  # a moment for the first one to say why
            for one in started:
                one.kill()
        time.sleep(0.05)
    codes = [one.returncode for one in started]
    return abs(next((code for code in codes if code and code != -signal.SIGKILL), next(filter(None, codes), 0)))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def joined(device: str) -> Iterator[bool]:
    """Join the other processes, if there are any; yields whether this is the first one, which speaks and writes."""
    if "RANK" not in os.environ:
        yield True
        return
    on_gpu = choose_device(device).type == "cuda"
    if on_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # Long enough for the first process to download, and for each to make its share of a large text.
    dist.init_process_group("nccl" if on_gpu else "gloo", timeout=datetime.timedelta(days=1))
    try:
        yield dist.get_rank() == 0
    finally:
        dist.destroy_process_group()


@contextlib.contextmanager
def first_alone(first: bool) -> Iterator[None]:
    """The first process goes first, and the others follow when it is through."""
    if not first:
        dist.barrier()
    yield
    if first and dist.is_initialized():
        dist.barrier()


@contextlib.contextmanager
def divided(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """This process's share of some work; what comes after it waits until all have done theirs."""
    if not dist.is_initialized():
        yield items
        return
    yield items[dist.get_rank() :: dist.get_world_size()]
    dist.barrier()
