"""Why a job is stale, in words: which part of its recipe changed, and what in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from monkey.plan.jobs.job_changes import SettingChange, StaleReason
from monkey.plan.sizes import format_size
from monkey.plan.text.credential_forms import mask_credentials, mask_named_value
from monkey.spec.job.expires import Expiry
from monkey.spec.job.metric_sources import MetricSource
from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.spec.job.stop_when import StopRule
from monkey.spec.project.notify_channel import NotifyChannel

#: What `--keep-stale` may name. Not "parameter": a result under other parameters is another result.
KEEPABLE_REASONS = ("code", "command", "dataset", "requirements", "python", "setup", "image", "env", "outputs")
#: What `--keep-stale` names to give up adopted results.
KEEP_NOTHING = "nothing"
#: Names that a sentence lists before it only counts.
_LISTED = 3
#: Digits of an image's digest that a sentence shows.
_DIGITS = 12
#: Characters of a value that a sentence shows.
_SHOWN = 40


def explain_recipe_changes(
    before: Recipe,
    after: Recipe,
    files_before: Mapping[str, str],
    files_after: Mapping[str, str],
    within: Mapping[str, str] | None = None,
) -> tuple[StaleReason, ...]:
    """Return a reason for every part of the recipe that differs; `within` says of a dataset what in it."""
    reasons = []
    if before.code != after.code:
        names = _list_changed_names(files_before, files_after) or ["rights of its files"]
        reasons.append(StaleReason("code", f"code changed: {_join_names(names)}"))
    if before.command != after.command:
        reasons.append(StaleReason("command", f"command changed{_compare_words(before.command, after.command)}"))
    if before.datasets != after.datasets:
        names = [_format_dataset(name, within or {}) for name in _list_changed_names(before.datasets, after.datasets)]
        reasons.append(StaleReason("dataset", f"dataset changed: {_join_names(names)}"))
    for part in sorted(before.environment.keys() | after.environment.keys()):
        old, new = before.environment.get(part), after.environment.get(part)
        if old != new:
            reasons.append(StaleReason(part, f"{part} changed{_compare_lines(old or '', new or '')}"))
    if before.image != after.image:
        reasons.append(
            StaleReason("image", f"image changed: {_format_image(before.image)} → {_format_image(after.image)}")
        )
    if before.env != after.env:
        reasons.append(StaleReason("env", f"env changed: {_join_names(_list_changed_values(before.env, after.env))}"))
    if before.outputs != after.outputs:
        reasons.append(
            StaleReason(
                "outputs", f"outputs changed: {_join_names(_list_added_and_removed(before.outputs, after.outputs))}"
            )
        )
    return tuple(reasons)


def _format_image(digest: str | None) -> str:
    """Say a digest as far as people compare it: "a1b2c3d4e5f6…"."""
    text = (digest or "none").removeprefix("sha256:")
    return f"{text[:_DIGITS]}…" if len(text) > _DIGITS else text


def _format_dataset(name: str, within: Mapping[str, str]) -> str:
    return f"{name}, {within[name]}" if name in within else name


def explain_parameter_changes(added: Iterable[str], removed: Iterable[str]) -> tuple[StaleReason, ...]:
    """Return a reason for parameters that jobs gained and one for those that they lost."""
    gained, lost = list(added), list(removed)
    reasons = [StaleReason("parameter", f"parameter added: {_join_names(gained)}")] if gained else []
    return (*reasons, *([StaleReason("parameter", f"parameter removed: {_join_names(lost)}")] if lost else []))


#: For jobs whose parts are all the same and whose id is not: a later monkey may know more parts than were written.
IDENTITY_CHANGED = StaleReason("identity", "identity changed: applied by another version of monkey")


def find_setting_changes(before: SweepSettings, after: SweepSettings) -> tuple[SettingChange, ...]:
    """Return every setting that differs, those of resources and metrics under dotted names."""
    old, new = _flatten_settings(before.to_json()), _flatten_settings(after.to_json())
    return tuple(
        SettingChange(name, old.get(name), new.get(name)) for name in {**new, **old} if old.get(name) != new.get(name)
    )


def format_setting_change(change: SettingChange) -> str:
    """Say a change of a setting: "max_retries 1 → 3"."""
    return f"{change.name} {format_setting(change.name, change.before)} → {format_setting(change.name, change.after)}"


def format_seconds(seconds: float) -> str:
    """Say a time: "2h", "1h 30m", "45s"."""
    if seconds < 60 or seconds % 1:
        return f"{seconds:g}s"
    parts = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
    return " ".join(f"{count:.0f}{unit}" for count, unit in parts if count)


#: Settings that a spec has under other names; and those that are lists of what can say itself.
_SAID = {"influx": "metrics.influxdb", "sources": "metrics.from"}
_READERS: dict[str, Callable[[Mapping[str, Any]], StopRule | NotifyChannel | MetricSource]] = {
    "stop_when": StopRule.from_json,
    "notify": NotifyChannel.from_json,
    "metrics.from": MetricSource.from_json,
}


def _format_list(name: str, value: Iterable[Mapping[str, Any]]) -> str | None:
    """Say a list of `stop_when`: "loss is nan; val_accuracy above 0.99"; None where the setting is no such list."""
    read = _READERS.get(name)
    return None if read is None else "; ".join(read(one).words() for one in value)


def format_setting(name: str, value: Any) -> str:
    """Say a setting as a spec has it: "1h 30m" of a timeout, "2 GiB" of a memory, "none"."""
    if value is None:
        return "last" if name == "take" else "none"
    if isinstance(value, bool):
        return str(value).lower()
    if (listed := _format_list(name, value)) is not None:
        return listed
    if name == "expires":
        return Expiry.from_json(value).words()
    if name in ("timeout", "grace", "checkpoint_every"):
        return format_seconds(value)
    if name in ("resources.memory", "metrics.influxdb.spool", "log_limit"):
        return format_size(value) if value else "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _flatten_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        said = _SAID.get(name, name)
        value = value | value["counted"] if name == "resources" and "counted" in value else value
        parts = {f"{said}.{part}": of for part, of in value.items()} if isinstance(value, dict) else {said: value}
        flat |= {part: of for part, of in parts.items() if part != f"{said}.counted"}
    return flat


def _list_changed_names(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Changed names bare, added ones with a +, removed ones with a -; changed ones first."""
    changed = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    return changed + _list_added_and_removed(before, after)


