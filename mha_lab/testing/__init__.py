"""Contract checks that every variant, encoding and task must pass; public."""
