"""Answers to assignment 4 as students write them: right ones in three styles, and one wrong one for each mistake."""

import math
from collections import Counter

import torch
from torch import Tensor

from tinytransformer.teaching.assignments.inside_tasks import aligned_words
from tinytransformer.teaching.assignments.search_tasks import beam_step

# --- the best that has ended


def best_by_loop(candidates, log_probabilities, alpha, start, end):
    any_ended = False
    for ids in candidates:
        if ids[-1] == end:
            any_ended = True
    winner, top = None, -math.inf
    for ids, total in zip(candidates, log_probabilities, strict=True):
        if any_ended and ids[-1] != end:
            continue
        length = len(ids) - 1
        score = total / ((5 + length) / 6) ** alpha
        if score > top:
            winner, top = ids, score
    return [token for token in winner if token != start and token != end], top


def best_by_tensor(candidates, log_probabilities, alpha, start, end):
    ended = torch.tensor([ids[-1] == end for ids in candidates])
    lengths = torch.tensor([len(ids) - 1 for ids in candidates])
    scores = torch.tensor(log_probabilities, dtype=torch.float64) / ((5 + lengths) / 6) ** alpha
    if ended.any():
        scores[~ended] = -math.inf
    row = scores.argmax().item()
    return candidates[row][1 : lengths[row] + (not ended[row])], scores[row].item()


def best_by_sorting(candidates, log_probabilities, alpha, start, end):
    ranked = []
    for ids, total in zip(candidates, log_probabilities, strict=True):
        words = ids[1:-1] if ids[-1] == end else ids[1:]
        ranked.append((ids[-1] == end, total / ((4 + len(ids)) / 6) ** alpha, words))
    _, score, words = max(ranked)
    return words, score


def best_with_start_counted(candidates, log_probabilities, alpha, start, end):
    pool = [(ids, total) for ids, total in zip(candidates, log_probabilities, strict=True) if ids[-1] == end]
    if not pool:
        pool = list(zip(candidates, log_probabilities, strict=True))
    scored = [(total / ((5 + len(ids)) / 6) ** alpha, ids) for ids, total in pool]
    score, ids = max(scored)
    return [token for token in ids if token not in (start, end)], score


def best_without_end_counted(candidates, log_probabilities, alpha, start, end):
    pool = [(ids, total) for ids, total in zip(candidates, log_probabilities, strict=True) if ids[-1] == end]
    if not pool:
        pool = list(zip(candidates, log_probabilities, strict=True))
    scored = []
    for ids, total in pool:
        length = len([token for token in ids if token not in (start, end)])
        scored.append((total / ((5 + length) / 6) ** alpha, ids))
    score, ids = max(scored)
    return [token for token in ids if token not in (start, end)], score


def best_upside_down(candidates, log_probabilities, alpha, start, end):
    pool = [(ids, total) for ids, total in zip(candidates, log_probabilities, strict=True) if ids[-1] == end]
    if not pool:
        pool = list(zip(candidates, log_probabilities, strict=True))
    scored = [(total * ((5 + len(ids) - 1) / 6) ** alpha, ids) for ids, total in pool]
    score, ids = max(scored)
    return [token for token in ids if token not in (start, end)], score


def best_by_plain_length(candidates, log_probabilities, alpha, start, end):
    pool = [(ids, total) for ids, total in zip(candidates, log_probabilities, strict=True) if ids[-1] == end]
    if not pool:
        pool = list(zip(candidates, log_probabilities, strict=True))
    scored = [(total / (len(ids) - 1) ** alpha, ids) for ids, total in pool]
    score, ids = max(scored)
    return [token for token in ids if token not in (start, end)], score


def best_without_penalty(candidates, log_probabilities, alpha, start, end):
    pool = [(ids, total) for ids, total in zip(candidates, log_probabilities, strict=True) if ids[-1] == end]
    if not pool:
        pool = list(zip(candidates, log_probabilities, strict=True))
    scored = [(total, ids) for ids, total in pool]
    score, ids = max(scored)
    return [token for token in ids if token not in (start, end)], score


def best_of_all(candidates, log_probabilities, alpha, start, end):
    scored = []
    for ids, total in zip(candidates, log_probabilities, strict=True):
        scored.append((total / ((5 + len(ids) - 1) / 6) ** alpha, ids))
    score, ids = max(scored)
    return [token for token in ids if token not in (start, end)], score


def best_with_log_probability(candidates, log_probabilities, alpha, start, end):
    pool = [(ids, total) for ids, total in zip(candidates, log_probabilities, strict=True) if ids[-1] == end]
    if not pool:
        pool = list(zip(candidates, log_probabilities, strict=True))
    scored = [(total / ((5 + len(ids) - 1) / 6) ** alpha, total, ids) for ids, total in pool]
    _, score, ids = max(scored)
    return [token for token in ids if token not in (start, end)], score


def best_with_end(candidates, log_probabilities, alpha, start, end):
    pool = [(ids, total) for ids, total in zip(candidates, log_probabilities, strict=True) if ids[-1] == end]
    if not pool:
        pool = list(zip(candidates, log_probabilities, strict=True))
    scored = [(total / ((5 + len(ids) - 1) / 6) ** alpha, ids) for ids, total in pool]
    score, ids = max(scored)
    return ids[1:], score


# --- one step of a beam


def step_by_loops(scores: Tensor, steps: Tensor, end: int, beam: int):
    candidates = []
    for row in range(steps.size(0)):
        for token in range(steps.size(1)):
            total = scores[row].item() + steps[row, token].item()
            if total > -math.inf:
                candidates.append((total, row, token))
    candidates.sort(reverse=True)
    ended = [one for one in candidates[:beam] if one[2] == end]
    going_on = [one for one in candidates if one[2] != end][:beam]
    totals, rows, tokens = ([one[i] for one in going_on] for i in range(3))
    long = {"dtype": torch.long}
    kept = torch.tensor(totals), torch.tensor(rows, **long), torch.tensor(tokens, **long)
    return *kept, torch.tensor([one[0] for one in ended]), torch.tensor([one[1] for one in ended], **long)


def step_by_topk(scores: Tensor, steps: Tensor, end: int, beam: int):
    totals = scores[:, None] + steps
    best, places = totals.flatten().topk(min(2 * beam + len(scores), totals.numel()))
    possible = best > -math.inf
    best, places = best[possible], places[possible]
    rows, tokens = places // steps.size(1), places % steps.size(1)
    words = (tokens != end).nonzero()[:, 0][:beam]
    stops = (tokens[:beam] == end).nonzero()[:, 0]
    return best[words], rows[words], tokens[words], best[stops], rows[stops]


