"""Text: words come in, sentence pairs go out; so far from the microworld, a small English–German world of our own."""
