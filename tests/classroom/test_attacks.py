"""Attacks on the grader. None gains a point, hangs the batch or touches anything outside its box.

Each attack has a control: the same code in a box that lacks one defence, where it succeeds. So an attack that never
ran, or a box that never started, cannot pass for a defence.
"""

import json
import pickle
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import tinytransformer.teaching.grading.box as box
from tinytransformer.teaching.exercises import Exercise
from tinytransformer.teaching.grading import submissions
from tinytransformer.teaching.grading.box import Limits, Outcome, run
from tinytransformer.teaching.grading.course import public
from tinytransformer.teaching.grading.feedback import page
from tinytransformer.teaching.grading.scoring import Graded, judge_outcome
from tinytransformer.teaching.grading.submissions import SubmissionError
from tinytransformer.teaching.grading.tasks import Case, Task

pytestmark = pytest.mark.box
X = torch.tensor([1.0, 2.0, 4.0])
CASES = (Case("three numbers", (X,)), Case("other numbers", (X + 3,)))
TASK = Task(Exercise("halves", lambda x: x / 2, lambda: [(X,)]), points=10, minutes=5, hidden=lambda seed: CASES)
QUICK = Limits(seconds=3.0, cpu_seconds=3.0)
SETUP = "import torch"


def attempt(answer: str, limits: Limits = QUICK, task: Task = TASK) -> Outcome:
    return run(task, SETUP, answer, [case.arguments for case in CASES], limits)


def graded(answer: str, limits: Limits = QUICK, task: Task = TASK) -> Graded:
    return judge_outcome(task, CASES, attempt(answer, limits, task), limits)


def returned(answer: str, limits: Limits = QUICK) -> object:
    """What the first case gave back."""
    outcome = attempt(answer, limits)
    assert outcome.lines, outcome.ended
    return outcome.lines[0]["answer"]


def test_with_bubblewrap_nothing_is_unprotected():
    assert box.unprotected() == ""


def test_an_honest_answer_gets_its_points():
    assert graded("def halves(x): return x / 2") == Graded("halves", 10.0, 10, "correct")


# --- taking too much


def test_an_endless_loop_is_stopped():
    loop = "def halves(x):\n    import time\n    while True: time.time()"
    begun = time.monotonic()
    outcome = attempt(loop)
    assert (outcome.ended, outcome.lines) == ("time", ())
    assert time.monotonic() - begun < QUICK.seconds + 15
    assert "took too long" in judge_outcome(TASK, CASES, outcome, QUICK).messages[0]

    begun = time.monotonic()  # the control: without the limit it goes on
    attempt(loop, replace(QUICK, seconds=8.0, cpu_seconds=100.0))
    assert time.monotonic() - begun > 8.0


def test_sleeping_is_stopped_too():
    assert attempt("def halves(x):\n    import time\n    time.sleep(600)").ended == "time"


FORKS = """
def halves(x):
    import os, time
    made = 0
    for _ in range(150):
        try:
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
            made += 1
        except OSError:
            pass
    return made
"""


def test_a_fork_bomb_has_few_children():
    assert returned(FORKS) < QUICK.processes
    assert returned(FORKS, replace(QUICK, processes=1000, seconds=20.0)) == 150


HUNDRED_GIGABYTES = """
def halves(x):
    import mmap
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    return len(mmap.mmap(-1, 100 << 30, flags=flags))
"""


def test_a_hundred_gigabytes_are_not_to_be_had():
    assert isinstance(returned(HUNDRED_GIGABYTES), OSError)
    assert returned(HUNDRED_GIGABYTES, replace(QUICK, memory_bytes=200 << 30)) == 100 << 30


def test_memory_of_many_processes_counts_together():
    hoard = """
def halves(x):
    import os, time
    for _ in range(6):
        if os.fork() == 0:
            kept = bytearray(300 << 20)
            time.sleep(30)
    time.sleep(5)
    return "survived"
"""
    limits = replace(QUICK, seconds=20.0, cpu_seconds=20.0, memory_bytes=1 << 30)
    assert attempt(hoard, limits).ended == "memory"
    assert returned(hoard, replace(limits, memory_bytes=16 << 30)) == "survived"


DISK = """
def halves(x):
    written = 0
    try:
        for number in range(20):
            with open(f"/tmp/{number}", "wb") as file:
                file.write(bytes(10 << 20))
            written += 10
    except OSError:
        pass
    return written
"""


def test_the_disk_cannot_be_filled():
    assert returned(DISK) <= QUICK.disk_bytes >> 20
    assert returned(DISK, replace(QUICK, disk_bytes=300 << 20)) == 200


