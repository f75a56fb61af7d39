"""Forgetting gate [1]_: each token lets a head forget what came before it, a decay by content.

f_t = σ(w_h·x_t + b_h); score_ij = q_i·k_j / √D + Σ_{l=j+1..i} log f_l. Where f is the same for all
tokens, this is ALiBi with the slope −log f.

Acts on the scores, reading the attention's input; one gate a head and layer; any length; causal
only, as the paper's. Positions are not read: the order of the tokens is what counts. Padding may
stand after the tokens, where the causal mask hides it, not between them.

Deviations: none of the gate. The paper's Pro block (output gate, norms, shifted keys) is left out.

.. [1] Lin, Nikishin, He and Courville, "Forgetting Transformer: Softmax Attention with a Forget
   Gate", 2025. https://arxiv.org/abs/2503.02130
"""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.distances import at_least_float32
from mha_lab.ranges import Size


class ForgettingPositions(nn.Module):
    """Adds the logarithms of the forget gates between key and query.

    Args:
        embed_dim: width E of the attention's input.
        num_heads: heads H, a gate each.
    """

    acts_on = "scores"
    is_shared = False
    reads_positions = False

    def __init__(self, embed_dim: Size, *, num_heads: Size) -> None:
        super().__init__()
        self.gate = nn.Linear(embed_dim, num_heads)

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Say that forgetting has no meaning without a causal mask.

        Raises:
            ValueError: it stands where queries see later keys.
        """
        if not is_causal:
            raise ValueError(
                "position=forgetting forgets what came before, which needs a causal mask; choose "
                "model=decoder, or position=alibi"
            )

    def score_bias(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N H S D"],
        x: Float[Tensor, "N L E"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
    ) -> Float[Tensor, "N H L S"]:
        """What is added to the scores.

        Args:
            q: (N, H, L, D), of the last tokens.
            k: (N, H, S, D), of the same tokens as x.
            x: (N, S, E).
            q_positions: not read.
            k_positions: not read.

        Returns:
            (N, H, L, S), in at least float32; 0 where the key comes later.

        Raises:
            ValueError: keys of other tokens than the queries.
        """
        if k.shape[-2] != x.shape[-2]:
            raise ValueError(
                f"position=forgetting reads the gates of all tokens between key and query, so "
                f"queries and keys must be the same tokens, got {x.shape[-2]} and {k.shape[-2]}"
            )
        forgotten = F.logsigmoid(at_least_float32(self.gate(x))).transpose(1, 2).cumsum(-1)
        earlier = x.shape[-2] - q.shape[-2]  # tokens that have no query any more: a cache has them
        rows = forgotten[..., earlier:, None] - forgotten[..., None, :]
        return rows.tril(earlier)
