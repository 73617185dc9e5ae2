"""The MVP paper (Gao & Pu, ICLR 2025) beside our records: `benchmarks/paper_pages.py` writes it.

printed.toml    the paper's numbers         words.toml      what is said of each exhibit
numbers         records, and when a number is reproduced
tables          an exhibit from numbers     figures         pictures
"""
