"""A worked example of a private folder: copy it, keep the copy to yourself, `make class PRIVATE=your-folder`.

A file bears the name of an assignment. ``change`` gets the public assignment and returns yours; ``CELLS`` replaces
cells of the public notebook, by their ids. Here:

- task 1 becomes another task: differences from the best key, not from the first. Answers copied from the public
  repository now make a known mistake;
- task 2 keeps its text and gets hidden inputs that nobody can read.
"""

from dataclasses import replace

import torch

from tinytransformer.teaching.exercises import Exercise, Mistake
from tinytransformer.teaching.grading.tasks import Assignment, Case

# --- a variant of task 1: reference, known mistakes, hidden cases


def _gaps(weights, d_k):
    logs = weights.log()
    return (logs.amax(dim=-1, keepdim=True) - logs) * d_k**0.5


def _hidden_gaps(seed):
    dice = torch.Generator().manual_seed(seed)

    def weights(*shape):
        return torch.randn(*shape, generator=dice).mul(2).softmax(dim=-1)

    return [
        Case("a table of weights", (weights(4, 6), 12)),
        Case("a batch with heads", (weights(2, 3, 5, 7), 20)),
        Case("one key only", (torch.ones(3, 1), 8)),
    ]


GAPS = Exercise(
    "score_gaps",
    reference=_gaps,
    cases=lambda: [(torch.tensor([[0.25, 0.5, 0.25]]), 4)],
    mistakes=(
        Mistake("from-the-first", "The differences are taken from the first key. Asked for is the best one.",
                lambda w, d: (w.log() - w.log()[..., :1]) * d**0.5),
        Mistake("sign", "The sign is turned: how much a key lies below the best is never negative.",
                lambda w, d: -_gaps(w, d)),
        Mistake("no-scale", "These are differences of scaled scores. Undo the scale as well.",
                lambda w, d: _gaps(w, 1)),
    ),
)  # fmt: skip


# --- other hidden inputs for task 2


def _hidden_masks(seed):
    dice = torch.Generator().manual_seed(seed)
    words = torch.randint(3, 50, (3, 9), generator=dice)
    words[0, :4], words[1, 6:], words[2, 2:4] = 1, 1, 1
    return [
        Case("padding in front, behind and within", (words, 1)),
        Case("nothing but padding", (torch.full((2, 5), 2), 2)),
        Case("no padding at all", (words.clamp(min=3), 0)),
    ]


def change(assignment: Assignment) -> Assignment:
    """This year's version."""
    new = {
        "score_gaps": replace(assignment["score_gaps"], exercise=GAPS, hidden=_hidden_gaps),
        "decoder_mask": replace(assignment["decoder_mask"], hidden=_hidden_masks),
    }
    return replace(assignment, tasks=tuple(new.get(task.name, task) for task in assignment))


CELLS = {
    "task-score_gaps": """\
## Task 1: How far below the best? (8 points, 15 minutes)

Somebody gives you attention weights softmax(Q Kᵀ / √d_k). Return, for each query and each key, by how much its dot
product lies below the *largest* of its row: max_i q · k_i − q · k_j. It is 0 for the best key and never negative.

**By hand.** A row of weights 0.25, 0.5, 0.25 with d_k = 4: the answer is 2 log 2 = 1.386, then 0, then 1.386.

**What can occur:** axes in front; any d_k from 1 on; a single key. All weights are above 0.""",
    "score_gaps": '''\
def score_gaps(weights: Tensor, d_k: int) -> Tensor:
    """weights (…, T, S), each row sums to one, to max_i q · k_i − q · k_j: (…, T, S)."""
    ### BEGIN SOLUTION
    scores = torch.log(weights)
    return (scores.max(dim=-1, keepdim=True).values - scores) * math.sqrt(d_k)
    ### END SOLUTION''',
    # The public check would try the public task, so this one brings its own.
    "check-score_gaps": """\
found = score_gaps(torch.tensor([[0.25, 0.5, 0.25]]), 4)
assert torch.allclose(found, torch.tensor([[1.3863, 0.0, 1.3863]]), atol=1e-4), f"not yet: {found}" """,
}
