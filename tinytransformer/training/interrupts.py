"""Ctrl-C between two steps: in the middle of one, weights, random numbers and data disagree about what is done."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopped(KeyboardInterrupt):
    """Ctrl-C, after all was saved."""


@contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """Hold the first Ctrl-C back, and yield a function that tells whether it came; a second one stops at once.

    Where Ctrl-C is somebody else's business already, or in a thread, which gets no signals, nothing is held back.
    """
    came = False

    def note(number: int, frame: object) -> None:
        nonlocal came
        came = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: came
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
