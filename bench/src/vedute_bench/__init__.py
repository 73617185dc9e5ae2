"""Studies of vedute: everything that only they need."""
