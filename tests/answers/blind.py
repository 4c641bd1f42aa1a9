# ruff: noqa: N806, B023
"""Answers written from the texts of the exercises alone, by somebody who had not seen the checks.

Nine of the forty wrong ones passed at first; the checks have learned since. The right ones all passed.
"""

import itertools
import math
from collections import Counter

import torch

# --- wrong


def attend_by_hand_wrong_1(query, keys, values):
    scale = math.sqrt(len(values[0]))
    scores = [sum(a * b for a, b in zip(query, key, strict=False)) / scale for key in keys]
    exps = [math.exp(s) for s in scores]
    weights = [e / sum(exps) for e in exps]
    return [sum(w * value[j] for w, value in zip(weights, values, strict=False)) for j in range(len(values[0]))]


def my_softmax_wrong_2(scores):
    e = torch.exp(scores - scores.max())
    return e / e.sum(dim=-1, keepdim=True)


def self_attention_wrong_3(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.transpose(-2, -1) / math.sqrt(w_k.shape[1])
    return torch.softmax(scores, dim=1) @ v


def entropy_wrong_4(weights):
    h = -(weights * weights.log()).sum(dim=-1)
    return torch.nan_to_num(h, nan=0.0)


def additive_attention_wrong_5(query, key, value, w_query, w_key, v):
    q = torch.tanh(query @ w_query).unsqueeze(-2)
    k = torch.tanh(key @ w_key).unsqueeze(-3)
    scores = (q + k) @ v
    return torch.softmax(scores, dim=-1) @ value


def softmax_jacobian_wrong_6(weights):
    return torch.autograd.functional.jacobian(lambda s: torch.softmax(s, dim=-1), weights)


def chunk_mask_wrong_7(length, offset):
    total = offset + length
    causal = torch.ones(total, total, dtype=torch.bool).tril()
    return causal[:length]


def translation_masks_wrong_8(source, target, pad_id):
    s, t = source != pad_id, target != pad_id
    n = target.size(1)
    causal = torch.ones(n, n, dtype=torch.bool, device=target.device).tril()
    encoder = s[:, None, None, :]
    decoder = t[:, None, None, :] & causal
    cross = t[:, None, :, None] & s[:, None, None, :]
    return encoder, decoder, cross


def masked_softmax_wrong_9(scores, mask):
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True)) * mask
    total = e.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, e / total, torch.zeros_like(e))


def reach_after_wrong_10(mask, layers):
    step = mask.float()
    reach = mask.clone()
    for _ in range(layers - 1):
        reach = reach | ((reach.float() @ step) > 0)
    return reach


def influence_wrong_11(model, ids, replacement):
    before = model(ids).sum(dim=-1)
    table = torch.zeros(len(ids), len(ids), dtype=torch.bool)
    for j in range(len(ids)):
        changed = ids.clone()
        changed[j] = replacement
        table[:, j] = ~torch.isclose(model(changed).sum(dim=-1), before)
    return table


def multi_head_by_loop_wrong_12(x, w_q, w_k, w_v, w_o):
    heads = w_q.size(0)
    d_k = x.size(-1) // heads
    results = []
    for i in range(heads):
        q, k, v = x @ w_q[i], x @ w_k[i], x @ w_v[i]
        weights = torch.softmax(q @ k.transpose(1, 2) / d_k**0.5, dim=-1)
        results.append(weights @ v)
    return torch.cat(results, dim=-1) @ w_o


def head_parts_wrong_13(heads, w_o):
    number = heads.size(1)
    return torch.stack([heads[:, i] @ w_o[i::number] for i in range(number)], dim=1)


def disagreement_wrong_14(weights):
    def h(w):
        return -(w * w.clamp(min=1e-12).log2()).sum(dim=-1)

    return h(weights.mean(dim=1)) - h(weights).mean(dim=1)


