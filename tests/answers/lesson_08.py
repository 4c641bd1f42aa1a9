"""Right and wrong answers to the exercises of lesson 08."""

import itertools
import math

import torch

# --- wrong answers


def greedy(read=lambda ids: ids, cut=slice(1, -1), room=1, combine=lambda total, one: total + one, late_end=True):
    """Step by step with a for loop; each argument changes one thing."""

    def greedy_search(model, start, end, limit):
        ids, total = [start], 0.0
        for _ in itertools.count():
            scores = model(read(ids))
            if len(ids) - room == limit:
                token = end
                if late_end is None:
                    return ids[1:], total
            else:
                token = max(range(len(scores)), key=lambda i: scores[i].item())
            if token != end or late_end is not False:
                total = combine(total, scores[token].item())
            ids.append(token)
            if token == end:
                return ids[cut], total
        return None

    return greedy_search


def ranked(score, reverse=True):
    def rerank(log_probabilities, lengths, alpha):
        keys = [score(p, n, alpha) for p, n in zip(log_probabilities, lengths, strict=True)]
        return torch.tensor(keys, dtype=torch.double).argsort(descending=reverse).tolist()

    return rerank


def penalty(n, alpha):
    return math.pow((5 + n) / 6, alpha)


def ranks(log_probabilities, lengths, alpha):
    order = torch.tensor(ranked(lambda p, n, a: p / penalty(n, a))(log_probabilities, lengths, alpha))
    return order.argsort().tolist()


def beam(remember="all", places="others", per="all", width=None, add=True, end_counts=True, mean=False):
    """A beam written out once more, with switches for what goes wrong."""

    def value(entry):
        return entry[0] / (len(entry[1]) - 1) if mean else entry[0]

    def beam_best(model, start, end, limit, beam):
        keep = beam if width is None else width
        live, done = [(0.0, (start,))], []
        for step in range(limit + 1):
            grown = []
            for total, ids in live:
                for token, one in enumerate(model(list(ids)).tolist()):
                    if step == limit and token != end:
                        continue
                    one = 0.0 if token == end and not end_counts else one
                    grown.append(((total if add else 0.0) + one, (*ids, token)))
            grown.sort(key=value, reverse=True)
            if places == "shared":
                grown = grown[:keep]
            ending = [entry for entry in grown if entry[1][-1] == end]
            others = [entry for entry in grown if entry[1][-1] != end]
            if per == "one" and step:
                others = [max((e for e in others if e[1][:-1] == ids), key=value) for _, ids in live if step < limit]
                others.sort(key=value, reverse=True)
            live = others[:keep]
            if remember == "all":
                done += ending
            elif ending:
                done = ending
                if remember == "first":
                    break
        total, ids = max(done, key=value)
        return list(ids[1:-1]), total

    return beam_best


def cached(order_k=True, order_v=True, late=False, front=False, scaled=True, sees_itself=True, invert=False):
    def cached_step(x, rows, key, value, w_q, w_k, w_v):
        if invert:
            rows = torch.sort(rows).indices
        new_k, new_v = torch.einsum("kd,de->ke", x, w_k).unsqueeze(1), torch.einsum("kd,de->ke", x, w_v).unsqueeze(1)
        stay = torch.arange(x.shape[0])
        past_k, past_v = key[rows if order_k else stay], value[rows if order_v else stay]
        both = [(new_k, past_k), (new_v, past_v)] if front else [(past_k, new_k), (past_v, new_v)]
        keys, values = (torch.cat(pair, 1) for pair in both)
        if late:
            keys, values = keys.index_select(0, rows), values.index_select(0, rows)
        outputs = []
        for query, some_keys, some_values in zip(x @ w_q, keys, values, strict=True):
            scores = some_keys @ query / (math.sqrt(len(query)) if scaled else 1)
            weights = torch.softmax(scores if sees_itself else scores[:-1], 0)
            outputs.append(weights @ (some_values if sees_itself else some_values[:-1]))
        return torch.stack(outputs), keys, values

    return cached_step


def counted(words, n):
    found = {}
    for i in range(len(words) - n + 1):
        gram = " ".join(words[i : i + n])
        found[gram] = found.get(gram, 0) + 1
    return found


