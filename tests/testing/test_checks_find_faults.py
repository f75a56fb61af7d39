"""The contract checks pass what is right and name what is wrong."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mha_lab import MultiheadAttention
from mha_lab.models.encoder import Encoder
from mha_lab.models.interface import Axes
from mha_lab.positions import SinusoidalPositions
from mha_lab.positions.alibi import AlibiPositions
from mha_lab.positions.rotary import RotaryPositions
from mha_lab.tasks.batch import Batch
from mha_lab.tasks.copy import copy_task
from mha_lab.testing import (
    attention_checks,
    check_attention,
    check_model,
    check_position,
    check_task,
    model_checks,
    position_checks,
    task_checks,
)

Builtin = partial(nn.MultiheadAttention, batch_first=True)


@pytest.mark.parametrize("check", attention_checks())
@pytest.mark.parametrize("factory", [Builtin, MultiheadAttention], ids=["builtin", "custom"])
def test_right_attention_passes(factory: Callable[..., nn.Module], check: Any) -> None:
    check(factory)


class Faulty(nn.MultiheadAttention):
    """torch's module with one fault."""

    def __init__(self, *arguments: Any, fault: str, **options: Any) -> None:
        super().__init__(*arguments, batch_first=True, **options)
        self.fault = fault
        self.hidden = torch.randn(1)  # a state that state_dict does not carry

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.hidden = self.hidden + 1

    def forward(self, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Any:
        fault = self.fault
        if fault in options:
            options[fault] = None
        if fault == "inverted" and options.get("attn_mask") is not None:
            mask = options["attn_mask"]
            options["attn_mask"] = ~mask if mask.dtype == torch.bool else mask
        if fault == "bool only" and options.get("attn_mask") is not None:
            options["attn_mask"] = options["attn_mask"].bool()
        if fault == "lenient" and options.get("attn_mask") is not None:
            options["attn_mask"] = options["attn_mask"].float().clamp(min=-1.0)
        if fault == "causal alone" and options.get("is_causal"):
            options["attn_mask"] = torch.zeros_like(options["attn_mask"])
            options["is_causal"] = False
        if fault == "mixed samples":
            value = value - value.mean(0)
        if fault == "always dropped":
            value = nn.functional.dropout(value, 0.5)
        if fault == "padding shifts" and options.get("key_padding_mask") is not None:
            value = value + 1
        if fault == "counts":
            value = value + torch.arange(value.shape[1])[:, None]
        if fault == "detached":
            key = key.detach()
        if fault == "not a number":
            value = value * (value - value).sqrt()
        output, weights = super().forward(query, key, value, **options)
        if fault == "training shifts" and self.training:
            output = output + 1
        if fault == "rounds badly" and torch.is_autocast_enabled("cpu"):
            output = output * 2
        if fault == "length counts":
            output = output * key.shape[1]
        if fault == "not copied":
            output = output + self.hidden
        if fault == "short":
            output = output[:, :-1]
        if fault == "long" and weights is None and query.shape[1] > 100:
            output = 1.01 * output
        if fault == "always weights":
            weights = torch.ones(1) if weights is None else weights
        if fault == "never weights":
            weights = None
        if fault == "single precision":
            output = output.float()
        if weights is not None:
            if fault == "transposed":
                weights = weights.transpose(-1, -2)
            if fault == "averaged":
                weights = weights.mean(1, keepdim=True) if weights.ndim == 4 else weights
            if fault == "scaled":
                weights = 2 * weights
            if fault == "another key's":
                weights = weights.roll(1, -1)
            if fault == "shifted":
                weights = weights - 0.2
            if fault == "weights change the output":
                output = output + 1
        if fault == "hidden state":
            output = output + self.hidden
        return output, weights


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("key_padding_mask", "padded_keys_do_not_matter"),
        ("key_padding_mask", "mask_and_padding_both_apply"),
        ("inverted", "true_blocks_in_a_boolean_mask"),
        ("inverted", "later_positions_do_not_matter_under_a_causal_mask"),
        ("lenient", "minus_infinity_blocks_in_a_float_mask"),
        ("bool only", "a_float_mask_is_added_to_the_scores"),
        ("causal alone", "is_causal_agrees_with_its_mask"),
        ("mixed samples", "samples_do_not_mix"),
        ("always dropped", "eval_is_deterministic"),
        ("padding shifts", "padding_of_nothing_changes_nothing"),
        ("detached", "gradients_are_finite_and_reach_everything"),
        ("not a number", "gradients_are_finite_and_reach_everything"),
        ("short", "output_has_the_shape_of_the_query"),
        ("single precision", "output_has_the_shape_of_the_query"),
        ("always weights", "weights_have_the_shape_asked_for"),
        ("never weights", "weights_have_the_shape_asked_for"),
        ("transposed", "weights_have_the_shape_asked_for"),
        ("averaged", "weights_have_the_shape_asked_for"),
        ("scaled", "weights_are_distributions"),
        ("shifted", "weights_are_distributions"),
        ("another key's", "weights_are_those_applied"),
        ("counts", "order_does_not_matter"),
        ("training shifts", "training_keeps_the_output"),
        ("not copied", "copies_give_the_same_output"),
        ("rounds badly", "autocast_rounds_only"),
        ("length counts", "padding_is_as_if_cut_off"),
        ("none", "a_query_that_sees_nothing_gets_nothing"),
        ("weights change the output", "need_weights_keeps_the_output"),
        ("long", "long_calls_give_the_same"),
        ("hidden state", "state_dict_carries_everything"),
    ],
)
def test_each_fault_of_attention_is_found(fault: str, check: str) -> None:
    (named,) = [one for one in attention_checks() if one.__name__ == check]
    with pytest.raises(AssertionError):
        named(partial(Faulty, fault=fault))


