"""Recurrent encoder and decoders: a sentence is read token by token, and so is its translation written.

What was chosen, and where it departs:

- The encoder reads both ways in every layer, as in Bahdanau et al. (2015), each direction with half of d_model. So the
  last states have just read the source's first words as well as its last ones; Sutskever et al. (2014) reverse the
  source for the sake of the first. It can also be built to read to the right only.
- The decoder starts from the encoder's last states, layer by layer, both directions side by side (Sutskever et al.).
  Departure: Bahdanau et al. start from a projection of the backward one.
- Dropout stands between layers and at both ends, never on the way from token to token.
- All weights start as PyTorch starts them.
"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from tinytransformer.model.attention import xavier_linear
from tinytransformer.model.cells import RecurrentLayer, State
from tinytransformer.model.dropout import Dropout
from tinytransformer.model.early_attention import AdditiveAttention, DotAttention
from tinytransformer.model.products import linear
from tinytransformer.model.stepping import SourceMemory, StateCache, SteppingDecoder


class RecurrentEncoder(nn.Module):
    """A stack of recurrent layers over padded sentences; padding, which stands on the right, is never read."""

    def __init__(self, cell: str, d_model: int, num_layers: int, dropout: float = 0.1, bidirectional: bool = True):
        super().__init__()
        layers = [RecurrentLayer(cell, d_model, d_model, bidirectional) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> SourceMemory:
        """x (B, S, D) and its padding mask to states (B, S, D); ``rest``: the layers' last states (B, layers, D)."""
        lengths = (mask[:, 0, 0] * torch.arange(1, x.size(1) + 1, device=x.device)).amax(-1)
        lengths = lengths.clamp(min=1).cpu()  # a sentence of padding alone is read as one token
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        last = []
        for layer in self.layers:
            packed, state = layer(self._dropped(packed))
            last.append(state)
        states, _ = pad_packed_sequence(self._dropped(packed), batch_first=True, total_length=x.size(1))
        return SourceMemory(states, mask, tuple(torch.stack(parts, dim=1) for parts in zip(*last, strict=True)))

    def _dropped(self, packed: PackedSequence) -> PackedSequence:
        return packed._replace(data=self.dropout(packed.data))


class RecurrentDecoder(SteppingDecoder):
    """Without attention: all it knows of the source is the state it starts from (Sutskever et al. 2014)."""

    def __init__(self, cell: str, d_model: int, num_layers: int, dropout: float = 0.1):
        super().__init__()
        self.layers = nn.ModuleList(RecurrentLayer(cell, d_model, d_model) for _ in range(num_layers))
        self.dropout = Dropout(dropout)

    def start(self, memory: SourceMemory) -> StateCache:
        return StateCache(memory.rest, (), memory.mask)

    def step(self, x: Tensor, cache: StateCache) -> tuple[Tensor, StateCache]:
        outputs, states = self._through(self.layers, self.dropout(x), _by_layer(cache))
        return self.dropout(outputs), cache.followed_by(_joined(states), x.size(1))

    def _through(self, layers: nn.ModuleList, x: Tensor, states: list[State]) -> tuple[Tensor, list[State]]:
        """All positions x (B, T, D) through some layers, by PyTorch's kernels."""
        after = []
        for number, (layer, state) in enumerate(zip(layers, states, strict=True)):
            x, state = layer(self.dropout(x) if number else x, state)
            after.append(state)
        return x, after


class DotDecoder(RecurrentDecoder):
    """With dot-product attention from the top layer's states: tanh(W [context, state]) (Luong et al. 2015).

    Departure: no input feeding. The output of one token is not read with the next, so training needs no loop over them.
    """

    def __init__(self, cell: str, d_model: int, num_layers: int, dropout: float = 0.1):
        super().__init__(cell, d_model, num_layers, dropout)
        self.attention = DotAttention(d_model)
        self.combine = xavier_linear(2 * d_model, d_model)

    def attentions(self) -> list[nn.Module]:
        return [self.attention]

    def start(self, memory: SourceMemory) -> StateCache:
        return StateCache(memory.rest, (self.attention.keys(memory.states), memory.states), memory.mask)

    def step(self, x: Tensor, cache: StateCache) -> tuple[Tensor, StateCache]:
        outputs, states = self._through(self.layers, self.dropout(x), _by_layer(cache))
        context = self.attention(outputs, *cache.memory, cache.memory_mask)
        return self._combined(context, outputs), cache.followed_by(_joined(states), x.size(1))

    def _combined(self, context: Tensor, outputs: Tensor) -> Tensor:
        return self.dropout(torch.tanh(self.combine(torch.cat([context, outputs], dim=-1))))


class AdditiveDecoder(DotDecoder):
    """With additive attention (Bahdanau et al. 2015): a state looks, and what it finds is read with the next token.

    So the tokens must come one after the other, in training too. Only the first layer needs that: the others read its
    output, all positions at once (the arrangement of Wu et al. 2016). Departure: contexts and outputs are combined as
    in `DotDecoder`, so that the two differ in their attention alone; Bahdanau et al. have a maxout layer there.
    """

    def __init__(self, cell: str, d_model: int, num_layers: int, dropout: float = 0.1):
        super().__init__(cell, d_model, num_layers, dropout)
        self.attention = AdditiveAttention(d_model)
        self.layers[0] = RecurrentLayer(cell, 2 * d_model, d_model)  # reads a token and a context, side by side

    def step(self, x: Tensor, cache: StateCache) -> tuple[Tensor, StateCache]:
        first, *states = _by_layer(cache)
        outputs, contexts, first = self._first_layer(self.dropout(x), first, cache)
        if states:
            outputs, states = self._through(self.layers[1:], self.dropout(outputs), states)
        return self._combined(contexts, outputs), cache.followed_by(_joined([first, *states]), x.size(1))

    def _first_layer(self, x: Tensor, state: State, cache: StateCache) -> tuple[Tensor, Tensor, State]:
        """Look, read, look, read …: outputs and contexts (B, T, D), and the last state."""
        layer, (keys, values) = self.layers[0], cache.memory
        # W [token, context] is W₁ token + W₂ context, and the first of them needs no loop.
        w_token, w_context = layer.fused.weight_ih_l0.split(x.size(-1), dim=1)
        from_tokens = linear(x, w_token, layer.fused.bias_ih_l0)  # (B, T, gates · D)
        contexts, weights, outputs = [], [], []
        for from_token in from_tokens.unbind(1):
            context, weight = self.attention.attend(state[0][:, None], keys, values, cache.memory_mask)
            state = layer.step(from_token + linear(context[:, 0], w_context), state)
            contexts.append(context)
            weights.append(weight)
            outputs.append(state[0])
        # One record for all tokens, as of any attention. Each weight is (sentences, 1, translations, S).
        self.attention.record(torch.stack(weights, dim=3).flatten(2, 3))
        return torch.stack(outputs, dim=1), torch.cat(contexts, dim=1), state


def _by_layer(cache: StateCache) -> list[State]:
    """The state of each layer, from parts that hold all layers (B, layers, D)."""
    return list(zip(*(part.unbind(1) for part in cache.states), strict=True))


def _joined(states: list[State]) -> list[Tensor]:
    return [torch.stack(parts, dim=1) for parts in zip(*states, strict=True)]