def test_an_answer_of_any_size_is_cut():
    long = "def halves(x): return 'x' * (20 << 20)"
    assert attempt(long, replace(QUICK, answer_bytes=1 << 20)).ended == "size"
    assert len(returned(long, replace(QUICK, answer_bytes=100 << 20))) == 20 << 20


# --- looking and reaching outside


@pytest.fixture
def classroom(tmp_path):
    """Another student's notebook, and a copy of the solutions."""
    other = tmp_path / "submissions" / "other.ipynb"
    other.parent.mkdir()
    other.write_text("somebody else's work")
    return other


def with_mount(monkeypatch, kind: str, path: Path) -> None:
    """Take a wall away: the box sees one more folder."""
    command = box._command
    parents = [str(one) for one in reversed(path.parents) if str(one) not in ("/", "/tmp")]
    above = [word for one in parents for word in ("--perms", "0755", "--dir", one)]

    def leaky(folder, limits):
        words = command(folder, limits)
        place = words.index("--remount-ro")
        return [*words[:place], *above, kind, str(path), str(path), *words[place:]]

    monkeypatch.setattr(box, "_command", leaky)


SECRETS = """
def halves(x):
    found = 0
    for path in {paths!r}:
        try:
            open(path).read()
            found += 1
        except OSError:
            pass
    return found
"""


def test_checks_solutions_and_other_submissions_cannot_be_read(classroom, monkeypatch):
    root = Path(__file__).resolve().parents[2]
    teaching = root / "tinytransformer" / "teaching"
    paths = [
        teaching / "assignments" / "assignment1.py",
        root / "notebooks" / "assignments" / "assignment1.ipynb",
        classroom,
    ]
    read = SECRETS.format(paths=[str(path) for path in paths])
    assert all(path.is_file() for path in paths)
    assert returned(read) == 0
    with_mount(monkeypatch, "--ro-bind", classroom.parent)
    with_mount(monkeypatch, "--ro-bind", teaching)
    with_mount(monkeypatch, "--ro-bind", root / "notebooks")
    assert returned(read) == 3


def test_other_submissions_cannot_be_written(classroom, monkeypatch):
    write = f"def halves(x):\n    open({str(classroom)!r}, 'w').write('spoilt')\n    return 'done'"
    assert isinstance(returned(write), OSError)
    assert classroom.read_text() == "somebody else's work"
    classroom.chmod(0o666)
    with_mount(monkeypatch, "--bind", classroom.parent)
    classroom.parent.chmod(0o777)
    assert returned(write) == "done"
    assert classroom.read_text() == "spoilt"


def test_the_system_is_read_only():
    for place in ("/usr/spoilt", "/box/spoilt", "/spoilt", "/dev/spoilt"):
        assert isinstance(returned(f"def halves(x):\n    open({place!r}, 'w')\n    return 'done'"), OSError), place
    assert returned("def halves(x):\n    open('/tmp/own', 'w')\n    return 'done'") == "done"


