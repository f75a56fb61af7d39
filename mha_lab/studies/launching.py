"""Hand a list of runs to whichever of Hydra's launchers was chosen."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mha_lab.config import complete, config_folder, explain, search_path
from mha_lab.errors import UserError
from mha_lab.studies.job import work
from mha_lab.studies.measuring import Measuring
from mha_lab.studies.study import Job


def launch(
    jobs: Sequence[Job], folder: Path, measuring: Measuring, launcher: Sequence[str] = ()
) -> None:
    """Run jobs, each in its folder below ``folder``; returns when all have ended.

    Hydra's sweepers know products of overrides alone. Its launchers take any list of jobs, so the
    launcher is called as a sweeper would call it.

    Args:
        jobs: the runs.
        folder: where their folders lie.
        measuring: how they are measured.
        launcher: words for Hydra, such as ``hydra/launcher=joblib``.

    Raises:
        UserError: Hydra cannot read the words, or has no such launcher.
    """
    from hydra import initialize_config_dir
    from hydra._internal.callbacks import Callbacks
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig
    from hydra.core.plugins import Plugins
    from hydra.errors import HydraException
    from hydra.types import HydraContext, RunMode
    from omegaconf import open_dict
    from omegaconf.errors import OmegaConfBaseException

    own = [
        f'hydra.sweep.dir="{folder.resolve()}"',
        "hydra.output_subdir=null",  # started.json says what a run was started with
        "~hydra.callbacks.lab",  # it refuses folders that hold runs; here they go on
        "hydra/job_logging=disabled",
        "hydra/hydra_logging=disabled",
    ]
    outer_hydra, outer_config = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(config_folder()), version_base="1.3", job_name="study"):
            loader = GlobalHydra.instance().config_loader()
            words = [*search_path(), *own, *launcher]
            cfg = loader.load_configuration("train", words, run_mode=RunMode.MULTIRUN)
            with open_dict(cfg.hydra.runtime):
                cfg.hydra.runtime.output_dir = str(folder.resolve())
            HydraConfig.instance().set_config(cfg)
            context = HydraContext(config_loader=loader, callbacks=Callbacks(cfg))
            started = Plugins.instance().instantiate_launcher(
                hydra_context=context, task_function=partial(work, measuring=measuring), config=cfg
            )
            words_of_jobs = [[f'hydra.sweep.subdir="{one.name}"', *complete(one.words)]
                             for one in jobs]  # fmt: skip
            for outcome in started.launch(words_of_jobs, initial_job_idx=0):
                _ = outcome.return_value  # raises what kept a job from starting
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(error, launcher)) from error
    finally:
        GlobalHydra.instance().hydra = outer_hydra
        HydraConfig.instance().cfg = outer_config