def keeps_words_apart_wrong_15(merge):
    H, T, d = 2, 5, 3
    heads = torch.arange(T).float()[None, None, :, None].expand(1, H, T, d).contiguous()
    merged = merge(heads)
    return all((merged[0, t] == t).all() for t in range(T))


def keeps_words_apart_wrong_16(merge):
    B, H, T, d = 2, 3, 5, 4
    heads = torch.arange(B * H * T * d).float().view(B, H, T, d)
    expected = heads.transpose(1, 2).reshape(B, T, H * d)
    merged = merge(heads)
    return merged.shape == expected.shape and torch.equal(merged, expected)


def rerank_wrong_17(log_probabilities, lengths, alpha):
    scores = []
    for total, length in zip(log_probabilities, lengths, strict=False):
        tokens = length + 1  # and the end token
        scores.append(total / ((5 + tokens) / 6) ** alpha)
    return sorted(range(len(scores)), key=lambda i: scores[i], reverse=True)


def shift_matrix_wrong_18(k, d_model):
    M = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        a = k / 10000 ** (2 * i / d_model)
        M[2 * i, 2 * i] = math.cos(a)
        M[2 * i, 2 * i + 1] = -math.sin(a)
        M[2 * i + 1, 2 * i] = math.sin(a)
        M[2 * i + 1, 2 * i + 1] = math.cos(a)
    return M


def rotate_wrong_19(heads, offset):
    T, d = heads.shape[-2:]
    positions = torch.arange(offset, offset + T).float()
    angles = positions[:, None] / 10000 ** (torch.arange(0, d, 2).float() / d)
    out = heads.clone()
    even, odd = out[..., 0::2], out[..., 1::2]
    out[..., 0::2] = even * angles.cos() - odd * angles.sin()
    out[..., 1::2] = even * angles.sin() + odd * angles.cos()
    return out


def order_blind_wrong_20(model, ids):
    moved = model(ids.roll(1))
    return torch.allclose(moved, model(ids).roll(1, dims=0), atol=1e-5)


def bootstrap_wins_wrong_21(ours, theirs, draws, metric):
    wins = 0
    for draw in draws:
        if metric(ours[draw].sum(dim=0)) >= metric(theirs[draw].sum(dim=0)):
            wins += 1
    return wins / len(draws)


def safe_layer_norm_wrong_22(x, gain, shift, eps):
    y = x.float()
    centred = y - y.mean(dim=-1, keepdim=True)
    variance = (centred**2).mean(dim=-1, keepdim=True)
    normed = (centred / torch.sqrt(variance + eps)).to(x.dtype)
    return normed * gain + shift


def silenced_output_wrong_23(heads, w_o, silent):
    heads[:, silent] = 0
    B, H, T, d = heads.shape
    return heads.transpose(1, 2).reshape(B, T, H * d) @ w_o


def decoder_block_wrong_24(x, memory, self_attend, cross_attend, feed_forward, norms):
    a = norms[0](x + self_attend(x))
    b = norms[1](x + cross_attend(a, memory))
    return norms[2](b + feed_forward(b))


def count_parameters_wrong_25(vocab_size, d_model, heads, d_k, d_v, d_ff, layers, tied):
    qk = 2 * (d_model * heads * d_k + heads * d_k)
    vo = 2 * (d_model * heads * d_v + heads * d_v)
    attention = qk + vo
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder = attention + network + 2 * norm
    decoder = 2 * attention + network + 3 * norm
    return (1 if tied else 3) * vocab_size * d_model + layers * (encoder + decoder)


def gradient_norms_wrong_26(layers, x, direction):
    x.requires_grad_(True)
    places = [x]
    for layer in layers:
        out = layer(places[-1])
        out.retain_grad()
        places.append(out)
    (direction * places[-1]).sum().backward()
    return torch.stack([p.grad.norm() for p in places])


