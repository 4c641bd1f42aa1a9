"""Right and wrong answers to the exercises of lesson 06."""

import math

import torch
import torch.nn.functional as F

# --- the shapes


def shapes(heads=True, last=False, cross="TS", hidden=None, logits=None):
    def tensor_shapes(b, s, t, h, d_ff, v):
        size = {"S": s, "T": t}

        def weights(pair):
            places = [size[pair[0]], size[pair[1]]]
            if not heads:
                return (b, *places)
            return (b, *places, h) if last else (b, h, *places)

        network = hidden(b, s, h, d_ff) if hidden else (b, s, d_ff)
        return [weights("SS"), network, weights("TT"), weights(cross), logits(b, s, v) if logits else (b, t, v)]

    return tensor_shapes


# --- into the model and out of it


def embed(inward=None, outward=None):
    def embed_and_score(ids, states, matrix, positions):
        width = matrix.shape[1]
        places = positions[: ids.shape[1]]
        rows = F.embedding(ids, matrix)
        received = inward(rows, places, width) if inward else rows * width**0.5 + places
        logits = outward(states, matrix, width) if outward else F.linear(states, matrix)
        return received, logits

    return embed_and_score


# --- LayerNorm


def layer_norm(variance=None, bottom=None, centred=True, finish=None, wide=True):
    def safe_layer_norm(x, gain, shift, eps):
        h = x.float() if wide else x
        mean = h.mean(dim=-1, keepdim=True)
        spread = variance(h) if variance else h.var(dim=-1, unbiased=False, keepdim=True)
        under = bottom(spread, eps) if bottom else torch.sqrt(spread + eps)
        h = (h - mean if centred else h) / under
        h = finish(h, gain, shift) if finish else h * gain + shift
        return h.to(x.dtype)

    return safe_layer_norm


def norm_over(dims):
    def safe_layer_norm(x, gain, shift, eps):
        h = x.float()
        axes = dims if dims is not None else tuple(range(h.dim()))
        h = (h - h.mean(axes, keepdim=True)) / torch.sqrt(h.var(axes, correction=0, keepdim=True) + eps)
        return (h * gain + shift).to(x.dtype)

    return safe_layer_norm


def squares_in_half(x, gain, shift, eps):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / (variance + eps) ** 0.5 * gain + shift


def by_moments(x, gain, shift, eps):
    h = x.double()
    mean = h.mean(-1, keepdim=True)
    variance = h.pow(2).mean(-1, keepdim=True) - mean.pow(2)
    return torch.addcmul(shift.double(), (h - mean) * torch.rsqrt(variance.clamp(min=0) + eps), gain).to(x.dtype)


# --- the decoder layer


def pre_norm(x, memory, self_attend, cross_attend, feed_forward, norms):
    x = x + self_attend(norms[0](x))
    x = x + cross_attend(norms[1](x), memory)
    return x + feed_forward(norms[2](x))


def reads_the_old_input(x, memory, self_attend, cross_attend, feed_forward, norms):
    first = norms[0](x + self_attend(x))
    second = norms[1](first + cross_attend(x, memory))
    return norms[2](second + feed_forward(x))


def no_last_norm(x, memory, self_attend, cross_attend, feed_forward, norms):
    x = norms[0](x + self_attend(x))
    x = norms[1](x + cross_attend(x, memory))
    return x + feed_forward(x)


def no_residual(x, memory, self_attend, cross_attend, feed_forward, norms):
    x = norms[0](self_attend(x))
    x = norms[1](cross_attend(x, memory))
    return norms[2](feed_forward(x))


def norm_of_the_part(x, memory, self_attend, cross_attend, feed_forward, norms):
    x = x + norms[0](self_attend(x))
    x = x + norms[1](cross_attend(x, memory))
    return x + norms[2](feed_forward(x))


def no_norm(x, memory, self_attend, cross_attend, feed_forward, norms):
    x = x + self_attend(x)
    x = x + cross_attend(x, memory)
    return x + feed_forward(x)


def from_the_start(x, memory, self_attend, cross_attend, feed_forward, norms):
    h = norms[0](x + self_attend(x))
    h = norms[1](x + cross_attend(h, memory))
    return norms[2](x + feed_forward(h))


def cross_first(x, memory, self_attend, cross_attend, feed_forward, norms):
    x = norms[0](x + cross_attend(x, memory))
    x = norms[1](x + self_attend(x))
    return norms[2](x + feed_forward(x))


def network_in_the_middle(x, memory, self_attend, cross_attend, feed_forward, norms):
    x = norms[0](x + self_attend(x))
    x = norms[1](x + feed_forward(x))
    return norms[2](x + cross_attend(x, memory))


