"""What the harness relies on in a model; the interface is ``mha_lab.models.interface``.

A factory is called with the size of the vocabulary alone: what else the model takes is filled in
before, as by ``functools.partial``.
"""

import warnings
from fnmatch import fnmatch

import torch
import torch.nn.functional as F
from torch import Tensor

from mha_lab.recording.recorder import record_attention
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.testing.model_cases import (
    Factory,
    N,
    S,
    T,
    V,
    before_end,
    changed,
    make,
    source,
    target,
)
from mha_lab.testing.running import Check, require, run, same


def check_model(factory: Factory) -> None:
    """Run every check on a model.

    Args:
        factory: makes it, given the vocabulary's size.

    Raises:
        AssertionError: naming each check that failed, and why.
    """
    run(model_checks(), factory)


def model_checks() -> list[Check]:
    """The checks, each a function of the factory, to be run one by one."""
    return [
        logits_are_of_each_target_token,
        gradients_are_finite_and_reach_everything,
        later_target_tokens_do_not_matter,
        the_source_matters,
        samples_do_not_mix,
        padding_does_not_matter,
        eval_is_deterministic,
        decoding_is_what_forward_predicts,
        decoding_ends_each_row_once,
        decoding_leaves_blanks_open,
        axes_name_every_attention_call,
        state_dict_carries_everything,
    ]


def logits_are_of_each_target_token(factory: Factory) -> None:
    """forward(source (N, S), target (N, T)) gives finite floats (N, T, V)."""
    logits = _logits(factory)
    require(
        logits.shape == (N, T, V) and logits.is_floating_point(),
        f"forward must give floats (N, T, V) = ({N}, {T}, {V}), got {logits.dtype} of shape "
        f"{tuple(logits.shape)}",
    )
    require(bool(logits.isfinite().all()), "logits must be finite")


def gradients_are_finite_and_reach_everything(factory: Factory) -> None:
    """A loss gives every parameter a finite gradient: one without would stop several processes."""
    model = make(factory).train()
    loss = F.cross_entropy(
        model(source(), target()).flatten(0, 1), target().flatten(), ignore_index=Vocabulary.PAD
    )
    torch.autograd.backward(loss)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            require(parameter.grad is not None, f"{name} must get a gradient")
            require(bool(parameter.grad.isfinite().all()), f"the gradient of {name} must be finite")  # type: ignore[union-attr]


def later_target_tokens_do_not_matter(factory: Factory) -> None:
    """Logits at t know the target before t alone: else accuracy means nothing."""
    model = make(factory)
    before = model(source(), target())
    for t in range(T):
        after = model(source(), changed(target(), t))
        same(after[:, : t + 1], before[:, : t + 1], f"target {t} must not change logits up to {t}")


def the_source_matters(factory: Factory) -> None:
    """Another first token of the source changes some logits of its row."""
    model = make(factory)
    change = (model(changed(source(), 0), target()) - model(source(), target())).abs()
    require(bool((change.amax((1, 2)) > 0).all()), "logits must depend on the source")


def samples_do_not_mix(factory: Factory) -> None:
    """A sample alone, without padding, gives what it gives in a batch."""
    model = make(factory)
    together = model(source(), target())
    for n in range(N):
        width, height = (int((rows[n] != Vocabulary.PAD).sum()) for rows in (source(), target()))
        alone = model(source()[n : n + 1, :width], target()[n : n + 1, :height])
        same(
            together[n : n + 1, :height],
            alone,
            "a sample alone must give what it gives in a batch",
            atol=1e-4,
        )


def padding_does_not_matter(factory: Factory) -> None:
    """Three more columns of padding change no logits of real target tokens."""
    model = make(factory)
    wider = model(F.pad(source(), (0, 3)), F.pad(target(), (0, 3)))[:, :T]
    real = target() != Vocabulary.PAD
    before = model(source(), target())[real]
    same(wider[real], before, "more padding must change nothing", atol=1e-4)


