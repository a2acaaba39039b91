"""What a view's buttons ask, checked and handed on: a small file in the study's inbox, never a write to the log."""

from collections.abc import Mapping
from typing import Any

from workbench.core.checks import whole
from workbench.core.errors import InvalidInput, unknown
from workbench.core.interventions import ACTIONS, REMARKS, checked_remark
from workbench.core.protocols import Config
from workbench.core.space import Space
from workbench.knowledge import Controls
from workbench.viz.dashboard.form import changed


def ask(controls: Controls, content: Mapping[str, Any], config: Config | None, space: Space | None = None) -> str:
    """Hand on what a view asks, and give the id under which the answer will stand in the log.

    Parameters
    ----------
    controls : Controls
    content : Mapping
        From a web page, so anything: ``action``, ``trial``, and ``phases``, ``nodes``, ``config`` (what to change) or
        ``words`` (of a note or a tag).
    config : Mapping or None
        The trial's own configuration, if there is such a trial.
    space : Space, optional
        The study's, where it is known: what a clone may be given.

    Raises
    ------
    InvalidInput
        It makes no sense, whatever state the study is in; whether it makes sense now, the study decides.
    """
    action = content.get("action")
    if action in ("pause study", "resume study", "stop study"):
        return str(getattr(controls, action.replace(" ", "_"))())
    if action == "scale":
        return controls.scale(_whole(content, "nodes"))
    if action not in ACTIONS:
        raise unknown("action", str(action), ACTIONS)
    trial: Any = content.get("trial")
    remark = checked_remark(action, content.get("words")) if action in REMARKS else {}
    if remark and trial is None:
        return str(getattr(controls, action)(**remark))
    if config is None or not whole(0).fits(trial):
        raise InvalidInput(f"there is no trial {trial!r}")
    if remark:
        return str(getattr(controls, action)(**remark, trial=trial))
    if action == "extend":
        return controls.extend(trial, _whole(content, "phases"))
    if action == "clone":
        return controls.clone(trial, changed(config, content.get("config", {}), space))
    return str(getattr(controls, action)(trial))


def _whole(content: Mapping[str, Any], name: str) -> int:
    value: Any = content.get(name)
    if not whole(1).fits(value):
        raise InvalidInput(f"give a whole number of {name} >= 1, got {value!r}")
    return int(value)
