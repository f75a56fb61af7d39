"""Which values the classes of torch and Lightning take here that the config tree names.

Their own signatures say types, hardly ever ranges, and allow what a run of this project cannot do.
A key that is missing here has the type of the class's own signature.
"""

import re
from typing import Annotated, Any, Literal, TypedDict, get_type_hints

from annotated_types import Predicate

from mha_lab.ranges import Count, NotNegative, Probability, Share, Size

Metric = Literal["val/loss", "val/token_accuracy", "val/sequence_accuracy"]
"""What a validation logs."""


def is_duration(text: str) -> bool:
    """Of days, hours, minutes and seconds, two digits each: 00:01:30:00 is 90 minutes."""
    return re.fullmatch(r"\d\d:\d\d:\d\d:\d\d", text) is not None


Duration = Annotated[str, Predicate(is_duration)]
"""For how long: days, hours, minutes and seconds, two digits each."""


class TrainerKeys(TypedDict, total=False):
    """``pytorch_lightning.Trainer``."""

    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps"]
    strategy: Literal[
        "auto", "ddp", "ddp_find_unused_parameters_true", "ddp_find_unused_parameters_false"
    ]
    devices: Size | Literal["auto", -1] | list[Count]
    num_nodes: Size
    fast_dev_run: bool
    max_epochs: Literal[-1] | None
    min_epochs: None
    max_steps: Size
    max_time: Duration | None
    min_steps: Size | None
    limit_train_batches: Size | Share | None
    limit_val_batches: Count | Probability | None
    limit_test_batches: Size | Share | None
    limit_predict_batches: Count | Probability | None
    overfit_batches: Literal[0]
    val_check_interval: Size
    check_val_every_n_epoch: Size | None
    num_sanity_val_steps: Count | Literal[-1]
    log_every_n_steps: Size
    enable_checkpointing: bool | None
    enable_progress_bar: bool
    accumulate_grad_batches: Size
    gradient_clip_val: NotNegative | None
    gradient_clip_algorithm: Literal["norm", "value"] | None
    profiler: Literal["simple", "advanced", "pytorch"] | None
    barebones: Literal[False]
    plugins: None
    reload_dataloaders_every_n_epochs: Count
    model_registry: None


class ProgressBarKeys(TypedDict, total=False):
    """``pytorch_lightning.callbacks.TQDMProgressBar``."""

    refresh_rate: Count
    process_position: Count


class TensorBoardKeys(TypedDict, total=False):
    """``pytorch_lightning.loggers.TensorBoardLogger``; what it hands on to its writer, too."""

    log_graph: Literal[False]
    prefix: str
    default_hp_metric: bool
    max_queue: Size
    flush_secs: Size
    filename_suffix: str


class TorchAttentionKeys(TypedDict, total=False):
    """``torch.nn.MultiheadAttention``."""

    dropout: Probability
    bias: bool
    add_bias_kv: bool
    add_zero_attn: bool
    kdim: Size | None
    vdim: Size | None
    batch_first: Literal[True]


class WatcherKeys(TypedDict, total=False):
    """Callbacks that watch a metric, of any name elsewhere: a run of this project has these."""

    monitor: Metric
    mode: Literal["min", "max"]


_KEYS: dict[str, type] = {
    "pytorch_lightning.trainer.trainer.Trainer": TrainerKeys,
    "pytorch_lightning.callbacks.model_checkpoint.ModelCheckpoint": WatcherKeys,
    "pytorch_lightning.callbacks.progress.tqdm_progress.TQDMProgressBar": ProgressBarKeys,
    "pytorch_lightning.loggers.tensorboard.TensorBoardLogger": TensorBoardKeys,
    "torch.nn.modules.activation.MultiheadAttention": TorchAttentionKeys,
    "mha_lab.callbacks.stop_when_solved.StopWhenSolved": WatcherKeys,
    "mha_lab.training.checkpoints.Checkpoints": WatcherKeys,
}


def keys_of(target: Any) -> dict[str, Any]:
    """The types, with ranges, that are said here of a class's arguments."""
    path = f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', '')}"
    keys = _KEYS.get(path)
    return get_type_hints(keys, include_extras=True) if keys else {}
