"""Records as tables and figures."""
