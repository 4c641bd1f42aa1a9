"""The model: token ids come in, logits go out.

Read the files in this order: masks, cache, positions, products, attention, blockwise, dropout, layers, config,
transformer, families, recording, stepping, early_attention, cells, recurrent, convolutional, baselines. The last six
are what came before the Transformer; families are what came after. The function ``attention`` is not among the names
below, for ``tinytransformer.model.attention`` is the module that holds it; it comes from there or from
`tinytransformer`.
"""

from tinytransformer.model.attention import MultiHeadAttention
from tinytransformer.model.baselines import ARCHITECTURES, Baseline, BaselineConfig, build_model
from tinytransformer.model.cache import Cache, Memory
from tinytransformer.model.cells import gru_cell, lstm_cell, rnn_cell
from tinytransformer.model.config import PRESETS, TransformerConfig
from tinytransformer.model.early_attention import AdditiveAttention, DotAttention
from tinytransformer.model.families import DecoderOnly, EncoderOnly, fill_in, generate
from tinytransformer.model.layers import DecoderLayer, EncoderLayer, FeedForward, PostNorm, PreNorm
from tinytransformer.model.masks import causal_mask, padding_mask, window_mask
from tinytransformer.model.recording import AttentionRecord, record_attention, silence_heads
from tinytransformer.model.transformer import Decoder, Encoder, Transformer

__all__ = [
    "ARCHITECTURES",
    "PRESETS",
    "AdditiveAttention",
    "AttentionRecord",
    "Baseline",
    "BaselineConfig",
    "Cache",
    "Decoder",
    "DecoderLayer",
    "DecoderOnly",
    "DotAttention",
    "Encoder",
    "EncoderLayer",
    "EncoderOnly",
    "FeedForward",
    "Memory",
    "MultiHeadAttention",
    "PostNorm",
    "PreNorm",
    "Transformer",
    "TransformerConfig",
    "build_model",
    "causal_mask",
    "fill_in",
    "generate",
    "gru_cell",
    "lstm_cell",
    "padding_mask",
    "record_attention",
    "rnn_cell",
    "silence_heads",
    "window_mask",
]
