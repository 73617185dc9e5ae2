"""What a user has becomes Views, and comes back in the user's own types."""