def teacher_pairs_wrong_27(sentences, start, end, pad_id):
    longest = max(len(s) for s in sentences)
    full = torch.full((len(sentences), longest + 2), pad_id)
    for i, s in enumerate(sentences):
        full[i, : len(s) + 2] = torch.tensor([start, *s, end])
    return full[:, :-1], full[:, 1:]


def cut_batches_wrong_28(lengths, budget):
    batches, current, longest = [], [], 0
    for i, n in enumerate(lengths):
        longest = max(longest, n)
        if current and (len(current) + 1) * longest > budget:
            batches.append(current)
            current = []
        current.append(i)
    if current:
        batches.append(current)
    return batches


def my_dropout_wrong_29(x, p, u, training):
    if not training:
        return x
    keep = (u > p).to(x.dtype)
    return x * keep / (1 - p)


def thrifty_loss_wrong_30(logits, targets, smoothing, pad_id):
    logp = torch.log(torch.softmax(logits, dim=-1) + 1e-9)
    right = -logp.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    everything = -logp.mean(dim=-1)
    losses = (1 - smoothing) * right + smoothing * everything
    return losses[targets != pad_id].mean()


def greedy_search_wrong_31(next_log_probabilities, start, end, limit):
    ids, total = [], 0.0
    for _ in range(limit):
        lp = next_log_probabilities([start, *ids])
        token = int(lp.argmax())
        total += float(lp[token])
        if token == end:
            break
        ids.append(token)
    return ids, total


def beam_best_wrong_32(next_log_probabilities, start, end, limit, beam):
    running, ended = [([start], 0.0)], []
    while running:
        candidates = []
        for ids, total in running:
            lp = next_log_probabilities(ids)
            tokens = [end] if len(ids) > limit else range(len(lp))
            candidates += [([*ids, t], total + float(lp[t])) for t in tokens]
        candidates.sort(key=lambda c: -c[1])
        candidates = candidates[:beam]
        ended += [c for c in candidates if c[0][-1] == end]
        running = [c for c in candidates if c[0][-1] != end]
    ids, total = max(ended, key=lambda c: c[1])
    return ids[1:-1], total


def cached_step_wrong_33(x, rows, key, value, w_q, w_k, w_v):
    x, key, value = x[rows], key[rows], value[rows]
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    key = torch.cat([key, k[:, None]], dim=1)
    value = torch.cat([value, v[:, None]], dim=1)
    scores = (key @ q[:, :, None]).squeeze(-1) / math.sqrt(q.size(-1))
    weights = scores.softmax(-1)
    return (weights[:, None] @ value).squeeze(1), key, value


def bleu_of_wrong_34(hypotheses, references):
    right, total, c, r = [0] * 4, [0] * 4, 0, 0
    for hyp, refs in zip(hypotheses, references, strict=False):
        c += len(hyp)
        r += len(min(refs, key=lambda ref: abs(len(ref) - len(hyp))))
        for n in range(1, 5):

            def grams(words):
                return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

            best = Counter()
            for ref in refs:
                best |= grams(ref)
            ours = grams(hyp)
            right[n - 1] += sum((ours & best).values())
            total[n - 1] += sum(ours.values())
    if min(right) == 0:
        return 0.0
    bp = 1.0 if c >= r else math.exp(1 - r / c)
    return 100 * bp * math.exp(sum(math.log(a / b) for a, b in zip(right, total, strict=False)) / 4)


def average_wrong_35(checkpoints):
    mean = {name: w.float() for name, w in checkpoints[0].items()}
    for checkpoint in checkpoints[1:]:
        for name, w in checkpoint.items():
            mean[name] = (mean[name] + w.float()) / 2
    return mean


def word_links_wrong_36(weights, source_words, target_words):
    links = set()
    for word in set(target_words):
        rows = [r for r, w in enumerate(target_words) if w == word]
        total = weights[rows].sum(dim=0)
        best, best_weight = None, total[-1].item()
        for s in set(source_words):
            columns = [i for i, w in enumerate(source_words) if w == s]
            weight = total[columns].mean().item()
            if weight > best_weight:
                best, best_weight = s, weight
        if best is not None:
            links.add((best, word))
    return links


