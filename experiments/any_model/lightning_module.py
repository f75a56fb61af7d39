"""Someone else's LightningModule: one line logs its attention, and TensorBoard's files keep it."""

import sys
import tempfile

import pytorch_lightning as pl
import torch
from torch import nn

from mha_lab import AttentionMap, AttentionMapLogger, read_attention
from mha_lab.maps.plot import plot_maps


class NameThePrevious(pl.LightningModule):
    """Learns which symbol stood before each symbol; knows nothing of mha_lab."""

    def __init__(self):
        super().__init__()
        self.symbol, self.place = nn.Embedding(10, 32), nn.Embedding(9, 32)
        self.layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)

    def training_step(self, ids, _):
        logits = self.layer(self.symbol(ids) + self.place.weight) @ self.symbol.weight.T
        return nn.functional.cross_entropy(logits[:, 1:].transpose(1, 2), ids[:, :-1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


torch.manual_seed(0)
data = torch.utils.data.DataLoader(torch.randint(10, (1600, 9)), 32)
maps_of_training = AttentionMapLogger(stage="train")  # this module has no validation step
with tempfile.TemporaryDirectory() as folder:
    trainer = pl.Trainer(default_root_dir=folder, max_epochs=5, callbacks=[maps_of_training])
    trainer.fit(NameThePrevious(), data)
    stored = read_attention(folder)
print(f"{stored[0].name}: logged at steps", *(one.step for one in stored))
maps = [AttentionMap(f"step {s.step}", torch.from_numpy(s.weights)) for s in stored[::4]]
plot_maps(maps).savefig(sys.argv[1] if sys.argv[1:] else "lightning_module.png", dpi=80)
