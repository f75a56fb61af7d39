"""Tasks that keep a count or a bit while they read."""
