"""The MVP paper (Gao & Pu, ICLR 2025) beside our records; `pages` writes it.

printed.toml    the paper's numbers
words.toml      what is said of each exhibit, in the paper's order
numbers         records, and when a number is reproduced
exhibit         what is made of them; clustering, images, training, variants: each exhibit
figures         pictures
"""
