"""How much each value of the space matters to each objective.

PED-ANOVA: Watanabe, Bansal & Hutter 2023, "PED-ANOVA: Efficiently Quantifying Hyperparameter
Importance in Arbitrary Subspaces".
"""

import math
import warnings

import optuna
from matplotlib.figure import Figure

from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.plot_parts import new_figure
from mha_lab.sweeping.settings import MAXIMIZE
from mha_lab.sweeping.space import Space

FEWEST_TRIALS = 4


def importances(study: optuna.Study, index: int, *, is_higher_better: bool) -> dict[str, float]:
    """How much each key has to do with an objective being good; empty where it cannot be told.

    Args:
        study: the study.
        index: which objective.
        is_higher_better: its direction.
    """
    sign = -1 if is_higher_better else 1  # the evaluator looks at what makes the target low
    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    values = {trial.values[index] for trial in complete if math.isfinite(trial.values[index])}
    if len(values) < FEWEST_TRIALS:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # tells which sign the target must have
        found = optuna.importance.get_param_importances(
            study, target=lambda trial: sign * trial.values[index]
        )
    return dict(found)


def draw_importance(plan: Plan, space: Space, study: optuna.Study) -> Figure:
    """Draw a bar a key, a panel an objective."""
    names = plan.settings.objectives
    figure = new_figure(1.5 + 4.5 * len(names), 1.6 + 0.45 * len(space))
    for index, (name, axes) in enumerate(
        zip(names, figure.subplots(1, len(names), squeeze=False)[0], strict=True)
    ):
        is_higher_better = plan.settings.directions[index] == MAXIMIZE
        shares = importances(study, index, is_higher_better=is_higher_better)
        keys = sorted(space, key=lambda key: shares.get(key, 0.0))
        bars = axes.barh(keys, [shares.get(key, 0.0) for key in keys], color="#3b6ea8")
        axes.set(title=f"importance for {name}", xlim=(0, 1.12))
        axes.spines[["top", "right"]].set_visible(False)
        if shares:
            axes.bar_label(bars, fmt="%.2f", padding=3)
        else:
            axes.text(0.5, 0.5, "too few different results to tell", ha="center",
                      va="center", transform=axes.transAxes)  # fmt: skip
    return figure
