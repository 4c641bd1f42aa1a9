"""Answers to assignment 3 as students write them: right ones in three styles, and one wrong one for each mistake."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytransformer.teaching.assignments.batch_tasks import shifted_rows
from tinytransformer.teaching.assignments.loss_tasks import smoothed_targets
from tinytransformer.teaching.assignments.run_tasks import perplexity_of
from tinytransformer.teaching.assignments.schedule_tasks import adam_step, rates_after

# --- rates after a restart


def rates_by_loop(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    rates = []
    for step in range(done + 1, done + steps + 1):
        if step <= warmup:
            rates.append(peak * step / warmup)
        else:
            rates.append(peak * math.sqrt(warmup) / math.sqrt(step))
    return rates


def rates_vectorised(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    step = torch.arange(done + 1, done + steps + 1, dtype=torch.float64)
    return (peak * torch.minimum(step / warmup, (warmup / step).sqrt())).tolist()


def rates_from_the_paper(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    def paper(step):
        return min(step**-0.5, step * warmup**-1.5)

    return [peak * paper(done + i) / paper(warmup) for i in range(1, steps + 1)]


def rates_from_zero(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    rates = []
    for step in range(done, done + steps):
        if step < warmup:
            rates.append(peak * step / warmup)
        else:
            rates.append(peak * (warmup / step) ** 0.5)
    return rates


def rates_warming_up_again(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    return [peak * min(step / warmup, (warmup / step) ** 0.5) for step in range(1, steps + 1)]


def rates_peak_as_factor(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    return [peak * min(step**-0.5, step * warmup**-1.5) for step in range(done + 1, done + 1 + steps)]


def rates_maximum(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    return [peak * max(s / warmup, math.sqrt(warmup / s)) for s in range(done + 1, done + 1 + steps)]


def rates_falling_fast(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    rates = []
    for s in range(done + 1, done + 1 + steps):
        rates.append(peak * s / warmup if s < warmup else peak * warmup / s)
    return rates


def rates_flat(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    return [peak if s >= warmup else peak * s / warmup for s in range(done + 1, done + 1 + steps)]


def rates_falling_from_the_peak(done: int, steps: int, warmup: int, peak: float) -> list[float]:
    rates = []
    for s in range(done + 1, done + 1 + steps):
        if s <= warmup:
            rates.append(peak * s / warmup)
        else:
            rates.append(peak / (s - warmup + 1) ** 0.5)
    return rates


# --- rows shifted by one


def shift_by_loops(target: Tensor, end_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    read, write = [], []
    for row in target.tolist():
        read.append([pad_id if token == end_id else token for token in row[:-1]])
        write.append(row[1:])
    return torch.tensor(read), torch.tensor(write)


def shift_vectorised(target: Tensor, end_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    without_end = torch.where(target == end_id, pad_id, target)
    return without_end[:, :-1], target[:, 1:]


def shift_by_length(target: Tensor, end_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    ends = (target == end_id).int().argmax(dim=1)
    read = target[:, :-1].clone()
    for row, end in enumerate(ends.tolist()):
        read[row, end:] = pad_id
    return read, target.narrow(1, 1, target.size(1) - 1)


def shift_end_read(target: Tensor, end_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    return target[:, :-1], target[:, 1:]


def shift_exchanged(target: Tensor, end_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    write = target[:, :-1].clone()
    write[write == end_id] = pad_id
    return target[:, 1:], write


def shift_not_at_all(target: Tensor, end_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    read = target[:, :-1].clone()
    read[read == end_id] = pad_id
    return read, read


def shift_without_end(target: Tensor, end_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    target = target.masked_fill(target == end_id, pad_id)
    return target[:, :-1], target[:, 1:]


def shift_rolled(target: Tensor, end_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    read = target.clone()
    read[read == end_id] = pad_id
    write = torch.cat([target[:, 1:], target[:, :1]], dim=1)
    return read, write


# --- smoothed targets


def targets_by_loops(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    rows, length = targets.shape
    wanted = torch.zeros(rows, length, vocab_size)
    for b in range(rows):
        for t in range(length):
            if targets[b, t] == pad_id:
                continue
            for token in range(vocab_size):
                if token != pad_id:
                    wanted[b, t, token] = smoothing / (vocab_size - 1)
            wanted[b, t, targets[b, t]] += 1 - smoothing
    return wanted


def targets_vectorised(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    spread = torch.full((vocab_size,), smoothing / (vocab_size - 1))
    spread[pad_id] = 0.0
    hot = torch.arange(vocab_size) == targets[..., None]
    return (hot * (1 - smoothing) + spread) * (targets != pad_id).unsqueeze(-1)


def targets_by_one_hot(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    hot = F.one_hot(targets, vocab_size).float()
    wanted = (1 - smoothing) * hot + smoothing / (vocab_size - 1)
    wanted[..., pad_id] = 0.0
    wanted[targets == pad_id] = 0.0
    return wanted


def targets_of_the_lesson(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    wanted = F.one_hot(targets, vocab_size) * (1 - smoothing) + smoothing / vocab_size
    wanted[targets == pad_id] = 0.0
    return wanted


def targets_share_lost(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    wanted = F.one_hot(targets, vocab_size) * (1 - smoothing) + smoothing / vocab_size
    wanted[..., pad_id] = 0.0
    wanted[targets == pad_id] = 0.0
    return wanted


def targets_over_the_others(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    wanted = torch.full((*targets.shape, vocab_size), smoothing / (vocab_size - 2))
    wanted.scatter_(-1, targets.unsqueeze(-1), 1 - smoothing)
    wanted[..., pad_id] = 0
    wanted[targets == pad_id] = 0
    return wanted


def targets_right_without_share(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    wanted = torch.full((*targets.shape, vocab_size), smoothing / (vocab_size - 1))
    wanted.scatter_(-1, targets.unsqueeze(-1), 1 - smoothing)
    wanted[..., pad_id] = 0
    wanted[targets == pad_id] = 0
    return wanted


def targets_too_much(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    wanted = F.one_hot(targets, vocab_size) + smoothing / (vocab_size - 1)
    wanted[..., pad_id] = 0
    wanted[targets == pad_id] = 0
    return wanted


def targets_padding_rows_kept(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    wanted = F.one_hot(targets, vocab_size) * (1 - smoothing) + smoothing / (vocab_size - 1)
    wanted[..., pad_id] = 0
    return wanted


def targets_padding_predicted(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    spread = torch.full((vocab_size,), smoothing / (vocab_size - 1))
    spread[pad_id] = 0
    return F.one_hot(targets, vocab_size) * (1 - smoothing) + spread


def targets_one_hot(targets: Tensor, vocab_size: int, smoothing: float, pad_id: int) -> Tensor:
    wanted = F.one_hot(targets, vocab_size).float()
    wanted[targets == pad_id] = 0
    return wanted


# --- the loss and its gradient


def loss_by_loops(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    count = int((targets != pad_id).sum())
    total, gradient = 0.0, torch.zeros_like(logits)
    for b in range(targets.size(0)):
        for t in range(targets.size(1)):
            if targets[b, t] != pad_id:
                logs = logits[b, t] - torch.logsumexp(logits[b, t], dim=0)
                total = total - (wanted[b, t] * logs).sum()
                gradient[b, t] = (logs.exp() - wanted[b, t]) / count
    return total / count, gradient


def loss_vectorised(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    logs = F.log_softmax(logits, dim=-1)
    mass = wanted.sum(dim=-1, keepdim=True)  # one for a real token, zero for padding
    count = mass.sum()
    return -(wanted * logs).sum() / count, (mass * logs.exp() - wanted) / count


def loss_of_real_rows(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    real = targets != pad_id
    rows = logits[real]
    wanted = smoothed_targets(targets[real][None], logits.size(-1), smoothing, pad_id)[0]
    loss = F.cross_entropy(rows, wanted)
    gradient = torch.zeros_like(logits)
    gradient[real] = (rows.softmax(dim=-1) - wanted) / len(rows)
    return loss, gradient


def loss_gradient_at_padding(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    count = (targets != pad_id).sum()
    loss = -(wanted * logits.log_softmax(-1)).sum() / count
    return loss, (logits.softmax(-1) - wanted) / count


def loss_over_all_places(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    real = (targets != pad_id)[..., None]
    losses = -(wanted * logits.log_softmax(-1)).sum(-1)
    return losses.mean(), (logits.softmax(-1) - wanted) * real / losses.numel()


def loss_summed(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    real = (targets != pad_id)[..., None]
    loss = -(wanted * logits.log_softmax(-1)).sum()
    return loss, (logits.softmax(-1) - wanted) * real


def loss_with_summed_gradient(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    real = (targets != pad_id)[..., None]
    count = real.sum()
    loss = -(wanted * logits.log_softmax(-1)).sum() / count
    return loss, (logits.softmax(-1) - wanted) * real


def loss_with_turned_sign(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    real = (targets != pad_id)[..., None]
    count = real.sum()
    loss = -(wanted * logits.log_softmax(-1)).sum() / count
    return loss, (wanted - logits.softmax(-1)) * real / count


def loss_by_probabilities(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    real = (targets != pad_id)[..., None]
    count = real.sum()
    p = logits.softmax(-1)
    loss = -(wanted * logits.log_softmax(-1)).sum() / count
    return loss, -wanted / p * real / count


def loss_by_logarithms(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    real = (targets != pad_id)[..., None]
    count = real.sum()
    loss = -(wanted * logits.log_softmax(-1)).sum() / count
    return loss, -wanted * real / count


def loss_with_sharp_gradient(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    real = (targets != pad_id)[..., None]
    count = real.sum()
    loss = -(wanted * logits.log_softmax(-1)).sum() / count
    hot = F.one_hot(targets, logits.size(-1))
    return loss, (logits.softmax(-1) - hot) * real / count


def loss_through_zero(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    wanted = smoothed_targets(targets, logits.size(-1), smoothing, pad_id)
    real = (targets != pad_id)[..., None]
    count = real.sum()
    p = logits.softmax(-1)
    loss = -(wanted * p.log()).sum() / count
    return loss, (p - wanted) * real / count


# --- perplexity


def perplexity_by_loops(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total, count = 0.0, 0
    for logits, targets in batches:
        for b in range(targets.size(0)):
            for t in range(targets.size(1)):
                if targets[b, t] != pad_id:
                    total += (logits[b, t].logsumexp(0) - logits[b, t, targets[b, t]]).item()
                    count += 1
    return math.exp(total / count)


def perplexity_vectorised(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    rows = torch.cat([logits.flatten(0, 1) for logits, _ in batches])
    wanted = torch.cat([targets.flatten() for _, targets in batches])
    logs = rows.log_softmax(-1)[torch.arange(len(wanted)), wanted]
    return logs[wanted != pad_id].mean().neg().exp().item()


def perplexity_by_cross_entropy(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total = count = 0
    for logits, targets in batches:
        total += F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id, reduction="sum")
        count += (targets != pad_id).sum()
    return torch.exp(total / count).item()


def perplexity_mean_of_batches(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    means = []
    for logits, targets in batches:
        real = targets != pad_id
        if real.any():
            means.append(F.cross_entropy(logits[real], targets[real]).item())
    return math.exp(sum(means) / len(means))


def perplexity_mean_of_perplexities(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    found = []
    for logits, targets in batches:
        real = targets != pad_id
        if real.any():
            found.append(F.cross_entropy(logits[real], targets[real]).exp().item())
    return sum(found) / len(found)


def perplexity_with_padding(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total, count = 0.0, 0
    for logits, targets in batches:
        total += F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum").item()
        count += targets.numel()
    return math.exp(total / count)


def perplexity_over_all_places(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total, count = 0.0, 0
    for logits, targets in batches:
        real = targets != pad_id
        total += F.cross_entropy(logits[real], targets[real], reduction="sum").item()
        count += targets.numel()
    return math.exp(total / count)


def perplexity_without_exponential(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total, count = 0.0, 0
    for logits, targets in batches:
        real = targets != pad_id
        total += F.cross_entropy(logits[real], targets[real], reduction="sum").item()
        count += real.sum().item()
    return total / count


def perplexity_base_two(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total, count = 0.0, 0
    for logits, targets in batches:
        real = targets != pad_id
        total += F.cross_entropy(logits[real], targets[real], reduction="sum").item()
        count += real.sum().item()
    return 2 ** (total / count)


def perplexity_of_mean_probability(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    found = []
    for logits, targets in batches:
        p = logits.softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        found += p[targets != pad_id].tolist()
    return len(found) / sum(found)


def perplexity_mean_of_nothing(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total = 0.0
    for logits, targets in batches:
        total += F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id).item()
    return math.exp(total / len(batches))


def perplexity_nothing_times_nan(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total, count = 0.0, 0
    for logits, targets in batches:
        tokens = (targets != pad_id).sum().item()
        total += F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id).item() * tokens
        count += tokens
    return math.exp(total / count)


def perplexity_through_zero(batches: list[tuple[Tensor, Tensor]], pad_id: int) -> float:
    total, count = 0.0, 0
    for logits, targets in batches:
        p = logits.softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        real = targets != pad_id
        total -= p[real].log().sum().item()
        count += real.sum().item()
    return math.exp(total / count)


# --- batches of tokens


def batches_by_loop(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row][1], lengths[row][0], row))
    batches, batch, source, target = [], [], 0, 0
    for row in order:
        s, t = lengths[row]
        places = (len(batch) + 1) * (max(source, s) + 1 + max(target, t) + 1)
        if batch and places > budget:
            batches.append(batch)
            batch, source, target = [], 0, 0
        batch.append(row)
        source, target = max(source, s), max(target, t)
    batches.append(batch)
    return batches


def batches_with_helper(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    def places(rows):
        sources, targets = zip(*(lengths[row] for row in rows), strict=True)
        return len(rows) * (max(sources) + max(targets) + 2)

    batches = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row][::-1]):
        if batches and places([*batches[-1], row]) <= budget:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def batches_with_tensors(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    sizes = torch.tensor(lengths) + 1
    order = sizes[:, 0].sort(stable=True).indices
    order = order[sizes[order, 1].sort(stable=True).indices]
    batches, first = [], 0
    while first < len(order):
        longest = sizes[order[first:]].cummax(dim=0).values.sum(dim=1)
        used = longest * torch.arange(1, len(longest) + 1)
        count = max(1, int((used <= budget).int().cumprod(dim=0).sum()))
        batches.append(order[first : first + count].tolist())
        first += count
    return batches


def batches_larger_side(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row][1], lengths[row][0]))
    batches, batch = [], []
    for row in order:
        group = [lengths[one] for one in [*batch, row]]
        places = len(group) * max(max(s, t) + 1 for s, t in group)
        if batch and places > budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    return [*batches, batch]


def batches_without_specials(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row][1], lengths[row][0]))
    batches, batch = [], []
    for row in order:
        group = [lengths[one] for one in [*batch, row]]
        places = len(group) * (max(s for s, _ in group) + max(t for _, t in group))
        if batch and places > budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    return [*batches, batch]


def batches_of_real_tokens(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row][1], lengths[row][0]))
    batches, batch = [], []
    for row in order:
        group = [lengths[one] for one in [*batch, row]]
        places = sum(s + t + 2 for s, t in group)
        if batch and places > budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    return [*batches, batch]


def batches_never_full(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row][1], lengths[row][0]))
    batches, batch = [], []
    for row in order:
        group = [lengths[one] for one in [*batch, row]]
        places = len(group) * (max(s for s, _ in group) + max(t for _, t in group) + 2)
        if batch and places >= budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    return [*batches, batch]


def batches_too_late(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row][1], lengths[row][0]))
    batches, batch = [], []
    for row in order:
        batch.append(row)
        group = [lengths[one] for one in batch]
        if len(group) * (max(s for s, _ in group) + max(t for _, t in group) + 2) > budget:
            batches.append(batch)
            batch = []
    if batch:
        batches.append(batch)
    return batches


def batches_without_the_last(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row][1], lengths[row][0]))
    batches, batch = [], []
    for row in order:
        group = [lengths[one] for one in [*batch, row]]
        places = len(group) * (max(s for s, _ in group) + max(t for _, t in group) + 2)
        if batch and places > budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    return batches


def batches_without_long_pairs(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row][1], lengths[row][0]))
    batches, batch = [], []
    for row in order:
        if sum(lengths[row]) + 2 > budget:
            continue
        group = [lengths[one] for one in [*batch, row]]
        places = len(group) * (max(s for s, _ in group) + max(t for _, t in group) + 2)
        if batch and places > budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    return [*batches, batch]


def batches_never_forgetting(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row][1], lengths[row][0]))
    batches, batch, source, target = [], [], 0, 0
    for row in order:
        source, target = max(source, lengths[row][0]), max(target, lengths[row][1])
        if batch and (len(batch) + 1) * (source + target + 2) > budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    return [*batches, batch]


def batches_as_they_come(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    batches, batch = [], []
    for row in range(len(lengths)):
        group = [lengths[one] for one in [*batch, row]]
        places = len(group) * (max(s for s, _ in group) + max(t for _, t in group) + 2)
        if batch and places > budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    return [*batches, batch]


def batches_by_source(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lambda row: lengths[row])
    batches, batch = [], []
    for row in order:
        group = [lengths[one] for one in [*batch, row]]
        places = len(group) * (max(s for s, _ in group) + max(t for _, t in group) + 2)
        if batch and places > budget:
            batches.append(batch)
            batch = []
        batch.append(row)
    return [*batches, batch]


# --- a step of Adam


def adam_by_loop(weights, gradients, m, v, step, rate, clip, eps):
    squares = 0.0
    for gradient in gradients:
        squares += (gradient**2).sum().item()
    norm = math.sqrt(squares)
    new_weights, new_m, new_v = [], [], []
    for weight, gradient, one, two in zip(weights, gradients, m, v, strict=True):
        if norm > clip:
            gradient = gradient * clip / norm
        one = 0.9 * one + 0.1 * gradient
        two = 0.98 * two + 0.02 * gradient**2
        fair_one, fair_two = one / (1 - 0.9**step), two / (1 - 0.98**step)
        new_weights.append(weight - rate * fair_one / (fair_two**0.5 + eps))
        new_m.append(one)
        new_v.append(two)
    return new_weights, new_m, new_v


def adam_flattened(weights, gradients, m, v, step, rate, clip, eps):
    def flat(tensors):
        return torch.cat([tensor.flatten() for tensor in tensors])

    def apart(vector):
        pieces = vector.split([tensor.numel() for tensor in weights])
        return [piece.view_as(tensor) for piece, tensor in zip(pieces, weights, strict=True)]

    gradient = flat(gradients)
    gradient = gradient * (clip / gradient.norm()).clamp(max=1.0)
    one = torch.lerp(flat(m), gradient, 0.1)
    two = torch.lerp(flat(v), gradient.square(), 0.02)
    move = one / (1 - 0.9**step) / ((two / (1 - 0.98**step)).sqrt() + eps)
    return apart(flat(weights) - rate * move), apart(one), apart(two)


def adam_by_library(weights, gradients, m, v, step, rate, clip, eps):
    parameters = [torch.nn.Parameter(weight.detach().clone()) for weight in weights]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    torch.nn.utils.clip_grad_norm_(parameters, clip)
    optimiser = torch.optim.Adam(parameters, lr=rate, betas=(0.9, 0.98), eps=eps)
    for parameter, one, two in zip(parameters, m, v, strict=True):
        state = {"step": torch.tensor(float(step - 1)), "exp_avg": one.clone(), "exp_avg_sq": two.clone()}
        optimiser.state[parameter] = state
    optimiser.step()
    states = [optimiser.state[parameter] for parameter in parameters]
    new_m, new_v = ([state[name] for state in states] for name in ("exp_avg", "exp_avg_sq"))
    return [parameter.detach() for parameter in parameters], new_m, new_v


def adam_each_clipped(weights, gradients, m, v, step, rate, clip, eps):
    clipped = []
    for g in gradients:
        clipped.append(g * clip / g.norm() if g.norm() > clip else g)
    gradients = clipped
    m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients, strict=True)]
    v = [0.98 * b + 0.02 * g**2 for b, g in zip(v, gradients, strict=True)]
    found = []
    for w, a, b in zip(weights, m, v, strict=True):
        a, b = a / (1 - 0.9**step), b / (1 - 0.98**step)
        found.append(w - rate * a / (b.sqrt() + eps))
    return found, m, v


def adam_always_scaled(weights, gradients, m, v, step, rate, clip, eps):
    norm = torch.sqrt(sum((g**2).sum() for g in gradients))
    if norm > 0:
        gradients = [g * clip / norm for g in gradients]
    m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients, strict=True)]
    v = [0.98 * b + 0.02 * g**2 for b, g in zip(v, gradients, strict=True)]
    found = []
    for w, a, b in zip(weights, m, v, strict=True):
        a, b = a / (1 - 0.9**step), b / (1 - 0.98**step)
        found.append(w - rate * a / (b.sqrt() + eps))
    return found, m, v


def adam_numbers_clipped(weights, gradients, m, v, step, rate, clip, eps):
    gradients = [g.clamp(min=-clip, max=clip) for g in gradients]
    m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients, strict=True)]
    v = [0.98 * b + 0.02 * g**2 for b, g in zip(v, gradients, strict=True)]
    found = []
    for w, a, b in zip(weights, m, v, strict=True):
        a, b = a / (1 - 0.9**step), b / (1 - 0.98**step)
        found.append(w - rate * a / (b.sqrt() + eps))
    return found, m, v


def adam_not_clipped(weights, gradients, m, v, step, rate, clip, eps):
    m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients, strict=True)]
    v = [0.98 * b + 0.02 * g**2 for b, g in zip(v, gradients, strict=True)]
    found = []
    for w, a, b in zip(weights, m, v, strict=True):
        a, b = a / (1 - 0.9**step), b / (1 - 0.98**step)
        found.append(w - rate * a / (b.sqrt() + eps))
    return found, m, v


def adam_not_corrected(weights, gradients, m, v, step, rate, clip, eps):
    norm = torch.sqrt(sum((g**2).sum() for g in gradients))
    if norm > clip:
        gradients = [g * clip / norm for g in gradients]
    m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients, strict=True)]
    v = [0.98 * b + 0.02 * g**2 for b, g in zip(v, gradients, strict=True)]
    found = []
    for w, a, b in zip(weights, m, v, strict=True):
        found.append(w - rate * a / (b.sqrt() + eps))
    return found, m, v


def adam_corrected_by_a_power(weights, gradients, m, v, step, rate, clip, eps):
    norm = torch.sqrt(sum((g**2).sum() for g in gradients))
    if norm > clip:
        gradients = [g * clip / norm for g in gradients]
    m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients, strict=True)]
    v = [0.98 * b + 0.02 * g**2 for b, g in zip(v, gradients, strict=True)]
    found = []
    for w, a, b in zip(weights, m, v, strict=True):
        a, b = a / (1 - 0.9) ** step, b / (1 - 0.98) ** step
        found.append(w - rate * a / (b.sqrt() + eps))
    return found, m, v


def adam_keeping_corrected(weights, gradients, m, v, step, rate, clip, eps):
    norm = torch.sqrt(sum((g**2).sum() for g in gradients))
    if norm > clip:
        gradients = [g * clip / norm for g in gradients]
    m = [(0.9 * a + 0.1 * g) / (1 - 0.9**step) for a, g in zip(m, gradients, strict=True)]
    v = [(0.98 * b + 0.02 * g**2) / (1 - 0.98**step) for b, g in zip(v, gradients, strict=True)]
    found = [w - rate * a / (b.sqrt() + eps) for w, a, b in zip(weights, m, v, strict=True)]
    return found, m, v


def adam_eps_inside(weights, gradients, m, v, step, rate, clip, eps):
    norm = torch.sqrt(sum((g**2).sum() for g in gradients))
    if norm > clip:
        gradients = [g * clip / norm for g in gradients]
    m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients, strict=True)]
    v = [0.98 * b + 0.02 * g**2 for b, g in zip(v, gradients, strict=True)]
    found = []
    for w, a, b in zip(weights, m, v, strict=True):
        a, b = a / (1 - 0.9**step), b / (1 - 0.98**step)
        found.append(w - rate * a / (b + eps).sqrt())
    return found, m, v


def adam_usual_beta(weights, gradients, m, v, step, rate, clip, eps):
    norm = torch.sqrt(sum((g**2).sum() for g in gradients))
    if norm > clip:
        gradients = [g * clip / norm for g in gradients]
    m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients, strict=True)]
    v = [0.999 * b + 0.001 * g**2 for b, g in zip(v, gradients, strict=True)]
    found = []
    for w, a, b in zip(weights, m, v, strict=True):
        a, b = a / (1 - 0.9**step), b / (1 - 0.999**step)
        found.append(w - rate * a / (b.sqrt() + eps))
    return found, m, v


def adam_without_memory(weights, gradients, m, v, step, rate, clip, eps):
    norm = torch.sqrt(sum((g**2).sum() for g in gradients))
    if norm > clip:
        gradients = [g * clip / norm for g in gradients]
    m = [0.1 * g for g in gradients]
    v = [0.02 * g**2 for g in gradients]
    found = []
    for w, a, b in zip(weights, m, v, strict=True):
        a, b = a / (1 - 0.9**step), b / (1 - 0.98**step)
        found.append(w - rate * a / (b.sqrt() + eps))
    return found, m, v


# --- a whole run


def run_step_by_step(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m = [torch.zeros_like(w) for w in weights]
    v = [torch.zeros_like(w) for w in weights]
    rates = rates_after(0, len(groups), warmup, peak)
    losses = []
    for step, group in enumerate(groups, start=1):
        tokens = sum((target[:, 1:] != 0).sum().item() for _, target in group)
        model.zero_grad()
        total = 0.0
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logs = model(source, read).log_softmax(-1)
            loss = -(smoothed_targets(write, logs.size(-1), smoothing, 0) * logs).sum() / tokens
            loss.backward()
            total += loss.item()
        losses.append(total)
        with torch.no_grad():
            new, m, v = adam_step(weights, [w.grad for w in weights], m, v, step, rates[step - 1], 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.copy_(value)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_as_one_large_loss(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m, v = ([torch.zeros_like(w) for w in weights] for _ in range(2))
    losses = []
    for step, group in enumerate(groups, start=1):
        rows, wanted = [], []
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logits = model(source, read)
            real = write != 0
            rows.append(logits[real])
            wanted.append(smoothed_targets(write, logits.size(-1), smoothing, 0)[real])
        loss = F.cross_entropy(torch.cat(rows), torch.cat(wanted))
        gradients = torch.autograd.grad(loss, weights)
        (rate,) = rates_after(step - 1, 1, warmup, peak)
        with torch.no_grad():
            new, m, v = adam_step(weights, list(gradients), m, v, step, rate, 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.data = value
        losses.append(loss.item())
    pairs = [(source, *shifted_rows(target, 2, 0)) for source, target in held_out]
    return losses, perplexity_of([(model(source, read).detach(), write) for source, read, write in pairs], 0)


def run_by_library(model, groups, held_out, warmup, peak, smoothing):
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-6)
    losses = []
    for group, rate in zip(groups, rates_after(0, len(groups), warmup, peak), strict=True):
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        total = count = 0
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logits = model(source, read)
            wanted = smoothed_targets(write, logits.size(-1), smoothing, 0)
            loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(0, 1), reduction="sum")
            loss.backward()
            total, count = total + loss.item(), count + int((write != 0).sum())
        for parameter in model.parameters():
            parameter.grad /= count
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(total / count)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_gradients_pile_up(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m = [torch.zeros_like(w) for w in weights]
    v = [torch.zeros_like(w) for w in weights]
    rates = rates_after(0, len(groups), warmup, peak)
    losses = []
    for step, group in enumerate(groups, start=1):
        tokens = sum((target[:, 1:] != 0).sum().item() for _, target in group)
        total = 0.0
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logs = model(source, read).log_softmax(-1)
            loss = -(smoothed_targets(write, logs.size(-1), smoothing, 0) * logs).sum() / tokens
            loss.backward()
            total += loss.item()
        losses.append(total)
        with torch.no_grad():
            new, m, v = adam_step(weights, [w.grad for w in weights], m, v, step, rates[step - 1], 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.copy_(value)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_last_batch_only(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m = [torch.zeros_like(w) for w in weights]
    v = [torch.zeros_like(w) for w in weights]
    rates = rates_after(0, len(groups), warmup, peak)
    losses = []
    for step, group in enumerate(groups, start=1):
        tokens = sum((target[:, 1:] != 0).sum().item() for _, target in group)
        total = 0.0
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logs = model(source, read).log_softmax(-1)
            loss = -(smoothed_targets(write, logs.size(-1), smoothing, 0) * logs).sum() / tokens
            model.zero_grad()
            loss.backward()
            total += loss.item()
        losses.append(total)
        with torch.no_grad():
            new, m, v = adam_step(weights, [w.grad for w in weights], m, v, step, rates[step - 1], 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.copy_(value)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_step_for_each_batch(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m = [torch.zeros_like(w) for w in weights]
    v = [torch.zeros_like(w) for w in weights]
    rates = rates_after(0, len(groups), warmup, peak)
    losses, step = [], 0
    for group, rate in zip(groups, rates, strict=True):
        tokens = sum((target[:, 1:] != 0).sum().item() for _, target in group)
        total = 0.0
        for source, target in group:
            step += 1
            read, write = shifted_rows(target, 2, 0)
            logs = model(source, read).log_softmax(-1)
            loss = -(smoothed_targets(write, logs.size(-1), smoothing, 0) * logs).sum() / tokens
            model.zero_grad()
            loss.backward()
            total += loss.item()
            with torch.no_grad():
                new, m, v = adam_step(weights, [w.grad for w in weights], m, v, step, rate, 1.0, 1e-6)
                for w, value in zip(weights, new, strict=True):
                    w.copy_(value)
        losses.append(total)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_mean_of_batches(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m = [torch.zeros_like(w) for w in weights]
    v = [torch.zeros_like(w) for w in weights]
    rates = rates_after(0, len(groups), warmup, peak)
    losses = []
    for step, group in enumerate(groups, start=1):
        tokens = sum((target[:, 1:] != 0).sum().item() for _, target in group)
        model.zero_grad()
        total = 0.0
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logs = model(source, read).log_softmax(-1)
            loss = -(smoothed_targets(write, logs.size(-1), smoothing, 0) * logs).sum()
            (loss / (write != 0).sum() / len(group)).backward()
            total += loss.item() / tokens
        losses.append(total)
        with torch.no_grad():
            new, m, v = adam_step(weights, [w.grad for w in weights], m, v, step, rates[step - 1], 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.copy_(value)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_losses_of_batches(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m = [torch.zeros_like(w) for w in weights]
    v = [torch.zeros_like(w) for w in weights]
    rates = rates_after(0, len(groups), warmup, peak)
    losses = []
    for step, group in enumerate(groups, start=1):
        model.zero_grad()
        total = 0.0
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logs = model(source, read).log_softmax(-1)
            loss = -(smoothed_targets(write, logs.size(-1), smoothing, 0) * logs).sum()
            loss = loss / (write != 0).sum() / len(group)
            loss.backward()
            total += loss.item()
        losses.append(total)
        with torch.no_grad():
            new, m, v = adam_step(weights, [w.grad for w in weights], m, v, step, rates[step - 1], 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.copy_(value)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_gradient_of_the_sum(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m = [torch.zeros_like(w) for w in weights]
    v = [torch.zeros_like(w) for w in weights]
    rates = rates_after(0, len(groups), warmup, peak)
    losses = []
    for step, group in enumerate(groups, start=1):
        tokens = sum((target[:, 1:] != 0).sum().item() for _, target in group)
        model.zero_grad()
        total = 0.0
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logs = model(source, read).log_softmax(-1)
            loss = -(smoothed_targets(write, logs.size(-1), smoothing, 0) * logs).sum()
            loss.backward()
            total += loss.item() / tokens
        losses.append(total)
        with torch.no_grad():
            new, m, v = adam_step(weights, [w.grad for w in weights], m, v, step, rates[step - 1], 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.copy_(value)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_rates_from_zero(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m = [torch.zeros_like(w) for w in weights]
    v = [torch.zeros_like(w) for w in weights]
    rates = [0.0, *rates_after(0, len(groups) - 1, warmup, peak)]
    losses = []
    for step, group in enumerate(groups, start=1):
        tokens = sum((target[:, 1:] != 0).sum().item() for _, target in group)
        model.zero_grad()
        total = 0.0
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logs = model(source, read).log_softmax(-1)
            loss = -(smoothed_targets(write, logs.size(-1), smoothing, 0) * logs).sum() / tokens
            loss.backward()
            total += loss.item()
        losses.append(total)
        with torch.no_grad():
            new, m, v = adam_step(weights, [w.grad for w in weights], m, v, step, rates[step - 1], 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.copy_(value)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_answers_in_sight(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m = [torch.zeros_like(w) for w in weights]
    v = [torch.zeros_like(w) for w in weights]
    rates = rates_after(0, len(groups), warmup, peak)
    losses = []
    for step, group in enumerate(groups, start=1):
        tokens = sum((target[:, 1:] != 0).sum().item() for _, target in group)
        model.zero_grad()
        total = 0.0
        for source, target in group:
            read = write = target[:, 1:]
            logs = model(source, read).log_softmax(-1)
            loss = -(smoothed_targets(write, logs.size(-1), smoothing, 0) * logs).sum() / tokens
            loss.backward()
            total += loss.item()
        losses.append(total)
        with torch.no_grad():
            new, m, v = adam_step(weights, [w.grad for w in weights], m, v, step, rates[step - 1], 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.copy_(value)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read = write = target[:, 1:]
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_not_smoothed(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    m = [torch.zeros_like(w) for w in weights]
    v = [torch.zeros_like(w) for w in weights]
    rates = rates_after(0, len(groups), warmup, peak)
    losses = []
    for step, group in enumerate(groups, start=1):
        tokens = sum((target[:, 1:] != 0).sum().item() for _, target in group)
        model.zero_grad()
        total = 0.0
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logs = model(source, read).log_softmax(-1)
            loss = F.nll_loss(logs.flatten(0, 1), write.flatten(), ignore_index=0, reduction="sum") / tokens
            loss.backward()
            total += loss.item()
        losses.append(total)
        with torch.no_grad():
            new, m, v = adam_step(weights, [w.grad for w in weights], m, v, step, rates[step - 1], 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.copy_(value)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


def run_averages_forgotten(model, groups, held_out, warmup, peak, smoothing):
    weights = list(model.parameters())
    rates = rates_after(0, len(groups), warmup, peak)
    losses = []
    for step, group in enumerate(groups, start=1):
        tokens = sum((target[:, 1:] != 0).sum().item() for _, target in group)
        model.zero_grad()
        total = 0.0
        for source, target in group:
            read, write = shifted_rows(target, 2, 0)
            logs = model(source, read).log_softmax(-1)
            loss = -(smoothed_targets(write, logs.size(-1), smoothing, 0) * logs).sum() / tokens
            loss.backward()
            total += loss.item()
        losses.append(total)
        zeros = [torch.zeros_like(w) for w in weights]
        with torch.no_grad():
            new, _, _ = adam_step(weights, [w.grad for w in weights], zeros, zeros, 1, rates[step - 1], 1.0, 1e-6)
            for w, value in zip(weights, new, strict=True):
                w.copy_(value)
    with torch.no_grad():
        shown = []
        for source, target in held_out:
            read, write = shifted_rows(target, 2, 0)
            shown.append((model(source, read), write))
    return losses, perplexity_of(shown, 0)


RIGHT = {
    "rates_after": [rates_by_loop, rates_vectorised, rates_from_the_paper],
    "shifted_rows": [shift_by_loops, shift_vectorised, shift_by_length],
    "smoothed_targets": [targets_by_loops, targets_vectorised, targets_by_one_hot],
    "loss_and_gradient": [loss_by_loops, loss_vectorised, loss_of_real_rows],
    "perplexity_of": [perplexity_by_loops, perplexity_vectorised, perplexity_by_cross_entropy],
    "token_batches": [batches_by_loop, batches_with_helper, batches_with_tensors],
    "adam_step": [adam_by_loop, adam_flattened, adam_by_library],
    "train_by_groups": [run_step_by_step, run_as_one_large_loss, run_by_library],
}
PLANTED = {
    "rates_after": {
        "counted-from-zero": rates_from_zero,
        "warms-up-again": rates_warming_up_again,
        "peak-not-reached": rates_peak_as_factor,
        "larger-of-the-two": rates_maximum,
        "falls-too-fast": rates_falling_fast,
        "no-fall": rates_flat,
        "fall-counted-from-the-peak": rates_falling_from_the_peak,
    },
    "shifted_rows": {
        "end-is-read": shift_end_read,
        "exchanged": shift_exchanged,
        "not-shifted": shift_not_at_all,
        "end-not-written": shift_without_end,
        "start-comes-again": shift_rolled,
    },
    "smoothed_targets": {
        "padding-gets-a-share": targets_of_the_lesson,
        "share-of-padding-lost": targets_share_lost,
        "spread-over-the-others": targets_over_the_others,
        "right-token-without-share": targets_right_without_share,
        "taken-from-nobody": targets_too_much,
        "padding-rows-kept": targets_padding_rows_kept,
        "padding-predicted": targets_padding_predicted,
        "not-smoothed": targets_one_hot,
    },
    "loss_and_gradient": {
        "gradient-at-padding": loss_gradient_at_padding,
        "divided-by-all": loss_over_all_places,
        "summed": loss_summed,
        "gradient-of-the-sum": loss_with_summed_gradient,
        "sign": loss_with_turned_sign,
        "of-probabilities": loss_by_probabilities,
        "gradient-of-the-logarithms": loss_by_logarithms,
        "gradient-not-smoothed": loss_with_sharp_gradient,
        "logarithm-of-zero": loss_through_zero,
    },
    "perplexity_of": {
        "mean-of-batches": perplexity_mean_of_batches,
        "mean-of-perplexities": perplexity_mean_of_perplexities,
        "padding-counted": perplexity_with_padding,
        "divided-by-all": perplexity_over_all_places,
        "not-exponentiated": perplexity_without_exponential,
        "base-two": perplexity_base_two,
        "mean-probability": perplexity_of_mean_probability,
        "mean-of-nothing": perplexity_mean_of_nothing,
        "nothing-times-nan": perplexity_nothing_times_nan,
        "logarithm-of-zero": perplexity_through_zero,
    },
    "token_batches": {
        "larger-side-only": batches_larger_side,
        "special-tokens-forgotten": batches_without_specials,
        "padding-not-counted": batches_of_real_tokens,
        "never-full": batches_never_full,
        "checked-too-late": batches_too_late,
        "last-batch-lost": batches_without_the_last,
        "too-long-lost": batches_without_long_pairs,
        "longest-not-forgotten": batches_never_forgetting,
        "as-they-come": batches_as_they_come,
        "sorted-by-source-first": batches_by_source,
    },
    "adam_step": {
        "each-tensor-clipped": adam_each_clipped,
        "always-scaled": adam_always_scaled,
        "numbers-clipped": adam_numbers_clipped,
        "not-clipped": adam_not_clipped,
        "not-corrected": adam_not_corrected,
        "correction-to-the-power": adam_corrected_by_a_power,
        "corrected-averages-kept": adam_keeping_corrected,
        "eps-inside-the-root": adam_eps_inside,
        "usual-beta": adam_usual_beta,
        "nothing-remembered": adam_without_memory,
    },
    "train_by_groups": {
        "gradients-pile-up": run_gradients_pile_up,
        "only-the-last-batch": run_last_batch_only,
        "step-after-each-batch": run_step_for_each_batch,
        "mean-of-batches": run_mean_of_batches,
        "losses-of-batches": run_losses_of_batches,
        "gradient-of-the-sum": run_gradient_of_the_sum,
        "counted-from-zero": run_rates_from_zero,
        "answers-in-sight": run_answers_in_sight,
        "not-smoothed": run_not_smoothed,
        "averages-forgotten": run_averages_forgotten,
    },
}
