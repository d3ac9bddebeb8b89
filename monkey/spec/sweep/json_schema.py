"""The JSON schema of specs: pydantic's own for the plain fields, the short forms by hand, all described."""

from __future__ import annotations

from typing import Any

from monkey.spec.job.counted_resources import RESOURCE_SYNONYMS
from monkey.spec.job.metric_sources import SOURCES_SCHEMA
from monkey.spec.machines.provider_choice import PROVIDER_SCHEMA
from monkey.spec.parameters import distributions

_VALUE = {"description": "Any value: text, number, true, false, null, list or mapping."}
_TEXT = {"type": "string", "minLength": 1}
_COUNT = {"type": "integer", "minimum": 0}
_PART = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_DURATION = {
    "type": ["string", "number"],
    "pattern": r"^([0-9]+(\.[0-9]+)?[wdhms])+$",
    "exclusiveMinimum": 0,
    "examples": ["30m", "2h", "1d12h", 90],
}
_SIZE = {
    "type": ["string", "integer"],
    "pattern": r"^[0-9]+(\.[0-9]+)? ?([kKMGTP]?i?B)$",
    "minimum": 0,
    "examples": ["512MB", "2GiB"],
}
_WHEN = {
    "type": ["string", "boolean"],
    "description": "The parameter exists only in jobs where this holds: comparisons, and, or, not, in, arithmetic.",
    "examples": ["optimizer == 'sgd'", "lr < 0.1 and depth in [2, 4]"],
}
_ROW = {"type": "object", "minProperties": 1, "additionalProperties": True}

