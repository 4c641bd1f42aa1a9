"""Batches side by side: the same results in the same order, and nothing is left changed."""

import threading
import time

import pytest
import torch
from support import random_ids, small_model

from tinytransformer import record_attention
from tinytransformer.translation.beam_search import beam_search
from tinytransformer.translation.parallel import side_by_side


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_results_are_those_of_one_after_the_other(two_threads):
    model = small_model()
    batches = [random_ids(3, length, padding=1) for length in (4, 9, 5, 7, 6)]
    alone = [beam_search(model, batch, beam=3, extra=5) for batch in batches]
    together = side_by_side(model, lambda batch: beam_search(model, batch, beam=3, extra=5), batches)
    for one, other in zip(alone, together, strict=True):
        assert [[h.ids for h in row] for row in one] == [[h.ids for h in row] for row in other]


def test_two_run_at_once_with_one_core_each_and_the_threads_are_given_back(two_threads):
    meeting = threading.Barrier(2, timeout=20)  # breaks unless both are there at the same time

    def wait_for_the_other(item):
        meeting.wait()
        return item, torch.get_num_threads()

    assert side_by_side(small_model(), wait_for_the_other, [1, 2]) == [(1, 1), (2, 1)]
    assert torch.get_num_threads() == 2
    fresh = []
    thread = threading.Thread(target=lambda: fresh.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert fresh == [2]


def test_while_attention_is_recorded_batches_come_one_after_the_other(two_threads):
    running = []

    def note(item):
        running.append(item)
        time.sleep(0.02)
        assert running[-1] == item, "another batch began meanwhile"

    model = small_model()
    with record_attention(model):
        side_by_side(model, note, [1, 2, 3])
    assert running == [1, 2, 3]


def test_an_error_in_one_batch_reaches_the_caller(two_threads):
    def fail(item):
        raise ValueError(f"batch {item}")

    with pytest.raises(ValueError, match="batch 1"):
        side_by_side(small_model(), fail, [1, 2])
    assert torch.get_num_threads() == 2
