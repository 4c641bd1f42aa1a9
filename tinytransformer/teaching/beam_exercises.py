"""Exercises of lesson 08 about a beam: what it keeps, what it puts aside, and a cache that follows it."""

import torch
from torch import Tensor

from tinytransformer.teaching.exercises import Exercise, Mistake, random
from tinytransformer.teaching.search_exercises import END, START, found, greedy, language

# --- a beam


def _beam_cases() -> list[tuple]:
    settings = [(11, 3, 4), (12, 2, 4), (130, 2, 4), (229, 2, 4), (5, 2, 4), (7, 3, 3), (16, 1, 4)]  # seed, beam, limit
    return [(language(seed, 1.2, ending=-1.0), START, END, limit, beam) for seed, beam, limit in settings]


def _beam(
    model, start, end, limit, beam, finish=None, prune=None, rank=lambda total, ids: total, add=True, end_counts=True
):
    """Without variations: all that end are put aside, the best others go on, and the likeliest that ended wins."""
    running, ended = [([start], 0.0)], []
    for length in range(limit + 1):
        candidates = []
        for ids, total in running:
            steps = model(ids).tolist()
            tokens = range(len(steps)) if length < limit else [end]
            candidates += [
                ([*ids, token], (total if add else 0.0) + (steps[token] if token != end or end_counts else 0.0))
                for token in tokens
            ]
        candidates.sort(key=lambda one: -rank(one[1], one[0]))
        running, stopped = (prune or _apart)(candidates, beam, end)
        ended = finish(ended, stopped) if finish else ended + stopped
        if finish is _first and ended:
            break
    ids, total = max(ended, key=lambda one: rank(one[1], one[0]), default=([start, end], 0.0))
    return ids[1:-1], total


def _apart(candidates, beam, end):
    going_on = [one for one in candidates if one[0][-1] != end]
    return going_on[:beam], [one for one in candidates if one[0][-1] == end]


def _in_the_beam(candidates, beam, end):
    """What ends takes a place of the beam, and only what is in the beam can end."""
    going_on, stopped = _apart(candidates[:beam], beam, end)
    return going_on, stopped


def _one_of_each(candidates, beam, end):
    going_on, stopped = _apart(candidates, len(candidates), end)
    kept, seen = [], set()
    for ids, total in going_on:
        if len(ids) == 2 or tuple(ids[:-1]) not in seen:
            kept.append((ids, total))
            seen.add(tuple(ids[:-1]))
    return kept[:beam], stopped


def _first(ended, stopped):
    return stopped[:1]


BEAM = Exercise(
    "beam_best",
    reference=_beam,
    cases=_beam_cases,
    normal=found,
    mistakes=(
        Mistake("forgets-finished", "A sentence that has ended is forgotten when the others go on: only what ended at "
                "the last step is compared.", lambda *i: _beam(*i, finish=lambda ended, stopped: stopped or ended)),
        Mistake("first-finished", "The first sentence that ends is returned. A likelier one may still be under way.",
                lambda *i: _beam(*i, finish=_first)),
        Mistake("finished-take-places", "Ends and beginnings compete for the same places: fewer than `beam` beginnings "
                "go on, or an end outside the best `beam` is lost. Put every end aside, and let `beam` beginnings "
                "go on.", lambda *i: _beam(*i, prune=_in_the_beam)),
        Mistake("one-of-each", "Each beginning goes on in one way only. The best ways to go on may all come from one "
                "beginning.", lambda *i: _beam(*i, prune=_one_of_each)),
        Mistake("greedy", "The width of the beam makes no difference: this is greedy decoding.",
                lambda *i: greedy(*i[:4])),
        Mistake("beam-ignored", "Nothing is dropped: every beginning goes on. With real vocabularies that takes for "
                "ever.", lambda *i: _beam(*i[:4], 10**6)),
        Mistake("scores-not-added", "Each step is judged alone: the log-probability of a beginning is that of all its "
                "tokens.", lambda *i: _beam(*i, add=False)),
        Mistake("end-not-counted", "The log-probability of the end token is left out.",
                lambda *i: _beam(*i, end_counts=False)),
        Mistake("mean", "Sentences are compared by their mean log-probability. Asked for is the likeliest: the sum.",
                lambda *i: _beam(*i, rank=lambda total, ids: total / (len(ids) - 1))),
    ),
)  # fmt: skip


# --- a cache in order


def _cache_cases() -> list[tuple]:
    def case(kept: int, rows: list[int], length: int, seed: int) -> tuple:
        shapes = ((len(rows), 4), (kept, length, 3), (kept, length, 2), (4, 3), (4, 3), (4, 2))
        x, key, value, *matrices = (random(*shape, seed=seed + i) for i, shape in enumerate(shapes))
        return (x, torch.tensor(rows), key, value, *matrices)

    return [case(3, [2, 0, 2], 4, 1), case(4, [1, 2, 3, 0], 1, 2), case(2, [1, 1, 0], 3, 3)]


def _cached(x, rows, key, value, w_q, w_k, w_v, keys=None, values=None, late=None, front=False, scale=True, own=True):
    rows_k, rows_v = (rows if other is None else other(rows) for other in (keys, values))
    new_k, new_v = (x @ w_k)[:, None], (x @ w_v)[:, None]
    key, value = key[rows_k], value[rows_v]
    key = torch.cat([new_k, key] if front else [key, new_k], dim=1)
    value = torch.cat([new_v, value] if front else [value, new_v], dim=1)
    if late is not None:
        key, value = late(key, rows), late(value, rows)
    scores = (x @ w_q)[:, None] @ key.transpose(1, 2) / (w_q.size(1) ** 0.5 if scale else 1.0)
    if not own:
        scores[..., -1] = float("-inf")
    return (scores.softmax(-1) @ value)[:, 0], key, value


def _unchanged(rows: Tensor) -> Tensor:
    return torch.arange(len(rows))


CACHE = Exercise(
    "cached_step",
    reference=_cached,
    cases=_cache_cases,
    mistakes=(
        Mistake("not-reordered", "The cache is not put in order: a translation goes on with the past of another one. "
                "What are `rows` for?", lambda *i: _cached(*i, keys=_unchanged, values=_unchanged)),
        Mistake("keys-not-reordered", "The values are put in order, the keys are not.",
                lambda *i: _cached(*i, keys=_unchanged)),
        Mistake("values-not-reordered", "The keys are put in order, the values are not.",
                lambda *i: _cached(*i, values=_unchanged)),
        Mistake("reordered-too-late", "The new position is put in order together with the past. It stands in its "
                "place already: only the past has to move.",
                lambda *i: _cached(*i, keys=_unchanged, values=_unchanged, late=lambda kept, rows: kept[rows])),
        Mistake("new-tokens-reordered", "The new tokens are put in order, too. They stand in their places already: "
                "only the past has to move.",
                lambda x, rows, key, value, *w: _cached(x[rows.clamp(max=len(x) - 1)], rows, key, value, *w)),
        Mistake("order-inverted", "The rows move the other way: row i of the new past is row rows[i] of the old one.",
                lambda *i: _cached(*i, keys=torch.argsort, values=torch.argsort)),
        Mistake("new-position-in-front", "The output is right, but the new position stands before the past ones.",
                lambda *i: _cached(*i, front=True)),
        Mistake("no-scale", "The scores are not divided by √d_k.", lambda *i: _cached(*i, scale=False)),
        Mistake("blind-to-itself", "The new position does not see itself. A position sees the past and itself.",
                lambda *i: _cached(*i, own=False)),
    ),
)  # fmt: skip
