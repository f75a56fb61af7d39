"""Record the attention of any model, without changing the model.

Example:
    >>> with record_attention(model) as maps:
    ...     model(inputs)
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import ContextDecorator, ExitStack

from torch import nn

from mha_lab.maps.attention_maps import AttentionMaps
from mha_lab.recording.choice import Choice
from mha_lab.recording.eager import uncompiled
from mha_lab.recording.fused import exact_outputs
from mha_lab.recording.globs import check_globs, matches_within, refuse_unmatched
from mha_lab.recording.labels import TokenSource, label_maps
from mha_lab.recording.module_paths import module_names, module_paths
from mha_lab.recording.pooling import Pool
from mha_lab.recording.watcher import Watcher


def record_attention(
    model: nn.Module,
    *,
    modules: str | Sequence[str] | None = None,
    samples: int | Sequence[int] | None = None,
    heads: int | Sequence[int] | None = None,
    average_heads: bool = False,
    max_size: int | None = None,
    pool: Pool = "mean",
    softmax: bool = False,
    values: bool = False,
    tokens: TokenSource | None = None,
) -> Recording:
    """Record every attention call that a model makes inside the block.

    The model's outputs, gradients, random state and training flags are those of a run that is not
    recorded. Compiled models run uncompiled inside the block. What the backward pass computes again
    (activation checkpointing) is recorded once.

    Example:
        >>> with record_attention(model) as maps:
        ...     model(inputs)
        >>> maps[0].name, maps[0].weights.shape
        ('encoder.layers.0.self_attn', torch.Size([2, 4, 7, 7]))

    Args:
        model: Any module. Its calls of ``nn.MultiheadAttention``, of
            ``F.scaled_dot_product_attention`` and of functions that say their ``attention_weights``
            are recorded.
        modules: Globs of module paths, such as ``"encoder.*"``: only attention in modules that
            match, or that lie inside one that matches, is recorded. A glob matches a whole path
            or what follows any of its dots. None means all.
        samples: How many samples of the batch, from the first, or which ones. None means all.
        heads: How many heads at most, from the first, since layers may have different numbers of
            them; or a list of which ones, each of which must be there. None means all.
        average_heads: Whether to record the mean over the chosen heads, as one head.
        max_size: The largest length of a map along each axis. Longer maps are pooled while they
            are computed, in memory linear in the sequence's length. None means no limit.
        pool: How a block of weights becomes one when a map is pooled: "mean" or "max".
        softmax: Whether to record attention written by hand too: a softmax whose result, whatever
            was done to it, is then multiplied with values by a matrix product.
        values: Whether to keep the norm of each value too, for ``maps.value_weighted()``.
        tokens: What stands on the axes: one list of tokens a sample of the batch, or such lists by
            glob of module path; see :mod:`mha_lab.recording.labels`. Written when the block ends.

    Returns:
        What ``with`` takes; it may be entered again, and is another recording each time. ``as``
        gives a list that fills with maps in call order, and that a notebook shows as an interactive
        view; their weights are (N, H, L, S), detached, before dropout, in at least float32. The
        second call of one module is named "encoder.self_attn#2", and so on.

    Raises:
        TypeError: If model is no module or an option is of another type.
        ValueError: If an option's value cannot be, a glob matches no module, or a chosen sample or
            head does not exist in a call.

    Warns:
        UserWarning: At the end, of what was seen and may be attention, but is not among the maps;
            and if there are none, why.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"model={model!r} is a {type(model).__name__}; record_attention needs a torch.nn.Module"
        )
    globs = check_globs("modules", modules)
    refuse_unmatched("modules", globs, [path for _, path in module_paths(model)])
    choice = Choice(samples, heads, average_heads, max_size, pool, values)
    return Recording(model, globs, choice, softmax=softmax, tokens=tokens)


class Recording(ContextDecorator):
    """A context in which the attention of a model is recorded; see :func:`record_attention`.

    Args:
        model: The model.
        globs: Which of its modules; none means all.
        choice: What of each call.
        softmax: Whether attention by hand is recorded too.
        tokens: What stands on the axes.
    """

    def __init__(
        self,
        model: nn.Module,
        globs: Sequence[str],
        choice: Choice,
        *,
        softmax: bool,
        tokens: TokenSource | None,
    ) -> None:
        self._model = model
        self._globs = globs
        self._choice = choice
        self._softmax = softmax
        self._tokens = tokens
        self._open: list[tuple[Watcher, ExitStack]] = []

    def __enter__(self) -> AttentionMaps:
        names = module_names(self._model)
        paths = module_paths(self._model)
        chosen = {name for name, path in paths if matches_within(path, self._globs)}
        watcher = Watcher(names, chosen, self._choice, softmax=self._softmax)
        with ExitStack() as stack:
            stack.enter_context(uncompiled())
            stack.enter_context(exact_outputs(self._model, Watcher))
            watcher.__enter__()  # type: ignore[no-untyped-call]
            stack.callback(watcher.leave)
            self._open.append((watcher, stack.pop_all()))
        return watcher.maps

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        watcher, stack = self._open.pop()
        stack.close()
        if kind is not None:
            return
        if self._tokens is not None:
            watcher.maps[:] = label_maps(watcher.maps, self._tokens)
        if (told := watcher.told(self._model)) is not None:
            warnings.warn(told, UserWarning, stacklevel=2)
