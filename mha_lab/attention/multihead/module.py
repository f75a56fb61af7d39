"""Multi-head attention [1]_: the twin of ``torch.nn.MultiheadAttention``, right in every mode.

.. [1] Vaswani et al., "Attention Is All You Need", 2017. https://arxiv.org/abs/1706.03762
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.attention.bias import told_bias
from mha_lab.attention.cache import Cache
from mha_lab.attention.multihead.attend import attend
from mha_lab.attention.multihead.checks import check_inputs, check_sizes
from mha_lab.attention.multihead.conversion import copy_from_torch, copy_to_torch
from mha_lab.attention.multihead.masks import (
    Sizes,
    check_masks,
    merge_masks,
    warn_if_zeros_and_ones,
)
from mha_lab.attention.multihead.projection import (
    add_keys,
    join_heads,
    project_apart,
    project_packed,
)
from mha_lab.attention.telling import told
from mha_lab.projected import Heads
from mha_lab.ranges import Probability, Size


class MultiheadAttention(nn.Module):
    """Attention of several heads, with the parameters and the call of ``nn.MultiheadAttention``.

    Two defaults differ from torch's: ``batch_first`` is True, and weights come one map a head.

    Args:
        embed_dim: Width E of query and output; divisible by ``num_heads``.
        num_heads: Number of heads H; each is E / H wide.
        dropout: Probability of dropping an attention weight in training.
        bias: Whether the four projections have biases.
        add_bias_kv: Whether to append a learned key and value to the sequences.
        add_zero_attn: Whether to append a key and value of zeros to the sequences.
        kdim: Width of the keys; None means E.
        vdim: Width of the values; None means E.
        batch_first: Whether inputs and output are (N, L, E), else (L, N, E).
        device: Where the parameters lie.
        dtype: Of the parameters.
        average_attn_weights: Whether returned weights are the mean over the heads, where the call
            does not say.

    Raises:
        TypeError: A size is no whole number.
        ValueError: A size is below 1, E is not divisible by H, or dropout is outside [0, 1].
    """

    in_proj_weight: nn.Parameter | None
    q_proj_weight: nn.Parameter | None
    k_proj_weight: nn.Parameter | None
    v_proj_weight: nn.Parameter | None
    in_proj_bias: nn.Parameter | None
    bias_k: nn.Parameter | None
    bias_v: nn.Parameter | None

    broadcasts_masks = True
    """Read by the models: a mask need not be repeated for each sample."""

    _qkv_same_embed_dim = False
    """Read by ``nn.TransformerEncoderLayer``: False keeps it from skipping our forward."""

    def __init__(
        self,
        embed_dim: Size,
        num_heads: Size,
        dropout: Probability = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: Size | None = None,
        vdim: Size | None = None,
        batch_first: bool = True,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        average_attn_weights: bool = False,
    ) -> None:
        kdim = embed_dim if kdim is None else kdim
        vdim = embed_dim if vdim is None else vdim
        check_sizes(embed_dim, num_heads, dropout, kdim, vdim)
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.kdim = kdim
        self.vdim = vdim
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        self.average_attn_weights = average_attn_weights
        self.has_judged_float_mask = False

        def parameter(*shape: int, exists: bool = True) -> nn.Parameter | None:
            return nn.Parameter(torch.empty(shape, device=device, dtype=dtype)) if exists else None

        is_packed = kdim == vdim == embed_dim
        self.in_proj_weight = parameter(3 * embed_dim, embed_dim, exists=is_packed)
        self.q_proj_weight = parameter(embed_dim, embed_dim, exists=not is_packed)
        self.k_proj_weight = parameter(embed_dim, kdim, exists=not is_packed)
        self.v_proj_weight = parameter(embed_dim, vdim, exists=not is_packed)
        self.in_proj_bias = parameter(3 * embed_dim, exists=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter(1, 1, embed_dim, exists=add_bias_kv)
        self.bias_v = parameter(1, 1, embed_dim, exists=add_bias_kv)
        self.reset_parameters()

    @property
    def takes_encoding(self) -> bool:
        """Read by the models: whether an encoding may be handed over in place of a mask."""
        return self.bias_k is None and not self.add_zero_attn

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> "MultiheadAttention":
        """Make a module with the weights and the defaults of torch's.

        Args:
            module: Stays as it is; the new module holds copies. (``swap_attention`` hands the
                parameters themselves over.)

        Returns:
            A module with the same parameters, hooks, training flag, dtype, device and
            ``batch_first``, whose weights are averaged over heads by default, as torch's are.

        Raises:
            TypeError: module is no plain ``nn.MultiheadAttention``.
        """
        return copy_from_torch(module, cls)

    def to_torch(self) -> nn.MultiheadAttention:
        """Make a ``torch.nn.MultiheadAttention`` with copies of this module's weights.

        Raises:
            TypeError: ``out_proj`` was replaced by what torch's module would never call, or weights
                are parametrized.

        Warns:
            UserWarning: This module returns one map a head by default; torch's averages them.
        """
        return copy_to_torch(self)

    def __prepare_scriptable__(self) -> nn.Module:
        """Say what to do instead, where ``torch.jit.script`` would name an annotation."""
        raise TypeError(
            "MultiheadAttention cannot be compiled by torch.jit.script; use torch.export, "
            "torch.compile or torch.jit.trace, or script its to_torch()"
        )

    def reset_parameters(self) -> None:
        """Draw the parameters as torch does: the same values from the same random state."""
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                nn.init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            nn.init.zeros_(self.in_proj_bias)
            nn.init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                nn.init.xavier_normal_(bias)

    def forward(
        self,
        query: Float[Tensor, "*N L E"],
        key: Float[Tensor, "*N S K"],
        value: Float[Tensor, "*N S V"],
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool | None = None,
        is_causal: bool = False,
        *,
        cache: Cache | None = None,
        encoding: nn.Module | None = None,
    ) -> tuple[Float[Tensor, "*N L E"], Float[Tensor, "..."] | None]:
        """Attend.

        Shapes are those of ``batch_first=True``; else the first two axes change places in query,
        key, value and output. Without a batch, leave N out everywhere.

        Args:
            query: (N, L, E).
            key: (N, S, kdim).
            value: (N, S, vdim).
            key_padding_mask: (N, S), bool (True = blocked) or float (added to the scores).
            need_weights: Whether to return the weights. The output is the same.
            attn_mask: (L, S), (N·H, L, S), (N, H, L, S) or what broadcasts to the latter; bool
                (True = blocked) or float (added to the scores).
            average_attn_weights: Whether weights are the mean over the heads; None means what the
                constructor was told.
            is_causal: Whether query i sees keys 0..i only; needs no mask, and beside one both
                apply.
            cache: Holds earlier keys, to which these are added; then S counts them all.
            encoding: Has ``bias`` (see :mod:`mha_lab.positions.interface`), which is added to the
                scores as a float mask would be, and need not exist as a whole. Not beside learned
                or zero keys.

        Returns:
            The output (N, L, E), and the weights before dropout: (N, H, L, S), averaged (N, L, S),
            None if not needed. Learned or zero keys add to S. Where every key of a query is
            blocked, its weights are 0 and its output is ``out_proj.bias``.

        Raises:
            TypeError: An argument is of a wrong type or dtype.
            ValueError: An argument's shape does not fit the module or the other arguments.
        """
        weight = self.q_proj_weight if self.in_proj_weight is None else self.in_proj_weight
        assert weight is not None
        check_inputs(
            query,
            key,
            value,
            widths=(self.embed_dim, self.kdim, self.vdim),
            batch_first=self.batch_first,
            like=weight,
        )
        q, k, v = self._project(query, key, value)
        start = 0 if cache is None else cache.length
        if cache is not None:
            k, v = cache.extend(k=k, v=v)
        N, H, L, _ = q.shape
        sizes = Sizes(N, H, L, k.shape[2])
        check_masks(attn_mask, key_padding_mask, query, sizes)
        if not (self.has_judged_float_mask or torch.compiler.is_compiling()):
            # Once is enough: reading a mask's values makes a GPU wait.
            self.has_judged_float_mask = warn_if_zeros_and_ones(attn_mask, key_padding_mask)
        k = add_keys(k, self.bias_k, self.add_zero_attn)
        v = add_keys(v, self.bias_v, self.add_zero_attn)
        mask, is_causal = merge_masks(
            attn_mask,
            key_padding_mask,
            is_causal=is_causal,
            sizes=sizes,
            like=q,
            extra_keys=k.shape[2] - sizes.S,
            earlier_keys=start,
        )
        dropout_p = self.dropout if self.training else 0.0
        if average_attn_weights is None:
            average_attn_weights = self.average_attn_weights
        attended, weights = attend(
            q,
            k,
            v,
            mask,
            is_causal=is_causal,
            dropout_p=dropout_p,
            need_weights=need_weights,
            average=bool(average_attn_weights),
            bias=None if encoding is None else told_bias(encoding, told(q, k, query, start)),
        )
        output = self.out_proj(join_heads(attended, self.batch_first))
        if query.ndim == 2:
            output = output.squeeze(0 if self.batch_first else 1)
            weights = None if weights is None else weights.squeeze(0)
        return output, weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Heads, Heads, Heads]:
        heads, batch_first = self.num_heads, self.batch_first
        if self.in_proj_weight is not None:
            return project_packed(
                query,
                key,
                value,
                self.in_proj_weight,
                self.in_proj_bias,
                num_heads=heads,
                batch_first=batch_first,
            )
        weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        return project_apart(
            query,
            key,
            value,
            weights,  # type: ignore[arg-type]  # these exist where in_proj_weight does not
            self.in_proj_bias,
            num_heads=heads,
            batch_first=batch_first,
        )
