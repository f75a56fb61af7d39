"""Sources, targets and predictions as text, in TensorBoard's text tab."""

from typing import Any

import pytorch_lightning as pl
import torch

from mha_lab.ranges import Size
from mha_lab.tasks.batch import Batch, blanks
from mha_lab.training.module import SequenceModule


class TextSamples(pl.Callback):
    """At every validation, writes a table of the first examples and what the model makes of them.

    Args:
        samples: how many examples.

    Raises:
        ValueError: samples is below 1.
    """

    def __init__(self, samples: Size = 8) -> None:
        if samples < 1:
            raise ValueError(f"text_samples.samples must be at least 1, got {samples}")
        self.samples = samples
        self._examples: Batch | None = None

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Keep the first examples of the first batch."""
        if batch_idx == 0 and dataloader_idx == 0:
            self._examples = Batch(*(part[: self.samples] for part in batch))

    @torch.no_grad()
    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Predict them and write a Markdown table.

        Only now: while the batch is under way, a recorder of attention may be watching the model.
        """
        examples, self._examples = self._examples, None
        if trainer.sanity_checking or trainer.global_rank or examples is None:
            return
        experiments = [getattr(logger, "experiment", None) for logger in trainer.loggers]
        writers: list[Any] = [one for one in experiments if hasattr(one, "add_text")]
        if not writers or not isinstance(pl_module, SequenceModule):
            return
        table = self._table(pl_module, examples)
        for writer in writers:
            writer.add_text("samples", table, trainer.global_step)

    @staticmethod
    def _table(module: SequenceModule, batch: Batch) -> str:
        text = module.vocabulary.text
        nothing = blanks(batch.target)
        asked: dict[str, Any] = {"blanks": nothing} if nothing.any() else {}
        predicted = module.model.generate(batch.source, max_length=batch.target.shape[1], **asked)
        rows = ["| | source | target | prediction |", "|---|---|---|---|"]
        for row in zip(batch.source, batch.target, predicted, strict=True):
            source, target, prediction = (text(ids.tolist()) for ids in row)
            mark = "✓" if target == prediction else "✗"
            cells = (_cell(part) for part in (mark, source, target, prediction))
            rows.append(f"| {' | '.join(cells)} |")
        return "\n".join(rows)


def _cell(text: str) -> str:
    """Text that cannot break a Markdown table or become markup."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
