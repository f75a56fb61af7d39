"""Every recorded map of many architectures, against what the models themselves compute.

Usage:
  python tests/recording/zoo_of_models.py [only=15 | only=bert,gpt2,...] [markdown]

Models of ``transformers`` and ``timm`` are built from small configs with random weights; nothing is
downloaded. Each is recorded as it computes attention by itself (mostly torch's fused kernel) and as
plain code (``eager``; ``fused_attn`` off), with the same weights. What is recorded is compared with

- the weights that the plain model returns (``output_attentions``), and
- a witness below torch's functions, which the recorder knows nothing of: it takes the result of
  every softmax, what goes into every product of matrices, and computes the weights of fused
  kernels from their arguments in float64.

Each model ends as one of

- ok: every map is one of those weights, and every returned weight is among the maps;
- told: every map is right, some attention is not recorded, and a warning says so;
- WRONG: anything else, or an output that changed. The exit code is then 1.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from zoo_configs import TIMM, TRANSFORMERS, inputs_of

from mha_lab import record_attention

ATOL = 2e-5
N = 2


@dataclass(frozen=True)
class Result:
    """What became of one model."""

    name: str
    returned: int = 0
    recorded: int = 0
    missing: int = 0
    verdict: str = "WRONG"
    note: str = ""
    seconds: float = 0.0
    kinds: Sequence[str] = ()

    def line(self) -> str:
        """One line of the table in a terminal."""
        numbers = f"{self.returned:3} returned {self.recorded:3} recorded"
        return f"{self.name:40} {self.verdict:5} {numbers}  {', '.join(self.kinds):20} {self.note}"


def attentions_of(output: Any) -> list[Tensor]:
    """All attention weights that a transformers model returned."""
    found: list[Tensor] = []

    def collect(value: Any) -> None:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, tuple | list):
            for one in value:
                collect(one)

    def walk(output: Any) -> None:
        for name, value in output.items():
            if hasattr(value, "items"):
                walk(value)
            elif name.endswith("attentions"):
                collect(value)

    walk(output)
    return [one for one in found if one.ndim >= 3]


def run(model: nn.Module, inputs: dict[str, Any], **options: Any) -> Any:
    """What a model returns, from the same random state each time."""
    torch.manual_seed(2)
    with torch.no_grad():
        return model(**inputs, **options)


def record(model: nn.Module, inputs: dict[str, Any]) -> tuple[Any, list[Any], str]:
    """The output, the maps, and what was told."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with record_attention(model, softmax=True) as maps:
            output = run(model, inputs)
    told = [str(one.message) for one in caught if "record" in str(one.message)]
    return output, list(maps), " ".join(told)


class Witness(TorchDispatchMode):
    """Takes the weights of all attention, where torch's kernels are called."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: list[Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in ("_softmax", "_safe_softmax"):
            self.weights.append(result.movedim(args[1], -1).clone())
        elif name == "bmm":  # what is multiplied with values, whatever was done to it
            self.weights += [args[0].clone(), args[1].mT.clone()]
        elif name == "_scaled_dot_product_flash_attention_for_cpu":
            self.weights.append(weights_of_kernel(*args, **(kwargs or {})))
        elif name.startswith("_scaled_dot_product"):
            raise AssertionError(f"the witness does not know {name}")
        return result


def weights_of_kernel(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """The definition, in float64."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = torch.einsum("nhld,nhsd->nhls", q.double(), k.double())
    scores = scores * (q.shape[-1] ** -0.5 if scale is None else scale)
    if attn_mask is not None:
        scores = scores + attn_mask.double()
    if is_causal:
        rows, columns = scores.shape[-2:]
        later = torch.arange(columns) > torch.arange(rows)[:, None]
        scores = scores.masked_fill(later, -torch.inf)
    exps = (scores - scores.amax(-1, keepdim=True)).exp()
    return exps / exps.sum(-1, keepdim=True)


