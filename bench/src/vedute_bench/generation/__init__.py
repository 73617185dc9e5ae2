"""Quality of inferred and generated views: classifiers, baselines, likelihoods, k-means."""
