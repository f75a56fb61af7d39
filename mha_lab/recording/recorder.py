"""Record the attention of any model, without changing the model.

A ``torch.overrides.TorchFunctionMode`` sees every torch function that is called while it is active.
Each call is answered by torch itself; where it is attention, its weights are computed beside it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.attention_maps import AttentionMaps
from mha_lab.recording.caller import Caller, find_caller, find_name, kind_of_call, module_names
from mha_lab.recording.calls import reads_attention
from mha_lab.recording.choice import Choice
from mha_lab.recording.control_flow import call_watched
from mha_lab.recording.distribution import Pool
from mha_lab.recording.eager import uncompiled
from mha_lab.recording.fused import exact_outputs
from mha_lab.recording.globs import check_globs, matches_within, refuse_unmatched
from mha_lab.recording.handwritten import SoftmaxTracker
from mha_lab.recording.labels import TokenSource, label_maps
from mha_lab.recording.softmaxes import Fate
from mha_lab.recording.told import Unrecorded, what_is_missing, why_empty
from mha_lab.recording.weigh import weigh


@contextmanager
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
) -> Iterator[AttentionMaps]:
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
        heads: How many heads, from the first, or which ones. None means all.
        average_heads: Whether to record the mean over the chosen heads, as one head.
        max_size: The largest length of a map along each axis. Longer maps are pooled while they
            are computed, in memory linear in the sequence's length. None means no limit.
        pool: How a block of weights becomes one when a map is pooled: "mean" or "max".
        softmax: Whether to record attention written by hand too: a softmax whose result, whatever
            was done to it, is then multiplied with values by a matrix product.
        values: Whether to keep the norm of each value too, for ``maps.value_weighted()``.
        tokens: What stands on the axes: one list of tokens a sample of the batch, or such lists by
            glob of module path; see :mod:`mha_lab.recording.labels`. Written when the block ends.

    Yields:
        A list that fills with maps in call order, and that a notebook shows as an interactive view;
        their weights are (N, H, L, S), detached, before dropout, in at least float32. The second
        call of one module is named "encoder.self_attn#2", and so on.

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
    names = module_names(model)
    globs = check_globs("modules", modules)
    refuse_unmatched("modules", globs, names.values())
    choice = Choice(samples, heads, average_heads, max_size, pool, values)
    recorder = _Recorder(names, globs, choice, softmax=softmax)
    with ExitStack() as stack:
        stack.enter_context(uncompiled())
        stack.enter_context(exact_outputs(model, _Recorder))
        stack.enter_context(recorder)
        yield recorder.maps
    if tokens is not None:
        recorder.maps[:] = label_maps(recorder.maps, tokens)
    if (told := recorder.told(model)) is not None:
        warnings.warn(told, UserWarning, stacklevel=3)


_MOST_LOOKS = 1000
"""How many functions are looked at for whether the model runs, before it is said that it does."""


class _Recorder(TorchFunctionMode):
    """Sees every torch function that is called; records those that are attention."""

    def __init__(
        self, names: dict[int, str], globs: Sequence[str], choice: Choice, *, softmax: bool
    ) -> None:
        super().__init__()
        self.maps = AttentionMaps()
        self._names = names
        self._globs = globs
        self._choice = choice
        self._module_now = partial(find_name, names)
        self._tracker = SoftmaxTracker(keeps_weights=softmax, module_now=self._module_now)
        self._calls: Counter[str] = Counter()
        self._unrecorded: Counter[Unrecorded] = Counter()
        self._looks_left = _MOST_LOOKS

    def told(self, model: nn.Module) -> str | None:
        """What the user should know of what is not among the maps."""
        softmaxes = self._tracker.softmaxes
        if self.maps:
            return what_is_missing(model, len(self.maps), self._unrecorded, softmaxes)
        has_run = self._looks_left == 0
        return why_empty(model, self._unrecorded, softmaxes, has_run=has_run)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        result = call_watched(func, args, kwargs, self)
        if self._looks_left:
            self._look_whether_the_model_runs()
        if reads_attention(func):
            self._record(func, args, kwargs)
            self._tracker.answered([*args, *kwargs.values()])
        elif (
            self._tracker.is_concerned(func, args, kwargs)
            and torch._C._current_graph_task_id() == -1
        ):
            with _unseen():
                found = self._tracker.follow(func, args, kwargs, result)
            if found is not None and found.weights is not None:
                self._record(None, (found.weights, found.values), {})
                for softmax in found.softmaxes:
                    softmax.becomes(Fate.ANSWERED)
        return result

    def _look_whether_the_model_runs(self) -> None:
        self._looks_left = 0 if self._module_now() is not None else self._looks_left - 1

    def _record(
        self, func: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Record one call of an attention function, or weights that were followed (func None)."""
        caller = find_caller(self._names)
        why_not = self._why_not(caller, args)
        if caller is None or why_not is not None:
            self._unrecorded[why_not or Unrecorded.OUTSIDE] += 1
            return
        with _unseen():
            call = weigh(func, args, kwargs, caller, self._choice)
        self._calls[caller.name] += 1
        count = self._calls[caller.name]
        self.maps.append(
            AttentionMap(
                name=caller.name if count == 1 else f"{caller.name}#{count}",
                weights=call.weights,
                kind=kind_of_call(caller, is_causal=call.is_causal, size=call.size),
                size=call.size,
                samples=call.samples,
                heads=call.heads,
                whole_scores=call.scores,
                whole=call.whole,
                key_heads=call.key_heads,
                pool=self._choice.pool,
                value_norms=call.value_norms,
                weighted=call.weighted,
            )
        )

    def _why_not(self, caller: Caller | None, args: tuple[Any, ...]) -> Unrecorded | None:
        """Why a call is not recorded; None when it is."""
        if caller is None:
            return Unrecorded.OUTSIDE
        if not matches_within(caller.name, self._globs):
            return Unrecorded.NOT_CHOSEN
        if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined,no-untyped-call]
            return Unrecorded.TRACED
        if torch._C._current_graph_task_id() != -1:
            return Unrecorded.REPEATED
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        if any(type(tensor).__name__ == "FakeTensor" for tensor in tensors):
            return Unrecorded.TRACED
        if any(tensor.is_meta for tensor in tensors):
            return Unrecorded.NO_NUMBERS
        return None


@contextmanager
def _unseen() -> Iterator[None]:
    """Compute what is ours alone: no other mode sees it, no graph keeps it, nothing is rounded."""
    with torch._C.DisableTorchFunction(), torch.inference_mode(False), torch.no_grad():
        yield
