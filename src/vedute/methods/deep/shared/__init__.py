"""What several methods with networks have in common."""
