"""A task of assignment 1 that reads recorded weights: do they obey the masks?"""

import torch
from torch import Tensor

from tinytransformer.model.masks import causal_mask
from tinytransformer.teaching.exercises import Exercise, Mistake, random
from tinytransformer.teaching.grading.tasks import Case, Task


def _audit(
    weights: Tensor, ids: Tensor, pad_id: int, ahead: int = 1, asked=None, hidden_only=True, odd=None, later=None
) -> Tensor:
    real = ids != pad_id
    asks = (real if asked is None else asked(real)).float()
    count = asks.sum()
    pairs = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool)
    later = later(pairs) if later else pairs.triu(ahead)
    future = later & (real[:, None, None, :] if hidden_only else torch.ones(1, dtype=torch.bool))
    odd = odd or (lambda w: (w.sum(dim=-1) - 1).abs() > 0.01)
    measures = [(weights * (~real)[:, None, None, :]).sum(-1), (weights * future).sum(-1), odd(weights).float()]
    return torch.stack([(m * asks[:, None, :]).sum(dim=(0, 2)) / count for m in measures], dim=1)


def _sentence_by_sentence(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    parts = [_audit(weights[i : i + 1], ids[i : i + 1], pad_id) for i in range(len(ids))]
    return torch.stack(parts).mean(dim=0)


def _mean_over_keys(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    right = _audit(weights, ids, pad_id)
    return torch.cat([right[:, :2] / ids.size(1), right[:, 2:]], dim=1)


def _counted(weights: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    right = _audit(weights, ids, pad_id)
    return torch.cat([right[:, :2], right[:, 2:] * (ids != pad_id).sum()], dim=1)


def _by_hand() -> tuple:
    """The example of the task's text."""
    return torch.tensor([[[[0.5, 0.3, 0.2], [0.6, 0.4, 0.0], [1.0, 0.0, 0.0]]]]), torch.tensor([[7, 8, 0]]), 0


def _recorded(ids: Tensor, pad_id: int, heads: int, seed: int, spread: float = 1.0) -> Tensor:
    """Rows of weights that look everywhere; in each head some real rows do not sum to one, nor do rows of padding. One
    row is off by so little that it counts, another by so little that it does not."""
    batch, length = ids.shape
    weights = random(batch, heads, length, length, seed=seed, spread=spread).softmax(dim=-1)
    weights = torch.where((ids == pad_id)[:, None, :, None], 0.7 * weights, weights)
    places = (ids != pad_id).nonzero()
    chance = torch.Generator().manual_seed(seed + 1)
    for head in range(heads):
        chosen = places[torch.randperm(len(places), generator=chance)].tolist()
        for (sentence, query), factor in zip(chosen, (0.8, 1.25, 1.2, 0.97, 1.004), strict=False):
            weights[sentence, head, query] *= factor
    return weights


def _audit_hidden(seed: int) -> list[Case]:
    dice = torch.Generator().manual_seed(seed)
    length = int(torch.randint(5, 9, (), generator=dice))
    behind, front = (torch.randint(3, 30, (2, length), generator=dice) for _ in range(2))
    behind[0, 2:] = 0
    front[1, : int(torch.randint(2, length - 1, (), generator=dice))] = 1
    front[0, 1] = 0  # a word here, for 1 is the padding
    full, blank = torch.randint(3, 30, (1, length), generator=dice), torch.randint(3, 30, (2, 4), generator=dice)
    clean = random(1, 2, length, length, seed=seed).masked_fill(~causal_mask(length), -torch.inf).softmax(dim=-1)
    rows = random(2, 5, 4, 4, seed=seed + 2).softmax(dim=-1)
    rows[1, 1, 2] = 0.0
    return [
        Case("padding behind the words", (_recorded(behind, 0, 4, seed + 3), behind, 0)),
        Case("padding in front, with another id", (_recorded(front, 1, 2, seed + 5), front, 1)),
        Case("a model that obeys its masks", (clean, full, 0)),
        Case("a row of zeros", (rows, blank, 0)),
    ]


AUDIT = Task(
    Exercise(
        "audit",
        reference=_audit,
        cases=lambda: [
            *(
                (_recorded(ids, pad, heads, seed), ids, pad)
                for ids, pad, heads, seed in (
                    (torch.tensor([[5, 6, 0, 0], [7, 8, 9, 4]]), 0, 2, 1),
                    (torch.tensor([[1, 1, 6, 0, 3, 8]]), 1, 4, 5),
                )
            ),
            _by_hand(),
        ],
        mistakes=(
            Mistake("padding-queries-counted", "The rows of padding are counted, too. What padding looks at is never "
                    "used: count the rows of real tokens.",
                    lambda *i: _audit(*i, asked=torch.ones_like)),
            Mistake("divided-by-all-rows", "The sums are right, but they are divided by the number of all rows, those "
                    "of padding included.",
                    lambda w, ids, p: _audit(w, ids, p) * (ids != p).float().mean()),
            Mistake("future-includes-itself", "A word's weight on itself is counted as future. Seeing oneself is "
                    "allowed.", lambda *i: _audit(*i, ahead=0)),
            Mistake("padding-counted-twice", "Padding behind a word is counted as padding and as future. Count it "
                    "once, as padding.", lambda *i: _audit(*i, hidden_only=False)),
            Mistake("sentence-by-sentence", "First each sentence is averaged, then the sentences: words of short "
                    "sentences count more. All real queries of the batch count alike.", _sentence_by_sentence),
            Mistake("past-for-future", "What counts as future lies before the query. Rows are queries, columns are "
                    "keys.", lambda *i: _audit(*i, later=lambda pairs: pairs.tril(-1))),
            Mistake("mean-over-keys", "The weights on padding and on the future are averaged over the keys. A query's "
                    "weights are shares of one whole: add them up.", _mean_over_keys),
            Mistake("counted", "The third number is a count of rows. Asked for is their share of the real queries.",
                    _counted),
            Mistake("columns-summed", "The third number looks at columns. A query's weights are a row.",
                    lambda *i: _audit(*i, odd=lambda w: (w.sum(dim=-2) - 1).abs() > 0.01)),
            Mistake("only-too-small", "Rows that sum to more than one are not noticed.",
                    lambda *i: _audit(*i, odd=lambda w: w.sum(dim=-1) < 0.99)),
        ),
    ),
    points=13,
    minutes=25,
    hidden=_audit_hidden,
)  # fmt: skip
