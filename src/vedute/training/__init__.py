"""What a model is, and the one loop that trains it."""
