"""Attention: functional.py holds the tensor functions; one variant a file beside it."""
