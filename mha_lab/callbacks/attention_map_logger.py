"""Log the attention maps of a model while Lightning trains it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal

from mha_lab.callbacks.any_lightning import AnyLightningCallback
from mha_lab.callbacks.attention_tokens import label_maps
from mha_lab.recording.attention_map import AttentionMap
from mha_lab.recording.recorder import record_attention

if TYPE_CHECKING:
    from pytorch_lightning import LightningModule, Trainer


class AttentionMapLogger(AnyLightningCallback):
    """Log what every head of every layer looks at, at each validation."""

    def __init__(
        self,
        *,
        every_n_epochs: int | None = None,
        every_n_steps: int | None = None,
        modules: str | Sequence[str] | None = None,
        samples: int | Sequence[int] = 1,
        tokens: Callable[[Any], Any] | None = None,
        stage: Literal["validation", "train"] = "validation",
        max_size: int | None = 64,
        scores: bool = True,
        images: bool = True,
    ) -> None:
        super().__init__()
        self.every_n_epochs = every_n_epochs
        self.every_n_steps = every_n_steps
        self.modules = modules
        self.samples = samples
        self.tokens = tokens
        self.stage = stage
        self.max_size = max_size
        self.scores = scores
        self.images = images
        self._recording = ExitStack()
        self._maps: list[AttentionMap] | None = None

    def on_validation_batch_start(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Begin to record the first batch of a validation."""
        if self.stage == "validation" and batch_idx == 0 and self._is_due(trainer):
            self._start(pl_module)

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Log what was recorded."""
        if self._maps is not None:
            self._finish(trainer, pl_module, batch)

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Leave nothing behind when a step raises."""
        self._recording.close()
        self._maps = None

    def _is_due(self, trainer: Trainer) -> bool:
        return bool(trainer.is_global_zero) and not trainer.sanity_checking

    def _start(self, pl_module: LightningModule) -> None:
        self._maps = self._recording.enter_context(
            record_attention(pl_module, samples=self.samples, max_size=self.max_size)
        )

    def _finish(self, trainer: Trainer, pl_module: LightningModule, batch: Any) -> None:
        from mha_lab.recording.raster import draw_maps

        self._recording.close()
        maps, self._maps = self._maps or [], None
        source = self.tokens or getattr(pl_module, "attention_tokens", None)
        maps = label_maps(maps, source(batch)) if source else maps
        step = trainer.global_step
        loggers: list[Any] = trainer.loggers
        for logger in loggers:
            add_image = getattr(logger.experiment, "add_image", None)
            if add_image is None:
                continue
            for one in maps:
                for i in range(one.weights.shape[0]):
                    heads = one.weights[i].float().cpu().numpy()
                    picture = draw_maps(
                        heads,
                        title=f"{one.name} · step {step}",
                        names=one.head_names(),
                        row_labels=one.query_tokens[i] if one.query_tokens else None,
                        column_labels=one.key_tokens[i] if one.key_tokens else None,
                    )
                    tag = f"attention/{one.name}/sample_{i}"
                    add_image(tag, picture.rgb(), step, dataformats="HWC")
