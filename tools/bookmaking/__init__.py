"""How the book is made from the lessons: notebooks are adapted, pages are written from data, links are checked.

Read the files in this order: lessons, symbols, explorers, adapting, mistakes, paper_map, tables, results, practice,
reference, sources, linkcheck. `tools/book.py` calls them.
"""
