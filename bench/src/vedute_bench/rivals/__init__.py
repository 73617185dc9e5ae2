"""Every method beside what else one would impute with."""
