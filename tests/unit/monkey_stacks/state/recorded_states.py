"""States that Pulumi 3.232 wrote for us, without its traces and with long texts cut: of each type of fleet one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from monkey_stacks.aws import requirements as aws_requirements
from monkey_stacks.gcp import requirements as gcp_requirements
from monkey_stacks.ssh.fleet import STATE_RULES
from monkey_stacks.state.state_judge import StatePlace, judge_state
from monkey_stacks.state.state_rules import StateRules

#: The rules of each type of fleet, and the fleet's name in its state.
RULES = {"ssh": STATE_RULES, "aws": aws_requirements.STATE_RULES, "gcp": gcp_requirements.STATE_RULES}
NAMES = {"ssh": "lab", "aws": "cloud", "gcp": "cloud"}
#: Marks a value in a state that is none of JSON's.
MARK = "4dabf18193072939515e22adb298388d"


def recorded(kind: str) -> Any:
    return json.loads(Path(__file__).with_name("recorded").joinpath(f"{kind}.json").read_text())


def resources(body: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body["checkpoint"]["latest"]["resources"]
    return found


def judge(kind: str, data: bytes, rules: StateRules | None = None) -> dict[str, Any]:
    key = f"projects/shop/machines/{NAMES[kind]}/state/.pulumi/stacks/shop/{NAMES[kind]}.json"
    return judge_state(data, StatePlace("shop", NAMES[kind], key, "prefix/"), rules or RULES[kind])