def agrees(recorded: Tensor, other: Tensor) -> bool:
    """Whether a recorded map is these weights: rows without keys aside, the same numbers."""
    if other.ndim < 2 or recorded.shape[-2:] != other.shape[-2:]:
        return False
    a, b = (x.reshape(-1, *x.shape[-2:]).float() for x in (recorded, other))
    if a.shape != b.shape:
        return False
    if bool((b < -0.01).any()):  # ProphetNet returns scores
        b = b.softmax(-1)
    if other.ndim == 4 and bool((other == other[:, :1]).all()):  # WavLM: the mean, for each head
        a = recorded.mean(1, keepdim=True).expand_as(recorded).reshape(a.shape)
    blocked = (a == 0).all(-1, keepdim=True)  # softmax of nothing: uniform, NaN or 0
    return bool(((a - b).abs().nan_to_num(1.0) <= ATOL).logical_or(blocked).all())


def outputs_equal(one: Any, other: Any) -> bool:
    """Whether two outputs hold the same numbers, bit for bit."""
    pairs = zip(tensors_of(one), tensors_of(other), strict=True)
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)


def tensors_of(output: Any) -> list[Tensor]:
    """All numbers of an output."""
    leaves = tree_leaves(dict(output) if hasattr(output, "items") else output)
    return [x for x in leaves if isinstance(x, Tensor) and x.is_floating_point()]


def of_transformers(name: str) -> Result:
    """Judge one architecture of transformers."""
    from transformers import CONFIG_MAPPING, AutoModel

    overrides, kind = TRANSFORMERS[name]
    inputs = inputs_of(kind)

    def build(attention: str) -> nn.Module:
        config = CONFIG_MAPPING[name](**overrides)
        torch.manual_seed(0)
        return AutoModel.from_config(config, attn_implementation=attention).eval()

    plain = build("eager")
    returned = attentions_of(run(plain, inputs, output_attentions=True))
    result = judge(name, plain, inputs, returned)
    try:
        fused = build("sdpa")
    except (ValueError, ImportError):  # it has no fused kernel
        return result
    fused.load_state_dict(plain.state_dict())
    # Where both do not compute the same (Falcon), the plain one's weights say nothing here.
    same = all(
        torch.allclose(a, b, atol=1e-3)
        for a, b in zip(
            tensors_of(run(plain, inputs)), tensors_of(run(fused, inputs)), strict=False
        )
    )
    return worse(result, judge(name, fused, inputs, returned if same else []))


TORCHVISION = (
    "torchvision",
    "torchvision.datasets",
    "torchvision.models",
    "torchvision.models.feature_extraction",
    "torchvision.ops",
    "torchvision.ops.misc",
    "torchvision.transforms",
    "torchvision.transforms.functional",
    "torchvision.transforms.v2",
)
"""Modules that timm imports."""


def of_timm(name: str) -> Result:
    """Judge one architecture of timm, whose models return no weights."""
    stand_in_for_torchvision()
    module, _, cls = name.partition(".")
    timm_layers = import_module("timm.layers")
    model_class = getattr(import_module(f"timm.models.{module}"), cls)
    size = TIMM[name].get("img_size", 64)
    size = (size, size) if isinstance(size, int) else size
    results = []
    for is_fused in (False, True):
        timm_layers.set_fused_attn(is_fused)
        torch.manual_seed(0)
        model = model_class(**TIMM[name]).eval()
        torch.manual_seed(1)
        results.append(judge(name, model, {"x": torch.randn(N, 3, *size)}, []))
    return worse(*results)


