"""Tasks that put symbols in order."""
