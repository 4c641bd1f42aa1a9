"""The program in the box: it runs one student's answer to one task on the arguments it is sent, and sends back what
came out. It knows neither references nor expected values.

It is started as a script beside `wire.py` and `watch.py`; nothing else of the package is there, except what the task
allows. Once the answer runs, nothing in this process can be trusted: the other side takes what arrives as an answer,
never as a verdict.
"""

import os
import sys
from copy import deepcopy

import torch
import wire
from watch import watched

ANSWER = "<answer>"


def limit(limits: dict) -> None:
    """Give up what the answer must not have. Systems other than Linux and macOS have no such limits."""
    try:
        import resource
    except ImportError:
        return
    spent = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    wanted = {
        resource.RLIMIT_CPU: int(spent + limits["cpu_seconds"]) + 1,
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_DATA: limits[
            "memory_bytes"
        ],  # not RLIMIT_AS: builds of PyTorch for GPUs map far more than that
        resource.RLIMIT_NPROC: limits["processes"],
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in wanted.items():
        if most is None:
            continue
        _, hard = resource.getrlimit(kind)
        last = (
            most + 1 if kind == resource.RLIMIT_CPU else most
        )  # a signal that tells why, then one that cannot be caught
        last = last if hard == resource.RLIM_INFINITY else min(last, hard)
        resource.setrlimit(kind, (min(most, last), last))
    if limits["user"] is not None:  # the box was started by root, for whom the number of processes has no limit
        os.setgroups([])
        os.setresgid(limits["user"], limits["user"], limits["user"])
        os.setresuid(limits["user"], limits["user"], limits["user"])


def prepare(job: dict) -> dict:
    """The names that an answer may use, and its own."""
    names = {"__name__": "answer"}
    exec(compile(job["setup"], "<setup>", "exec"), names)
    exec(compile(job["given"], "<given>", "exec"), names)
    return names


def arguments(names: dict, case: list) -> list:
    return [names[given["made"]](*given["values"]) if "made" in given else given["plain"] for given in case]


def line_of(error: BaseException) -> int | None:
    """Where in the answer an error arose."""
    if isinstance(error, SyntaxError) and error.filename == ANSWER:
        return error.lineno
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == ANSWER:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def outcome(names: dict, job: dict, case: list) -> dict:
    """One case: the answer or the error, the arguments afterwards, and what was used."""
    used: set[str] = set()
    try:
        given = arguments(names, deepcopy(case))
        answer = watched(names[job["function"]], job["forbidden"], used)(*given)
        after = [value for value, kind in zip(given, case, strict=True) if "plain" in kind]
        return {"answer": answer, "after": after, "line": None, "used": sorted(used)}
    except BaseException as error:  # an answer may raise anything, even SystemExit
        return {"answer": error, "after": None, "line": line_of(error), "used": sorted(used)}


def main() -> None:
    job = wire.loads(sys.stdin.buffer.readline())
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # whatever the answer prints goes nowhere
        os.dup2(silent, stream)
    torch.set_num_threads(1)
    names = prepare(job)
    limit(job["limits"])
    out.write(wire.dumps("ready") + b"\n")
    broken = None
    try:
        exec(compile(job["answer"], ANSWER, "exec"), names)
    except BaseException as error:
        broken = {"answer": error, "after": None, "line": line_of(error), "used": []}
    for case in job["cases"]:
        try:
            line = wire.dumps(broken or outcome(names, job, case))
        except BaseException:  # an answer that cannot be sent
            line = wire.dumps({"answer": wire.UnsendableError(), "after": None, "line": None, "used": []})
        out.write(line + b"\n")
    os._exit(0)  # no exit handlers, no waiting for threads


if __name__ == "__main__":
    main()
