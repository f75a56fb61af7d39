"""Recipes of tasks along the sequence: what attention is known to solve is solved, quickly."""

import pytest

from mha_lab import config
from mha_lab.evaluation.by_length import evaluate_lengths
from mha_lab.run import train

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("task", ["majority", "reverse"])
def test_a_recipe_solves_its_task_and_its_lengths_can_be_measured(task, tmp_path):
    cfg = config.compose([f"+experiment={task}", "logger=csv"], run_dir=tmp_path)
    cfg.trainer.enable_progress_bar = False
    summary = train(cfg)
    assert summary["status"] == "solved"
    assert summary["test/sequence_accuracy"] >= 0.99
    longest = cfg.task.max_length
    result = evaluate_lengths(tmp_path, [(1, longest), (longest + 1, 2 * longest)], samples=200)
    inside, beyond = result.ranges
    assert inside["sequence_accuracy"] >= 0.98
    assert beyond["beyond"]
    assert beyond["sequence_accuracy"] < inside["sequence_accuracy"]
