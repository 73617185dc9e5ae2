"""The MVP paper (Gao & Pu, ICLR 2025) beside our records; `pages` writes the pages.

- `printed.toml`: The paper's numbers.
- `words.toml`: Text about each exhibit, in the paper's order.
- `numbers`: Records, and the rule by which a number is reproduced.
- `exhibit`: Parts of every exhibit; `clustering`, `images`, `training`, `variants`: the exhibits.
- `figures`: Pictures.
"""