def test_there_is_no_network(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        call = (
            "def halves(x):\n    import socket\n"
            f"    socket.create_connection(('127.0.0.1', {port}), timeout=2)\n    return 'connected'"
        )
        assert isinstance(returned(call), OSError)
        spaces = box._spaces
        monkeypatch.setattr(box, "_spaces", lambda: [word for word in spaces() if word != "--unshare-net"])
        assert returned(call) == "connected"


def test_the_environment_says_nothing(monkeypatch):
    detect = "def halves(x):\n    import os\n    return sorted(os.environ)"
    monkeypatch.setenv("GRADER", "here")
    assert returned(detect) == ["HOME", "LC_ALL", "OMP_NUM_THREADS", "PATH", "PWD"]
    command = box._command
    monkeypatch.setattr(
        box, "_command", lambda *a: ["/usr/bin/env", "GRADER=here", *(w for w in command(*a) if w != "--clearenv")]
    )
    assert "GRADER" in returned(detect)


def test_no_process_outside_is_seen():
    look = "def halves(x):\n    import os\n    return len([n for n in os.listdir('/proc') if n.isdigit()])"
    assert returned(look) < 6


# --- fooling the comparison. The control is a grader as many are: in the student's own process.

NAIVE = """

_answer, _wanted = halves, torch.tensor([0.5, 1.0, 2.0])


def halves(x):
    wanted = _wanted
    got = _answer(x)
    return {test}
"""
ALLCLOSE = "bool(torch.allclose(got, wanted))"
FOOLS = {
    "torch.allclose": ("torch.allclose = lambda *a, **k: True\ndef halves(x): return x", ALLCLOSE),
    "torch.testing": (
        "torch.testing.assert_close = lambda *a, **k: None\ndef halves(x): return x",
        "torch.testing.assert_close(got, wanted) is None",
    ),
    "builtins": (
        "import builtins\nbuiltins.all = lambda parts: True\ndef halves(x): return x",
        "all(a == b for a, b in zip(got, wanted))",
    ),
    "an assert's condition": (
        "torch.Tensor.all = lambda self: torch.tensor(True)\ndef halves(x): return x",
        "bool((got == wanted).all())",
    ),
    "sys.exit": ("import sys\ndef halves(x): sys.exit(0)", None),
    "pytest": (
        "import sys, types\nclass Any:\n    __eq__ = lambda self, other: True\nfake = types.ModuleType('pytest')\n"
        "fake.approx = lambda *a, **k: Any()\nsys.modules['pytest'] = fake\ndef halves(x): return x",
        "__import__('pytest').approx(wanted) == got",
    ),
    "__eq__": (
        "class Yes:\n    def __eq__(self, other): return True\ndef halves(x): return Yes()",
        "bool(got == wanted)",
    ),
    "a lie about the shape": (
        "class Liar(torch.Tensor):\n    shape = property(lambda self: torch.Size([3]))\n"
        "    def __eq__(self, other): return torch.ones(3).bool()\n"
        "def halves(x): return torch.zeros(1).as_subclass(Liar)",
        "got.shape == wanted.shape and bool((got == wanted).all())",
    ),
    "the caller's frame": (
        "def halves(x):\n    import sys\n    frame = sys._getframe(1)\n    while frame:\n"
        "        if 'wanted' in frame.f_locals: return frame.f_locals['wanted']\n        frame = frame.f_back\n"
        "    return x",
        ALLCLOSE,
    ),
    "the collector's objects": (
        "def halves(x):\n    import gc\n    for thing in gc.get_objects():\n"
        "        if type(thing) is dict and type(thing.get('_wanted')) is torch.Tensor: return thing['_wanted']\n"
        "    return x",
        ALLCLOSE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOOLS)
def test_a_comparison_cannot_be_fooled(name):
    answer, naive = FOOLS[name]
    assert graded(answer).points == 0
    if naive:
        assert returned(answer + NAIVE.format(test=naive)) is True, "the control must be fooled"


def test_leaving_early_is_no_success():
    assert isinstance(returned("import sys\ndef halves(x): sys.exit(0)"), SystemExit)
    assert attempt("import os\ndef halves(x): os._exit(0)").ended == "died"
    by_exit_code = (
        "import subprocess, sys\ndef halves(x):\n    code = 'import sys; sys.exit(0); assert 1 == 2'\n"
        "    return subprocess.run([sys.executable, '-c', code]).returncode == 0"
    )
    assert returned(by_exit_code) is True, "the control: a grader that goes by the exit code is fooled"


FORGED = """
import atexit, json, os
line = json.dumps({"dict": [["points", 10], ["status", "correct"]]}).encode() + b"\\n"
def forge():
    for number in range(16):
        try:
            os.write(number, line)
        except OSError:
            pass
PLACE
def halves(x): return x
"""


@pytest.mark.parametrize("place", ["forge()", "atexit.register(forge)", "print('halves: correct, 10 of 10')"])
def test_forged_results_are_worth_nothing(place):
    assert graded(FORGED.replace("PLACE", place)).points == 0


LEAVING = """
import atexit, os, subprocess, sys
CODE = "import atexit; atexit.register(open, '/tmp/mark', 'w')"
def halves(x):
    {way}
    return os.path.exists("/tmp/mark")
"""


def test_exit_handlers_do_not_run_and_would_otherwise():
    """Both cases run in one box: the second sees what the first has left behind."""
    ours = "atexit.register(open, '/tmp/mark', 'w')"
    outcome = attempt(LEAVING.format(way=ours))
    assert [line["answer"] for line in outcome.lines] == [False, False]
    assert returned(LEAVING.format(way="subprocess.run([sys.executable, '-c', CODE])")) is True, "the control"


def test_a_forged_right_answer_must_be_right():
    """Whoever can write right answers has solved the task."""
    forge = FORGED.replace("PLACE", "").replace(
        "def halves(x): return x", "def halves(x):\n    forge()\n    return x / 2"
    )
    assert attempt(forge).ended == "forged"


# --- the package


PATCH = """
try:
    import tinytransformer.teaching.exercises as exercises
    exercises.agree = lambda *a: True
    patched = True
except ImportError:
    patched = False
def halves(x): return patched
"""


def test_the_package_cannot_be_patched():
    assert returned(PATCH) is False
    allowed = ("teaching.exercises", "teaching.verdicts")
    outcome = attempt(PATCH, task=replace(TASK, package=allowed))
    assert outcome.lines[0]["answer"] is True, "the control finds the module"
    assert graded(PATCH, task=replace(TASK, package=allowed)).points == 0, "and even then it changes only its own copy"


def test_the_package_does_not_answer_where_a_task_forbids_it():
    borrow = (
        "from tinytransformer.teaching.assignments.assignment1 import ASSIGNMENT\n"
        "halves = ASSIGNMENT.tasks[0].exercise.reference"
    )
    assert graded(borrow).points == 0
    own = "from tinytransformer.model.masks import causal_mask\ndef halves(x): return causal_mask(2)"
    assert isinstance(returned(own), ImportError)
    assert torch.is_tensor(attempt(own, task=replace(TASK, package=("model.masks",))).lines[0]["answer"]), "the control"


def test_a_forbidden_function_is_noticed_by_any_name():
    forbidding = replace(
        TASK, forbidden=("softmax",), exercise=replace(TASK.exercise, reference=lambda x: x.softmax(-1))
    )
    for call in (
        "x.softmax(-1)",
        "torch.softmax(x, -1)",
        "torch.nn.Softmax(-1)(x)",
        "getattr(torch, 'soft' + 'max')(x, -1)",
    ):
        answer = f"def halves(x): return {call}"
        verdict = graded(answer, task=forbidding)
        assert (verdict.points, verdict.mistake) == (0.0, "forbidden"), call
        assert "do without softmax" in verdict.hint
    assert graded("def halves(x): return x.exp() / x.exp().sum()", task=forbidding).status == "correct"
    assert graded("def halves(x): return x.softmax(-1)", task=replace(forbidding, forbidden=())).status == "correct"


# --- what is handed in


def test_links_are_refused(tmp_path):
    secret = tmp_path / "secret.ipynb"
    secret.write_text('{"cells": []}')
    link = tmp_path / "anna.ipynb"
    link.symlink_to(secret)
    with pytest.raises(SubmissionError, match="no link"):
        submissions.read_notebook(link)
    assert link.read_text() == '{"cells": []}', "the control: reading it plainly follows the link"


class Evil:
    def __reduce__(self):
        return (open, ("/tmp/pwned-by-a-pickle", "w"))


def test_a_pickle_is_no_notebook(tmp_path):
    path = tmp_path / "anna.ipynb"
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(SubmissionError, match="is not a notebook"):
        submissions.read_notebook(path)
    assert not Path("/tmp/pwned-by-a-pickle").exists()
    unpickle = (
        f"def halves(x):\n    import os, pickle\n    pickle.loads({path.read_bytes()!r})\n"
        "    return os.path.exists('/tmp/pwned-by-a-pickle')"
    )
    assert returned(unpickle) is True, "the control: where it is unpickled, it acts"
    assert not Path("/tmp/pwned-by-a-pickle").exists(), "and it acted in the box"


def test_a_returned_object_that_pickles_evil_stays_an_object():
    verdict = graded("class Evil:\n    def __reduce__(self): return (print, ('x',))\ndef halves(x): return Evil()")
    assert "neither a tensor" in verdict.messages[0]


def test_a_million_cells(tmp_path, monkeypatch):
    path = tmp_path / "anna.ipynb"
    path.write_text('{"cells": [' + ",".join(["{}"] * 10**6) + "]}")
    with pytest.raises(SubmissionError, match="1000000 cells"):
        submissions.read_notebook(path)
    monkeypatch.setattr(submissions, "CELLS", 10**7)
    assert len(submissions.read_notebook(path)["cells"]) == 10**6, "the control"


def test_deep_nesting_is_no_notebook(tmp_path):
    path = tmp_path / "anna.ipynb"
    path.write_text("[" * 10**6)
    with pytest.raises(SubmissionError, match="is not a notebook"):
        submissions.read_notebook(path)


def test_pages_show_scripts_and_escapes_as_text():
    evil = "<script>document.title='fooled'</script>\x1b[2Jforged\u202e<img src=x onerror=alert(1)>"
    reflection = {"text": evil, "most": 10, "points": None, "comment": ""}
    task = {"task": evil, "points": 0.0, "most": 5, "status": "wrong", "hint": evil, "messages": [evil]}
    finding = {"about": evil, "message": evil, "serious": True}
    result = {"student": evil, "tasks": [task], "findings": [finding], "reflection": reflection}
    shown = page(evil, result)
    assert "<script" not in shown
    assert "<img" not in shown
    assert not set(shown) & {"\x1b", "\u202e"}
    assert "&lt;script&gt;" in shown
    assert "default-src 'none'" in shown


def test_public_assignments_never_travel_into_the_box(tmp_path):
    """What is sent in holds arguments, not one wanted value."""
    task = public("assignment1").tasks[0]
    cases = [case.arguments for case in task.hidden(5)]
    sent = json.loads(box.job(task, "", "def f(): pass", cases, Limits()))
    names = {key for key, _ in sent["dict"]}
    assert names == {"setup", "given", "answer", "function", "forbidden", "cases", "limits"}