def choose_and_score_wrong_37(valid, test):
    on_valid, on_test = valid.nanmean(dim=0), test.nanmean(dim=0)
    layer, head = divmod(on_valid.argmax().item(), on_valid.size(0))
    best = on_test.flatten()[on_valid.argmax()]
    others = (on_test.sum() - best) / (on_test.numel() - 1)
    return layer, head, best.item(), others.item()


def merge_pair_wrong_38(parts, pair):
    return " ".join(parts).replace(" ".join(pair), "".join(pair)).split(" ")


def learn_bpe_wrong_39(words, merges):
    table = [(["▁", *word], count) for word, count in words.items()]
    learned = []
    for _ in range(merges):
        counts = Counter()
        for parts, count in table:
            for pair in itertools.pairwise(parts):
                counts[pair] += count
        if not counts:
            break
        pair = min(counts, key=lambda p: (-counts[p], p[0] + p[1]))
        learned.append("".join(pair))
        table = [(_merge(parts, pair), count) for parts, count in table]
    return learned


def _merge(parts, pair):
    out, i = [], 0
    while i < len(parts):
        if tuple(parts[i : i + 2]) == tuple(pair):
            out.append(parts[i] + parts[i + 1])
            i += 2
        else:
            out.append(parts[i])
            i += 1
    return out


def clean_pairs_wrong_40(pairs, longest, ratio):
    kept, seen = [], set()
    for source, target in pairs:
        a, b = len(source.split()), len(target.split())
        if a == 0 or b == 0 or max(a, b) > longest:
            continue
        if max(a, b) / min(a, b) < ratio and (source, target) not in seen:
            seen.add((source, target))
            kept.append((source, target))
    return kept


# --- right


def my_softmax_right(scores):
    flat = scores.reshape(-1, scores.shape[-1])
    rows = [torch.exp(row - row.max()) for row in flat]
    return torch.stack([row / row.sum() for row in rows]).reshape(scores.shape)


def self_attention_right(x, w_q, w_k, w_v):
    inner = torch.einsum("ab,cb->ac", w_q, w_k)  # scores without making q and k
    scores = torch.einsum("...id,de,...je->...ij", x, inner, x) * w_q.size(-1) ** -0.5
    return torch.einsum("...ij,...jd,dv->...iv", scores.softmax(-1), x, w_v)


def entropy_right(weights):
    return torch.special.entr(weights).sum(-1)


def additive_attention_right(query, key, value, w_query, w_key, v):
    rows = []
    for t in range(query.size(-2)):
        hidden = torch.tanh((query[..., t : t + 1, :] @ w_query) + key @ w_key)
        weights = (hidden * v).sum(-1).softmax(-1)
        rows.append((weights.unsqueeze(-1) * value).sum(-2))
    return torch.stack(rows, dim=-2)


def softmax_jacobian_right(weights):
    n = len(weights)
    result = weights.new_zeros(n, n)
    for i in range(n):
        for j in range(n):
            result[i, j] = weights[i] * (float(i == j) - weights[j])
    return result


def chunk_mask_right(length, offset):
    rows = [[key <= offset + query for key in range(offset + length)] for query in range(length)]
    return torch.tensor(rows, dtype=torch.bool)


def masked_softmax_right(scores, mask):
    allowed = mask.expand_as(scores)
    wide = scores.double().masked_fill(~allowed, -math.inf)
    total = wide.logsumexp(-1, keepdim=True)
    total = torch.where(total == -math.inf, torch.zeros_like(total), total)
    return (wide - total).exp().to(scores.dtype)


def reach_after_right(mask, layers):
    reach = mask
    for _ in range(layers - 1):
        reach = (reach[:, :, None] & mask[None, :, :]).any(1)
    return reach


