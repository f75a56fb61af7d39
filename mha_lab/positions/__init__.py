"""One positional encoding a file.

Where an encoding may act, what it says of itself and how it is called: ``interface.py``. One that
says nothing is an ``nn.Module`` made from ``embed_dim``, whose forward takes embeddings (N, L, E)
and returns them with the positions told, in the same shape. An encoding with options of its own
takes them as keyword arguments; its config makes a partial, so that a model can call
``position(embed_dim)``.
"""

from mha_lab.positions.learned import LearnedPositions
from mha_lab.positions.none import NoPositions
from mha_lab.positions.sinusoidal import SinusoidalPositions

__all__ = ["LearnedPositions", "NoPositions", "SinusoidalPositions"]
