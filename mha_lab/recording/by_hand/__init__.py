"""Softmaxes that a model computes by itself, followed until they meet values."""
