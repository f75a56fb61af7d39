"""One answer in all modes: trained or evaluated, watched or not, copied, rounded, compiled."""

import copy
import io
import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import torch

from mha_lab.testing.attention_cases import LONG, Case, E, Factory, N, make
from mha_lab.testing.running import Check, require, same


def mode_checks() -> list[Check]:
    """The checks of modes that are fast, each a function of the factory."""
    return [
        need_weights_keeps_the_output,
        long_calls_give_the_same,
        training_keeps_the_output,
        eval_is_deterministic,
        copies_give_the_same_output,
        autocast_rounds_only,
    ]


def need_weights_keeps_the_output(factory: Factory) -> None:
    """Asking for weights changes the output by rounding at most."""
    case = make(factory)
    for masks in ({}, {"key_padding_mask": case.padding}):
        with_weights = case.call(case.query, case.memory, case.memory, need_weights=True, **masks)
        same(
            case.attend(case.query, case.memory, **masks),
            with_weights[0],
            "need_weights must not change the output",
        )


def long_calls_give_the_same(factory: Factory) -> None:
    """Outputs and gradients do not depend on need_weights where the ways to them may part."""
    case = make(factory)
    case.module.double()
    x = torch.randn(N, LONG, E, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    padding = torch.zeros(N, LONG, dtype=torch.bool)
    padding[1, -LONG // 3 :] = True
    for masks in ({}, {"key_padding_mask": padding}):
        found = []
        for need_weights in (True, False):
            given = x.clone().requires_grad_()
            output = case.call(given, given, given, need_weights=need_weights, **masks)[0]
            wanted = {"x": given, **dict(case.module.named_parameters())}
            grads = torch.autograd.grad(
                output.square().sum(), list(wanted.values()), allow_unused=True
            )
            found.append({"output": output.detach(), **dict(zip(wanted, grads, strict=True))})
        for name, of_weights in found[0].items():
            if of_weights is not None:
                sentence = f"at length {LONG} need_weights must not change {name} or its gradient"
                same(found[1][name], of_weights, sentence, atol=1e-8)


def training_keeps_the_output(factory: Factory) -> None:
    """Without dropout, training, evaluation and no_grad give the same."""
    case = make(factory)
    plain = case.attend(case.query, case.memory, key_padding_mask=case.padding)
    for is_training, has_grad in product((True, False), repeat=2):
        case.module.train(is_training)
        with torch.set_grad_enabled(has_grad):
            output = case.attend(case.query, case.memory, key_padding_mask=case.padding)
        same(
            output.detach(),
            plain.detach(),
            f"training={is_training}, gradient={has_grad} must not change the output",
        )


def eval_is_deterministic(factory: Factory) -> None:
    """In eval mode nothing is dropped."""
    case = make(factory, dropout=0.5)
    outputs = [case.attend(case.query, case.memory) for _ in range(2)]
    same(outputs[1], outputs[0], "with dropout=0.5 in eval mode, two calls must agree", atol=0.0)
    plain = make(factory, dropout=0.0)
    plain.module.load_state_dict(case.module.state_dict())
    same(
        plain.attend(case.query, case.memory),
        outputs[0],
        "in eval mode, dropout must change nothing",
    )


def copies_give_the_same_output(factory: Factory) -> None:
    """A deep copy, and a module that was pickled, are what the first one is."""
    case = make(factory)
    output = case.attend(case.query, case.memory)
    stored = io.BytesIO()
    pickle.dump(case.module, stored)
    stored.seek(0)
    for how, module in (
        ("deepcopy", copy.deepcopy(case.module)),
        ("pickle", pickle.load(stored)),
    ):
        same(
            type(case)(module, case.keys, case.is_causal).attend(case.query, case.memory),
            output,
            f"a module copied by {how} must give the same output",
            atol=0.0,
        )


def autocast_rounds_only(factory: Factory) -> None:
    """Under bfloat16 autocast outputs and gradients are finite, and the output near."""
    case = make(factory)
    exact = case.attend(case.query, case.memory, key_padding_mask=case.padding)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = case.attend(case.query, case.memory, key_padding_mask=case.padding)
    torch.autograd.backward(rounded.float().square().sum())
    for name, parameter in case.module.named_parameters():
        is_finite = parameter.grad is None or bool(parameter.grad.isfinite().all())
        require(is_finite, f"under autocast the gradient of {name} must be finite")
    far = (rounded.float() - exact).abs().max() / exact.abs().max()
    require(bool(far < 0.1), f"autocast must change the output by rounding, not by {far:.2g}")


def compiling_keeps_the_output(factory: Factory) -> None:
    """``torch.compile(fullgraph=True)`` gives the same output and the same gradients.

    Forward and backward are captured as two whole graphs, and these are run; the last step, writing
    code for the graphs, is not the module's.
    """
    case = make(factory)
    parameters = dict(case.module.named_parameters())

    def outcome(of: Case) -> list[torch.Tensor]:
        case.module.zero_grad()
        output = of.attend(case.query, case.memory, key_padding_mask=case.padding)
        torch.autograd.backward(output.square().sum())
        return [output.detach(), *(p.grad.clone() for p in parameters.values())]  # type: ignore[union-attr]

    eager = outcome(case)
    torch.compiler.reset()
    # Not module.compile(): it finds nothing to compile in a module of torch's own.
    whole: Any = torch.compile(case.module, fullgraph=True, backend="aot_eager")
    graphs = outcome(replace(case, module=whole))
    for name, compiled, expected in zip(("output", *parameters), graphs, eager, strict=True):
        same(compiled, expected, f"compiled, {name} must be the same", atol=1e-4)