def bleu(most=max, closest=None, brevity=None, mean=None, longest=4, factor=100, only_first=False):
    brevity = brevity or (lambda c, r: 1 if c > r else math.exp(1 - r / c))
    mean = mean or (lambda p: math.prod(p) ** 0.25)
    closest = closest or (lambda c, sizes: sorted(sizes, key=lambda r: (abs(r - c), r))[0])

    def bleu_of(hypotheses, references):
        precisions = []
        for n in range(1, longest + 1):
            hits = every = 0
            for words, others in zip(hypotheses, references, strict=True):
                tables = [counted(other, n) for other in (others[:1] if only_first else others)]
                for gram, count in counted(words, n).items():
                    hits += min(count, most([table.get(gram, 0) for table in tables]))
                    every += count
            precisions.append(hits / every if every else 0.0)
        c = sum(map(len, hypotheses))
        r = sum(closest(len(words), [len(o) for o in (others[:1] if only_first else others)])
                for words, others in zip(hypotheses, references, strict=True))  # fmt: skip
        return factor * brevity(c, r) * mean(precisions)

    return bleu_of


def sentence_by_sentence(hypotheses, references):
    scores = [bleu()([words], [others]) for words, others in zip(hypotheses, references, strict=True)]
    return sum(scores) / len(scores)


def merge(step, finish=lambda total, count: total, convert=lambda tensor: tensor.float()):
    """Checkpoint after checkpoint: ``step`` brings in one more, ``finish`` comes last."""

    def average(checkpoints):
        result = {}
        for name, tensor in checkpoints[0].items():
            total = convert(tensor).clone()
            for other in checkpoints[1:]:
                total = step(total, convert(other[name]))
            result[name] = finish(total, len(checkpoints))
        return result

    return average


def add(total, one):
    return total + one


PLANTED = {
    "greedy_search": {
        "end-returned": greedy(cut=slice(1, None)),
        "start-returned": greedy(cut=slice(0, -1)),
        "both-returned": greedy(cut=slice(None)),
        "end-not-counted": greedy(late_end=False),
        "probabilities-added": greedy(combine=lambda total, one: total + math.exp(one)),
        "reads-the-start-only": greedy(read=lambda ids: [ids[0]]),
        "reads-the-last-only": greedy(read=lambda ids: [ids[-1]]),
        "start-not-read": greedy(read=lambda ids: ids[1:]),
        "one-token-short": greedy(room=0),
        "one-token-long": greedy(room=2),
        "cut-off-at-the-limit": greedy(late_end=None),
    },
    "rerank": {
        "upside-down": ranked(lambda p, n, a: p * penalty(n, a)),
        "worst-first": ranked(lambda p, n, a: p / penalty(n, a), reverse=False),
        "no-penalty": ranked(lambda p, n, a: p),
        "plain-length": ranked(lambda p, n, a: p / math.pow(n, a)),
        "alpha-as-factor": ranked(lambda p, n, a: p / (1 + a * (n + 5) / 6)),
        "mean": ranked(lambda p, n, a: p / n),
        "ranks-returned": ranks,
        "scores-returned": lambda ps, ns, a: [p / penalty(n, a) for p, n in zip(ps, ns, strict=True)],
    },
    "beam_best": {
        "forgets-finished": beam(remember="last"),
        "first-finished": beam(remember="first"),
        "finished-take-places": beam(places="shared"),
        "one-of-each": beam(per="one"),
        "greedy": lambda model, start, end, limit, beam: greedy()(model, start, end, limit),
        "beam-ignored": beam(width=100_000),
        "scores-not-added": beam(add=False),
        "end-not-counted": beam(end_counts=False),
        "mean": beam(mean=True),
    },
    "cached_step": {
        "not-reordered": cached(order_k=False, order_v=False),
        "keys-not-reordered": cached(order_k=False),
        "values-not-reordered": cached(order_v=False),
        "reordered-too-late": cached(order_k=False, order_v=False, late=True),
        "order-inverted": cached(invert=True),
        "new-position-in-front": cached(front=True),
        "no-scale": cached(scaled=False),
        "blind-to-itself": cached(sees_itself=False),
    },
    "bleu_of": {
        "no-brevity-penalty": bleu(brevity=lambda c, r: 1),
        "brevity-upside-down": bleu(brevity=lambda c, r: 1 if c < r else math.exp(1 - c / r)),
        "brevity-without-exponential": bleu(brevity=lambda c, r: 1 if c > r else c / r),
        "longer-rewarded": bleu(brevity=lambda c, r: math.exp(1 - r / c)),
        "not-clipped": bleu(most=lambda counts: math.inf if any(counts) else 0),
        "clipped-by-the-sum": bleu(most=sum),
        "first-reference-only": bleu(only_first=True),
        "mean-of-sentences": sentence_by_sentence,
        "arithmetic-mean": bleu(mean=lambda p: sum(p) / 4),
        "product": bleu(mean=math.prod),
        "words-only": bleu(longest=1, mean=lambda p: p[0]),
        "shortest-reference": bleu(closest=lambda c, sizes: min(sizes)),
        "longest-reference": bleu(closest=lambda c, sizes: max(sizes)),
        "references-added-up": bleu(closest=lambda c, sizes: sum(sizes)),
        "between-0-and-1": bleu(factor=1),
    },
    "average": {
        "sum": merge(add),
        "pairwise": merge(lambda total, one: (total + one) / 2),
        "last-only": merge(lambda total, one: one),
        "first-only": merge(lambda total, one: total),
        "half-precision-sum": merge(add, lambda total, count: total / count, convert=lambda tensor: tensor),
        "one-number": merge(add, lambda total, count: (total / count).mean()),
        "half-precision-mean": lambda all_: {
            name: torch.mean(torch.stack([one[name] for one in all_]), dim=0).to(torch.float32) for name in all_[0]
        },
    },
}


