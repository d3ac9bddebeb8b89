"""What a stored revision must look like: who reads one relies on all of that, and anybody may have written it."""

from __future__ import annotations

from typing import Any

from monkey.protocol import shape
from monkey.protocol.keys import NAME
from monkey.spec import stopping
from monkey.spec.notices import EVENTS, KINDS

#: What `monkey.spec.units.duration` takes.
_MOST_SECONDS = 1e10


def _duration(value: Any) -> bool:
    return shape.moment(value) and value < _MOST_SECONDS


def _command(value: Any) -> bool:
    return shape.plain(value) or _texts(value)


def _plain_to_plain(value: Any) -> bool:
    return isinstance(value, dict) and all(map(shape.plain, value)) and all(map(shape.plain, value.values()))


def _rule(value: Any) -> bool:
    return _of_rule(value) and "metric" in value and sum(test in value for test in stopping.TESTS) == 1


def _channel(value: Any) -> bool:
    return _of_channel(value) and sum(kind in value for kind in KINDS) == 1


_texts = shape.list_of(shape.plain)
_variable = shape.matching(r"[A-Za-z_][A-Za-z0-9_]*")
_of_rule = shape.object_of(
    {
        "metric": shape.text,
        "is": shape.one_of(stopping.KINDS),
        "above": shape.number,
        "below": shape.number,
        "not_reported_for": _duration,
        "after_step": shape.count,
        "scope": shape.one_of(stopping.SCOPES),
    }
)
_of_channel = shape.object_of(
    {
        **dict.fromkeys(KINDS, shape.plain),
        "on": shape.list_of(shape.one_of(EVENTS)),
        "key": shape.plain,
        "after": lambda value: _duration(value) and value > 0,
    }
)

RECIPE = {
    "command": _command,
    "code": shape.matching(r"[0-9a-f]{64}"),
    "datasets": _plain_to_plain,
    "environment": _plain_to_plain,
    "image": shape.optional(shape.plain),
    "env": _plain_to_plain,
    "outputs": _texts,
}
SETTINGS = {
    "max_retries": shape.count,
    "timeout": shape.optional(_duration),
    "build_timeout": _duration,
    "grace": _duration,
    "max_concurrent_jobs": shape.optional(lambda value: shape.count(value) and value > 0),
    "fail_fast": shape.flag,
    "priority": shape.whole,
    "providers": shape.list_of(shape.matching(NAME.pattern)),
    "resources": shape.object_of({"cpus": _duration, "gpus": shape.count, "memory": shape.count}),
    "metric": shape.optional(shape.text),
    "maximize": shape.flag,
    "checkpoint_every": _duration,
    "checkpoint_keep": shape.count,
    "secrets": shape.list_of(_variable),
    "dataset_files": _plain_to_plain,
    "influx": shape.object_of(
        {**dict.fromkeys(("url", "bucket", "org", "token", "username", "password"), shape.plain), "spool": shape.count}
    ),
    "stop_when": shape.list_of(_rule),
    "notify": shape.list_of(_channel),
    "expires": lambda value: shape.text(value) or _duration(value),
}
REVISION = {
    "sweep": shape.matching(NAME.pattern),
    "recipe": shape.object_of(RECIPE),
    "settings": shape.object_of(SETTINGS),
    # What is in its columns is checked as they are read: there may be a million jobs.
    "table": shape.object_of({"ids": shape.text, "columns": shape.text_to_object}),
    "spec": shape.text,
    "source": shape.text,
    "code_files": shape.text_to_text,
    "git": shape.optional(
        shape.object_of({"commit": shape.plain, "branch": shape.optional(shape.text), "dirty": shape.flag})
    ),
    "author": shape.text,
    "at": shape.text,
    "applied": shape.moment,
    "rollback": shape.flag,
    "adopted": shape.text_to_text,
}
