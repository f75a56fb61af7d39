"""Every query may see every key, as far as the masks allow."""

import torch
from torch import nn


class Full(nn.Module):
    """No pattern."""

    def forward(self, L: int, S: int, device: torch.device) -> None:
        """None: every pair is allowed."""
