"""Notes the functions of PyTorch that a task forbids. Used by the student's own check and in the box, where it stands
alone, so it imports nothing of the package."""

from collections.abc import Callable, Sequence

from torch.overrides import TorchFunctionMode


class Watch(TorchFunctionMode):
    """While it is entered, it notes which forbidden functions are called, as functions or as methods of a tensor."""

    def __init__(self, forbidden: Sequence[str]):
        super().__init__()
        self.forbidden, self.used = frozenset(forbidden), set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "").strip("_")
        if name in self.forbidden:
            self.used.add(name)
        return function(*args, **(kwargs or {}))


def watched(function: Callable, forbidden: Sequence[str], used: set[str]) -> Callable:
    """The function, which now adds what it uses of the forbidden to ``used``."""

    def call(*arguments):
        watch = Watch(forbidden)
        try:
            with watch:
                return function(*arguments)
        finally:
            used.update(watch.used)

    return call if forbidden else function
