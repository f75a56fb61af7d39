"""One run of Hydra's launchers, alone or among many: what becomes of its folder if it fails."""

import contextlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mha_lab.commands.ending import train_and_tell, train_for_summary
from mha_lab.errors import UserError
from mha_lab.plain_text import write_plainly

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from mha_lab.commands.multirun_display import MultirunDisplay

outcome: dict[str, Any] = {}
"""What the job of a single run leaves for its command: a code, or an error."""
displays: list["MultirunDisplay"] = []
"""Those of the multirun under way, in this process."""


def run_job(cfg: "DictConfig") -> None:
    """One run, as Hydra's launchers call it, in this process or in another."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from mha_lab.config import finish

    write_plainly()  # a launcher may run jobs in processes of its own
    overrides = list(HydraConfig.get().overrides.task)
    is_multirun = HydraConfig.get().mode == RunMode.MULTIRUN
    # DistributedDataParallel starts its other processes with this command line.
    words, sys.argv = sys.argv, [sys.argv[0], "train", *overrides]
    folder = Path(HydraConfig.get().runtime.output_dir)
    _forget_places(folder)
    try:
        if is_multirun:
            outcome["code"] = _train_among(finish(cfg), overrides)
        else:
            outcome["code"] = train_and_tell(finish(cfg))
        if is_multirun and outcome["code"] > 128:
            # A signal ends the multirun, not one run of it.
            raise KeyboardInterrupt
    except UserError as error:
        if not is_multirun:
            outcome["error"] = error
            _leave_nothing(folder)
            return
        # One bad combination must not end the others.
        _record_failure(folder, overrides, str(error), code=2)
    except Exception as error:
        if not is_multirun:
            raise
        _record_failure(folder, overrides, f"{type(error).__name__}: {error}", code=1)
    finally:
        sys.argv = words


def _train_among(cfg: "DictConfig", overrides: Sequence[str]) -> int:
    """Train one of many runs: the multirun tells of it."""
    from mha_lab.commands.multirun_again import is_done
    from mha_lab.commands.multirun_display import MultirunDisplay
    from mha_lab.config import CONFIG_FILE
    from mha_lab.training.run_folder import read_summary

    # A launcher may run jobs in processes of its own, which have no bar.
    display = displays[-1] if displays else MultirunDisplay(is_here=False)
    display.begins(overrides)
    folder = Path(cfg.run_dir)
    if is_done(folder):  # before the multirun was broken off
        display.ends(folder, read_summary(folder))
        return 0
    begun = (folder / CONFIG_FILE).exists()
    summary, code = train_for_summary(cfg, resume=begun, among=display.bars, says_what=False)
    display.ends(folder, summary)
    return code


def _forget_places(folder: Path) -> None:
    """Take the paths of this machine out of Hydra's notes: a run can be moved, or given away."""
    import yaml

    from mha_lab.training.run_folder import write_atomically

    file = folder / ".hydra" / "hydra.yaml"
    if file.is_file():
        notes = yaml.safe_load(file.read_text(encoding="utf-8"))["hydra"]
        runtime = {key: notes["runtime"][key] for key in ("version", "choices")}
        kept = {"hydra": {"runtime": runtime, "job": {"num": notes["job"].get("num")}}}
        write_atomically(file, yaml.safe_dump(kept, sort_keys=False))


def _leave_nothing(folder: Path) -> None:
    """Remove what Hydra has noted of a run that was refused, or it would count as unfinished."""
    from mha_lab.commands.hydra_callback import RunGuard

    folder = folder.absolute()
    if (folder / "config.yaml").exists():
        return  # it was refused later
    shutil.rmtree(folder / ".hydra", ignore_errors=True)
    with contextlib.suppress(OSError):  # whatever else lies there stays
        (folder / "train.log").unlink(missing_ok=True)
        for made in (folder, *folder.parents):
            if made == RunGuard.was_there:
                break
            made.rmdir()


def _record_failure(folder: Path, overrides: list[str], reason: str, *, code: int) -> None:
    from mha_lab.commands.hydra_callback import RunGuard
    from mha_lab.training.run_folder import write_summary

    if reason not in RunGuard.told:
        print(f"mha_lab: {' '.join(overrides)}: {reason}", file=sys.stderr)
    summary = {"status": "failed", "reason": reason, "exit_code": code, "overrides": overrides}
    write_summary(folder, summary)
    for display in displays:
        display.ends(folder, {})
