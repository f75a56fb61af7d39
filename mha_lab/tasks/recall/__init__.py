"""Tasks that look up what stood beside a symbol before."""
