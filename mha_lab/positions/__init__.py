"""One positional encoding a file."""
