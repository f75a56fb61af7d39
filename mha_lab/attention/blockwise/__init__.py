"""Attention with any weighting of rows, block by block; see ``attend``."""
