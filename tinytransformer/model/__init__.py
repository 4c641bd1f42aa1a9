"""The model: token ids come in, logits go out.

Read the files in this order: masks, cache, positions, attention, dropout, layers, config, transformer, recording.
The function ``attention`` is not among the names below, for ``tinytransformer.model.attention`` is the module that
holds it; it comes from there or from `tinytransformer`.
"""

from tinytransformer.model.attention import MultiHeadAttention
from tinytransformer.model.cache import Cache, Memory
from tinytransformer.model.config import PRESETS, TransformerConfig
from tinytransformer.model.layers import DecoderLayer, EncoderLayer, FeedForward, PostNorm, PreNorm
from tinytransformer.model.masks import causal_mask, padding_mask, window_mask
from tinytransformer.model.recording import AttentionRecord, record_attention, silence_heads
from tinytransformer.model.transformer import Decoder, Encoder, Transformer

__all__ = [
    "PRESETS",
    "AttentionRecord",
    "Cache",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Memory",
    "MultiHeadAttention",
    "PostNorm",
    "PreNorm",
    "Transformer",
    "TransformerConfig",
    "causal_mask",
    "padding_mask",
    "record_attention",
    "silence_heads",
    "window_mask",
]
