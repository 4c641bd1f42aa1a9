"""Recurrent cells: the plain one (Elman 1990), LSTM (Hochreiter and Schmidhuber 1997) and GRU (Cho et al. 2014).

Each formula takes the input's share W x + b, the state's share W' h + b' and the state before, and gives the state
after it. They stand here to be read, and run where tokens come one by one: while a translation is written, and where
a decoder looks at the source between two tokens. Whole sequences run through PyTorch's kernels on the same weights;
tests keep the two equal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from tinytransformer.model.products import linear

State = tuple[Tensor, ...]  # (h,), or (h, c) of an LSTM: each (B, D)


def rnn_cell(from_input: Tensor, from_state: Tensor, state: State) -> State:
    """h' = tanh(W x + W' h): both shares (B, D)."""
    return (torch.tanh(from_input + from_state),)


def gru_cell(from_input: Tensor, from_state: Tensor, state: State) -> State:
    """A mix of the old state and a candidate, by an update gate; a reset gate says what the candidate sees: (B, 3 D).

    As in PyTorch the reset gate acts on W' h; in Cho et al. it acts on h.
    """
    (h,) = state
    reset_x, update_x, candidate_x = from_input.chunk(3, dim=-1)
    reset_h, update_h, candidate_h = from_state.chunk(3, dim=-1)
    reset, update = torch.sigmoid(reset_x + reset_h), torch.sigmoid(update_x + update_h)
    candidate = torch.tanh(candidate_x + reset * candidate_h)
    return (candidate + update * (h - candidate),)


def lstm_cell(from_input: Tensor, from_state: Tensor, state: State) -> State:
    """The cell c forgets and takes in by gates, and a third gate says how much of it is shown: (B, 4 D)."""
    _, c = state
    take, forget, candidate, show = (from_input + from_state).chunk(4, dim=-1)
    c = torch.sigmoid(forget) * c + torch.sigmoid(take) * torch.tanh(candidate)
    return torch.sigmoid(show) * torch.tanh(c), c


@dataclass(frozen=True)
class Cell:
    """A formula and PyTorch's module that runs it over whole sequences."""

    formula: Callable[[Tensor, Tensor, State], State]
    fused: type[nn.RNNBase]


CELLS: Mapping[str, Cell] = MappingProxyType(
    {"rnn": Cell(rnn_cell, nn.RNN), "gru": Cell(gru_cell, nn.GRU), "lstm": Cell(lstm_cell, nn.LSTM)}
)


class RecurrentLayer(nn.Module):
    """One layer, to the right or both ways; both directions side by side then have ``d_model`` features together."""

    def __init__(self, cell: str, d_input: int, d_model: int, bidirectional: bool = False):
        super().__init__()
        self.formula = CELLS[cell].formula
        width = d_model // 2 if bidirectional else d_model
        self.fused = CELLS[cell].fused(d_input, width, batch_first=True, bidirectional=bidirectional)

    def forward(self, x: Tensor | PackedSequence, state: State | None = None) -> tuple[Tensor | PackedSequence, State]:
        """A sequence (B, T, d_input), or a packed one, and the state before it, to all outputs and the last state."""
        if state is None:
            outputs, last = self.fused(x)
        elif x.size(1) == 1:  # a single token is quicker by the formula
            state = self.step(linear(x[:, 0], self.fused.weight_ih_l0, self.fused.bias_ih_l0), state)
            return state[0][:, None], state
        else:
            before = tuple(part[None].contiguous() for part in state)
            outputs, last = self.fused(x, before if len(before) == 2 else before[0])
        parts = last if isinstance(last, tuple) else (last,)  # each (directions, B, width)
        return outputs, tuple(part.transpose(0, 1).flatten(1) for part in parts)

    def step(self, from_input: Tensor, state: State) -> State:
        """One token by the formula, to the right; ``from_input`` is W x + b for all gates."""
        return self.formula(from_input, linear(state[0], self.fused.weight_hh_l0, self.fused.bias_hh_l0), state)
