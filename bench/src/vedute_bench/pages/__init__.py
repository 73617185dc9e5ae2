"""Pages of tables, figures and text, written from records."""