def step_with_separate_ends(scores: Tensor, steps: Tensor, end: int, beam: int):
    totals = scores[:, None] + steps
    border = totals.flatten().sort(descending=True).values[:beam][-1]
    stops, rows = totals[:, end].sort(descending=True)
    ended = (stops >= border) & (stops > -math.inf)
    words = totals.clone()
    words[:, end] = -math.inf
    best, places = words.flatten().sort(descending=True)
    count = min(beam, int((best > -math.inf).sum()))
    row, token = torch.unravel_index(places[:count], words.shape)
    return best[:count], row, token, stops[ended], rows[ended]


def step_without_scores(scores: Tensor, steps: Tensor, end: int, beam: int):
    size = steps.size(1)
    totals = steps.flatten()
    order = totals.argsort(descending=True)
    order = order[totals[order] > -math.inf]
    words = order[order % size != end][:beam]
    stops = order[:beam][order[:beam] % size == end]
    return totals[words], words // size, words % size, totals[stops], stops // size


def step_ends_taking_places(scores: Tensor, steps: Tensor, end: int, beam: int):
    size = steps.size(1)
    totals = (scores[:, None] + steps).flatten()
    order = totals.argsort(descending=True)
    order = order[totals[order] > -math.inf]
    words = order[:beam][order[:beam] % size != end]
    stops = order[:beam][order[:beam] % size == end]
    return totals[words], words // size, words % size, totals[stops], stops // size


def step_with_all_ends(scores: Tensor, steps: Tensor, end: int, beam: int):
    size = steps.size(1)
    totals = (scores[:, None] + steps).flatten()
    order = totals.argsort(descending=True)
    order = order[totals[order] > -math.inf]
    words = order[order % size != end][:beam]
    stops = order[order % size == end]
    return totals[words], words // size, words % size, totals[stops], stops // size


def step_ends_going_on(scores: Tensor, steps: Tensor, end: int, beam: int):
    size = steps.size(1)
    totals = (scores[:, None] + steps).flatten()
    order = totals.argsort(descending=True)
    order = order[totals[order] > -math.inf]
    words = order[:beam]
    stops = order[:beam][order[:beam] % size == end]
    return totals[words], words // size, words % size, totals[stops], stops // size


def step_one_of_each(scores: Tensor, steps: Tensor, end: int, beam: int):
    totals = scores[:, None] + steps
    going = []
    for row in range(len(scores)):
        words = totals[row].clone()
        words[end] = -math.inf
        best, tokens = words.topk(min(beam, len(words)) if len(scores) == 1 else 1)
        going += [(b, row, t) for b, t in zip(best.tolist(), tokens.tolist(), strict=True) if b > -math.inf]
    going = sorted(going, reverse=True)[:beam]
    kept = [torch.tensor([one[i] for one in going]) for i in range(3)]
    flat, size = totals.flatten(), steps.size(1)
    top = flat.argsort(descending=True)[:beam]
    stops = top[(top % size == end) & (flat[top] > -math.inf)]
    return *kept, flat[stops], stops // size


def step_rows_and_columns(scores: Tensor, steps: Tensor, end: int, beam: int):
    size, rows = steps.size(1), steps.size(0)
    totals = (scores[:, None] + steps).flatten()
    order = totals.argsort(descending=True)
    order = order[totals[order] > -math.inf]
    words = order[order % size != end][:beam]
    stops = order[:beam][order[:beam] % size == end]
    return totals[words], words % rows, words // rows, totals[stops], stops % rows


def step_with_impossible(scores: Tensor, steps: Tensor, end: int, beam: int):
    size = steps.size(1)
    totals = (scores[:, None] + steps).flatten()
    order = totals.argsort(descending=True, stable=True)
    words = order[order % size != end][:beam]
    stops = order[:beam][order[:beam] % size == end]
    return totals[words], words // size, words % size, totals[stops], stops // size


# --- a whole search


