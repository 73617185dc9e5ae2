"""The interface of models, and the one loop that trains them."""
