"""LightningModules that know nothing of mha_lab, and the short runs that train them.

Each is a mixin, so that it can be a module of either package of Lightning.
"""

import math
from functools import cache
from importlib import import_module

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from mha_lab.tensorboard.reader import read_attention

PACKAGES = ("pytorch_lightning", "lightning.pytorch")

N, L, S, E, H, VOCAB = 3, 5, 7, 22, 2, 13


class Steps:
    """Training and validation steps that keep what they saw.

    Attributes:
        seen: (stage, trainer.global_step, dataloader_idx, first layer's weights by hand) a step.
        losses: The loss of each step.
        calls: How often ``forward`` was called.
    """

    def __init__(self):
        super().__init__()
        self.seen, self.losses, self.calls = [], [], 0

    def training_step(self, batch, batch_idx):
        return self.step("train", batch)

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        return self.step("validation", batch, dataloader_idx)

    def step(self, stage, batch, dataloader_idx=0):
        self.seen.append((stage, self.trainer.global_step, dataloader_idx, self.by_hand(batch)))
        loss = self(batch).square().mean()
        self.losses.append(loss.detach().clone())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)


class Encoder(Steps):
    """``nn.TransformerEncoder`` on dict batches of ids (N, L)."""

    def __init__(self, dropout=0.3):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, E)
        layer = nn.TransformerEncoderLayer(E, H, 17, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, batch):
        self.calls += 1
        return self.encoder(self.embedding(batch["ids"]))

    def by_hand(self, batch):
        x = self.embedding(batch["ids"])
        return weights_by_hand(self.encoder.layers[0].self_attn, x, x)


class Crossing(Steps):
    """``nn.MultiheadAttention`` between the two sequences of a tuple batch (N, L, E), (N, S, E)."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(E, H, dropout=0.3, batch_first=True)

    def forward(self, batch):
        self.calls += 1
        x, memory = batch
        return self.attention(x, memory, memory)[0]

    def by_hand(self, batch):
        return weights_by_hand(self.attention, *batch)


class NoAttention(Steps):
    """A module without attention."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(E, E)

    def forward(self, batch):
        self.calls += 1
        return self.linear(batch[0])

    def by_hand(self, batch):
        return None


@torch.no_grad()
def weights_by_hand(attention, x, memory):
    """The weights (N, H, L, S) of an ``nn.MultiheadAttention``."""
    w_q, w_k, _ = attention.in_proj_weight.chunk(3)
    b_q, b_k, _ = attention.in_proj_bias.chunk(3)
    q = F.linear(x, w_q, b_q).unflatten(-1, (H, E // H)).transpose(1, 2)
    k = F.linear(memory, w_k, b_k).unflatten(-1, (H, E // H)).transpose(1, 2)
    return (q @ k.mT / math.sqrt(E // H)).softmax(-1)


@cache
def module_class(package, steps):
    """One of the above as a LightningModule of this package."""
    return type(steps.__name__, (steps, import_module(package).LightningModule), {})


def batches_of_ids(count, seed=1):
    """``count`` dict batches."""
    generator = torch.Generator().manual_seed(seed)
    return loader(
        [{"ids": torch.randint(VOCAB, (N, L), generator=generator)} for _ in range(count)]
    )


def batches_of_pairs(count, seed=1):
    """``count`` tuple batches."""
    generator = torch.Generator().manual_seed(seed)

    def sequences(length):
        return torch.randn(N, length, E, generator=generator)

    return loader([(sequences(L), sequences(S)) for _ in range(count)])


def loader(batches):
    """A loader of batches that exist already."""
    return DataLoader(batches, batch_size=None)


def make_trainer(folder, callbacks=(), package=PACKAGES[0], **options):
    """A quiet trainer on the CPU that logs to TensorBoard in ``folder``."""
    pl = import_module(package)
    if "logger" not in options:
        options["logger"] = pl.loggers.TensorBoardLogger(folder, name="", version="run")
    quiet = {
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
        "num_sanity_val_steps": 0,
        "max_epochs": 2,
        "log_every_n_steps": 1,
    }
    return pl.Trainer(
        accelerator="cpu",
        devices=1,
        default_root_dir=str(folder),
        callbacks=list(callbacks),
        **{**quiet, **options},
    )


def fit(folder, *callbacks, module=None, train=4, validation=1, package=PACKAGES[0], **options):
    """Train an Encoder, or another module, and give it back.

    Args:
        folder: Where to log.
        callbacks: The trainer's.
        module: The module.
        train: How many training batches an epoch, or a loader.
        validation: How many validation batches, or loaders.
        package: Which Lightning.
        options: The trainer's.
    """
    module = module_class(package, Encoder)() if module is None else module
    train = batches_of_ids(train) if isinstance(train, int) else train
    validation = batches_of_ids(validation, 2) if isinstance(validation, int) else validation
    make_trainer(folder, callbacks, package, **options).fit(module, train, validation)
    return module


def logged_steps(folder, **chosen):
    """The steps of each tag that was logged for the tab; nothing where nothing was."""
    steps = {}
    try:
        for one in read_attention(folder, **chosen):
            steps.setdefault(one.tag, []).append(one.step)
    except (FileNotFoundError, ValueError):
        pass
    return steps