def test_every_attention_check_can_fail() -> None:
    marks = test_each_fault_of_attention_is_found.pytestmark
    tried = {check for _, check in marks[0].args[1]}
    assert tried == {check.__name__ for check in attention_checks()}


def test_report_names_every_failed_check() -> None:
    with pytest.raises(AssertionError) as raised:
        check_attention(partial(Faulty, fault="key_padding_mask"))
    said = str(raised.value)
    assert said.startswith("4 checks failed:")
    assert "padded_keys_do_not_matter: keys where key_padding_mask is True must not change" in said
    assert "mask_and_padding_both_apply: attn_mask and key_padding_mask must both apply" in said


def test_report_of_what_cannot_even_be_called() -> None:
    with pytest.raises(AssertionError, match=r"24 checks failed:\n\n.*: TypeError\("):
        check_attention(lambda embed_dim: nn.Identity())
    check_attention(Builtin)


class FaultyPosition(nn.Module):
    """A sinusoidal encoding with one fault."""

    def __init__(self, embed_dim: int, *, fault: str) -> None:
        super().__init__()
        self.right = SinusoidalPositions(embed_dim)
        self.fault = fault
        self.hidden = torch.randn(1)
        if fault == "even only" and embed_dim % 2:
            raise ValueError("odd")
        if fault == "idle parameter":
            self.idle = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        if self.fault == "in place":
            x += 1
        y = self.right(x)
        wrong = {
            "float32": lambda: y.float(),
            "from the end": lambda: self.right(x.flip(1)).flip(1),
            "sum": lambda: y + x.sum(1, keepdim=True),
            "mixed samples": lambda: y - x.mean(0),
            "dropped": lambda: nn.functional.dropout(y, 0.5),
            "hidden state": lambda: y + self.hidden.to(y.dtype),
        }
        return wrong.get(self.fault, lambda: y)()


class FaultyTold(FaultyPosition):
    """The same, which says where it acts."""

    acts_on = "embeddings"

    def __init__(self, embed_dim: int, *, fault: str) -> None:
        super().__init__(embed_dim, fault=fault)
        if fault == "nowhere":
            self.acts_on = "nowhere"

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        y: Tensor = self.right(x, None if self.fault == "deaf" else positions)
        return y

    def __deepcopy__(self, memo: Any) -> nn.Module:
        scale = -1.0 if self.fault == "copy" else 1.0
        made = FaultyTold(self.right.embed_dim, fault="")
        made.register_forward_hook(lambda module, given, output: scale * output)
        return made


class FaultyBias(nn.Module):
    """ALiBi with one fault."""

    acts_on = "scores"
    is_relative = True

    def __init__(self, embed_dim: int, *, num_heads: int, is_causal: bool, fault: str) -> None:
        super().__init__()
        self.right = AlibiPositions(embed_dim, num_heads=num_heads)
        self.fault = fault if fault != "one direction" or not is_causal else ""

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        right = self.right.bias(q_positions, k_positions)
        wrong = {
            "half": lambda: right.bfloat16(),
            "one direction": lambda: right * torch.nan,
            "by length": lambda: right * len(q_positions),
            "absolute": lambda: right + k_positions,
            "by place": lambda: right + torch.arange(len(k_positions)),
        }
        return wrong.get(self.fault, lambda: right)()


