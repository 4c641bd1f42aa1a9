"""Right and wrong answers to the exercises of lesson 04."""

import math

import torch

# --- wrong answers


def by_loop(scale=lambda x, q: math.sqrt(q.shape[-1]), axis=-1, pick=lambda i: i, roles="qkv", join=None, project=True):
    def multi_head_by_loop(x, w_q, w_k, w_v, w_o):
        matrix = {"q": w_q, "k": w_k, "v": w_v}
        results = []
        for i in range(w_q.shape[0]):
            query, key, value = (x @ matrix[role][pick(i)] for role in roles)
            scores = query @ key.transpose(1, 2) / scale(x, query)
            results.append(torch.softmax(scores, dim=axis) @ value)
        joined = join(results, x) if join else torch.cat(results, dim=-1)
        return joined @ w_o if project else joined

    return multi_head_by_loop


def one_pattern(x, w_q, w_k, w_v, w_o):
    patterns = []
    for a, b in zip(w_q, w_k, strict=True):
        patterns.append(torch.softmax((x @ a) @ (x @ b).transpose(1, 2) / math.sqrt(a.shape[1]), -1))
    pattern = sum(patterns) / len(patterns)
    return torch.cat([pattern @ (x @ w) for w in w_v], dim=-1) @ w_o


def in_a_row(results, x):
    return torch.stack(results, dim=1).reshape(x.shape[0], x.shape[1], -1)


def alternating(results, x):
    return torch.stack(results, dim=-1).flatten(-2)


def below(x, *matrices):
    apart = by_loop(project=False, join=lambda results, x: torch.cat(results, dim=1))
    return apart(x, *matrices)


def thirds(packed):
    width = packed.shape[-1] // 3
    return [packed[..., i * width : (i + 1) * width] for i in range(3)]


def unpack(split, cut=thirds, order=(0, 1, 2)):
    def unpack_heads(packed, num_heads):
        parts = [split(part, num_heads) for part in cut(packed)]
        return [parts[i] for i in order]

    return unpack_heads


def by_slices(part, num_heads):
    size = part.shape[-1] // num_heads
    return torch.stack([part[..., i * size : (i + 1) * size] for i in range(num_heads)], dim=1)


def head_after_head(packed, num_heads):
    size = packed.shape[-1] // (3 * num_heads)
    pieces = packed.split(size, dim=-1)
    return tuple(torch.stack(pieces[role::3], dim=1) for role in range(3))


def parts(rows=lambda i, h, d: range(i * d, (i + 1) * d), finish=lambda found: torch.stack(found, dim=1)):
    def head_parts(heads, w_o):
        count, size = heads.shape[1], heads.shape[3]
        return finish([heads[:, i] @ w_o[list(rows(i, count, size))] for i in range(count)])

    return head_parts


def entropy(weights, log=torch.log):
    return -(weights * log(weights.clamp(min=1e-30))).sum(-1)


def gap(first, second):
    return lambda weights: first(weights) - second(weights)


def of_average(weights):
    return entropy(weights.mean(1))


def of_heads(weights):
    return entropy(weights).mean(1)


def tagged(batch, heads, words, size):
    """Each number is its sentence and its word, as ten times the one plus the other."""
    table = torch.zeros(batch, heads, words, size)
    for b in range(batch):
        for t in range(words):
            table[b, :, t] = 10 * b + t
    return table


def inspect(batch=2, heads=3, words=5, size=4, columns=slice(None)):
    def keeps_words_apart(merge):
        merged = merge(tagged(batch, heads, words, size))
        for b in range(batch):
            for t in range(words):
                if not bool((merged[b, t, columns] == 10 * b + t).all()):
                    return False
        return True

    return keeps_words_apart


def compare_with_ours(merge):
    heads = torch.arange(2 * 3 * 5 * 4.0).reshape(2, 3, 5, 4)
    ours = torch.cat([heads[:, i] for i in range(3)], dim=-1)
    return merge(heads).equal(ours)