#: What each field is for; a test holds that none is missing.
_FIELDS: dict[str, dict[str, Any]] = {
    "name": {
        "type": "string",
        "pattern": "^(?!(pr|check)-[0-9]+[.])[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        "description": "The sweep's name; without it, the file's. Not part of a job's identity.",
    },
    "command": {
        "description": "What a job runs. {name} is a parameter's value, {{ and }} are literal braces. Text without "
        "shell syntax runs without a shell; a list is argv; text with shell syntax runs under bash, or else sh, and "
        "stops where a part fails; values are passed as environment variables.",
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1},
        ],
        "examples": ["python train.py --lr {lr} --seed {seed}"],
    },
    "method": {
        "enum": ["grid", "random"],
        "description": "grid: every combination; random: run_cap draws that never reshuffle.",
    },
    "parameters": {"$ref": "#/$defs/parameters", "description": "The dimensions of the sweep, by name."},
    "repeat": {
        "type": ["integer", "object"],
        "minimum": 1,
        "additionalProperties": {"type": ["integer", "array", "object"], "minimum": 1, "minItems": 1},
        "description": "How often each point runs: 3 is a parameter seed of 0, 1, 2; or parameters that are repeats.",
        "examples": [3, {"fold": [0, 1, 2]}],
    },
    "zip": {
        "type": "array",
        "items": {**_TEXTS, "minItems": 2},
        "description": "Groups of parameters that vary together instead of being crossed; equally many values each.",
        "examples": [[["lr", "hidden"]]],
    },
    "include": {
        "type": "array",
        "items": _ROW,
        "description": "Jobs to add, after exclude and on top of run_cap; each names every parameter.",
    },
    "exclude": {
        "type": "array",
        "items": _ROW,
        "description": "Jobs to leave out: those that have all of a row's values.",
    },
    "metric": {
        "description": "The metric that ranks results.",
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "As monkey.log calls it."},
            "goal": {"enum": ["minimize", "maximize"], "default": "minimize", "description": "Which end is better."},
            "take": {"enum": ["last", "best"], "default": "last", "description": "Which value stands for a job."},
            "last": {**_TEXTS, "description": "Metrics whose last value stands, not that at the step of the best."},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    "metrics": SOURCES_SCHEMA,
    "seed": {"description": "Seed of random draws: draw i of parameter p depends on seed, p and i alone."},
    "run_cap": {"description": "At most so many jobs of a grid; the number of draws of method: random (needed there)."},
    "max_concurrent_jobs": {"description": "At most so many jobs at once, on all machines together."},
    "max_retries": {"description": "How often a failed job is tried again."},
    "timeout": {**_DURATION, "description": "How long an attempt may run."},
    "grace": {**_DURATION, "description": "How long a job may take to end after SIGTERM, before SIGKILL."},
    "checkpoint_every": {**_DURATION, "description": "How often a running job's checkpoint is sent to the store."},
    "checkpoint_keep": {"description": "How many checkpoints of a job stay in the store."},
    "fail_fast": {"description": "Stop the sweep at the first job that fails for good."},
    "stop_when": {
        "description": "Conditions on metrics that end a job that meets one, or with scope: sweep the whole sweep.",
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "metric": {"type": "string", "minLength": 1, "description": "As monkey.log calls it."},
                "is": {"enum": ["nan", "inf", "nonfinite"], "description": "A value that is no finite number."},
                "above": {"type": "number", "description": "A value greater than this."},
                "below": {"type": "number", "description": "A value less than this."},
                "not_reported_for": {**_DURATION, "description": "So long without a value while the job runs."},
                "after_step": {"type": "integer", "minimum": 0, "description": "The first step that counts."},
                "scope": {"enum": ["job", "sweep"], "default": "job", "description": "What ends."},
            },
            "required": ["metric"],
            "oneOf": [{"required": [test]} for test in ("is", "above", "below", "not_reported_for")],
            "additionalProperties": False,
        },
        "examples": [[{"metric": "loss", "is": "nan"}, {"metric": "val_accuracy", "not_reported_for": "20m"}]],
    },
    "resources": {
        "type": "object",
        "description": "What one job takes of its machine.",
        "properties": {
            "cpus": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "Processor cores."},
            "gpus": {"anyOf": [_COUNT, _PART], "default": 0, "description": "GPUs, or a part of one: 0.25."},
            "memory": {**_SIZE, "description": "Main memory."},
        },
        "propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9_.-]{0,62}$", "not": {"enum": [*RESOURCE_SYNONYMS]}},
        "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 1000000},
    },
    "code": {
        "type": "object",
        "description": "The files that jobs run with, part of their identity.",
        "properties": {
            "root": {"type": "string", "default": ".", "description": "Directory below the project's root."},
            "include": {
                "anyOf": [{"type": "string"}, _TEXTS],
                "description": "Globs below the root; default: what git sees, less Markdown, specs and CI files.",
            },
        },
        "additionalProperties": False,
    },
    "datasets": {
        "type": "object",
        "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"},
        "additionalProperties": {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "object",
                    "properties": {"path": {"type": "string", "minLength": 1}},
                    "required": ["path"],
                    "additionalProperties": False,
                },
            ]
        },
        "description": "Files and directories that jobs read, by name: a job finds each at MONKEY_DATASET_NAME. Stored "
        "once by content, in DVC's layout; part of the jobs' identity.",
        "examples": [{"digits": "data/digits"}, {"digits": {"path": "data/digits"}}],
    },
    "equivalences": {
        "type": "array",
        "description": "What is declared to be no change: finished results of earlier jobs count for today's. Not part "
        "of a job's identity.",
        "items": {
            "type": "object",
            "properties": {
                "renamed": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
                "code": {"type": "string", "pattern": "^[0-9a-fA-F]{6,64}$"},
                "default": {"type": "object", "minProperties": 1},
            },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        },
        "examples": [[{"renamed": {"lr": "learning_rate"}}, {"code": "1a2b3c4d"}, {"default": {"momentum": 0.9}}]],
    },
    "environment": {
        "type": "object",
        "description": "The image and Python environment of the jobs, made once per content; part of their identity.",
        "properties": {
            "image": {**_TEXT, "description": "The container image of the jobs.", "examples": ["python:3.12"]},
            "python": {"type": "string", "pattern": r"^3\.[0-9]+(\.[0-9]+)?$", "description": "Version, in quotes."},
            "requirements": {
                "anyOf": [{"type": "string", "minLength": 1}, {**_TEXTS, "minItems": 1}],
                "description": "A requirements file, below the project's root, or its lines.",
                "examples": ["requirements.txt", ["numpy==2.3.4"]],
            },
            "setup": {
                "type": "string",
                "minLength": 1,
                "description": "Lines of shell, up to one that fails: run in the environment once, after requirements.",
            },
            "timeout": {**_DURATION, "default": "1h", "description": "How long making it may take."},
        },
        "additionalProperties": False,
    },
    "env": {
        "type": "object",
        "propertyNames": {"pattern": "^(?!MONKEY_)[A-Za-z_][A-Za-z0-9_]*$"},
        "additionalProperties": {"type": ["string", "integer"]},
        "description": "Environment variables of the jobs; part of their identity.",
    },
    "secrets": {
        "anyOf": [{"type": "string"}, {**_TEXTS, "uniqueItems": True}],
        "description": "Names of environment variables whose values the machines know; masked in logs, kept nowhere.",
        "examples": [["WANDB_API_KEY"]],
    },
    "outputs": {
        "anyOf": [{"type": "string"}, _TEXTS],
        "description": "Globs of files to keep, below the job's working directory; part of the jobs' identity.",
        "examples": [["model.npz", "plots/"]],
    },
    "provider": PROVIDER_SCHEMA,
    "priority": {"description": "Sweeps of higher priority run first."},
    "expires": {
        "type": ["string", "number"],
        "description": "When nothing of it runs any more: so long after it was applied, or a time with its zone. "
        "Needed where machines are paid for.",
        "examples": ["12h", "2026-12-01T18:00:00Z"],
    },
}


