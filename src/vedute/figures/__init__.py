"""Pictures: matplotlib style, plots, contact sheets, PNG."""
