"""The table of limits: every kind of object that the layout knows has one."""

from __future__ import annotations

import inspect

import pytest

from monkey.protocol.layout import Keys
from monkey.signing.machine_list import spell_signers_key
from monkey.store.content.objects import spell_md5_key
from monkey.store.format import FORMAT
from monkey.store.object_limits import LIMITS, OTHERS, find_limit

KEYS = Keys("p")
SAMPLES = {"agent": "local/vm/boot", "n": 1, "k": 1, "i": 1}
PLACES = sorted(vars(KEYS).keys() - {"project", "root"})
METHODS = sorted(name for name, _ in inspect.getmembers(Keys, inspect.isfunction) if not name.startswith("_"))


def spell(name: str) -> str:
    """Return a key as the layout spells it."""
    spelled = getattr(KEYS, name)
    if isinstance(spelled, str):
        return spelled
    return str(spelled(*(SAMPLES.get(each, "x") for each in inspect.signature(spelled).parameters)))


@pytest.mark.parametrize("name", [*PLACES, *METHODS])
def test_each_kind_of_the_layout_has_a_limit(name: str) -> None:
    parts = spell(name).split("/")
    kind = parts[2] if parts[0] == "projects" else parts[0]
    assert kind in LIMITS or kind == "code"  # code is brought to a file


@pytest.mark.parametrize("key", [FORMAT, spell_md5_key("0" * 32), spell_signers_key("0" * 64)])
def test_what_all_projects_share_has_a_limit(key: str) -> None:
    assert find_limit(key) == LIMITS[key.partition("/")[0]]


def test_a_jobs_files_and_its_log_have_limits_of_their_own() -> None:
    assert find_limit(KEYS.job_log("j") + "00000001") == LIMITS["jobs"]
    assert find_limit(KEYS.out("j", 1) + "log/000001") == LIMITS["jobs/out"]
    assert find_limit(KEYS.checkpoint("j", 1, 1)) == LIMITS["jobs/checkpoints"]
    assert find_limit("a/b") == OTHERS
