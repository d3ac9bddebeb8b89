"""Why a job is stale, in words: which part of its recipe changed, and what in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from monkey.plan.change import Reason, SettingChange
from monkey.plan.sizes import size_text
from monkey.spec.job.expires import Expires
from monkey.spec.job.recipe import Recipe, Settings
from monkey.spec.job.stop_when import Rule
from monkey.spec.project.notify import Channel

#: What `--keep-stale` may name. Not "parameter": a result under other parameters is another result.
KEEPABLE = ("code", "command", "dataset", "requirements", "python", "setup", "image", "env", "outputs")
#: Names that a sentence lists before it only counts.
_LISTED = 3
#: Characters of a value that a sentence shows.
_SHOWN = 40


def recipe_reasons(
    before: Recipe,
    after: Recipe,
    files_before: Mapping[str, str],
    files_after: Mapping[str, str],
    within: Mapping[str, str] | None = None,
) -> tuple[Reason, ...]:
    """Return a reason for every part of the recipe that differs; `within` says of a dataset what in it."""
    reasons = []
    if before.code != after.code:
        names = _names(files_before, files_after) or ["rights of its files"]
        reasons.append(Reason("code", f"code changed: {_listed(names)}"))
    if before.command != after.command:
        reasons.append(Reason("command", f"command changed{_words(before.command, after.command)}"))
    if before.datasets != after.datasets:
        names = [_within(name, within or {}) for name in _names(before.datasets, after.datasets)]
        reasons.append(Reason("dataset", f"dataset changed: {_listed(names)}"))
    for part in sorted(before.environment.keys() | after.environment.keys()):
        old, new = before.environment.get(part), after.environment.get(part)
        if old != new:
            reasons.append(Reason(part, f"{part} changed{_lines(old or '', new or '')}"))
    if before.image != after.image:
        reasons.append(Reason("image", f"image changed: {_arrow(before.image, after.image)}"))
    if before.env != after.env:
        reasons.append(Reason("env", f"env changed: {_listed(_values(before.env, after.env))}"))
    if before.outputs != after.outputs:
        reasons.append(Reason("outputs", f"outputs changed: {_listed(_members(before.outputs, after.outputs))}"))
    return tuple(reasons)


def _within(name: str, within: Mapping[str, str]) -> str:
    return f"{name}, {within[name]}" if name in within else name


def parameter_reasons(added: Iterable[str], removed: Iterable[str]) -> tuple[Reason, ...]:
    """Return a reason for parameters that jobs gained and one for those that they lost."""
    gained, lost = list(added), list(removed)
    reasons = [Reason("parameter", f"parameter added: {_listed(gained)}")] if gained else []
    return (*reasons, *([Reason("parameter", f"parameter removed: {_listed(lost)}")] if lost else []))


#: For jobs whose parts are all the same and whose id is not: a later monkey may know more parts than were written.
UNKNOWN = Reason("identity", "identity changed: applied by another version of monkey")


def setting_changes(before: Settings, after: Settings) -> tuple[SettingChange, ...]:
    """Return every setting that differs, those of resources and metrics under dotted names."""
    old, new = _flat(before.to_json()), _flat(after.to_json())
    return tuple(
        SettingChange(name, old.get(name), new.get(name)) for name in {**new, **old} if old.get(name) != new.get(name)
    )


def setting_text(change: SettingChange) -> str:
    """Say a change of a setting: "max_retries 1 → 3"."""
    return f"{change.name} {_setting(change.name, change.before)} → {_setting(change.name, change.after)}"


def seconds_text(seconds: float) -> str:
    """Say a time: "2h", "1h 30m", "45s"."""
    if seconds < 60 or seconds % 1:
        return f"{seconds:g}s"
    parts = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
    return " ".join(f"{count:.0f}{unit}" for count, unit in parts if count)


def listed_text(name: str, value: Iterable[Mapping[str, Any]]) -> str | None:
    """Say `stop_when` or `notify`: "loss is nan; val_accuracy above 0.99"; None where the setting is another."""
    if name not in ("stop_when", "notify"):
        return None
    read = Rule.from_json if name == "stop_when" else Channel.from_json
    return "; ".join(read(one).words() for one in value)


def _setting(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if (listed := listed_text(name, value)) is not None:
        return listed
    if name == "expires":
        return Expires.from_json(value).words()
    if name in ("timeout", "grace", "checkpoint_every"):
        return seconds_text(value)
    if name in ("resources.memory", "metrics.influxdb.spool"):
        return size_text(value) if value else "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        said = "metrics.influxdb" if name == "influx" else name
        flat |= {f"{said}.{part}": of for part, of in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _names(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Changed names bare, added ones with a +, removed ones with a -; changed ones first."""
    changed = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    return changed + _members(before, after)


def _members(before: Iterable[str], after: Iterable[str]) -> list[str]:
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    if old.keys() == new.keys() and list(old) != list(new):
        return ["another order"]
    return [f"+{name}" for name in new if name not in old] + [f"-{name}" for name in old if name not in new]


def _values(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    changed = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    return [f"{name} ({_arrow(before[name], after[name])})" for name in changed] + _members(before, after)


def _listed(names: list[str]) -> str:
    more = len(names) - _LISTED
    # "and 1 more" would take as much room as the name.
    return ", ".join(names) if more <= 1 else ", ".join(names[:_LISTED]) + f" and {more} more"


def _arrow(before: object, after: object) -> str:
    return f"{_short(before)} → {_short(after)}"


def _short(value: object) -> str:
    text = "none" if value is None else " ".join(str(value).split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _words(before: str | list[str], after: str | list[str]) -> str:
    """Name the words of a command that differ, if that is less than saying all of it."""
    old = before.split() if isinstance(before, str) else before
    new = after.split() if isinstance(after, str) else after
    if max(len(old), len(new)) > 1000:
        return ""
    from difflib import SequenceMatcher  # slow to import, and rarely needed

    edits = [edit for edit in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if edit[0] != "equal"]
    if not 1 <= len(edits) <= _LISTED:
        return ""
    return ": " + ", ".join(_edit(" ".join(old[a:b]), " ".join(new[c:d])) for _, a, b, c, d in edits)


def _edit(before: str, after: str) -> str:
    if before and after:
        return _arrow(before, after)
    return f"+ {_short(after)}" if after else f"- {_short(before)}"


def _lines(before: str, after: str) -> str:
    old, new = before.split("\n"), after.split("\n")
    if len(old) == len(new) == 1 and before and after:
        return f": {_arrow(before, after)}"
    names = _members([line.strip() for line in old if line.strip()], [line.strip() for line in new if line.strip()])
    return f": {_listed([_short(name) for name in names])}" if names else ""
