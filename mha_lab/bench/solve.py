"""How soon sequences are sorted without a mistake: minGPT's sort demo against ours, in turn.

Usage:
  python -m mha_lab bench solve [rounds=5] [every=10] [steps=2000] [overrides]

Both train in one process and on one thread, taking turns, with a seed of their own in each round,
until all test sequences are right: the demo's, the quarter that it holds out; ours, all 729 that
there are, what we hold out among them. Seconds are those of the processor. Evaluation, every 10
steps, is not counted; building models is. The demo's set, model and loop are written again from
their description (mha_lab/bench/sort_demo.py). Ours is `+experiment=mingpt_sort`, with logger and
callbacks, or what overrides make of it.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mha_lab.arguments import split, whole_number
from mha_lab.errors import UserError
from mha_lab.terminal import show_table

_SETTINGS = ("rounds", "every", "steps")


def main(arguments: Sequence[str]) -> int:
    """Race, print every round, the median ratio and the largest."""
    settings, overrides = split(arguments, _SETTINGS)
    rounds = whole_number("rounds", settings.get("rounds", "5"), low=1, high=1000)
    every = whole_number("every", settings.get("every", "10"), low=1, high=1000)
    steps = whole_number("steps", settings.get("steps", "2000"), low=1, high=10**6)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(rounds):
            one = race(seed, Path(folder) / str(seed), overrides, every=every, steps=steps)
            found.append(one)
            print(f"round {seed + 1}: {one}", flush=True)
    columns = ("round", "demo, steps", "demo, s", "ours, steps", "ours, s", "ratio")
    rows = [
        (
            str(i + 1),
            str(one["demo_steps"]), f"{one['demo_seconds']:.2f}",
            str(one["our_steps"]), f"{one['our_seconds']:.2f}",
            f"{one['ratio']:.3f}",
        )
        for i, one in enumerate(found)
    ]  # fmt: skip
    show_table(columns, rows, numeric=5)
    ratios = [one["ratio"] for one in found]
    print(f"median ratio {statistics.median(ratios):.3f}, the largest {max(ratios):.3f}")
    return 0


def race(
    seed: int, folder: Path, overrides: Sequence[str] = (), *, every: int = 10, steps: int = 2000
) -> dict[str, float]:
    """One round: first the demo, then ours; in rounds of odd seeds the other way round.

    Args:
        seed: of both.
        folder: for what our run writes.
        overrides: changes to ours.
        every: steps between evaluations.
        steps: at most.

    Raises:
        UserError: one of them is not done after that many steps.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        racers = [
            lambda: demo(seed, every, steps),
            lambda: ours(seed, folder, overrides, every, steps),
        ]
        order = [1, 0] if seed % 2 else [0, 1]
        outcomes = {which: racers[which]() for which in order}
    finally:
        torch.set_num_threads(threads)
    (demo_steps, demo_seconds), (our_steps, our_seconds) = outcomes[0], outcomes[1]
    return {
        "demo_steps": demo_steps, "demo_seconds": demo_seconds,
        "our_steps": our_steps, "our_seconds": our_seconds, "ratio": our_seconds / demo_seconds,
    }  # fmt: skip


def demo(seed: int, every: int, steps: int) -> tuple[int, float]:
    """Steps and seconds of the demo's loop."""
    import torch

    from mha_lab.bench.sort_demo import Nano, is_solved, test_pairs, train

    read, said = test_pairs()
    torch.manual_seed(seed)
    since = time.process_time()
    model = Nano()
    for done in train(model):
        if done % every == 0:
            paused = time.process_time()
            if is_solved(model, read, said):
                return done, paused - since
            since += time.process_time() - paused
        if done >= steps:
            break
    raise UserError(f"the demo is not done after steps={steps}")


def ours(
    seed: int, folder: Path, overrides: Sequence[str], every: int, steps: int
) -> tuple[int, float]:
    """Steps and seconds of our run, as ``train`` does it but for its validations."""
    import pytorch_lightning as pl

    from mha_lab.build import build_parts
    from mha_lab.config import compose
    from mha_lab.run.trainer import build_callbacks, build_loggers, build_trainer, quieten

    quieten()
    words = ["+experiment=mingpt_sort", f"seed={seed}", *overrides]
    cfg = compose(words, run_dir=folder)
    cfg.trainer.max_steps = cfg.trainer.val_check_interval = steps
    cfg.trainer.limit_val_batches = 0
    cfg.trainer.enable_progress_bar = False
    cfg.callbacks.checkpoint = None  # what is written at validations, of which there are none
    since = time.process_time()
    parts = build_parts(cfg)

    class Judge(pl.Callback):
        paused = 0.0
        solved = False

        def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
            if trainer.global_step % every == 0:
                before = time.process_time()
                self.solved = trainer.should_stop = _sorts_all(parts)
                self.paused += time.process_time() - before

    judge = Judge()
    callbacks = [*build_callbacks(cfg, with_attention=parts.module.model.uses_attention), judge]
    trainer = build_trainer(cfg, logger=build_loggers(cfg), callbacks=callbacks)
    trainer.fit(parts.module, datamodule=parts.data)
    if not judge.solved:
        raise UserError(f"ours is not done after steps={steps}")
    return trainer.global_step, time.process_time() - since - judge.paused


def _sorts_all(parts: Any) -> bool:
    """Whether greedy decoding sorts each sequence that there is, then ends."""
    import torch

    from mha_lab.tasks.batch import Batch
    from mha_lab.tasks.vocabulary import Vocabulary
    from mha_lab.training.module import accuracies

    symbols = torch.tensor(parts.task.vocabulary.encode(parts.task.vocabulary.symbols))
    rows = torch.cartesian_prod(*[symbols] * 6)
    end = torch.full((len(rows), 1), Vocabulary.EOS)
    batch = Batch(torch.cat([rows, end], 1), torch.cat([rows.sort(1).values, end], 1))
    model = parts.module.model.eval()
    with torch.no_grad():
        is_right = accuracies(model(batch.source, batch.target), batch.target)[1]
    model.train()
    return bool(is_right.all())
