"""Batches side by side: on a CPU, one core for each batch is faster than all cores on one.

A step of decoding is many small products, which two cores hardly do faster than one. PyTorch lets other Python threads
run while it computes, so threads are enough.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from tinytransformer.model.baselines import Model

Item, Result = TypeVar("Item"), TypeVar("Result")


def side_by_side(model: Model, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``[function(item) for item in items]``, as many at a time as PyTorch has threads, where that is a gain.

    Nothing runs side by side on other devices, or while somebody records the model's attention: records come in order.
    """
    threads = torch.get_num_threads()
    workers = min(threads, len(items))
    recorded = any(attention.recorders for *_, attention in model.attentions())
    if workers < 2 or recorded or next(model.parameters(), torch.empty(0)).device.type != "cpu":
        return [function(item) for item in items]
    try:
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(threads)  # what a worker sets holds for threads that are started later, too