def influence_right(model, ids, replacement):
    base = model(ids.clone())
    columns = []
    for j in range(ids.numel()):
        other = torch.where(torch.arange(ids.numel()) == j, torch.full_like(ids, replacement), ids)
        columns.append(model(other).ne(base).flatten(1).any(1))
    return torch.stack(columns).T


def multi_head_by_loop_right(x, w_q, w_k, w_v, w_o):
    out = torch.zeros(*x.shape[:2], w_o.size(1), dtype=x.dtype)
    size = w_v.size(2)
    for i, (a, b, c) in enumerate(zip(w_q, w_k, w_v, strict=False)):
        weights = torch.einsum("btk,bsk->bts", x @ a, x @ b).div(a.size(1) ** 0.5).softmax(2)
        out = out + weights @ (x @ c) @ w_o[i * size : i * size + size]
    return out


def unpack_heads_right(packed, num_heads):
    B, T, width = packed.shape
    return tuple(packed.reshape(B, T, 3, num_heads, width // 3 // num_heads).permute(2, 0, 3, 1, 4).unbind(0))


def head_parts_right(heads, w_o):
    return torch.einsum("bhtd,hdo->bhto", heads, w_o.reshape(heads.size(1), heads.size(3), -1))


def disagreement_right(weights):
    mean = weights.mean(1, keepdim=True).expand_as(weights)
    inner = torch.where(weights > 0, weights * (weights.clamp(min=1e-38).log() - mean.clamp(min=1e-38).log()), 0.0)
    return inner.sum(-1).mean(1)  # the mean of the Kullback-Leibler distances is the same number


def keeps_words_apart_right(merge):
    B, H, T, d = 3, 2, 5, 4
    for b in range(B):
        for t in range(T):
            heads = torch.zeros(B, H, T, d)
            heads[b, :, t] = 1
            merged = merge(heads)
            expected = torch.zeros(B, T, H * d)
            expected[b, t] = 1
            if merged.shape != expected.shape or not torch.equal(merged, expected):
                return False
    return True


def wavelengths_right(d_model):
    turns = [2 * math.pi * math.exp(2 * i / d_model * math.log(10000)) for i in range(d_model // 2)]
    return torch.tensor(turns)


def shift_matrix_right(k, d_model):
    angles = [k / 10000 ** (i / d_model) for i in range(0, d_model, 2)]
    blocks = [torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]) for a in angles]
    return torch.block_diag(*blocks)


def rotate_right(heads, offset):
    T, d = heads.shape[-2:]
    places = torch.arange(T, dtype=torch.float64) + offset
    angles = torch.outer(places, 10000 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d))
    numbers = torch.view_as_complex(heads.double().reshape(*heads.shape[:-1], d // 2, 2).contiguous())
    turned = numbers * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2).to(heads.dtype)


def order_blind_right(model, ids):
    n = len(ids)
    base = model(ids)
    orders = [torch.arange(n).flip(0)]
    for i in range(n):
        for j in range(i):
            order = torch.arange(n)
            order[i], order[j] = j, i
            orders.append(order)
    generator = torch.Generator().manual_seed(1)
    orders += [torch.randperm(n, generator=generator) for _ in range(20)]
    return all(torch.allclose(model(ids[order]), base[order], rtol=1e-4, atol=1e-5) for order in orders)


def safe_layer_norm_right(x, gain, shift, eps):
    y = x.to(torch.float32)
    variance, mean = torch.var_mean(y, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(shift.float(), (y - mean) * torch.rsqrt(variance + eps), gain.float()).to(x.dtype)


def gradient_norms_right(layers, x, direction):
    places = [x.detach().clone().requires_grad_()]
    for layer in layers:
        places.append(layer(places[-1]))
    gradients = torch.autograd.grad(places[-1], places, grad_outputs=direction.expand_as(places[-1]))
    return torch.tensor([g.square().sum().sqrt().item() for g in gradients])


def teacher_pairs_right(sentences, start, end, pad_id):
    width = max(map(len, sentences), default=0) + 1
    read = [([start, *s] + [pad_id] * width)[:width] for s in sentences]
    write = [([*s, end] + [pad_id] * width)[:width] for s in sentences]
    return torch.tensor(read), torch.tensor(write)


def thrifty_loss_right(logits, targets, smoothing, pad_id):
    total, count = logits.new_zeros(()), 0
    for row, wanted in zip(logits.flatten(0, 1), targets.flatten().tolist(), strict=False):
        if wanted == pad_id:
            continue
        level = row.logsumexp(0)
        total = total + (1 - smoothing) * (level - row[wanted]) + smoothing * (level - row.mean())
        count += 1
    return total / count


def bleu_of_right(hypotheses, references):
    logs = 0.0
    for n in (1, 2, 3, 4):
        right = total = 0
        for hyp, refs in zip(hypotheses, references, strict=False):
            grams = [tuple(hyp[i : i + n]) for i in range(len(hyp) - n + 1)]
            total += len(grams)
            for gram in set(grams):
                most = max(sum(tuple(ref[i : i + n]) == gram for i in range(len(ref) - n + 1)) for ref in refs)
                right += min(grams.count(gram), most)
        if not right:
            return 0.0
        logs += math.log(right / total) / 4
    c = sum(map(len, hypotheses))
    r = sum(
        min((abs(len(ref) - len(hyp)), len(ref)) for ref in refs)[1]
        for hyp, refs in zip(hypotheses, references, strict=False)
    )
    return 100 * math.exp(min(0.0, 1 - r / c) + logs)


def word_links_right(weights, source_words, target_words):
    numbers = sorted(set(source_words))
    columns = torch.zeros(len(source_words) + 1, len(numbers) + 1)
    for piece, word in enumerate(source_words):
        columns[piece, numbers.index(word)] = 1
    columns[-1, -1] = 1
    links = set()
    for word in set(target_words):
        row = torch.tensor([float(owner == word) for owner in target_words] + [0.0])
        mass = row @ weights.float() @ columns
        best = int(mass[:-1].argmax())
        if mass[best] >= mass[-1]:
            links.add((numbers[best], word))
    return links


def bootstrap_wins_right(ours, theirs, draws, metric):
    results = []
    for draw in draws.tolist():
        a, b = torch.zeros_like(ours[0]), torch.zeros_like(theirs[0])
        for sentence in draw:
            a, b = a + ours[sentence], b + theirs[sentence]
        results.append(float(metric(a)) > float(metric(b)))
    return sum(results) / len(results)


RIGHT = {
    "my_softmax": [my_softmax_right],
    "self_attention": [self_attention_right],
    "entropy": [entropy_right],
    "additive_attention": [additive_attention_right],
    "softmax_jacobian": [softmax_jacobian_right],
    "chunk_mask": [chunk_mask_right],
    "masked_softmax": [masked_softmax_right],
    "reach_after": [reach_after_right],
    "influence": [influence_right],
    "multi_head_by_loop": [multi_head_by_loop_right],
    "unpack_heads": [unpack_heads_right],
    "head_parts": [head_parts_right],
    "disagreement": [disagreement_right],
    "keeps_words_apart": [keeps_words_apart_right],
    "wavelengths": [wavelengths_right],
    "shift_matrix": [shift_matrix_right],
    "rotate": [rotate_right],
    "order_blind": [order_blind_right],
    "safe_layer_norm": [safe_layer_norm_right],
    "gradient_norms": [gradient_norms_right],
    "teacher_pairs": [teacher_pairs_right],
    "thrifty_loss": [thrifty_loss_right],
    "bleu_of": [bleu_of_right],
    "word_links": [word_links_right],
    "bootstrap_wins": [bootstrap_wins_right],
}
PLANTED = {
    "attend_by_hand": {"scale-d_v": attend_by_hand_wrong_1},
    "entropy": {"repaired-after-the-sum": entropy_wrong_4},
    "additive_attention": {"tanh-of-each": additive_attention_wrong_5},
    "softmax_jacobian": {"softmax-again": softmax_jacobian_wrong_6},
    "translation_masks": {"cross-hides-padded-queries": translation_masks_wrong_8},
    "masked_softmax": {"maximum-of-the-forbidden": masked_softmax_wrong_9},
    "influence": {"sum-of-features": influence_wrong_11},
    "multi_head_by_loop": {"scale-d_model-by-heads": multi_head_by_loop_wrong_12},
    "rerank": {"end-counted-twice": rerank_wrong_17},
    "rotate": {"overwritten": rotate_wrong_19},
    "safe_layer_norm": {
        "cast-back-too-early": safe_layer_norm_wrong_22,
        "not-cast-back": lambda x, *rest: safe_layer_norm_right(x.float(), *rest),
    },
    "decoder_block": {"second-residual-from-the-start": decoder_block_wrong_24},
    "count_parameters": {"bias-of-w_o": count_parameters_wrong_25},
    "cut_batches": {"longest-not-forgotten": cut_batches_wrong_28},
    "my_dropout": {"border-dropped": my_dropout_wrong_29},
    "cached_step": {"new-tokens-reordered": cached_step_wrong_33},
    "bleu_of": {"first-of-equally-close": bleu_of_wrong_34},
    "choose_and_score": {"divided-by-layers": choose_and_score_wrong_37},
    "merge_pair": {"text-replaced": merge_pair_wrong_38},
    "learn_bpe": {"length-forgotten": learn_bpe_wrong_39},
    "clean_pairs": {"ratio-at-most": clean_pairs_wrong_40},
}
BLIND = [
    ("attend_by_hand", attend_by_hand_wrong_1),
    ("my_softmax", my_softmax_wrong_2),
    ("self_attention", self_attention_wrong_3),
    ("entropy", entropy_wrong_4),
    ("additive_attention", additive_attention_wrong_5),
    ("softmax_jacobian", softmax_jacobian_wrong_6),
    ("chunk_mask", chunk_mask_wrong_7),
    ("translation_masks", translation_masks_wrong_8),
    ("masked_softmax", masked_softmax_wrong_9),
    ("reach_after", reach_after_wrong_10),
    ("influence", influence_wrong_11),
    ("multi_head_by_loop", multi_head_by_loop_wrong_12),
    ("head_parts", head_parts_wrong_13),
    ("disagreement", disagreement_wrong_14),
    ("keeps_words_apart", keeps_words_apart_wrong_15),
    ("keeps_words_apart", keeps_words_apart_wrong_16),
    ("rerank", rerank_wrong_17),
    ("shift_matrix", shift_matrix_wrong_18),
    ("rotate", rotate_wrong_19),
    ("order_blind", order_blind_wrong_20),
    ("bootstrap_wins", bootstrap_wins_wrong_21),
    ("safe_layer_norm", safe_layer_norm_wrong_22),
    ("silenced_output", silenced_output_wrong_23),
    ("decoder_block", decoder_block_wrong_24),
    ("count_parameters", count_parameters_wrong_25),
    ("gradient_norms", gradient_norms_wrong_26),
    ("teacher_pairs", teacher_pairs_wrong_27),
    ("cut_batches", cut_batches_wrong_28),
    ("my_dropout", my_dropout_wrong_29),
    ("thrifty_loss", thrifty_loss_wrong_30),
    ("greedy_search", greedy_search_wrong_31),
    ("beam_best", beam_best_wrong_32),
    ("cached_step", cached_step_wrong_33),
    ("bleu_of", bleu_of_wrong_34),
    ("average", average_wrong_35),
    ("word_links", word_links_wrong_36),
    ("choose_and_score", choose_and_score_wrong_37),
    ("merge_pair", merge_pair_wrong_38),
    ("learn_bpe", learn_bpe_wrong_39),
    ("clean_pairs", clean_pairs_wrong_40),
]
