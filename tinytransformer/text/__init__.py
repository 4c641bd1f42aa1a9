"""Text: sentences come in, batches of token ids go out.

First comes the room within, `microworld`; then read the files in this order: download, trees, corpus, tokenizer,
marian_tokenizer, batching.
"""
