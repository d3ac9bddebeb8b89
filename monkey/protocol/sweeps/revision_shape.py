"""What a stored revision must look like: who reads one relies on all of that, and anybody may have written it."""

from __future__ import annotations

from typing import Any

from monkey.protocol import entry_shape
from monkey.protocol.layout import PROJECT_NAME
from monkey.spec.job import stop_when
from monkey.spec.job.counted_resources import MEASURED_RESOURCES
from monkey.spec.job.image_reference import is_image_name
from monkey.spec.job.metric_sources import SOURCE_KINDS
from monkey.spec.project.forge_settings import FORGE_TYPES
from monkey.spec.project.notify_channel import CHANNEL_KINDS, NOTIFY_EVENTS

#: What `monkey.spec.yaml.units.duration` takes.
_MOST_SECONDS = 1e10


def _duration(value: Any) -> bool:
    return entry_shape.is_moment(value) and value < _MOST_SECONDS


def _command(value: Any) -> bool:
    return entry_shape.is_plain_text(value) or _texts(value)


def _plain_to_plain(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(map(entry_shape.is_plain_text, value))
        and all(map(entry_shape.is_plain_text, value.values()))
    )


def _rule(value: Any) -> bool:
    return _of_rule(value) and "metric" in value and sum(test in value for test in stop_when.STOP_RULE_TESTS) == 1


def _channel(value: Any) -> bool:
    # What is posted at a forge needs to know where that is.
    one = _of_channel(value) and sum(kind in value for kind in CHANNEL_KINDS) == 1
    return one and ("at" in value) == ("forge" in value)


def _forge(value: Any) -> bool:
    return _of_forge(value) and len(value) == 3


def _checks(value: Any) -> bool:
    # Keys of the store are made of both.
    return isinstance(value, dict) and all(map(_job, value)) and all(map(_job, value.values()))


def _source(value: Any) -> bool:
    return _plain_to_plain(value) and len(value) == 1 and value.keys() <= {*SOURCE_KINDS}


_texts = entry_shape.make_list_test(entry_shape.is_plain_text)
_job = entry_shape.is_matching(r"[0-9a-f]{16}")
_resource = entry_shape.is_matching(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
_variable = entry_shape.is_matching(r"[A-Za-z_][A-Za-z0-9_]*")
_of_rule = entry_shape.make_object_test(
    {
        "metric": entry_shape.is_text,
        "is": entry_shape.make_choice_test(stop_when.NONFINITE_KINDS),
        "above": entry_shape.is_finite_number,
        "below": entry_shape.is_finite_number,
        "not_reported_for": _duration,
        "after_step": entry_shape.is_count,
        "scope": entry_shape.make_choice_test(stop_when.STOP_RULE_SCOPES),
    }
)
_of_forge = entry_shape.make_object_test(
    {
        "type": entry_shape.make_choice_test(FORGE_TYPES),
        "api": entry_shape.is_plain_text,
        "repository": entry_shape.is_plain_text,
    }
)
_of_channel = entry_shape.make_object_test(
    {
        **dict.fromkeys(CHANNEL_KINDS, entry_shape.is_plain_text),
        "on": entry_shape.make_list_test(entry_shape.make_choice_test(NOTIFY_EVENTS)),
        "key": entry_shape.is_plain_text,
        "at": _forge,
        "after": lambda value: _duration(value) and value > 0,
    }
)

RECIPE = {
    "command": _command,
    "code": entry_shape.is_matching(r"[0-9a-f]{64}"),
    "datasets": _plain_to_plain,
    "environment": _plain_to_plain,
    "image": entry_shape.is_optional(entry_shape.is_matching(r"sha256:[0-9a-f]{64}")),
    "env": _plain_to_plain,
    "outputs": _texts,
}


def _is_gpu_count(value: Any) -> bool:
    """Is it a number of GPUs, or a part of one?"""
    return entry_shape.is_count(value) or (entry_shape.is_finite_number(value) and 0 < value < 1)


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _resource(name) and name not in MEASURED_RESOURCES and entry_shape.is_count(count) and count > 0
        for name, count in value.items()
    )


SETTINGS = {
    "max_retries": entry_shape.is_count,
    "timeout": entry_shape.is_optional(_duration),
    "build_timeout": _duration,
    "grace": _duration,
    "max_concurrent_jobs": entry_shape.is_optional(lambda value: entry_shape.is_count(value) and value > 0),
    "fail_fast": entry_shape.is_flag,
    "priority": entry_shape.is_whole,
    "providers": entry_shape.make_list_test(entry_shape.is_matching(PROJECT_NAME.pattern)),
    "resources": entry_shape.make_object_test(
        {"cpus": _duration, "gpus": _is_gpu_count, "memory": entry_shape.is_count, "counted": _counts}
    ),
    "metric": entry_shape.is_optional(entry_shape.is_text),
    "maximize": entry_shape.is_flag,
    "take": entry_shape.make_choice_test(("last", "best")),
    "repeats": _texts,
    "last": entry_shape.make_list_test(entry_shape.is_text),
    "checkpoint_every": _duration,
    "checkpoint_keep": entry_shape.is_count,
    "secrets": entry_shape.make_list_test(_variable),
    "dataset_files": _plain_to_plain,
    "influx": entry_shape.make_object_test(
        {
            **dict.fromkeys(("url", "bucket", "org", "token", "username", "password"), entry_shape.is_plain_text),
            "spool": entry_shape.is_count,
        }
    ),
    "stop_when": entry_shape.make_list_test(_rule),
    "sources": entry_shape.make_list_test(_source),
    "notify": entry_shape.make_list_test(_channel),
    "expires": lambda value: entry_shape.is_text(value) or _duration(value),
    "image": is_image_name,
    "log_limit": entry_shape.is_count,
}
REVISION = {
    "sweep": entry_shape.is_matching(PROJECT_NAME.pattern),
    "recipe": entry_shape.make_object_test(RECIPE),
    "settings": entry_shape.make_object_test(SETTINGS),
    # What is in its columns is checked as they are read: there may be a million jobs.
    "table": entry_shape.make_object_test({"ids": entry_shape.is_text, "columns": entry_shape.is_object_map}),
    "spec": entry_shape.is_text,
    "source": entry_shape.is_text,
    "code_files": entry_shape.is_text_map,
    "git": entry_shape.is_optional(
        entry_shape.make_object_test(
            {
                "commit": entry_shape.is_plain_text,
                "branch": entry_shape.is_optional(entry_shape.is_text),
                "dirty": entry_shape.is_flag,
                "remote": entry_shape.is_text,
                "directory": entry_shape.is_text,
                "pull": entry_shape.is_count,
                "actor": entry_shape.is_text,
                "run": entry_shape.is_text,
            }
        )
    ),
    "author": entry_shape.is_text,
    "at": entry_shape.is_time_text,
    "applied": entry_shape.is_moment,
    "force": entry_shape.is_text,
    "restores": entry_shape.is_count,
    "rollback": entry_shape.is_flag,
    "adopted": entry_shape.is_text_map,
    "plan": entry_shape.is_text,
    "strict": entry_shape.is_flag,
    "checks": _checks,
}
