"""What every model answers to, and what the models ask of attention and of positions."""

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Axes = tuple[Int[Tensor, "N L"], Int[Tensor, "N S"]]
"""The token ids on the query axis and on the key axis of an attention call."""


class AttentionFactory(Protocol):
    """Makes one attention module: ``torch.nn.MultiheadAttention``, ours, or anyone's.

    The module takes torch's call, batch first: ``(query, key, value, key_padding_mask=...,
    need_weights=..., attn_mask=..., is_causal=...) -> (output, weights)``. A factory that takes
    ``position`` too is handed, for self-attention, an encoding that acts inside attention; to other
    modules the model tells a bias by the float mask.
    """

    def __call__(self, embed_dim: int, num_heads: int, *, dropout: float) -> nn.Module:
        """Make a module of ``num_heads`` heads over inputs of ``embed_dim`` numbers."""


class PositionFactory(Protocol):
    """Makes one positional encoding; see ``mha_lab.positions.interface``.

    One that says nothing of itself takes and returns embeddings (N, L, embed_dim).
    """

    def __call__(self, embed_dim: int, /) -> nn.Module:
        """Make an encoding for inputs of ``embed_dim`` numbers."""


class SequenceModel(nn.Module, ABC):
    """Maps a source sequence to a target sequence: what every model answers to.

    Both are token ids, right-padded with ``<pad>``; each row ends in ``<eos>``. A model's
    constructor takes the vocabulary's size first and all else by keyword.

    Attributes:
        uses_attention: False for a model whose constructor wants neither ``attention`` nor
            ``position``.
    """

    uses_attention: ClassVar[bool] = True

    @abstractmethod
    def forward(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> Float[Tensor, "N T V"]:
        """Teacher forcing: the logits at t predict ``target[:, t]``, given only what precedes it.

        The model makes the shifted input itself, by prepending ``<bos>``.
        """

    @abstractmethod
    def generate(
        self,
        source: Int[Tensor, "N S"],
        *,
        max_length: int,
        blanks: Bool[Tensor, "N T"] | None = None,
        use_cache: bool = True,
    ) -> Int[Tensor, "N T"]:
        """Decode greedily, in evaluation mode: each row up to its ``<eos>``, then ``<pad>``.

        T is the length of the longest output, at most ``max_length``.

        Args:
            source: (N, S) token ids.
            max_length: the most tokens to produce, ``<eos>`` counted.
            blanks: True where nothing is asked: there the output, and what later steps read of
                it, is ``<pad>``, as in the targets of such tasks.
            use_cache: whether each token is computed once, where attention and positions can go on
                from earlier ones. The output is the same.
        """

    @abstractmethod
    def attention_axes(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> dict[str, Axes]:
        """What stands on the axes of each attention call of ``forward(source, target)``.

        Returns:
            For each pattern of module names, e.g. ``decoder.*.cross_attn``, the token ids of the
            queries and of the keys.
        """
