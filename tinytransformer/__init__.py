"""TinyTransformer: the Transformer of "Attention Is All You Need", piece by piece.

The letters in shape comments, everywhere in this package:

    B batch · S source length, or any number of keys · T target length, or any number of queries · H heads ·
    D = d_model · V vocabulary · d_k, d_v: features of a key and of a value in one head

Read the rooms in the order in which a sentence walks through them; so far: text, model, training, translation,
inspection, teaching; then `commands`, and `cli`, the front door: ``python -m tinytransformer``.
"""

from importlib import import_module

__version__ = "0.1.0"

# Each name is fetched from its room when it is first used, so that ``import tinytransformer`` costs nothing.
_HOMES = {
    "PRESETS": "model.config",
    "MultiHeadAttention": "model.attention",
    "Transformer": "model.transformer",
    "TransformerConfig": "model.config",
    "Translator": "translation.translator",
    "attention": "model.attention",
    "causal_mask": "model.masks",
    "explore": "inspection.explorer",
    "padding_mask": "model.masks",
    "record_attention": "model.recording",
    "silence_heads": "model.recording",
    "window_mask": "model.masks",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'tinytransformer' has no attribute {name!r}: it offers {', '.join(_HOMES)}")
    return getattr(import_module(f"tinytransformer.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
