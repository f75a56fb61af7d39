"""Attention maps of any model: recorder, maps, scores, pictures."""
