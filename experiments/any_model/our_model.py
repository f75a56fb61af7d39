"""One of this project's own models, trained to copy: its cross-attention walks the diagonal."""

import sys
import tempfile
from pathlib import Path

from mha_lab import config
from mha_lab.evaluation.predictor import predict
from mha_lab.maps.plot import plot_maps
from mha_lab.run import train

with tempfile.TemporaryDirectory() as folder:
    choices = ["+experiment=copy", "trainer=cpu", "trainer.enable_progress_bar=false", "logger=csv"]
    summary = train(config.compose(choices, run_dir=folder))
    prediction = predict(Path(folder), "7 3 9 1 4 3 8")  # records one forward pass

print(f"copies {summary['test/sequence_accuracy']:.0%} of the test sequences")
print(" ".join(prediction.source), "->", " ".join(prediction.output))
for one in prediction.maps:
    print(f"{one.name} ({one.kind}): diagonal score {one.scores()['diagonal'].mean():.1f}")

cross = [one for one in prediction.drawn() if one.kind == "cross"]
plot_maps(cross, title=prediction.title).savefig(
    sys.argv[1] if sys.argv[1:] else "our_model.png", dpi=80
)
