"""What watches a model: a mode that sees every torch function that is called while it is active.

Each call is answered by torch itself; where it is attention, its weights are computed beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)

from mha_lab.indices import NotThereError
from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.attention_maps import AttentionMaps
from mha_lab.recording.by_hand.handwritten import SoftmaxTracker
from mha_lab.recording.by_hand.softmaxes import Fate
from mha_lab.recording.caller import Caller, find_caller, find_name
from mha_lab.recording.calls.readers import reads_attention
from mha_lab.recording.choice import Choice
from mha_lab.recording.control_flow import call_watched
from mha_lab.recording.kinds import kind_of_call
from mha_lab.recording.scripted import scripted_attention
from mha_lab.recording.told import Seen, Unrecorded, what_is_missing, why_empty
from mha_lab.recording.weigh import weigh

_MOST_LOOKS = 1000
"""How many functions are looked at for whether the model runs, before it is said that it does."""


class Watcher(TorchFunctionMode):
    """Sees every torch function that is called; records those that are attention."""

    def __init__(
        self, names: dict[int, str], chosen: Collection[str], choice: Choice, *, softmax: bool
    ) -> None:
        super().__init__()
        self.maps = AttentionMaps()
        self._names = names
        self._chosen = chosen
        self._choice = choice
        self._module_now = partial(find_name, names)
        self._tracker = SoftmaxTracker(keeps_weights=softmax, module_now=self._module_now)
        self._calls: Counter[str] = Counter()
        self._unrecorded: Counter[Unrecorded] = Counter()
        self._looks_left = _MOST_LOOKS
        self._is_over = False
        self._error: Exception | None = None

    def leave(self) -> None:
        """Watch no longer, wherever among the modes of this thread it is.

        Recordings need not end in the order in which they began: generators and tasks take turns.
        One that ends in another thread than it began in cannot leave, and is blind from now on.
        """
        self._is_over = True
        above = []
        if self in _get_current_function_mode_stack():  # type: ignore[no-untyped-call]
            while (top := _pop_mode()) is not self:  # type: ignore[no-untyped-call]
                above.append(top)
        for mode in reversed(above):
            _push_mode(mode)  # type: ignore[no-untyped-call]

    def told(self, model: nn.Module) -> str | None:
        """What the user should know of what is not among the maps."""
        seen = Seen(
            unrecorded=self._unrecorded,
            softmaxes=self._tracker.softmaxes,
            scripted=scripted_attention(model, self._names, self._chosen),
            error=self._error,
            has_run=self._looks_left == 0,
        )
        return what_is_missing(model, len(self.maps), seen) if self.maps else why_empty(model, seen)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self._is_over:
            return func(*args, **kwargs)
        result = call_watched(func, args, kwargs, self)
        if self._looks_left:
            self._look_whether_the_model_runs()
        try:
            self._look(func, args, kwargs, result)
        except NotThereError:
            raise
        except Exception as error:  # the model has its result, and shall go on
            self._unrecorded[Unrecorded.UNREADABLE] += 1
            self._error = self._error or error
        return result

    def _look(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """Record a call that was answered, if it is attention; follow its softmaxes."""
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
        if caller.name not in self._chosen:
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