class FaultyRotation(RotaryPositions):
    """Rotary positions with one fault."""

    def __init__(self, embed_dim: int, *, num_heads: int, fault: str) -> None:
        super().__init__(embed_dim, num_heads=num_heads)
        self.fault = fault

    def rotate(self, q: Tensor, k: Tensor, *places: Tensor) -> tuple[Tensor, Tensor]:
        q, k = super().rotate(q, k, *places)
        if self.fault == "longer":
            k = torch.cat([k, k], -1)
        if self.fault == "future":
            k = k - k.mean(-2, keepdim=True)
        return q, k


FAULTS_OF_POSITIONS = [
    (FaultyPosition, "float32", "shape_and_dtype_are_kept"),
    (FaultyPosition, "even only", "any_length_and_width_will_do"),
    (FaultyPosition, "from the end", "positions_do_not_mix"),
    (FaultyPosition, "sum", "positions_do_not_mix"),
    (FaultyPosition, "mixed samples", "samples_do_not_mix"),
    (FaultyPosition, "dropped", "eval_is_deterministic"),
    (FaultyPosition, "in place", "eval_is_deterministic"),
    (FaultyPosition, "idle parameter", "gradients_are_finite_and_reach_everything"),
    (FaultyPosition, "hidden state", "state_dict_carries_everything"),
    (FaultyTold, "nowhere", "it_says_where_it_acts"),
    (FaultyTold, "deaf", "positions_are_told_by_number"),
    (FaultyTold, "copy", "copies_agree"),
    (FaultyBias, "half", "a_bias_has_the_shape_of_the_scores"),
    (FaultyBias, "one direction", "it_works_in_both_directions_or_says_why_not"),
    (FaultyBias, "by length", "a_row_depends_on_its_positions_alone"),
    (FaultyBias, "absolute", "moving_all_positions_changes_nothing_where_relative"),
    (FaultyBias, "by place", "order_is_told_by_positions"),
    (FaultyRotation, "longer", "heads_keep_their_shape_and_dtype"),
    (FaultyRotation, "future", "later_tokens_do_not_matter"),
]


@pytest.mark.parametrize(("encoding", "fault", "check"), FAULTS_OF_POSITIONS)
def test_each_fault_of_a_position_is_found(encoding: Any, fault: str, check: str) -> None:
    check_position(partial(encoding, fault=""))
    with pytest.raises(AssertionError, match=f"{check}: "):
        check_position(partial(encoding, fault=fault))


def test_every_position_check_can_fail() -> None:
    assert {check for *_, check in FAULTS_OF_POSITIONS} == {
        check.__name__ for check in position_checks()
    }


class FaultyTask:
    """The copy task with one fault."""

    def __init__(self, fault: str) -> None:
        self.right = copy_task(max_length=7, vocab_size=5)
        self.fault = fault
        self.vocabulary = self.right.vocabulary
        self.max_source_length = 8
        self.max_target_length = 7 if fault == "longer" else 8
        self.training_size = 99 if fault == "size" else None
        self.along = fault in ("early end", "nothing asked")
        self.chance = {"lucky": 0.25, "never": 0.0}.get(fault, 0.2)

    def fixed_split(self, split: str, size: int, **options: Any) -> Batch:
        if self.fault == "leak" and split == "test":
            split = "validation"
        if self.fault == "random":
            return self.right.draw(size, torch.default_generator)
        source, target = self.right.fixed_split(split, size - (self.fault == "size"))
        if self.fault == "int32":
            target = target.int()
        if self.fault == "no end":
            target = target.masked_fill(target == 2, 0)
        if self.fault == "strange":
            target = target.masked_fill(target == 9, 10)
        if self.fault == "early end":
            target = target.roll(1, 0)
        if self.fault == "nothing asked":
            target = target.masked_fill(target > 2, 0)
        return Batch(source, target[: -1 if self.fault == "unpaired" else None])

    def draw(self, n: int, generator: torch.Generator) -> Batch:
        if self.fault == "constant":
            generator = torch.Generator().manual_seed(0)
        if self.fault == "global":
            generator = torch.default_generator
        if self.fault == "one less":
            n -= 1
        return self.right.draw(n, generator)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("no end", "rows_end_in_eos_then_padding"),
        ("strange", "ids_are_of_the_vocabulary"),
        ("int32", "ids_are_of_the_vocabulary"),
        ("longer", "lengths_stay_within_the_longest"),
        ("constant", "draws_follow_from_the_generator"),
        ("global", "draws_follow_from_the_generator"),
        ("one less", "draws_follow_from_the_generator"),
        ("random", "fixed_sets_are_always_the_same"),
        ("unpaired", "fixed_sets_are_always_the_same"),
        ("size", "training_size_is_told"),
        ("early end", "answers_along_a_sequence_end_with_it"),
        ("nothing asked", "answers_along_a_sequence_end_with_it"),
        ("lucky", "chance_is_that_of_guessing"),
        ("never", "chance_is_that_of_guessing"),
        ("leak", "nothing_tested_is_trained_on"),
    ],
)
def test_each_fault_of_a_task_is_found(fault: str, check: str) -> None:
    (named,) = [one for one in task_checks() if one.__name__ == check]
    with pytest.raises(AssertionError):
        named(FaultyTask(fault))


