r"""Search hyperparameters: many trials, one study, on as many processes and machines as you start.

Usage:
  python -m mha_lab sweep +experiment=sort sweep=optuna     the space of configs/sweep/optuna.yaml
  python -m mha_lab sweep +experiment=sort model.embed_dim=32,64 \
      'optimizer.lr=tag(log,interval(1e-4,1e-2))'           a space of your own
  python -m mha_lab sweep +experiment=copy attention=builtin,custom seed=0,1 sweep=grid
  python -m mha_lab sweep +experiment=sort sweep=mine.yaml  settings and space in a file

A key with several values spans the space: a,b or choice(a,b), range(start,stop,step),
interval(low,high), int(interval(16,256)), tag(log,interval(1e-4,1e-2)), glob(*). On the command
line it replaces what the file says of the key; KEY=VALUE fixes it, sweep.space.KEY=null takes it
out of the space. All other words are fixed in every trial, as in train.

Settings (sweep.KEY=VALUE): sampler=tpe|random|grid, pruner=hyperband|median|none, n_trials, seeds
(runs a trial), n_jobs (processes), objectives=[...], prune_by, name, folder,
storage=sqlite:///FILE|postgresql://..., sampler_seed, lease; and trust=MODULE, where a file's space
names code that is not this project's. docs/sweeps.md tells more.

The same command started again joins the study, or goes on with it after an interruption.
"""

from collections.abc import Sequence

GOES_ON = True  # after an interruption, by the same command


def main(arguments: Sequence[str]) -> int:
    """Run a sweep, or join it."""
    from mha_lab.arguments import split
    from mha_lab.config import trust
    from mha_lab.sweeping.plan import read_plan
    from mha_lab.sweeping.processes import share_cores

    settings, words = split(arguments, (trust.SETTING,))
    plan = read_plan(words, trusted=trust.modules(settings.get(trust.SETTING)))
    share_cores(plan.settings.n_jobs)

    from mha_lab.sweeping.sweep import sweep

    return sweep(plan)
