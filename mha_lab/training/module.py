"""The LightningModule: teacher forcing on (source, target) batches, losses and accuracies."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from mha_lab.models.interface import SequenceModel
from mha_lab.tasks.batch import Batch
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.training.optimizer import AdamWRecipe

_PAD, _BLANK = Vocabulary.SPECIAL[Vocabulary.PAD], "_"


class SequenceModule(pl.LightningModule):
    """Trains a sequence model; logs losses, accuracies, learning rate and gradient norm.

    Args:
        model: maps (source, target) to logits (N, T, V).
        vocabulary: names the token ids.
        optimizer: how to make optimizer and schedule.
    """

    def __init__(
        self, model: SequenceModel, vocabulary: Vocabulary, optimizer: AdamWRecipe
    ) -> None:
        super().__init__()
        self.model = model
        self.vocabulary = vocabulary
        self.recipe = optimizer
        self._lengths: Int[Tensor, "2 length"] | None = None

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Loss of one batch: cross-entropy over the target's tokens, padding ignored."""
        loss = token_loss(self.model(batch.source, batch.target), batch.target)
        if self._is_logged_step():
            self.log("train/loss", loss.detach(), prog_bar=True)
            self.log("train/learning_rate", self.trainer.optimizers[0].param_groups[0]["lr"])
        return loss

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip as Lightning does, and log the norm before clipping, which comes for free."""
        if gradient_clip_algorithm == "value":
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
            return
        limit = gradient_clip_val or float("inf")
        norm = nn.utils.clip_grad_norm_(self.parameters(), limit)
        if self._is_logged_step():
            self.log("train/gradient_norm", norm)

    def _is_logged_step(self) -> bool:
        """Logging costs more than a small model's layer: only on the steps that loggers keep."""
        every: int = self.trainer.log_every_n_steps  # type: ignore[attr-defined]
        return (self.global_step + 1) % every == 0

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Loss and accuracies of one validation batch, logged as ``val/...``."""
        self._evaluate(batch, "val")

    def on_validation_epoch_end(self) -> None:
        """Stop a run whose loss is no longer a number: it can only waste time."""
        loss = self.trainer.callback_metrics.get("val/loss")
        if loss is not None and not torch.isfinite(loss) and not self.trainer.sanity_checking:
            lr, decay = self.recipe.lr, self.recipe.weight_decay
            remedy = f"lower optimizer.lr (now {lr}) or raise optimizer.warmup_steps"
            if not lr * decay <= 1:  # AdamW scales weights by 1 - lr * weight_decay: past 0
                remedy = f"lower optimizer.weight_decay (now {decay}; with optimizer.lr {lr})"
            raise TrainingDiverged(
                f"the training diverged: val/loss is {float(loss)} at step {self.global_step}; "
                f"{remedy}"
            )

    def on_test_start(self) -> None:
        """Start counting right outputs by length."""
        longest = self.trainer.datamodule.task.max_source_length + 1  # type: ignore[attr-defined]
        self._lengths = torch.zeros(2, longest, dtype=torch.long, device=self.device)

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        """Loss and accuracies of one test batch, logged as ``test/...``, and counts by length."""
        right = self._evaluate(batch, "test")
        assert self._lengths is not None
        length = (batch.source != Vocabulary.PAD).sum(1) - 1  # the <eos> is not counted
        self._lengths[0].scatter_add_(0, length, torch.ones_like(length))
        self._lengths[1].scatter_add_(0, length, right.long())

    def accuracy_by_length(self) -> list[dict[str, float]]:
        """After a test: for each source length, how many sequences and how many wholly right."""
        if self._lengths is None:
            return []
        counts = self.trainer.strategy.reduce(self._lengths, reduce_op="sum")
        return [
            {"length": length, "sequences": n, "sequence_accuracy": right / n}
            for length, (n, right) in enumerate(zip(*counts.tolist(), strict=True))
            if n
        ]

    def _evaluate(self, batch: Batch, stage: str) -> Bool[Tensor, " N"]:
        logits = self.model(batch.source, batch.target)
        tokens = int((batch.target != Vocabulary.PAD).sum())
        token_right, sequence_right = accuracies(logits, batch.target)
        kept: dict[str, Any] = {"on_step": False, "on_epoch": True, "sync_dist": True}
        self.log(f"{stage}/loss", token_loss(logits, batch.target), batch_size=tokens, **kept)
        self.log(f"{stage}/token_accuracy", token_right, batch_size=tokens, **kept)
        self.log(
            f"{stage}/sequence_accuracy",
            sequence_right.float().mean(),
            batch_size=len(batch.target),
            prog_bar=True,
            **kept,
        )
        return sequence_right

    def configure_optimizers(self) -> Any:
        """AdamW, its schedule advanced at every optimizer step."""
        optimizer, schedule = self.recipe.build(self)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }

    def attention_tokens(self, batch: Batch) -> Mapping[str, Any]:
        """The tokens on the axes of each attention call, for attention maps.

        Returns:
            For each pattern of module names, the query tokens and the key tokens: for each sample
            a list of strings.
        """
        axes = self.model.attention_axes(batch.source, batch.target)
        return {
            pattern: (self._names(query), self._names(key))
            for pattern, (query, key) in axes.items()
        }

    def _names(self, ids: Int[Tensor, "N L"]) -> "TokenRows":
        return TokenRows(self.vocabulary, ids)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the random state, which dropout draws from: Lightning does not."""
        state = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            state["cuda"] = torch.cuda.get_rng_state()
        checkpoint["random_state"] = state

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Remember the random state until training starts: set-up draws from it as well."""
        self._random_state = checkpoint.get("random_state")

    def on_train_start(self) -> None:
        """Go on with the random numbers where the checkpoint left off."""
        state = getattr(self, "_random_state", None)
        if state is None:
            return
        torch.set_rng_state(state["cpu"].cpu())
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state(state["cuda"].cpu())


class TokenRows(Sequence[list[str]]):
    """The tokens of each row of ids, decoded when asked for: few of a batch are ever drawn."""

    def __init__(self, vocabulary: Vocabulary, ids: Int[Tensor, "N L"]) -> None:
        self._vocabulary = vocabulary
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, row: Any) -> Any:
        tokens = self._vocabulary.decode(self._ids[row].tolist())
        last = max((i for i, token in enumerate(tokens) if token != _PAD), default=-1)
        # Padding before the end is a place where nothing is asked; at the end it has no label,
        # so that it counts in no score.
        return [
            token if token != _PAD else _BLANK if i < last else "" for i, token in enumerate(tokens)
        ]


class TrainingDiverged(Exception):
    """The loss became infinite or not a number."""


def token_loss(logits: Float[Tensor, "N T V"], target: Int[Tensor, "N T"]) -> Float[Tensor, ""]:
    """Cross-entropy in nats, averaged over the target's tokens; padding is ignored."""
    return F.cross_entropy(
        logits.flatten(0, 1).float(), target.flatten(), ignore_index=Vocabulary.PAD
    )


def accuracies(
    logits: Float[Tensor, "N T V"], target: Int[Tensor, "N T"]
) -> tuple[Float[Tensor, ""], Bool[Tensor, " N"]]:
    """Share of right tokens, and which sequences are right as a whole.

    Under teacher forcing every prediction is right if and only if greedy decoding reproduces the
    target exactly (by induction over positions), so one forward pass gives the exact sequence
    accuracy. The token accuracy is the teacher-forced one.
    """
    padding = target == Vocabulary.PAD
    right = (logits.argmax(-1) == target) | padding
    tokens = (~padding).sum().clamp(min=1)
    return ((right & ~padding).sum() / tokens), right.all(1)
