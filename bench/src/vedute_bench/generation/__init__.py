"""How well views are inferred and generated: classifiers, floors, likelihoods, k-means."""
