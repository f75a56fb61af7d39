"""Greedy decoding with a cache against decoding without, alternating in one process.

Usage:
  python -m mha_lab bench decode [lengths=64,256,1024] [only=custom,latent,linear] [batch=4]
      [model=decoder] [seconds=2] [device=cpu] [csv=FILE] [table=markdown]

A small model (width 64, 4 heads, 2 layers, rotary positions where the mechanism takes them) goes on
from a source of one token until its output is as long as asked. gain: the time without, where each
token is computed again for every one that follows, divided by the time with a cache. Where a
mechanism takes no cache (builtin), the two are the same, and the row shows how much figures shake.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mha_lab.arguments import no_more, split, whole_number
from mha_lab.bench.tables import cell, find_device, machine, show, writable
from mha_lab.errors import UserError, nearest

if TYPE_CHECKING:
    import torch

_SETTINGS = ("lengths", "only", "batch", "model", "seconds", "device", "csv", "table")
MECHANISMS = "builtin,custom,grouped_query,window,latent,linear,retention,delta"
LENGTHS = "64,256,1024"
MODELS = ("decoder", "encoder_decoder")


def main(arguments: Sequence[str]) -> int:
    """Time, print the table, and write the CSV if asked."""
    settings, rest = split(arguments, _SETTINGS)
    no_more(rest, _SETTINGS)
    number = partial(whole_number, low=1, high=100_000)
    batch = number("batch", settings.get("batch", "4"))
    seconds = number("seconds", settings.get("seconds", "2"))
    lengths = [number("lengths", n) for n in settings.get("lengths", LENGTHS).split(",")]
    model = settings.get("model", "decoder")
    if model not in MODELS:
        raise UserError(f"model must be {' or '.join(MODELS)}, got {model!r}")
    if settings.get("table", "markdown") != "markdown":
        raise UserError(f"table must be markdown, got {settings['table']!r}")
    names = _mechanisms(settings.get("only", MECHANISMS))

    from rich.progress import track

    device = find_device(settings.get("device"))
    csv = writable(settings["csv"]) if "csv" in settings else None
    rows = [
        time_decoding(name, length, model=model, batch=batch, seconds=seconds, device=device)
        for name in track(names, "timing", transient=True)
        for length in lengths
    ]
    print(machine(device))
    columns = ["mechanism", "tokens", "without, ms", "with, ms", "gain"]
    cells = [[cell(value) for value in row.values()] for row in rows]
    show(cells, columns, numeric=4, **settings)
    if csv is not None:
        from mha_lab.training.run_folder import write_rows

        write_rows(csv, rows)
    return 0


def time_decoding(
    name: str, length: int, *, model: str, batch: int, seconds: float, device: "torch.device"
) -> dict[str, Any]:
    """Compare the two ways for one mechanism.

    Args:
        name: An option of ``attention``.
        length: How many tokens are decoded.
        model: ``decoder`` or ``encoder_decoder``.
        batch: How many sequences at once.
        seconds: How long the two take turns.
        device: Where.

    Returns:
        The mechanism, the tokens, the medians in milliseconds, and their ratio.
    """
    import torch

    from mha_lab.bench.timing import alternate
    from mha_lab.tasks.vocabulary import Vocabulary

    net = _model(name, model).to(device)
    source = torch.tensor([[5, Vocabulary.EOS]] * batch, device=device)

    def decode(use_cache: bool) -> None:
        net.generate(source, max_length=length, use_cache=use_cache)

    without, cached = alternate(
        partial(decode, False), partial(decode, True),
        seconds=seconds, device=device, least=1, warm_up=0 if length > 256 else 1,
    )  # fmt: skip
    return {
        "mechanism": name, "tokens": str(length), "without_ms": without, "with_ms": cached,
        "gain": without / cached,
    }  # fmt: skip


def _model(name: str, model: str) -> Any:
    """Of two layers, that never ends a sequence by itself."""
    import torch

    from mha_lab.build import build
    from mha_lab.config import compose
    from mha_lab.errors import UserError
    from mha_lab.tasks.vocabulary import Vocabulary

    refusals = []
    for position in ("rotary", "sinusoidal"):
        words = [f"attention={name}", f"model={model}", f"position={position}"]
        cfg = compose([*words, "model.num_layers=2"], run_dir=".")
        attention, encoding = build(cfg, "attention"), build(cfg, "position")
        try:
            net = build(cfg, "model")(15, attention=attention, position=encoding)
        except ValueError as refusal:
            refusals.append(str(refusal))
            continue
        with torch.no_grad():
            net.output.bias[Vocabulary.EOS] = -torch.inf
        return net
    raise UserError(f"attention={name} with model={model}: {refusals[-1]}")


def _mechanisms(text: str) -> list[str]:
    from mha_lab.config import options

    known, names = options("attention"), text.split(",")
    for name in names:
        if name not in known:
            raise UserError(
                f"only={name} is no mechanism{nearest(name, known)}; `list attention` shows them"
            )
    return names
