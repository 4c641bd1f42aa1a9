"""The box: a student's answer runs in it, and only plain values come out.

With bubblewrap (Linux) a box has no network, a read-only system without the teacher's files, a small temporary folder,
and limits on time, memory, processes and files. Each task of each student gets a new one. Elsewhere an answer runs in a
process of its own with what limits the platform has; `unprotected` says what is missing, and graders say it loudly.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import tinytransformer.teaching.grading.wire as wire
from tinytransformer.teaching.grading.tasks import Made, Task

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1]
MEBI = 1 << 20
_USERS = count()  # each box of root's gets a user of its own, so that their processes are counted apart


@dataclass(frozen=True)
class Limits:
    """What one task of one student may use. Time counts from when the box is ready."""

    seconds: float = 8.0  # on the clock
    cpu_seconds: float = 4.0
    start_seconds: float = 60.0  # loading PyTorch on a busy machine
    memory_bytes: int = 2048 * MEBI  # in each process, and, looked at from outside, in all together
    processes: int = 32
    file_bytes: int = 32 * MEBI
    disk_bytes: int = 64 * MEBI
    answer_bytes: int = 32 * MEBI


@dataclass(frozen=True)
class Outcome:
    """What came out: the line for each case that was answered, and why there are no more of them ("" if all came)."""

    lines: tuple[dict, ...]
    ended: str


@cache
def bubblewrap() -> str | None:
    """Its path, if it is installed and can make a box here."""
    path = shutil.which("bwrap")
    if path is None:
        return None
    try:
        tried = subprocess.run([path, *_spaces(), *_system(MEBI), "true"], capture_output=True, timeout=20)
    except subprocess.TimeoutExpired:
        return None
    return path if tried.returncode == 0 else None


def unprotected() -> str:
    """What is not protected on this machine; empty where everything is."""
    if bubblewrap():
        return ""
    missing = "the network, your files, and other submissions"
    if sys.platform == "win32":
        missing += ", memory, processor time and the number of processes"
    why = "bubblewrap cannot make a box here" if shutil.which("bwrap") else "bubblewrap is not installed"
    return (
        f"NOT PROTECTED: {why}, so student code runs with your rights and can reach {missing}. Grade only code that "
        "you have read, or on a Linux machine with bubblewrap (apt install bubblewrap)."
    )


def _spaces() -> list[str]:
    """New namespaces. Root's boxes keep root's user namespace for a moment: `inside` changes to another user in it."""
    fresh = ["--die-with-parent", "--new-session", "--clearenv"]
    if os.name == "posix" and os.getuid() == 0:
        names = [f"--unshare-{name}" for name in ("ipc", "pid", "net", "uts", "cgroup-try")]
        return [*fresh, *names, "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return [*fresh, "--unshare-all", "--uid", "65534", "--gid", "65534"]


def _system(disk_bytes: int) -> list[str]:
    """The system's programs and libraries and our Python, to be read only, and an empty /tmp; nothing of anybody's own
    files. /tmp comes first, since our Python may lie below it."""
    mounts = ["--perms", "1777", "--size", str(disk_bytes), "--tmpfs", "/tmp", "--ro-bind", "/usr", "/usr"]
    for name in ("/lib", "/lib64", "/bin", "/sbin"):
        if os.path.islink(name):
            mounts += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            mounts += ["--ro-bind", name, name]
    mounts += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--dev", "/dev"]
    folders: list[str] = []
    for folder in (sys.base_prefix, sys.prefix, *_libraries()):
        if not any((folder + "/").startswith(known + "/") for known in ("/usr", *folders)):
            folders.append(folder)
    for folder in folders:
        # The folders above it would be root's alone, and the user inside is another one.
        above = [str(parent) for parent in reversed(Path(folder).parents) if str(parent) not in ("/", "/tmp")]
        mounts += [word for parent in above for word in ("--perms", "0755", "--dir", parent)]
        mounts += ["--ro-bind", folder, folder]
    ours = str(PACKAGE)
    if any(ours.startswith(folder + "/") for folder in ("/usr", *folders)):
        mounts += ["--tmpfs", ours]  # an installed copy holds the references: hide it
    return mounts


def _libraries() -> list[str]:
    """Where PyTorch lies, if it does not lie with our Python."""
    place = str(Path(find_spec("torch").origin).resolve().parents[1])
    return [] if place.startswith((sys.prefix + "/", sys.base_prefix + "/")) else [place]


def _command(folder: Path, limits: Limits) -> list[str]:
    """The command line of a box around ``folder``, which holds our program and what the task allows."""
    script = [sys.executable, "-B", "-s"]
    if bubblewrap() is None:
        return [*script, str(folder / "inside.py")]
    settings = {"PATH": "/usr/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    places = ["--ro-bind", str(folder), "/box"]
    places += ["--size", "4096", "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]
    named = [word for name, value in settings.items() for word in ("--setenv", name, value)]
    return [bubblewrap(), *_spaces(), *_system(limits.disk_bytes), *places, *named, *script, "/box/inside.py"]


def fill(folder: Path, modules: Sequence[str]) -> None:
    """Put our program and the allowed modules of the package into a folder; the rooms' front doors are left empty."""
    for name in ("inside.py", "wire.py", "watch.py"):
        shutil.copy(HERE / name, folder / name)
    # Even empty it stands before any installed copy, where there is no box to hide that one.
    rooms = [folder / "tinytransformer"]
    for module in modules:
        path = rooms[0].joinpath(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / path.relative_to(rooms[0]), path)
        rooms += [room for room in path.parents if rooms[0] in room.parents]
    for room in rooms:
        room.mkdir(exist_ok=True)
        (room / "__init__.py").touch()