def test_every_task_check_can_fail() -> None:
    marks = test_each_fault_of_a_task_is_found.pytestmark
    assert {c for _, c in marks[0].args[1]} == {check.__name__ for check in task_checks()}
    check_task(FaultyTask("none"))


class FaultyModel(Encoder):
    """A model that is right but for one fault."""

    def __init__(self, vocab_size: int, *, fault: str) -> None:
        super().__init__(
            vocab_size,
            attention=MultiheadAttention,
            position=SinusoidalPositions,
            embed_dim=14,
            num_heads=2,
            num_layers=1,
        )
        self.fault = fault
        self.unused = nn.Linear(3, 2) if fault == "unused" else None
        self.hidden = torch.randn(vocab_size)  # no buffer

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        if self.fault == "in place":
            source[:, 0] = 5
        logits = super().forward(source, target)
        if self.fault == "one less":
            return logits[:, :-1]
        if self.fault == "blind":
            return logits * 0 + self.output.bias
        if self.fault == "peeks":
            return logits + 0.1 * target[..., None]
        if self.fault == "mixes":
            return logits + logits.mean(0, keepdim=True)
        if self.fault == "sees padding":
            return logits + 0.01 * source.shape[1] * self.hidden
        if self.fault == "random":
            return logits + torch.rand_like(logits)
        if self.fault == "outside":
            return logits + self.hidden
        return logits

    def generate(self, source: Tensor, *, blanks: Tensor | None = None, **options: Any) -> Tensor:
        kept = None if self.fault == "no blanks" else blanks
        output = super().generate(source, blanks=kept, **options)
        if self.fault == "other":
            return output.where(output <= 5, 5)
        if self.fault == "runs on":
            return output.where(output != 0, 5)
        if self.fault == "leaves eval":
            self.eval()
        return output

    def attention_axes(self, source: Tensor, target: Tensor) -> dict[str, Axes]:
        axes = {"encoder.*.self_attn": (source, source)}
        if self.fault == "unnamed":
            return {}
        if self.fault == "other axes":
            return {"encoder.*.self_attn": (target, source)}
        return axes


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("one less", "logits_are_of_each_target_token"),
        ("unused", "gradients_are_finite_and_reach_everything"),
        ("peeks", "later_target_tokens_do_not_matter"),
        ("blind", "the_source_matters"),
        ("mixes", "samples_do_not_mix"),
        ("sees padding", "padding_does_not_matter"),
        ("random", "eval_is_deterministic"),
        ("in place", "eval_is_deterministic"),
        ("other", "decoding_is_what_forward_predicts"),
        ("runs on", "decoding_ends_each_row_once"),
        ("leaves eval", "decoding_ends_each_row_once"),
        ("no blanks", "decoding_leaves_blanks_open"),
        ("unnamed", "axes_name_every_attention_call"),
        ("other axes", "axes_name_every_attention_call"),
        ("outside", "state_dict_carries_everything"),
    ],
)
def test_each_fault_of_a_model_is_found(fault: str, check: str) -> None:
    (named,) = [one for one in model_checks() if one.__name__ == check]
    with pytest.raises(AssertionError):
        named(partial(FaultyModel, fault=fault))


def test_every_model_check_can_fail() -> None:
    marks = test_each_fault_of_a_model_is_found.pytestmark
    assert {c for _, c in marks[0].args[1]} == {check.__name__ for check in model_checks()}
    check_model(partial(FaultyModel, fault="none"))


def test_checks_leave_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    check_attention(Builtin)
    check_position(SinusoidalPositions)
    check_model(partial(FaultyModel, fault="none"))
    assert torch.equal(torch.get_rng_state(), before)


def test_names_of_checks_are_readable() -> None:
    for check in [*attention_checks(), *position_checks(), *model_checks(), *task_checks()]:
        assert re.fullmatch(r"[a-z0-9_]+", check.__name__)
        assert check.__doc__
