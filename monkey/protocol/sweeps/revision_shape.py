"""What a stored revision must look like: who reads one relies on all of that, and anybody may have written it."""

from __future__ import annotations

from typing import Any

from monkey.protocol import entry_shape
from monkey.protocol.layout import NAME
from monkey.spec.job import stop_when
from monkey.spec.project.notify import CHANNEL_KINDS, NOTIFY_EVENTS

#: What `monkey.spec.yaml.units.duration` takes.
_MOST_SECONDS = 1e10


def _duration(value: Any) -> bool:
    return entry_shape.moment(value) and value < _MOST_SECONDS


def _command(value: Any) -> bool:
    return entry_shape.plain(value) or _texts(value)


def _plain_to_plain(value: Any) -> bool:
    return (
        isinstance(value, dict) and all(map(entry_shape.plain, value)) and all(map(entry_shape.plain, value.values()))
    )


def _rule(value: Any) -> bool:
    return _of_rule(value) and "metric" in value and sum(test in value for test in stop_when.STOP_RULE_TESTS) == 1


def _channel(value: Any) -> bool:
    return _of_channel(value) and sum(kind in value for kind in CHANNEL_KINDS) == 1


_texts = entry_shape.list_of(entry_shape.plain)
_variable = entry_shape.matching(r"[A-Za-z_][A-Za-z0-9_]*")
_of_rule = entry_shape.object_of(
    {
        "metric": entry_shape.text,
        "is": entry_shape.one_of(stop_when.NONFINITE_KINDS),
        "above": entry_shape.number,
        "below": entry_shape.number,
        "not_reported_for": _duration,
        "after_step": entry_shape.count,
        "scope": entry_shape.one_of(stop_when.STOP_RULE_SCOPES),
    }
)
_of_channel = entry_shape.object_of(
    {
        **dict.fromkeys(CHANNEL_KINDS, entry_shape.plain),
        "on": entry_shape.list_of(entry_shape.one_of(NOTIFY_EVENTS)),
        "key": entry_shape.plain,
        "after": lambda value: _duration(value) and value > 0,
    }
)

RECIPE = {
    "command": _command,
    "code": entry_shape.matching(r"[0-9a-f]{64}"),
    "datasets": _plain_to_plain,
    "environment": _plain_to_plain,
    "image": entry_shape.optional(entry_shape.plain),
    "env": _plain_to_plain,
    "outputs": _texts,
}
SETTINGS = {
    "max_retries": entry_shape.count,
    "timeout": entry_shape.optional(_duration),
    "build_timeout": _duration,
    "grace": _duration,
    "max_concurrent_jobs": entry_shape.optional(lambda value: entry_shape.count(value) and value > 0),
    "fail_fast": entry_shape.flag,
    "priority": entry_shape.whole,
    "providers": entry_shape.list_of(entry_shape.matching(NAME.pattern)),
    "resources": entry_shape.object_of({"cpus": _duration, "gpus": entry_shape.count, "memory": entry_shape.count}),
    "metric": entry_shape.optional(entry_shape.text),
    "maximize": entry_shape.flag,
    "checkpoint_every": _duration,
    "checkpoint_keep": entry_shape.count,
    "secrets": entry_shape.list_of(_variable),
    "dataset_files": _plain_to_plain,
    "influx": entry_shape.object_of(
        {
            **dict.fromkeys(("url", "bucket", "org", "token", "username", "password"), entry_shape.plain),
            "spool": entry_shape.count,
        }
    ),
    "stop_when": entry_shape.list_of(_rule),
    "notify": entry_shape.list_of(_channel),
    "expires": lambda value: entry_shape.text(value) or _duration(value),
}
REVISION = {
    "sweep": entry_shape.matching(NAME.pattern),
    "recipe": entry_shape.object_of(RECIPE),
    "settings": entry_shape.object_of(SETTINGS),
    # What is in its columns is checked as they are read: there may be a million jobs.
    "table": entry_shape.object_of({"ids": entry_shape.text, "columns": entry_shape.text_to_object}),
    "spec": entry_shape.text,
    "source": entry_shape.text,
    "code_files": entry_shape.text_to_text,
    "git": entry_shape.optional(
        entry_shape.object_of(
            {"commit": entry_shape.plain, "branch": entry_shape.optional(entry_shape.text), "dirty": entry_shape.flag}
        )
    ),
    "author": entry_shape.text,
    "at": entry_shape.text,
    "applied": entry_shape.moment,
    "rollback": entry_shape.flag,
    "adopted": entry_shape.text_to_text,
}