def eval_is_deterministic(factory: Factory) -> None:
    """In eval mode, two calls agree, and the ids that came in are left as they were."""
    model, read, written = make(factory), source(), target()
    same(model(read, written), model(read, written), "in eval mode, two calls must agree", atol=0.0)
    model.generate(read, max_length=T)
    is_kept = torch.equal(read, source()) and torch.equal(written, target())
    require(is_kept, "source and target must not be changed in place")


def decoding_is_what_forward_predicts(factory: Factory) -> None:
    """Each token that generate writes is forward's most likely one, with and without a cache."""
    for seed in range(3):
        model = make(factory, seed=seed)
        for use_cache in (True, False):
            output = model.generate(source(), max_length=T, use_cache=use_cache)
            _require_predicted(model, output, before_end(output))


def decoding_ends_each_row_once(factory: Factory) -> None:
    """Outputs (N, up to max_length): tokens, <eos> or the end, padding; the mode is left."""
    model = make(factory).train()
    output = model.generate(source(), max_length=T)
    require(model.training, "generate must leave the model in the mode that it was in")
    require(
        output.ndim == 2 and len(output) == N and 1 <= output.shape[1] <= T,
        f"generate must give {N} rows of 1 to max_length={T} tokens, got {tuple(output.shape)}",
    )
    is_after = ~before_end(output)
    require(bool((output[is_after] == Vocabulary.PAD).all()), "only padding may follow <eos>")
    again = model.generate(source(), max_length=T)
    require(torch.equal(again, output), "generate must work in evaluation mode: no dropout")


def decoding_leaves_blanks_open(factory: Factory) -> None:
    """Where ``blanks`` is True the output is padding, which the next steps read."""
    model = make(factory)
    blanks = torch.zeros(N, S, dtype=torch.bool)
    blanks[:, 1::3] = True
    output = model.generate(source(), max_length=T, blanks=blanks)
    is_open, asked = blanks[:, : output.shape[1]], before_end(output)
    require(bool((output[is_open & asked] == Vocabulary.PAD).all()), "blanks must stay padding")
    _require_predicted(model, output, asked & ~is_open)


def axes_name_every_attention_call(factory: Factory) -> None:
    """attention_axes tells the ids on both axes of every attention call that is recorded."""
    model = make(factory)
    axes = model.attention_axes(source(), target())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the recorder's, where nothing attends
        with record_attention(model, softmax=True) as maps:
            model(source(), target())
    for one in maps:
        name = one.name.partition("#")[0]
        fitting = [ids for glob, ids in axes.items() if fnmatch(name, glob)]
        require(
            len(fitting) == 1, f"attention_axes must name {name} once, got {len(fitting)} times"
        )
        sizes = tuple(ids.shape[1] for ids in fitting[0])
        require(
            sizes == tuple(one.weights.shape[-2:]),
            f"attention_axes says {name} is {sizes[0]} by {sizes[1]}, but it is "
            f"{one.weights.shape[-2]} by {one.weights.shape[-1]}",
        )
    require(
        bool(maps) or not axes, f"attention_axes names {', '.join(axes)}, where nothing attends"
    )


def state_dict_carries_everything(factory: Factory) -> None:
    """A second model with the first one's state_dict gives the same logits."""
    first, second = make(factory), make(factory, seed=1)
    second.load_state_dict(first.state_dict())
    same(
        second(source(), target()),
        first(source(), target()),
        "a model that loads another one's state_dict must agree with it",
    )


def _logits(factory: Factory) -> Tensor:
    logits: Tensor = make(factory)(source(), target())
    return logits


def _require_predicted(model: torch.nn.Module, output: Tensor, where: Tensor) -> None:
    predicted = model(source(), output).argmax(-1)
    if not torch.equal(predicted[where], output[where]):
        row, column = (~predicted.eq(output) & where).nonzero()[0].tolist()
        raise AssertionError(
            f"generate wrote {int(output[row, column])} where forward predicts "
            f"{int(predicted[row, column])}: row {row}, token {column}"
        )