def stand_in_for_torchvision() -> None:
    """Modules that have whatever is asked of them, so that timm can be imported."""
    if "torchvision" in sys.modules:
        return

    class Anything(type):
        def __getattr__(cls, attribute: str) -> Any:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            return Anything(attribute, (), {})

    class StandIn(ModuleType):
        __getattr__ = Anything.__getattr__

    for name in TORCHVISION:
        sys.modules[name] = module = StandIn(name)
        module.__path__ = []
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def judge(name: str, model: nn.Module, inputs: dict[str, Any], returned: list[Tensor]) -> Result:
    """Record a model; compare what was recorded with what it returns and with the witness."""
    start = time.perf_counter()
    expected = run(model, inputs)
    with Witness() as witness:
        run(model, inputs)
    output, maps, told = record(model, inputs)
    right = [
        any(agrees(one.weights, other) for other in [*returned, *witness.weights]) for one in maps
    ]
    left = list(maps)
    missing = 0
    for other in returned:
        match = next((one for one in left if agrees(one.weights, other)), None)
        if match is None:
            missing += 1
        else:
            left = [one for one in left if one is not match]
    faults = []
    if not outputs_equal(output, expected):
        faults.append("the output changed")
    if not all(right):
        wrong = [one.name for one, is_right in zip(maps, right, strict=True) if not is_right]
        faults.append(f"wrong maps: {', '.join(wrong[:4])}")
    if not told and (missing or not maps):
        faults.append(f"{missing} returned weights are missing, nobody told")
    kinds = sorted({one.kind for one in maps})
    verdict = "WRONG" if faults else "told" if told else "ok"
    seconds = time.perf_counter() - start
    return Result(
        name, len(returned), len(maps), missing, verdict, "; ".join(faults) or told, seconds, kinds
    )


def worse(one: Result, other: Result) -> Result:
    """The worse of two verdicts on one model."""
    order = ["ok", "told", "WRONG"]
    return max(one, other, key=lambda result: order.index(result.verdict))


def chosen_names(only: str) -> list[str]:
    """All models, so many of them evenly spread, or those named."""
    names = [*TRANSFORMERS, *TIMM]
    if only.isdigit():
        count = max(1, min(int(only), len(names)))
        return [names[i * len(names) // count] for i in range(count)]
    chosen = only.split(",") if only else names
    unknown = sorted(set(chosen) - set(names))
    if unknown:
        raise SystemExit(f"only={only}: no models of the zoo: {', '.join(unknown)}")
    return chosen


def main(arguments: list[str]) -> int:
    """Run, print a table; 1 if any model is wrong."""
    options = dict(one.partition("=")[::2] for one in arguments)
    unknown = sorted(set(options) - {"only", "markdown"})
    if unknown:
        raise SystemExit(f"unknown arguments {unknown}; there are only=... and markdown")
    absent = [one for one in ("transformers", "timm") if importlib.util.find_spec(one) is None]
    if absent:
        raise SystemExit(
            f"{' and '.join(absent)} not installed: pip install -c constraints.txt -e '.[dev]' and "
            "pip install --no-deps -c constraints.txt timm (make test does both)"
        )
    results = []
    for name in chosen_names(options.get("only", "")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = (of_timm if name in TIMM else of_transformers)(name)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            note = f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
            result = Result(name, note=" ".join(note.split())[:300])
        results.append(result)
        if "markdown" not in options:
            print(result.line(), flush=True)
    if "markdown" in options:
        print(*as_markdown(results), sep="\n")
    verdicts = [one.verdict for one in results]
    print(", ".join(f"{verdicts.count(x)} {x}" for x in ("ok", "told", "WRONG")), file=sys.stderr)
    return int("WRONG" in verdicts)


def as_markdown(results: list[Result]) -> list[str]:
    """A table for docs/recording.md."""
    lines = ["| model | of | returned | recorded | kinds | verdict |", "|---|---|---|---|---|---|"]
    for one in results:
        library = "timm" if one.name in TIMM else "transformers"
        returned = str(one.returned) if one.returned else "–"
        verdict = one.verdict if one.verdict == "ok" else f"{one.verdict}: {one.note}"
        kinds = ", ".join(one.kinds)
        lines.append(
            f"| {one.name} | {library} | {returned} | {one.recorded} | {kinds} | {verdict} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