def search_step_by_step(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and len(ended) < beam:
        steps = torch.stack([table[ids[-2], ids[-1]] for ids in running])
        if len(running[0]) - 2 == limit:
            only_end = torch.full_like(steps, -math.inf)
            only_end[:, end] = steps[:, end]
            steps = only_end
        scores, rows, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total / ((5 + len(ids) + 1) / 6) ** alpha))
        running = [[*running[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return sorted(ended, key=lambda one: one[1], reverse=True)


def search_in_tensors(table, start, end, beam, alpha, limit):
    ids = torch.full((1, 2), start)
    scores, ended = torch.zeros(1), []
    for length in range(limit + 1):
        steps = table[ids[:, -2], ids[:, -1]]
        if length == limit:
            steps = steps.masked_fill(torch.arange(steps.size(1)) != end, -math.inf)
        scores, rows, tokens, totals, stopped = beam_step(scores, steps, end, beam)
        for total, row in zip(totals, stopped, strict=True):
            ended.append((ids[row, 2:].tolist(), (total / ((6 + length) / 6) ** alpha).item()))
        ids = torch.cat([ids[rows], tokens[:, None]], dim=1)
        if len(ended) >= beam or not len(ids):
            break
    ended.sort(key=lambda one: -one[1])
    return ended


def search_without_beam_step(table, start, end, beam, alpha, limit):
    running, ended = [((start, start), 0.0)], []
    while running and len(ended) < beam:
        longer = []
        for ids, total in running:
            for token, step in enumerate(table[ids[-2], ids[-1]].tolist()):
                if step > -math.inf and (token == end or len(ids) - 2 < limit):
                    longer.append(((*ids, token), total + step))
        longer.sort(key=lambda one: -one[1])
        for ids, total in longer[:beam]:
            if ids[-1] == end:
                ended.append((list(ids[2:-1]), total / ((5 + len(ids) - 2) / 6) ** alpha))
        running = [one for one in longer if one[0][-1] != end][:beam]
    return sorted(ended, key=lambda one: -one[1])


def search_throwing_some_away(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and len(ended) < beam:
        steps = torch.stack([table[ids[-2], ids[-1]] for ids in running])
        if len(running[0]) - 2 == limit:
            only_end = torch.full_like(steps, -math.inf)
            only_end[:, end] = steps[:, end]
            steps = only_end
        scores, rows, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total / ((5 + len(ids) + 1) / 6) ** alpha))
        running = [[*running[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return sorted(ended, key=lambda one: one[1], reverse=True)[:beam]


def search_first_end(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and not ended:
        steps = torch.stack([table[ids[-2], ids[-1]] for ids in running])
        if len(running[0]) - 2 == limit:
            only_end = torch.full_like(steps, -math.inf)
            only_end[:, end] = steps[:, end]
            steps = only_end
        scores, rows, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total / ((5 + len(ids) + 1) / 6) ** alpha))
        running = [[*running[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return sorted(ended, key=lambda one: one[1], reverse=True)


def search_with_wrong_past(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and len(ended) < beam:
        steps = torch.stack([table[ids[-2], ids[-1]] for ids in running])
        if len(running[0]) - 2 == limit:
            only_end = torch.full_like(steps, -math.inf)
            only_end[:, end] = steps[:, end]
            steps = only_end
        scores, _, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total / ((5 + len(ids) + 1) / 6) ** alpha))
        longer = []
        for place, token in enumerate(tokens.tolist()):
            longer.append([*running[min(place, len(running) - 1)], token])
        running = longer
    return sorted(ended, key=lambda one: one[1], reverse=True)


def search_reading_one_word(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and len(ended) < beam:
        steps = torch.stack([table[start, ids[-1]] for ids in running])
        if len(running[0]) - 2 == limit:
            only_end = torch.full_like(steps, -math.inf)
            only_end[:, end] = steps[:, end]
            steps = only_end
        scores, rows, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total / ((5 + len(ids) + 1) / 6) ** alpha))
        running = [[*running[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return sorted(ended, key=lambda one: one[1], reverse=True)


def search_one_too_long(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and len(ended) < beam:
        steps = torch.stack([table[ids[-2], ids[-1]] for ids in running])
        if len(running[0]) - 2 > limit:
            only_end = torch.full_like(steps, -math.inf)
            only_end[:, end] = steps[:, end]
            steps = only_end
        scores, rows, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total / ((5 + len(ids) + 1) / 6) ** alpha))
        running = [[*running[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return sorted(ended, key=lambda one: one[1], reverse=True)


def search_one_too_short(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and len(ended) < beam:
        steps = torch.stack([table[ids[-2], ids[-1]] for ids in running])
        if len(running[0]) - 1 == limit:
            only_end = torch.full_like(steps, -math.inf)
            only_end[:, end] = steps[:, end]
            steps = only_end
        scores, rows, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total / ((5 + len(ids) + 1) / 6) ** alpha))
        running = [[*running[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return sorted(ended, key=lambda one: one[1], reverse=True)


def search_cut_off(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and len(ended) < beam and len(running[0]) - 2 < limit:
        steps = torch.stack([table[ids[-2], ids[-1]] for ids in running])
        scores, rows, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total / ((5 + len(ids) + 1) / 6) ** alpha))
        running = [[*running[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return sorted(ended, key=lambda one: one[1], reverse=True)


def search_end_not_counted(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and len(ended) < beam:
        steps = torch.stack([table[ids[-2], ids[-1]] for ids in running])
        if len(running[0]) - 2 == limit:
            only_end = torch.full_like(steps, -math.inf)
            only_end[:, end] = steps[:, end]
            steps = only_end
        scores, rows, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total / ((5 + len(ids)) / 6) ** alpha))
        running = [[*running[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return sorted(ended, key=lambda one: one[1], reverse=True)


def search_without_penalty(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and len(ended) < beam:
        steps = torch.stack([table[ids[-2], ids[-1]] for ids in running])
        if len(running[0]) - 2 == limit:
            only_end = torch.full_like(steps, -math.inf)
            only_end[:, end] = steps[:, end]
            steps = only_end
        scores, rows, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total))
        running = [[*running[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return sorted(ended, key=lambda one: one[1], reverse=True)


def search_as_they_end(table, start, end, beam, alpha, limit):
    running, scores, ended = [[start, start]], torch.zeros(1), []
    while running and len(ended) < beam:
        steps = torch.stack([table[ids[-2], ids[-1]] for ids in running])
        if len(running[0]) - 2 == limit:
            only_end = torch.full_like(steps, -math.inf)
            only_end[:, end] = steps[:, end]
            steps = only_end
        scores, rows, tokens, totals, ended_rows = beam_step(scores, steps, end, beam)
        for total, row in zip(totals.tolist(), ended_rows.tolist(), strict=True):
            ids = running[row][2:]
            ended.append((ids, total / ((5 + len(ids) + 1) / 6) ** alpha))
        running = [[*running[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
    return ended


# --- counts of BLEU


def counts_by_counter(hypotheses, references):
    table = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        matches, totals = [], []
        for n in (1, 2, 3, 4):
            mine = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
            other = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            matches.append(sum(min(count, other[gram]) for gram, count in mine.items()))
            totals.append(sum(mine.values()))
        table.append([*matches, *totals, len(ours), len(theirs)])
    return torch.tensor(table)


def counts_by_crossing_out(hypotheses, references):
    table = torch.zeros(len(hypotheses), 10, dtype=torch.long)
    for row, (ours, theirs) in enumerate(zip(hypotheses, references, strict=True)):
        for n in range(1, 5):
            left = [theirs[i : i + n] for i in range(len(theirs) - n + 1)]
            for i in range(len(ours) - n + 1):
                table[row, 3 + n] += 1
                if ours[i : i + n] in left:
                    left.remove(ours[i : i + n])
                    table[row, n - 1] += 1
        table[row, 8], table[row, 9] = len(ours), len(theirs)
    return table


def counts_by_intersection(hypotheses, references):
    def grams(words, n):
        return Counter(zip(*(words[i:] for i in range(n)), strict=False))

    rows = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        matches = [(grams(ours, n) & grams(theirs, n)).total() for n in range(1, 5)]
        totals = [max(len(ours) - n + 1, 0) for n in range(1, 5)]
        rows.append(torch.tensor(matches + totals + [len(ours), len(theirs)]))
    return torch.stack(rows)


def counts_unclipped(hypotheses, references):
    table = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        matches, totals = [], []
        for n in (1, 2, 3, 4):
            mine = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
            other = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            matches.append(sum(count for gram, count in mine.items() if gram in other))
            totals.append(sum(mine.values()))
        table.append([*matches, *totals, len(ours), len(theirs)])
    return torch.tensor(table)


def counts_of_different_grams(hypotheses, references):
    table = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        matches, totals = [], []
        for n in (1, 2, 3, 4):
            mine = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
            other = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            matches.append(len(set(mine) & set(other)))
            totals.append(sum(mine.values()))
        table.append([*matches, *totals, len(ours), len(theirs)])
    return torch.tensor(table)


def counts_with_reference_totals(hypotheses, references):
    table = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        matches, totals = [], []
        for n in (1, 2, 3, 4):
            mine = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
            other = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            matches.append(sum(min(count, other[gram]) for gram, count in mine.items()))
            totals.append(sum(other.values()))
        table.append([*matches, *totals, len(ours), len(theirs)])
    return torch.tensor(table)


def counts_with_different_totals(hypotheses, references):
    table = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        matches, totals = [], []
        for n in (1, 2, 3, 4):
            mine = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
            other = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            matches.append(sum(min(count, other[gram]) for gram, count in mine.items()))
            totals.append(len(mine))
        table.append([*matches, *totals, len(ours), len(theirs)])
    return torch.tensor(table)


def counts_below_zero(hypotheses, references):
    table = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        matches, totals = [], []
        for n in (1, 2, 3, 4):
            mine = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
            other = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            matches.append(sum(min(count, other[gram]) for gram, count in mine.items()))
            totals.append(len(ours) - n + 1)
        table.append([*matches, *totals, len(ours), len(theirs)])
    return torch.tensor(table)


def counts_with_lengths_exchanged(hypotheses, references):
    table = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        matches, totals = [], []
        for n in (1, 2, 3, 4):
            mine = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
            other = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            matches.append(sum(min(count, other[gram]) for gram, count in mine.items()))
            totals.append(sum(mine.values()))
        table.append([*matches, *totals, len(theirs), len(ours)])
    return torch.tensor(table)


def counts_with_totals_first(hypotheses, references):
    table = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        matches, totals = [], []
        for n in (1, 2, 3, 4):
            mine = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
            other = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            matches.append(sum(min(count, other[gram]) for gram, count in mine.items()))
            totals.append(sum(mine.values()))
        table.append([*totals, *matches, len(ours), len(theirs)])
    return torch.tensor(table)


def counts_alternating(hypotheses, references):
    table = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        row = []
        for n in (1, 2, 3, 4):
            mine = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
            other = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            row += [sum(min(count, other[gram]) for gram, count in mine.items()), sum(mine.values())]
        table.append([*row, len(ours), len(theirs)])
    return torch.tensor(table)


# --- two systems


def compare_by_loops(ours, theirs, draws):
    def bleu(table, draw):
        sums = [0] * 10
        for row in draw.tolist():
            for column in range(10):
                sums[column] += table[row, column].item()
        product = 1.0
        for n in range(4):
            if sums[n] == 0:
                return 0.0
            product *= sums[n] / sums[4 + n]
        brevity = 1.0 if sums[8] >= sums[9] else math.exp(1 - sums[9] / sums[8])
        return 100 * brevity * product**0.25

    one = [bleu(ours, draw) for draw in draws]
    two = [bleu(theirs, draw) for draw in draws]
    wins = sum(a > b for a, b in zip(one, two, strict=True))
    return torch.tensor(one), torch.tensor(two), wins / len(one)


def compare_vectorised(ours, theirs, draws):
    def bleu(table):
        sums = table[draws].sum(dim=1).double()
        logs = (sums[:, :4] / sums[:, 4:8].clamp(min=1)).log().mean(dim=1)
        brevity = (1 - sums[:, 9] / sums[:, 8]).clamp(max=0)
        return 100 * (logs + brevity).exp()

    one, two = bleu(ours), bleu(theirs)
    return one.float(), two.float(), (one > two).double().mean().item()


def compare_by_counting_draws(ours, theirs, draws):
    times = torch.stack([(draws == row).sum(dim=1) for row in range(len(ours))], dim=1)
    scores = []
    for table in (ours, theirs):
        sums = times @ table
        matches, totals = sums[:, :4], sums[:, 4:8]
        precision = torch.where(matches > 0, matches / totals, 0.0).prod(dim=1) ** 0.25
        ratio = sums[:, 9] / sums[:, 8]
        scores.append(100 * precision * torch.where(ratio > 1, (1 - ratio).exp(), 1.0))
    return *scores, sum(a > b for a, b in zip(*(s.tolist() for s in scores), strict=True)) / len(draws)


def compare_sentence_means(ours, theirs, draws):
    scores = []
    for table in (ours, theirs):
        each = []
        for row in table.double():
            precisions = row[:4] / row[4:8].clamp(min=1)
            brevity = min(1.0, math.exp(1 - row[9] / row[8]))
            each.append(100 * brevity * precisions.log().mean().exp().item())
        scores.append(torch.tensor([sum(each[i] for i in draw) / len(draw) for draw in draws.tolist()]))
    one, two = scores
    return one, two, (one > two).float().mean().item()


def compare_without_brevity(ours, theirs, draws):
    scores = []
    for table in (ours, theirs):
        found = []
        for draw in draws:
            sums = table[draw].sum(dim=0).double()
            precisions = sums[:4] / sums[4:8].clamp(min=1)
            found.append(100 * precisions.log().mean().exp().item())
        scores.append(torch.tensor(found))
    one, two = scores
    return one, two, (one > two).float().mean().item()


def compare_arithmetic(ours, theirs, draws):
    scores = []
    for table in (ours, theirs):
        found = []
        for draw in draws:
            sums = table[draw].sum(dim=0).double()
            precisions = sums[:4] / sums[4:8].clamp(min=1)
            brevity = min(1.0, math.exp(1 - sums[9] / sums[8]))
            found.append(100 * brevity * precisions.mean().item())
        scores.append(torch.tensor(found))
    one, two = scores
    return one, two, (one > two).float().mean().item()


def compare_with_sets(ours, theirs, draws):
    scores = []
    for table in (ours, theirs):
        found = []
        for draw in draws:
            sums = table[list(set(draw.tolist()))].sum(dim=0).double()
            precisions = sums[:4] / sums[4:8].clamp(min=1)
            brevity = min(1.0, math.exp(1 - sums[9] / sums[8]))
            found.append(100 * brevity * precisions.log().mean().exp().item())
        scores.append(torch.tensor(found))
    one, two = scores
    return one, two, (one > two).float().mean().item()


def compare_without_draws(ours, theirs, draws):
    scores = []
    for table in (ours, theirs):
        found = []
        for _ in draws:
            sums = table.sum(dim=0).double()
            precisions = sums[:4] / sums[4:8].clamp(min=1)
            brevity = min(1.0, math.exp(1 - sums[9] / sums[8]))
            found.append(100 * brevity * precisions.log().mean().exp().item())
        scores.append(torch.tensor(found))
    one, two = scores
    return one, two, (one > two).float().mean().item()


def compare_with_ties(ours, theirs, draws):
    scores = []
    for table in (ours, theirs):
        found = []
        for draw in draws:
            sums = table[draw].sum(dim=0).double()
            precisions = sums[:4] / sums[4:8].clamp(min=1)
            brevity = min(1.0, math.exp(1 - sums[9] / sums[8]))
            found.append(100 * brevity * precisions.log().mean().exp().item())
        scores.append(torch.tensor(found))
    one, two = scores
    return one, two, (one >= two).float().mean().item()


def compare_losses(ours, theirs, draws):
    scores = []
    for table in (ours, theirs):
        found = []
        for draw in draws:
            sums = table[draw].sum(dim=0).double()
            precisions = sums[:4] / sums[4:8].clamp(min=1)
            brevity = min(1.0, math.exp(1 - sums[9] / sums[8]))
            found.append(100 * brevity * precisions.log().mean().exp().item())
        scores.append(torch.tensor(found))
    one, two = scores
    return one, two, (one < two).float().mean().item()


def compare_between_0_and_1(ours, theirs, draws):
    scores = []
    for table in (ours, theirs):
        found = []
        for draw in draws:
            sums = table[draw].sum(dim=0).double()
            precisions = sums[:4] / sums[4:8].clamp(min=1)
            brevity = min(1.0, math.exp(1 - sums[9] / sums[8]))
            found.append(brevity * precisions.log().mean().exp().item())
        scores.append(torch.tensor(found))
    one, two = scores
    return one, two, (one > two).float().mean().item()


# --- links by every head


def links_by_loops(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    layers, heads = weights.shape[:2]
    found = torch.full((layers, heads, max(target_words) + 1), -1)
    for layer in range(layers):
        for head in range(heads):
            for word in range(max(target_words) + 1):
                mass = {}
                for row, owner in enumerate(target_words):
                    if owner == word:
                        for column, source in enumerate([*source_words, -1]):
                            mass[source] = mass.get(source, 0.0) + weights[layer, head, row, column].item()
                found[layer, head, word] = max(mass, key=mass.get)
    return found


def links_by_products(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    owners = torch.tensor([*source_words, max(source_words) + 1])
    columns = (owners[:, None] == torch.arange(max(source_words) + 2)).float()
    rows = (torch.tensor(target_words) == torch.arange(max(target_words) + 1)[:, None]).float()
    mass = torch.einsum("wt,lhts,sc->lhwc", rows, weights[:, :, :-1], columns)
    best = mass.argmax(dim=-1)
    return torch.where(best > max(source_words), -1, best)


def links_by_index_add(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    layers, heads = weights.shape[:2]
    sources, targets = max(source_words) + 1, max(target_words) + 1
    by_row = torch.zeros(layers, heads, targets, weights.size(3))
    by_row.index_add_(2, torch.tensor(target_words), weights[:, :, : len(target_words)])
    mass = torch.zeros(layers, heads, targets, sources + 1)
    mass.index_add_(3, torch.tensor([*source_words, sources]), by_row)
    best = mass.argmax(-1)
    best[best == sources] = -1
    return best


def links_one_row_late(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    words = range(max(target_words) + 1)
    sources = range(max(source_words) + 1)
    found = []
    for word in words:
        rows = [row + 1 for row, owner in enumerate(target_words) if owner == word]
        total = weights[:, :, rows].sum(dim=2)
        mass = []
        for source in sources:
            columns = [column for column, owner in enumerate(source_words) if owner == source]
            mass.append(total[:, :, columns].sum(dim=-1))
        mass.append(total[:, :, -1])
        best = torch.stack(mass, dim=-1).argmax(dim=-1)
        found.append(torch.where(best == len(sources), -1, best))
    return torch.stack(found, dim=-1)


def links_of_first_pieces(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    words = range(max(target_words) + 1)
    sources = range(max(source_words) + 1)
    found = []
    for word in words:
        rows = [target_words.index(word)]
        total = weights[:, :, rows].sum(dim=2)
        mass = []
        for source in sources:
            columns = [column for column, owner in enumerate(source_words) if owner == source]
            mass.append(total[:, :, columns].sum(dim=-1))
        mass.append(total[:, :, -1])
        best = torch.stack(mass, dim=-1).argmax(dim=-1)
        found.append(torch.where(best == len(sources), -1, best))
    return torch.stack(found, dim=-1)


def links_of_best_pieces(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    owners = torch.tensor([*source_words, -1])
    found = []
    for word in range(max(target_words) + 1):
        rows = [row for row, owner in enumerate(target_words) if owner == word]
        found.append(owners[weights[:, :, rows].sum(dim=2).argmax(dim=-1)])
    return torch.stack(found, dim=-1)


def links_of_mean_pieces(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    words = range(max(target_words) + 1)
    sources = range(max(source_words) + 1)
    found = []
    for word in words:
        rows = [row for row, owner in enumerate(target_words) if owner == word]
        total = weights[:, :, rows].sum(dim=2)
        mass = []
        for source in sources:
            columns = [column for column, owner in enumerate(source_words) if owner == source]
            mass.append(total[:, :, columns].mean(dim=-1))
        mass.append(total[:, :, -1])
        best = torch.stack(mass, dim=-1).argmax(dim=-1)
        found.append(torch.where(best == len(sources), -1, best))
    return torch.stack(found, dim=-1)


def links_without_end(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    words = range(max(target_words) + 1)
    sources = range(max(source_words) + 1)
    found = []
    for word in words:
        rows = [row for row, owner in enumerate(target_words) if owner == word]
        total = weights[:, :, rows].sum(dim=2)
        mass = []
        for source in sources:
            columns = [column for column, owner in enumerate(source_words) if owner == source]
            mass.append(total[:, :, columns].sum(dim=-1))
        found.append(torch.stack(mass, dim=-1).argmax(dim=-1))
    return torch.stack(found, dim=-1)


def links_with_end_as_word(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    words = range(max(target_words) + 1)
    sources = range(max(source_words) + 1)
    found = []
    for word in words:
        rows = [row for row, owner in enumerate(target_words) if owner == word]
        total = weights[:, :, rows].sum(dim=2)
        mass = []
        for source in sources:
            columns = [column for column, owner in enumerate(source_words) if owner == source]
            mass.append(total[:, :, columns].sum(dim=-1))
        mass.append(total[:, :, -1])
        found.append(torch.stack(mass, dim=-1).argmax(dim=-1))
    return torch.stack(found, dim=-1)


def links_of_the_average(weights: Tensor, source_words: list[int], target_words: list[int]) -> Tensor:
    weights = weights.mean(dim=1, keepdim=True).repeat(1, weights.size(1), 1, 1)
    words = range(max(target_words) + 1)
    sources = range(max(source_words) + 1)
    found = []
    for word in words:
        rows = [row for row, owner in enumerate(target_words) if owner == word]
        total = weights[:, :, rows].sum(dim=2)
        mass = []
        for source in sources:
            columns = [column for column, owner in enumerate(source_words) if owner == source]
            mass.append(total[:, :, columns].sum(dim=-1))
        mass.append(total[:, :, -1])
        best = torch.stack(mass, dim=-1).argmax(dim=-1)
        found.append(torch.where(best == len(sources), -1, best))
    return torch.stack(found, dim=-1)


# --- the error of every head


def errors_by_loops(sentences):
    layers, heads = sentences[0][0].shape[:2]
    errors = torch.zeros(layers, heads)
    for layer in range(layers):
        for head in range(heads):
            common = ours = theirs = 0
            for weights, source_words, target_words, gold in sentences:
                row = aligned_words(weights, source_words, target_words)[layer, head].tolist()
                links = {(source, word) for word, source in enumerate(row) if source >= 0}
                common += len(links & {tuple(pair) for pair in gold})
                ours += len(links)
                theirs += len(gold)
            errors[layer, head] = 1 - 2 * common / (ours + theirs)
    return errors


def errors_by_gold_tables(sentences):
    common = sizes = 0
    for weights, source_words, target_words, gold in sentences:
        found = aligned_words(weights, source_words, target_words)
        table = torch.zeros(max(source_words) + 2, max(target_words) + 1)
        for source, target in gold:
            table[source, target] = 1
        right = table[found, torch.arange(found.size(-1))] * (found >= 0)
        common = common + right.sum(-1)
        sizes = sizes + (found >= 0).sum(-1) + len(gold)
    return 1 - 2 * common / sizes


def errors_by_comparing_pairs(sentences):
    common, ours, theirs = torch.zeros(3, *sentences[0][0].shape[:2])
    for weights, source_words, target_words, gold in sentences:
        found = aligned_words(weights, source_words, target_words)
        source, target = torch.tensor(gold).T
        common += (found[..., target] == source).sum(dim=-1)
        ours += (found != -1).sum(dim=-1)
        theirs += len(gold)
    return 1 - 2 * common / (ours + theirs)


def errors_mean_of_sentences(sentences):
    total = 0
    for weights, source_words, target_words, gold in sentences:
        found = aligned_words(weights, source_words, target_words)
        source, target = torch.tensor(gold).T
        common = (found[..., target] == source).sum(dim=-1)
        total = total + 1 - 2 * common / ((found >= 0).sum(dim=-1) + len(gold))
    return total / len(sentences)


def errors_counting_no_links(sentences):
    layers, heads = sentences[0][0].shape[:2]
    errors = torch.zeros(layers, heads)
    for layer in range(layers):
        for head in range(heads):
            common = ours = theirs = 0
            for weights, source_words, target_words, gold in sentences:
                row = aligned_words(weights, source_words, target_words)[layer, head].tolist()
                links = {(source, word) for word, source in enumerate(row)}
                common += len(links & {tuple(pair) for pair in gold})
                ours += len(links)
                theirs += len(gold)
            errors[layer, head] = 1 - 2 * common / (ours + theirs)
    return errors


def errors_turned(sentences):
    layers, heads = sentences[0][0].shape[:2]
    errors = torch.zeros(layers, heads)
    for layer in range(layers):
        for head in range(heads):
            common = ours = theirs = 0
            for weights, source_words, target_words, gold in sentences:
                row = aligned_words(weights, source_words, target_words)[layer, head].tolist()
                links = {(word, source) for word, source in enumerate(row) if source >= 0}
                common += len(links & {tuple(pair) for pair in gold})
                ours += len(links)
                theirs += len(gold)
            errors[layer, head] = 1 - 2 * common / (ours + theirs)
    return errors


def errors_of_precision(sentences):
    layers, heads = sentences[0][0].shape[:2]
    errors = torch.zeros(layers, heads)
    for layer in range(layers):
        for head in range(heads):
            common = ours = theirs = 0
            for weights, source_words, target_words, gold in sentences:
                row = aligned_words(weights, source_words, target_words)[layer, head].tolist()
                links = {(source, word) for word, source in enumerate(row) if source >= 0}
                common += len(links & {tuple(pair) for pair in gold})
                ours += len(links)
                theirs += len(gold)
            errors[layer, head] = 1 - common / ours
    return errors


def errors_of_recall(sentences):
    layers, heads = sentences[0][0].shape[:2]
    errors = torch.zeros(layers, heads)
    for layer in range(layers):
        for head in range(heads):
            common = ours = theirs = 0
            for weights, source_words, target_words, gold in sentences:
                row = aligned_words(weights, source_words, target_words)[layer, head].tolist()
                links = {(source, word) for word, source in enumerate(row) if source >= 0}
                common += len(links & {tuple(pair) for pair in gold})
                ours += len(links)
                theirs += len(gold)
            errors[layer, head] = 1 - common / theirs
    return errors


def errors_by_union(sentences):
    layers, heads = sentences[0][0].shape[:2]
    errors = torch.zeros(layers, heads)
    for layer in range(layers):
        for head in range(heads):
            common = ours = theirs = 0
            for weights, source_words, target_words, gold in sentences:
                row = aligned_words(weights, source_words, target_words)[layer, head].tolist()
                links = {(source, word) for word, source in enumerate(row) if source >= 0}
                common += len(links & {tuple(pair) for pair in gold})
                ours += len(links)
                theirs += len(gold)
            errors[layer, head] = 1 - common / (ours + theirs - common)
    return errors


def errors_as_scores(sentences):
    layers, heads = sentences[0][0].shape[:2]
    errors = torch.zeros(layers, heads)
    for layer in range(layers):
        for head in range(heads):
            common = ours = theirs = 0
            for weights, source_words, target_words, gold in sentences:
                row = aligned_words(weights, source_words, target_words)[layer, head].tolist()
                links = {(source, word) for word, source in enumerate(row) if source >= 0}
                common += len(links & {tuple(pair) for pair in gold})
                ours += len(links)
                theirs += len(gold)
            errors[layer, head] = 2 * common / (ours + theirs)
    return errors


# --- the head that sees an antecedent


def antecedent_by_rows(valid, test):
    def measure(sentences):
        rows, chances = [], []
        for weights, words, pronouns in sentences:
            for position, antecedent in pronouns:
                columns = [i for i, word in enumerate(words) if word == antecedent]
                for i, word in enumerate(words):
                    if word == position:
                        rows.append(weights[:, :, i, columns].sum(dim=-1))
                        chances.append(len(columns) / weights.size(-1))
        return torch.stack(rows).mean(dim=0), sum(chances) / len(chances)

    chosen, _ = measure(valid)
    table, chance = measure(test)
    layer, head = divmod(chosen.argmax().item(), chosen.size(1))
    return table, layer, head, table[layer, head].item(), chance


def antecedent_by_masks(valid, test):
    def measure(sentences):
        total, chance, count = 0.0, 0.0, 0
        for weights, words, pronouns in sentences:
            owner = torch.tensor([*words, -1])
            for position, antecedent in pronouns:
                rows, columns = owner == position, owner == antecedent
                total = total + (weights[:, :, rows] * columns).sum(dim=(-2, -1))
                chance += rows.sum().item() * columns.float().mean().item()
                count += rows.sum().item()
        return total / count, chance / count

    chosen = measure(valid)[0].flatten().argmax().item()
    table, chance = measure(test)
    layer, head = chosen // table.size(1), chosen % table.size(1)
    return table, layer, head, table[layer, head].item(), chance


def antecedent_by_loops(valid, test):
    layers, heads = valid[0][0].shape[:2]
    tables = []
    for sentences in (valid, test):
        table, chance, count = torch.zeros(layers, heads), 0.0, 0
        for weights, words, pronouns in sentences:
            for position, antecedent in pronouns:
                for i in range(len(words)):
                    if words[i] != position:
                        continue
                    count += 1
                    for j in range(len(words)):
                        if words[j] == antecedent:
                            table += weights[:, :, i, j]
                            chance += 1 / (len(words) + 1)
        tables.append((table / count, chance / count))
    best = max((tables[0][0][a, b].item(), a, b) for a in range(layers) for b in range(heads))
    table, chance = tables[1]
    return table, best[1], best[2], float(table[best[1], best[2]]), chance


def antecedent_chosen_on_test(valid, test):
    def measure(sentences):
        rows, chances = [], []
        for weights, words, pronouns in sentences:
            for position, antecedent in pronouns:
                columns = [i for i, word in enumerate(words) if word == antecedent]
                for i, word in enumerate(words):
                    if word == position:
                        rows.append(weights[:, :, i, columns].sum(dim=-1))
                        chances.append(len(columns) / weights.size(-1))
        return torch.stack(rows).mean(dim=0), sum(chances) / len(chances)

    chosen, _ = measure(test)
    table, chance = measure(test)
    layer, head = divmod(chosen.argmax().item(), chosen.size(1))
    return table, layer, head, table[layer, head].item(), chance


def antecedent_scored_on_valid(valid, test):
    def measure(sentences):
        rows, chances = [], []
        for weights, words, pronouns in sentences:
            for position, antecedent in pronouns:
                columns = [i for i, word in enumerate(words) if word == antecedent]
                for i, word in enumerate(words):
                    if word == position:
                        rows.append(weights[:, :, i, columns].sum(dim=-1))
                        chances.append(len(columns) / weights.size(-1))
        return torch.stack(rows).mean(dim=0), sum(chances) / len(chances)

    chosen, _ = measure(valid)
    table, chance = measure(valid)
    layer, head = divmod(chosen.argmax().item(), chosen.size(1))
    return table, layer, head, table[layer, head].item(), chance


def antecedent_chosen_on_both(valid, test):
    def measure(sentences):
        rows, chances = [], []
        for weights, words, pronouns in sentences:
            for position, antecedent in pronouns:
                columns = [i for i, word in enumerate(words) if word == antecedent]
                for i, word in enumerate(words):
                    if word == position:
                        rows.append(weights[:, :, i, columns].sum(dim=-1))
                        chances.append(len(columns) / weights.size(-1))
        return torch.stack(rows).mean(dim=0), sum(chances) / len(chances)

    chosen, _ = measure(valid + test)
    table, chance = measure(test)
    layer, head = divmod(chosen.argmax().item(), chosen.size(1))
    return table, layer, head, table[layer, head].item(), chance


def antecedent_mean_of_sentences(valid, test):
    def measure(sentences):
        tables, chances = [], []
        for weights, words, pronouns in sentences:
            rows, even = [], []
            for position, antecedent in pronouns:
                columns = [i for i, word in enumerate(words) if word == antecedent]
                for i, word in enumerate(words):
                    if word == position:
                        rows.append(weights[:, :, i, columns].sum(dim=-1))
                        even.append(len(columns) / weights.size(-1))
            if rows:
                tables.append(torch.stack(rows).mean(dim=0))
                chances.append(sum(even) / len(even))
        return torch.stack(tables).mean(dim=0), sum(chances) / len(chances)

    chosen, _ = measure(valid)
    table, chance = measure(test)
    layer, head = divmod(chosen.argmax().item(), chosen.size(1))
    return table, layer, head, table[layer, head].item(), chance


def antecedent_first_piece(valid, test):
    def measure(sentences):
        rows, chances = [], []
        for weights, words, pronouns in sentences:
            for position, antecedent in pronouns:
                columns = [words.index(antecedent)]
                for i, word in enumerate(words):
                    if word == position:
                        rows.append(weights[:, :, i, columns].sum(dim=-1))
                        chances.append(len(columns) / weights.size(-1))
        return torch.stack(rows).mean(dim=0), sum(chances) / len(chances)

    chosen, _ = measure(valid)
    table, chance = measure(test)
    layer, head = divmod(chosen.argmax().item(), chosen.size(1))
    return table, layer, head, table[layer, head].item(), chance


def antecedent_transposed(valid, test):
    def measure(sentences):
        rows, chances = [], []
        for weights, words, pronouns in sentences:
            for position, antecedent in pronouns:
                columns = [i for i, word in enumerate(words) if word == antecedent]
                for i, word in enumerate(words):
                    if word == position:
                        rows.append(weights[:, :, columns, i].sum(dim=-1))
                        chances.append(len(columns) / weights.size(-1))
        return torch.stack(rows).mean(dim=0), sum(chances) / len(chances)

    chosen, _ = measure(valid)
    table, chance = measure(test)
    layer, head = divmod(chosen.argmax().item(), chosen.size(1))
    return table, layer, head, table[layer, head].item(), chance


def antecedent_one_key(valid, test):
    def measure(sentences):
        rows, chances = [], []
        for weights, words, pronouns in sentences:
            for position, antecedent in pronouns:
                columns = [i for i, word in enumerate(words) if word == antecedent]
                for i, word in enumerate(words):
                    if word == position:
                        rows.append(weights[:, :, i, columns].sum(dim=-1))
                        chances.append(1 / weights.size(-1))
        return torch.stack(rows).mean(dim=0), sum(chances) / len(chances)

    chosen, _ = measure(valid)
    table, chance = measure(test)
    layer, head = divmod(chosen.argmax().item(), chosen.size(1))
    return table, layer, head, table[layer, head].item(), chance


def antecedent_divided_by_layers(valid, test):
    def measure(sentences):
        rows, chances = [], []
        for weights, words, pronouns in sentences:
            for position, antecedent in pronouns:
                columns = [i for i, word in enumerate(words) if word == antecedent]
                for i, word in enumerate(words):
                    if word == position:
                        rows.append(weights[:, :, i, columns].sum(dim=-1))
                        chances.append(len(columns) / weights.size(-1))
        return torch.stack(rows).mean(dim=0), sum(chances) / len(chances)

    chosen, _ = measure(valid)
    table, chance = measure(test)
    layer, head = divmod(chosen.argmax().item(), chosen.size(0))
    return table, layer, head, table.flatten()[chosen.argmax()].item(), chance


RIGHT = {
    "best_finished": [best_by_loop, best_by_tensor, best_by_sorting],
    "beam_step": [step_by_loops, step_by_topk, step_with_separate_ends],
    "search_table": [search_step_by_step, search_in_tensors, search_without_beam_step],
    "bleu_counts": [counts_by_counter, counts_by_crossing_out, counts_by_intersection],
    "compare_systems": [compare_by_loops, compare_vectorised, compare_by_counting_draws],
    "aligned_words": [links_by_loops, links_by_products, links_by_index_add],
    "head_errors": [errors_by_loops, errors_by_gold_tables, errors_by_comparing_pairs],
    "antecedent_head": [antecedent_by_rows, antecedent_by_masks, antecedent_by_loops],
}
PLANTED = {
    "best_finished": {
        "start-counted": best_with_start_counted,
        "end-not-counted": best_without_end_counted,
        "upside-down": best_upside_down,
        "plain-length": best_by_plain_length,
        "no-penalty": best_without_penalty,
        "not-yet-ended": best_of_all,
        "log-probability-returned": best_with_log_probability,
        "end-returned": best_with_end,
    },
    "beam_step": {
        "scores-not-added": step_without_scores,
        "ends-take-places": step_ends_taking_places,
        "all-ends": step_with_all_ends,
        "ends-go-on": step_ends_going_on,
        "one-of-each": step_one_of_each,
        "rows-and-columns": step_rows_and_columns,
        "impossible-kept": step_with_impossible,
    },
    "search_table": {
        "stops-at-the-first-end": search_first_end,
        "wrong-past": search_with_wrong_past,
        "reads-one-word": search_reading_one_word,
        "limit-one-too-many": search_one_too_long,
        "limit-one-too-few": search_one_too_short,
        "cut-off-at-the-limit": search_cut_off,
        "end-not-in-the-length": search_end_not_counted,
        "no-penalty": search_without_penalty,
        "in-order-of-ending": search_as_they_end,
        "some-thrown-away": search_throwing_some_away,
    },
    "bleu_counts": {
        "not-clipped": counts_unclipped,
        "each-counted-once": counts_of_different_grams,
        "totals-of-the-reference": counts_with_reference_totals,
        "totals-of-different-ones": counts_with_different_totals,
        "totals-below-zero": counts_below_zero,
        "lengths-exchanged": counts_with_lengths_exchanged,
        "matches-and-totals-exchanged": counts_with_totals_first,
        "matches-beside-totals": counts_alternating,
    },
    "compare_systems": {
        "mean-of-sentences": compare_sentence_means,
        "no-brevity-penalty": compare_without_brevity,
        "arithmetic-mean": compare_arithmetic,
        "drawn-twice-counted-once": compare_with_sets,
        "draws-not-used": compare_without_draws,
        "ties-are-wins": compare_with_ties,
        "losses-counted": compare_losses,
        "between-0-and-1": compare_between_0_and_1,
    },
    "aligned_words": {
        "one-row-late": links_one_row_late,
        "first-piece-only": links_of_first_pieces,
        "best-piece": links_of_best_pieces,
        "mean-of-pieces": links_of_mean_pieces,
        "end-passed-over": links_without_end,
        "end-as-a-word": links_with_end_as_word,
        "average-head": links_of_the_average,
    },
    "head_errors": {
        "mean-of-sentences": errors_mean_of_sentences,
        "no-link-counted": errors_counting_no_links,
        "turned": errors_turned,
        "precision-only": errors_of_precision,
        "recall-only": errors_of_recall,
        "union": errors_by_union,
        "score-not-error": errors_as_scores,
    },
    "antecedent_head": {
        "chosen-on-test": antecedent_chosen_on_test,
        "scored-on-valid": antecedent_scored_on_valid,
        "chosen-on-both": antecedent_chosen_on_both,
        "mean-of-sentences": antecedent_mean_of_sentences,
        "first-piece-only": antecedent_first_piece,
        "transposed": antecedent_transposed,
        "one-key-by-chance": antecedent_one_key,
        "divided-by-layers": antecedent_divided_by_layers,
    },
}
