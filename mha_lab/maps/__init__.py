"""AttentionMap and lists of them: scores, pictures, files."""
