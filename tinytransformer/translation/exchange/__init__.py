"""Exchange: a model comes in from other people's formats, or goes out to them, and its weights stay the same.

Read the files in this order: formats, marian, marian_import, ctranslate, onnx_graph, onnx_int8,
onnx_export, onnx_model.
"""