def build_spec_schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of a spec file."""
    from monkey.spec.sweep.models import Spec

    plain = Spec.model_json_schema()["properties"]
    properties = {name: {**_simplify_field(plain[name]), **field} for name, field in _FIELDS.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "monkey sweep",
        "description": "What should have been run: monkey plan shows what is missing, monkey apply runs it.",
        "type": "object",
        "properties": properties,
        "required": ["command"],
        "additionalProperties": False,
        "$defs": {"parameters": _build_parameters(), "parameter": _build_parameter()},
    }


def _simplify_field(field: dict[str, Any]) -> dict[str, Any]:
    """Take pydantic's account of a field, less what ours says better or null, which no spec writes."""
    kept = {key: value for key, value in field.items() if key not in ("title", "$ref")}
    choices = [choice for choice in kept.pop("anyOf", []) if choice != {"type": "null"}]
    if kept.get("default", ...) is None:
        del kept["default"]
    return {**kept, **(choices[0] if len(choices) == 1 and "$ref" not in choices[0] else {})}


def _build_parameters() -> dict[str, Any]:
    name = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"
    return {
        "type": "object",
        "propertyNames": {"pattern": name},
        "additionalProperties": {"$ref": "#/$defs/parameter"},
    }


def _build_parameter() -> dict[str, Any]:
    number = {"type": "number"}
    own = {"when": _WHEN, "else": {**_VALUE, "description": "The value where `when` does not hold."}}
    listed = {"type": "array", "items": _VALUE, "minItems": 1}
    categorical = {"const": "categorical"}
    shares = {"type": "array", "items": {**number, "minimum": 0}, "description": "One a value; they sum to 1."}
    bounds = {"type": "array", "items": number, "minItems": 2, "maxItems": 3}
    return {
        "anyOf": [
            {**listed, "description": "Values, all tried."},
            {"type": ["string", "number", "boolean"], "description": "One value."},
            _build_form("Values.", {"values": listed, "probabilities": shares, "distribution": categorical}, own),
            _build_form("One value.", {"value": _VALUE, "distribution": {"const": "constant"}}, own),
            _build_form("Numbers from the first to below the second; a third is the step.", {"range": bounds}, own),
            _build_form("Values at equal ratios: start, stop, count.", {"geomspace": bounds}, own),
            _build_form("As geomspace, where the ends cannot be exponents.", {"logspace": bounds}, own),
            _build_form("Powers of two: first and last exponent, and the step.", {"log2": bounds}, own),
            _build_distribution(number, own),
            _build_form("A group of parameters.", {"parameters": {"$ref": "#/$defs/parameters"}}, {"when": _WHEN}),
            _build_form("Ray's choice.", {"choice": listed, "probabilities": shares}, own),
            _build_form("Ray's grid_search.", {"grid_search": listed}, own),
            *(
                _build_form(f"Ray's {name}({', '.join(words)}).", {name: {"type": ["array", "integer"]}}, own)
                for name, words in distributions.RAY_DISTRIBUTIONS.items()
            ),
        ]
    }


def _build_distribution(number: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    names = {"enum": [*distributions.DISTRIBUTION_KINDS, *distributions.DISTRIBUTION_ALIASES]}
    keys = {"distribution": names, **dict.fromkeys(("min", "max", "mu", "sigma", "q"), number)}
    form = _build_form("Draws from a distribution; both bounds are included.", keys, own)
    return {**form, "required": [], "anyOf": [{"required": ["distribution"]}, {"required": ["min", "max"]}]}


def _build_form(description: str, keys: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": {**keys, **own},
        "required": [next(iter(keys))],
        "additionalProperties": False,
    }