def no_cross(which):
    def block(x, memory, self_attend, cross_attend, feed_forward, norms):
        x = norms[0](x + self_attend(x))
        return norms[which](x + feed_forward(x))

    return block


def cross_itself(x, memory, self_attend, cross_attend, feed_forward, norms):
    x = norms[0](x + self_attend(x))
    x = norms[1](x + cross_attend(x, x))
    return norms[2](x + feed_forward(x))


def one_norm(x, memory, self_attend, cross_attend, feed_forward, norms):
    norm = norms[0]
    x = norm(x + self_attend(x))
    x = norm(x + cross_attend(x, memory))
    return norm(x + feed_forward(x))


def step_by_step(x, memory, self_attend, cross_attend, feed_forward, norms):
    first, second, third = norms
    after_self = first(self_attend(x) + x)
    after_cross = second(cross_attend(after_self, memory) + after_self)
    return third(feed_forward(after_cross) + after_cross)


def in_a_loop(x, memory, self_attend, cross_attend, feed_forward, norms):
    for norm, part in zip(norms, (self_attend, lambda h: cross_attend(h, memory), feed_forward), strict=True):
        x = norm(torch.add(x, part(x)))
    return x


# --- the number of parameters


def counted(linear_bias=(1, 1), attentions=2, norms=(2, 3), per_norm=2, tables=None, head=True, value=True, stacks=2):
    def linear(inputs, outputs, bias):
        return inputs * outputs + bias * outputs

    def count_parameters(vocab_size, d_model, heads, d_k, d_v, d_ff, layers, tied):
        times = heads if head else 1
        width = d_v if value else d_k
        one = 2 * linear(d_model, times * d_k, linear_bias[0]) + linear(d_model, times * width, linear_bias[0])
        one += linear(times * width, d_model, linear_bias[0])
        net = linear(d_model, d_ff, linear_bias[1]) + linear(d_ff, d_model, linear_bias[1])
        encoder_layer = one + net + norms[0] * per_norm * d_model
        decoder_layer = attentions * one + net + norms[1] * per_norm * d_model
        total = layers * (encoder_layer + decoder_layer) if stacks == 2 else layers * encoder_layer
        number = tables(tied) if tables else {True: 1, False: 3}[tied]
        return total + number * vocab_size * d_model

    return count_parameters


def count_by_building(vocab_size, d_model, heads, d_k, d_v, d_ff, layers, tied):
    from tinytransformer import Transformer, TransformerConfig

    sizes = {"d_model": d_model, "num_heads": heads, "d_k": d_k, "d_v": d_v, "d_ff": d_ff, "num_layers": layers}
    model = Transformer(TransformerConfig(vocab_size, **sizes, tie_embeddings=tied))
    return sum(math.prod(parameter.shape) for parameter in model.parameters())


# --- the gradients


def followed(pick=None, measure=torch.linalg.vector_norm, loss=lambda out, direction: (out * direction).sum()):
    def gradient_norms(layers, x, direction):
        h = x.clone().detach().requires_grad_(True)
        kept = [h]
        for layer in layers:
            h = layer(h)
            h.retain_grad()
            kept.append(h)
        loss(h, direction).backward()
        found = [measure(state.grad) for state in kept]
        return torch.stack(pick(found) if pick else found)

    return gradient_norms


def layer_by_layer_backwards(layers, x, direction):
    inputs = [x]
    for layer in layers:
        inputs.append(layer(inputs[-1]))
    gradient, lengths = direction, [direction.norm()]
    for layer, h in zip(reversed(layers), reversed(inputs[:-1]), strict=True):
        _, gradient = torch.autograd.functional.vjp(layer, h, gradient)
        lengths.insert(0, gradient.norm())
    return torch.stack(lengths)


def lengths_of_states(layers, x, direction):
    lengths = [x.norm()]
    for layer in layers:
        x = layer(x)
        lengths.append(x.norm())
    return torch.stack(lengths)


RIGHT = {
    "tensor_shapes": [
        shapes(),
        lambda b, s, t, h, d_ff, v: [[b, h, s, s], [b, s, d_ff], [b, h, t, t], [b, h, t, s], [b, t, v]],
    ],
    "embed_and_score": [
        embed(),
        lambda i, s, m, p: (torch.stack([m[row] * math.sqrt(m.size(1)) + p[: len(row)] for row in i]),
                            torch.einsum("bnd,vd->bnv", s, m)),
    ],
    "safe_layer_norm": [layer_norm(), by_moments],
    "decoder_block": [step_by_step, in_a_loop],
    "count_parameters": [counted(), count_by_building],
    "gradient_norms": [followed(), layer_by_layer_backwards],
}  # fmt: skip