def _list_added_and_removed(before: Iterable[str], after: Iterable[str]) -> list[str]:
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    if old.keys() == new.keys() and list(old) != list(new):
        return ["another order"]
    return [f"+{name}" for name in new if name not in old] + [f"-{name}" for name in old if name not in new]


def _list_changed_values(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    changed = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    sides = [(name, mask_named_value(name, before[name]), mask_named_value(name, after[name])) for name in changed]
    told = [f"{name} ({_format_change(old, new)})" for name, old, new in sides]
    return told + _list_added_and_removed(before, after)


def _join_names(names: list[str]) -> str:
    more = len(names) - _LISTED
    # "and 1 more" would take as much room as the name.
    return ", ".join(names) if more <= 1 else ", ".join(names[:_LISTED]) + f" and {more} more"


def _format_change(before: object, after: object) -> str:
    return f"{_shorten_value(before)} → {_shorten_value(after)}"


def _shorten_value(value: object) -> str:
    # Before it is cut: a part of a credential has no known form.
    text = "none" if value is None else " ".join(mask_credentials(str(value)).split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _compare_words(before: str | list[str], after: str | list[str]) -> str:
    """Name the words of a command that differ, if that is less than saying all of it."""
    old = before.split() if isinstance(before, str) else before
    new = after.split() if isinstance(after, str) else after
    if max(len(old), len(new)) > 1000:
        return ""
    from difflib import SequenceMatcher  # slow to import, and rarely needed

    edits = [edit for edit in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if edit[0] != "equal"]
    if not 1 <= len(edits) <= _LISTED:
        return ""
    return ": " + ", ".join(_format_edit(" ".join(old[a:b]), " ".join(new[c:d])) for _, a, b, c, d in edits)


def _format_edit(before: str, after: str) -> str:
    if before and after:
        return _format_change(before, after)
    return f"+ {_shorten_value(after)}" if after else f"- {_shorten_value(before)}"


def _compare_lines(before: str, after: str) -> str:
    old, new = before.split("\n"), after.split("\n")
    if len(old) == len(new) == 1 and before and after:
        return f": {_format_change(before, after)}"
    names = _list_added_and_removed(
        [line.strip() for line in old if line.strip()], [line.strip() for line in new if line.strip()]
    )
    return f": {_join_names([_shorten_value(name) for name in names])}" if names else ""