def sentences_only(merge):
    marks = torch.zeros(2, 3, 5, 4)
    marks[1] = 1
    return bool((merge(marks)[0] == 0).all()) and bool((merge(marks)[1] == 1).all())


def same_set_of_numbers(merge):
    heads = torch.arange(2.0 * 3 * 5 * 4).view(2, 3, 5, 4)
    merged = merge(heads)
    rows = [(merged[b, t], heads[b, :, t]) for b in range(2) for t in range(5)]
    return all(set(row.tolist()) == set(word.flatten().tolist()) for row, word in rows)


PLANTED = {
    "multi_head_by_loop": {
        "no-scale": by_loop(scale=lambda x, q: 1.0),
        "scale-d_model": by_loop(scale=lambda x, q: math.sqrt(x.shape[-1])),
        "scale-d_k": by_loop(scale=lambda x, q: q.shape[-1]),
        "scale-d_v": lambda x, q, k, v, o: by_loop(scale=lambda x, query: math.sqrt(v.shape[2]))(x, q, k, v, o),
        "wrong-axis": by_loop(axis=1),
        "without-w_o": by_loop(project=False),
        "not-side-by-side": by_loop(join=in_a_row),
        "below-each-other": below,
        "features-interleaved": by_loop(join=alternating),
        "one-pattern-for-all": one_pattern,
        "first-head-only": by_loop(pick=lambda i: 0),
        "queries-and-keys-swapped": by_loop(roles="kqv"),
    },
    "unpack_heads": {
        "no-transpose": unpack(lambda part, h: part.reshape(part.shape[0], h, part.shape[1], part.shape[2] // h)),
        "words-first": unpack(lambda part, h: part.reshape(*part.shape[:2], h, part.shape[2] // h)),
        "head-first": head_after_head,
        "features-interleaved": unpack(lambda part, h: torch.stack([part[..., i::h] for i in range(h)], dim=1)),
        "three-interleaved": unpack(by_slices, cut=lambda packed: [packed[..., i::3] for i in range(3)]),
        "wrong-order": unpack(by_slices, order=(1, 0, 2)),
    },
    "head_parts": {
        "summed": parts(finish=sum),
        "averaged": parts(finish=lambda found: sum(found) / len(found)),
        "every-other-row": parts(rows=lambda i, h, d: range(i, h * d, h)),
        "first-stretch-for-all": parts(rows=lambda i, h, d: range(d)),
        "words-first": parts(finish=lambda found: torch.stack(found, dim=2)),
        "heads-backwards": parts(rows=lambda i, h, d: range((h - 1 - i) * d, (h - i) * d)),
    },
    "multiplications": {
        "heads-times-scores": lambda n, d, h: 4 * n * d**2 + h * (2 * n**2 * d),
        "heads-times-everything": lambda n, d, h: h * (4 * n * d**2 + 2 * n**2 * d),
        "without-w_o": lambda n, d, h: 3 * n * d**2 + 2 * h * n**2 * (d // h),
        "without-mixtures": lambda n, d, h: 4 * n * d**2 + h * n**2 * (d // h),
        "without-projections": lambda n, d, h: 2 * h * n**2 * (d // h),
        "without-w_o-and-mixtures": lambda n, d, h: 3 * n * d**2 + n**2 * d,
        "one-head-only": lambda n, d, h: 4 * n * d**2 + 2 * n**2 * d // h,
        "small-projections": lambda n, d, h: 4 * n * d * d // h + 2 * n**2 * d,
        "one-word-projected": lambda n, d, h: 4 * d**2 + 2 * h * n**2 * (d // h),
        "d-squared-scores": lambda n, d, h: 4 * n * d**2 + 2 * n * d**2,
        "additions-too": lambda n, d, h: 8 * n * d**2 + 4 * n**2 * d,
    },
    "disagreement": {
        "sign": gap(of_heads, of_average),
        "zero-weight": lambda weights: (
            (weights * weights.log()).sum(-1).mean(1) - (weights.mean(1) * weights.mean(1).log()).sum(-1)
        ),
        "of-the-average-only": of_average,
        "of-the-heads-only": of_heads,
        "base-two": lambda weights: entropy(weights.mean(1), torch.log2) - entropy(weights, torch.log2).mean(1),
        "summed-over-heads": gap(of_average, lambda weights: entropy(weights).sum(1)),
        "mean-over-keys": lambda weights: (of_average(weights) - of_heads(weights)) / weights.shape[-1],
        "one-number-for-all": lambda weights: (of_average(weights) - of_heads(weights)).mean(),
        "not-averaged": lambda weights: of_average(weights)[:, None] - entropy(weights),
    },
    "keeps_words_apart": {
        "always-true": lambda merge: merge(torch.randn(2, 3, 5, 4)).shape == (2, 5, 12),
        "one-sentence": inspect(batch=1),
        "order-counts": compare_with_ours,
        "inverted": lambda merge: not inspect()(merge),
        "first-feature-only": inspect(columns=slice(0, 1)),
        "accepts-a-wrong-merge": sentences_only,
        "rejects-a-right-merge": same_set_of_numbers,
        "always-false": lambda merge: torch.equal(merge(tagged(2, 3, 5, 4)), tagged(2, 3, 5, 4)),
    },
}


# --- right answers


def loop_with_lists(x, w_q, w_k, w_v, w_o):
    heads = []
    for q, k, v in zip(w_q, w_k, w_v, strict=True):
        heads.append(torch.nn.functional.scaled_dot_product_attention(x @ q, x @ k, x @ v))
    return torch.cat(heads, dim=2) @ w_o


def loop_as_a_sum(x, w_q, w_k, w_v, w_o):
    total = torch.zeros_like(x)
    for i, rows in enumerate(w_o.split(w_v.shape[-1])):
        weights = torch.softmax((x @ w_q[i]) @ (x @ w_k[i]).mT / w_q.shape[-1] ** 0.5, dim=-1)
        total = total + weights @ x @ w_v[i] @ rows
    return total


def unpack_in_one(packed, num_heads):
    batch, length, width = packed.shape
    return tuple(packed.view(batch, length, 3, num_heads, width // 3 // num_heads).permute(2, 0, 3, 1, 4))


def parts_by_silence(heads, w_o):
    found = []
    for i in range(heads.size(1)):
        alone = torch.zeros_like(heads)
        alone[:, i] = heads[:, i]
        found.append(alone.transpose(1, 2).flatten(2) @ w_o)
    return torch.stack(found, 1)


def cost_in_steps(n, d_model, num_heads):
    size = d_model // num_heads
    total = 4 * n * d_model * d_model
    for _ in range(num_heads):
        total += n * size * n
        total += n * n * size
    return total


def apart_by_sets(merge):
    merged = merge(tagged(3, 2, 7, 5))
    return all(set(merged[b, t].tolist()) == {10.0 * b + t} for b in range(3) for t in range(7))


def apart_by_change(merge):
    heads = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(1))
    before = merge(heads)
    for b in range(2):
        for t in range(5):
            changed = heads.clone()
            changed[b, :, t] += 1
            moved = merge(changed) != before
            moved[b, t] = False
            if moved.any():
                return False
    return True


RIGHT = {
    "multi_head_by_loop": [loop_with_lists, loop_as_a_sum],
    "unpack_heads": [unpack_in_one, unpack(by_slices)],
    "head_parts": [parts(), parts_by_silence],
    "multiplications": [cost_in_steps, lambda n, d, h: 2 * n * d * (2 * d + n)],
    "disagreement": [
        gap(of_average, of_heads),
        lambda w: torch.xlogy(w, w).sum(-1).mean(1) - torch.xlogy(w.mean(1), w.mean(1)).sum(-1),
    ],
    "keeps_words_apart": [apart_by_sets, apart_by_change],
}
