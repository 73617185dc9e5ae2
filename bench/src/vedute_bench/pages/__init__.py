"""Pages of tables, figures and words, from records."""
