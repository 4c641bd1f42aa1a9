"""The commands of ``python -m tinytransformer``: what was typed comes in, a thin call into the package goes out.

Each has ``configure``, which gives a parser its options, and ``run``, which gets what was typed. They are, one file
each and in this order: corpus, download, translate, explore, train, average, evaluate, export,
import_marian, precheck, classroom, grade.
"""