# --- right answers


def greedy_by_recursion(model, start, end, limit, so_far=()):
    scores = model([start, *so_far])
    token = end if len(so_far) == limit else int(torch.argmax(scores))
    if token == end:
        return list(so_far), scores[end]
    ids, rest = greedy_by_recursion(model, start, end, limit, (*so_far, token))
    return ids, scores[token] + rest


def rerank_with_tensors(log_probabilities, lengths, alpha):
    scores = torch.tensor(log_probabilities) * (6 / (5 + torch.tensor(lengths))) ** alpha
    return scores.argsort(descending=True)


def beam_with_tensors(model, start, end, limit, beam):
    ids, totals = [[start]], torch.zeros(1, dtype=torch.double)
    best = ([], -math.inf)
    for step in range(limit + 1):
        table = totals[:, None] + torch.stack([model(one) for one in ids])  # (K, V)
        place = int(table[:, end].argmax())
        if table[place, end] > best[1]:
            best = (ids[place][1:], table[place, end].item())
        if step == limit:
            break
        table[:, end] = -math.inf
        totals, places = table.flatten().topk(min(beam, table.numel()))
        width = table.shape[1]
        ids = [[*ids[place // width], place % width] for place in places.tolist()]
    return best


def cached_with_fused_attention(x, rows, key, value, w_q, w_k, w_v):
    keys = torch.cat((key.index_select(0, rows), torch.unsqueeze(x @ w_k, 1)), 1)
    values = torch.cat((value.index_select(0, rows), torch.unsqueeze(x @ w_v, 1)), 1)
    output = torch.nn.functional.scaled_dot_product_attention((x @ w_q).unsqueeze(1), keys, values)
    return [output.squeeze(1), keys, values]


def bleu_by_sacrebleu(hypotheses, references):
    from sacrebleu.metrics import BLEU

    most = max(map(len, references))
    streams = [[" ".join(o[i]) if i < len(o) else None for o in references] for i in range(most)]
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    return metric.corpus_score([" ".join(words) for words in hypotheses], streams).score


RIGHT = {
    "greedy_search": [greedy(), greedy_by_recursion],
    "rerank": [ranked(lambda p, n, a: p / penalty(n, a)), rerank_with_tensors],
    "beam_best": [beam(), beam_with_tensors],
    "cached_step": [cached(), cached_with_fused_attention],
    "bleu_of": [bleu(), bleu_by_sacrebleu],
    "average": [
        merge(add, lambda total, count: total / count),
        lambda checkpoints: {
            name: sum(one[name].double() / len(checkpoints) for one in checkpoints) for name in checkpoints[0]
        },
    ],
}