def job(task: Task, setup: str, answer: str, cases: Sequence[tuple], limits: Limits) -> bytes:
    """What is sent in: texts to run and the arguments of all cases; no reference, no wanted value."""
    sent = [[_sent(argument) for argument in arguments] for arguments in cases]
    user = 60_000 + next(_USERS) % 5000 if bubblewrap() and os.getuid() == 0 else None
    rules = asdict(replace(limits)) | {"user": user}
    if bubblewrap() is None:
        rules["processes"] = None  # without a box, the teacher's own processes would count
    texts = {"setup": setup, "given": task.given, "answer": answer, "function": task.name}
    return wire.dumps({**texts, "forbidden": list(task.forbidden), "cases": sent, "limits": rules}) + b"\n"


def _sent(argument: object) -> dict:
    return {"made": argument.maker, "values": argument.values} if isinstance(argument, Made) else {"plain": argument}


def run(task: Task, setup: str, answer: str, cases: Sequence[tuple], limits: Limits | None = None) -> Outcome:
    """Run an answer on all cases in a box of its own. It comes back, whatever the answer does."""
    limits = limits or Limits()
    with tempfile.TemporaryDirectory(prefix="box-") as name, tempfile.TemporaryFile() as sent:
        os.chmod(name, 0o755)  # the user inside is another one
        folder = Path(name)
        fill(folder, task.package)
        sent.write(job(task, setup, answer, cases, limits))
        sent.seek(0)
        settings = {"OMP_NUM_THREADS": "1"} | {key: os.environ[key] for key in ("SYSTEMROOT",) if key in os.environ}
        process = subprocess.Popen(
            _command(folder, limits),
            stdin=sent,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=settings,
            cwd=name,
            start_new_session=True,
        )
        try:
            return _listen(process, len(cases), limits)
        finally:
            _end(process)


def _listen(process: subprocess.Popen, wanted: int, limits: Limits) -> Outcome:
    """Collect lines until all have come or a limit is reached."""
    buffer, lines, ready = bytearray(), [], False
    deadline = time.monotonic() + limits.start_seconds
    received, looked = 0, 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if selector.select(timeout=0.1):
                piece = os.read(process.stdout.fileno(), MEBI)
                if not piece:
                    return Outcome(tuple(lines), _cause(process) if ready else "start")
                received += len(piece)
                buffer += piece
            while (end := buffer.find(b"\n")) >= 0:
                line, buffer = bytes(buffer[:end]), buffer[end + 1 :]
                try:
                    value = wire.loads(line)
                except wire.WireError:
                    return Outcome(tuple(lines), "forged")
                if not ready:
                    ready, deadline = True, time.monotonic() + limits.seconds
                elif isinstance(value, dict) and {"answer", "after", "line", "used"} <= set(value):
                    lines.append(value)
                else:
                    return Outcome(tuple(lines), "forged")
            if len(lines) >= wanted:
                return Outcome(tuple(lines[:wanted]), "")
            if received > limits.answer_bytes:
                return Outcome(tuple(lines), "size")
            if time.monotonic() > deadline:
                return Outcome(tuple(lines), "time" if ready else "start")
            if time.monotonic() - looked > 0.25:
                looked = time.monotonic()
                memory = memory_below(process.pid)
                if memory > limits.memory_bytes:
                    return Outcome(tuple(lines), "memory")


def _cause(process: subprocess.Popen) -> str:
    """Why a box ended by itself: its processor time was used up, or the answer ended it."""
    try:
        code = process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return "died"
    return "time" if hasattr(signal, "SIGXCPU") and code in (128 + signal.SIGXCPU, -signal.SIGXCPU) else "died"


def memory_below(root: int) -> int:
    """How much memory a process and all below it take; what several share is counted once. 0 where nobody can tell."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # a process may end while it is looked at
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.name))
    total, waiting = 0, [root]
    while waiting:
        one = waiting.pop()
        waiting += children.get(one, [])
        with suppress(OSError, StopIteration, ValueError, IndexError):
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
            total += 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])
    return total


def _end(process: subprocess.Popen) -> None:
    """Nothing of a box stays: its first process takes all others along."""
    if os.name == "posix":
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.stdout.close()
    process.wait()