PLANTED = {
    "tensor_shapes": {
        "cross-turned": shapes(cross="ST"),
        "no-heads": shapes(heads=False),
        "heads-last": shapes(last=True),
        "network-per-head": shapes(hidden=lambda b, s, h, d_ff: (b, h, s, d_ff)),
        "logits-of-the-source": shapes(logits=lambda b, s, v: (b, s, v)),
        "logits-of-the-last-only": shapes(logits=lambda b, s, v: (b, v)),
        "three-axes": lambda b, s, t, h, d_ff, v: [(b, s, s), (b, s, d_ff), (b, h, t, t), (b, h, t, s), (b, t, v)],
    },
    "embed_and_score": {
        "positions-scaled": embed(lambda rows, places, d: (rows + places) * math.sqrt(d)),
        "not-scaled": embed(lambda rows, places, d: rows + places),
        "scaled-by-d-model": embed(lambda rows, places, d: rows * d + places),
        "divided": embed(lambda rows, places, d: rows / math.sqrt(d) + places),
        "no-positions": embed(lambda rows, places, d: rows * math.sqrt(d)),
        "output-scaled": embed(outward=lambda s, m, d: s @ m.T * math.sqrt(d)),
        "output-divided": embed(outward=lambda s, m, d: s @ m.T / math.sqrt(d)),
        "output-not-turned": embed(outward=lambda s, m, d: s @ m),
        "probabilities": embed(outward=lambda s, m, d: torch.softmax(s @ m.T, dim=-1)),
    },
    "safe_layer_norm": {
        "unbiased": layer_norm(lambda h: h.var(-1, keepdim=True)),
        "eps-beside-the-root": layer_norm(bottom=lambda v, eps: torch.sqrt(v) + eps),
        "unbiased-and-eps-beside": layer_norm(lambda h: h.std(-1, keepdim=True), bottom=lambda s, eps: s + eps),
        "no-eps": layer_norm(bottom=lambda v, eps: v**0.5),
        "variance-not-root": layer_norm(bottom=lambda v, eps: v + eps),
        "not-centred": layer_norm(centred=False),
        "over-tokens": norm_over(-2),
        "over-everything": norm_over(None),
        "no-gain": layer_norm(finish=lambda h, gain, shift: h + shift),
        "no-shift": layer_norm(finish=lambda h, gain, shift: h * gain),
        "neither-gain-nor-shift": layer_norm(finish=lambda h, gain, shift: h),
        "half-overflow": squares_in_half,
    },
    "decoder_block": {
        "parts-read-the-old-input": reads_the_old_input,
        "last-norm-missing": no_last_norm,
        "pre-norm": pre_norm,
        "no-residual": no_residual,
        "norm-of-the-part": norm_of_the_part,
        "no-norm": no_norm,
        "residual-from-the-start": from_the_start,
        "cross-first": cross_first,
        "network-in-the-middle": network_in_the_middle,
        "no-cross-attention": no_cross(2),
        "no-cross-attention-next-norm": no_cross(1),
        "cross-looks-at-itself": cross_itself,
        "one-norm-for-all": one_norm,
    },
    "count_parameters": {
        "sizes-from-d_model": lambda v, d, h, d_k, d_v, *rest: counted()(v, d, h, d // h, d // h, *rest),
        "closing-norms": lambda v, d, *rest: counted()(v, d, *rest) + 2 * (2 * d),
        "no-cross-attention": counted(attentions=1),
        "two-norms-everywhere": counted(norms=(2, 2)),
        "no-norms": counted(norms=(0, 0)),
        "norms-without-shift": counted(per_norm=1),
        "one-norm-per-layer": counted(norms=(1, 1)),
        "no-attention-biases": counted(linear_bias=(0, 1)),
        "no-network-biases": counted(linear_bias=(1, 0)),
        "no-biases": counted(linear_bias=(0, 0)),
        "always-three-embeddings": counted(tables=lambda tied: 3),
        "always-one-embedding": counted(tables=lambda tied: 1),
        "two-embeddings": counted(tables=lambda tied: 2 - tied),
        "one-head": counted(head=False),
        "values-as-keys": counted(value=False),
        "encoder-only": counted(stacks=1),
    },
    "gradient_norms": {
        "last-first": followed(lambda found: list(reversed(found))),
        "without-x": followed(lambda found: found[1:]),
        "without-the-last": followed(lambda found: found[:-1]),
        "squared": followed(measure=lambda g: (g * g).sum()),
        "mean-size": followed(measure=lambda g: g.abs().mean()),
        "direction-ignored": followed(loss=lambda out, direction: out.sum()),
        "mean-loss": followed(loss=lambda out, direction: (out * direction).mean()),
        "states-not-gradients": lengths_of_states,
    },
}
