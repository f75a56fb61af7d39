"""TensorBoard's HPARAMS tab: what varied, over which values, and what came of each trial.

The tab takes its columns from the first experiment record that it finds, so there must be exactly
one: in the sweep's folder. Each trial is a session in its own folder.
"""

import math
import time
from collections.abc import Sequence
from pathlib import Path

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2, summary_v2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.run_trial import Outcome, trial_folder
from mha_lab.sweeping.space import Parameter, Space, Value

_SUFFIX = ".sweep"


def write_experiment(plan: Plan, space: Space) -> None:
    """Describe the space and the objectives, once."""
    if any(plan.folder.glob(f"events.out.tfevents.*{_SUFFIX}")):
        return
    columns = [summary_v2.HParam(key, _domain(parameter)) for key, parameter in space.items()]
    metrics = [summary_v2.Metric(_tag(name), display_name=name) for name in _metrics(plan)]
    _write(plan.folder, [summary_v2.hparams_config_pb(columns, metrics, time.time())])


def write_session(
    plan: Plan, space: Space, number: int, params: dict[str, Value], outcome: Outcome
) -> None:
    """Tell a trial's values and what it reached."""
    values = {key: _column_value(space[key], value) for key, value in params.items()}
    end = plugin_data_pb2.SessionEndInfo(
        status=api_pb2.STATUS_FAILURE
        if outcome.state == TrialState.FAIL
        else api_pb2.STATUS_SUCCESS,
        end_time_secs=time.time(),
    )
    found = {**outcome.metrics, "steps": outcome.steps}
    scalars = Summary()
    for name in _metrics(plan):
        if math.isfinite(found.get(name, math.nan)):
            scalars.value.add(tag=_tag(name), simple_value=found[name])
    start = time.time() - outcome.seconds
    _write(
        trial_folder(plan, number),
        [
            summary_v2.hparams_pb(values, trial_id=f"trial {number}", start_time_secs=start),
            scalars,
            _record(metadata.SESSION_END_INFO_TAG, session_end_info=end),
        ],
    )


def _metrics(plan: Plan) -> list[str]:
    return [*plan.settings.objectives, "steps"]


def _tag(name: str) -> str:
    return f"trial/{name}"  # after train: the losses come first


def _domain(parameter: Parameter) -> summary_v2.Domain:
    match parameter.distribution:
        case IntDistribution(low=low, high=high):
            return summary_v2.IntInterval(low, high)
        case FloatDistribution(low=low, high=high):
            return summary_v2.RealInterval(low, high)
    return summary_v2.Discrete([_column_value(parameter, value) for value in parameter.values()])


def _column_value(parameter: Parameter, value: Value) -> Value:
    """A value as its column takes it: one type a column."""
    if not isinstance(parameter.distribution, CategoricalDistribution):
        return value
    kinds = {type(choice) for choice in parameter.distribution.choices}
    if len(kinds) == 1:
        return value
    return float(value) if kinds == {int, float} else str(value)


def _record(tag: str, **content: plugin_data_pb2.SessionEndInfo) -> Summary:
    summary = Summary()
    data = plugin_data_pb2.HParamsPluginData(**content)
    summary.value.add(
        tag=tag,
        metadata=metadata.create_summary_metadata(data),
        tensor=metadata.NULL_TENSOR,
    )
    return summary


def _write(folder: Path, summaries: Sequence[Summary]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    writer = EventFileWriter(str(folder), filename_suffix=_SUFFIX)
    for summary in summaries:
        writer.add_event(Event(wall_time=time.time(), step=0, summary=summary))
    writer.close()
