"""Words of a spec, a branch and a job are no commands of CI's runner: not by doubles of their readers, nor by act."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monkey.spec.yaml import document
from tests.acceptance.shop import MONKEY, Shop
from tests.forge_programs import act_program
from tests.forges.act import run_act
from tests.forges.runner_words import find_runner_commands

#: What a stranger writes into values, and what a job prints.
VALUES = ["##[add-mask]e", "::error title=x::approved", "a\n::warning::b", "\u2003::stop-commands::t"]
PRINTED = [
    *VALUES,
    "##[set-output name=digest]ffffffffffffffff",
    "::set-output name=digest::ffffffffffffffff",
    "  ::notice::x",
    "x\r::debug::y",
    "section_start:1:x\r\x1b[0Khidden",
    "Digest: ffffffffffffffff",
]
FORGED = "f" * 16
ACTION = Path(__file__).parents[2] / "action.yml"
RUNNERS = {"github": {"GITHUB_ACTIONS": "true"}, "gitea": {"GITEA_ACTIONS": "true"}, "gitlab": {"GITLAB_CI": "true"}}


@pytest.fixture
def forged(shop: Shop) -> Shop:
    """Return a project whose sweep has such values, and whose jobs printed such lines."""
    # UTF-16 with its mark is what .NET reads where a step's output begins with it.
    text = "".join(f"{line}\n" for line in PRINTED)
    (shop.root / "train.py").write_text(
        "import sys, monkey\n"
        f"sys.stdout.buffer.write({text.encode('utf-16')!r} + {text.encode()!r})\n"
        "monkey.log('::error::m', 1.0)\nmonkey.log('##[error]m', 1.0)\n"
        "sys.exit(sys.argv[1].startswith('##'))\n"
    )
    spec = {
        "name": "sweep",
        "command": ["python3", "train.py", "{x}"],
        "parameters": {"x": VALUES, "y": [["##[add-mask]e"]]},
        "max_retries": 0,
    }
    (shop.root / "specs").mkdir()
    (shop.root / "specs/sweep.yaml").write_text(json.dumps(spec))
    shop.run("apply", code=1)
    return shop


def run_in_ci(shop: Shop, *words: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run a verb as a step does."""
    env = {**shop.env, "CI": "true", **environ}
    return subprocess.run([*MONKEY, *words], cwd=shop.root, env=env, capture_output=True, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize("runner", RUNNERS)
def test_no_verb_prints_a_command(forged: Shop, runner: str) -> None:
    jobs = [job["job"] for job in forged.json("list", "jobs", "sweep")]
    (forged.root / "specs/wrong.yaml").write_text("command: x\n'::error title=x::approved\\n::error::y': 1\n")
    verbs = [
        *(["plan", "--no-store"], ["validate"], ["logs", "sweep"], ["logs", jobs[0]], ["info", "sweep"]),
        *(
            ["info", jobs[0]],
            ["status"],
            ["list", "jobs", "sweep"],
            ["results", "sweep"],
            ["results", "sweep", "--csv"],
        ),
        *(["results", "sweep", "--json"], ["info", "sweep", "--json"], ["diff", *(f"sweep/{job}" for job in jobs[:2])]),
        *(["history", "sweep"], ["metrics", "sweep"], ["metrics", "sweep", "--csv"], ["retry", "::error::x"]),
        *(["plan", "--all", "specs/sweep.yaml"], ["plan", "--all", "--markdown", "specs/sweep.yaml"]),
        *(["plan", "--all", "--json", "specs/sweep.yaml"], ["apply", "specs/sweep.yaml"], ["##[error]x"]),
    ]
    for words in verbs:
        done = run_in_ci(forged, *words, **RUNNERS[runner])
        assert done.stdout or done.stderr, words
        assert (words, find_runner_commands(done.stdout), find_runner_commands(done.stderr)) == (words, [], [])


def test_programs_read_the_values_as_they_are(forged: Shop) -> None:
    done = run_in_ci(forged, "results", "sweep", "--json", GITHUB_ACTIONS="true")
    assert b"##[" not in done.stdout
    rows = [row["parameters"] for row in json.loads(done.stdout)]
    assert sorted(row["x"] for row in rows) == sorted(VALUES) and {str(row["y"]) for row in rows} == {
        "['##[add-mask]e']"
    }


def test_a_file_keeps_a_log_byte_for_byte(forged: Shop, tmp_path: Path) -> None:
    [job] = [job["job"] for job in forged.json("list", "jobs", "sweep") if job["state"] == "failed"]
    env = {**forged.env, "CI": "true"}
    with (tmp_path / "log").open("wb") as file:
        subprocess.run([*MONKEY, "logs", job], cwd=forged.root, env=env, stdout=file, check=True)
    assert "".join(f"{line}\n" for line in PRINTED).encode() in (tmp_path / "log").read_bytes()


def test_monkey_writes_the_digest_and_nothing_that_a_job_prints_is_taken_for_it(forged: Shop, tmp_path: Path) -> None:
    for words in (["plan", "--all"], ["logs", "sweep"]):
        run_in_ci(forged, *words, GITHUB_ACTIONS="true", GITHUB_OUTPUT=str(tmp_path / "out"))
    written = (tmp_path / "out").read_text()
    assert re.fullmatch(r"digest=[0-9a-f]{16}\n", written) and FORGED not in written


FLOW = """\
on: push
jobs:
  words:
    runs-on: ubuntu-latest
    steps:
      - run: |
          mkdir -p "$RUNNER_TEMP/monkey/bin"
          printf '#!/bin/sh\\ncd {root}; exec {monkey} "$@"\\n' > "$RUNNER_TEMP/monkey/bin/monkey"
          chmod 755 "$RUNNER_TEMP/monkey/bin/monkey"
      - id: given
        run: |
          monkey() {{ "$RUNNER_TEMP/monkey/bin/monkey" "$@"; }}
          monkey plan --all; monkey logs {job}; monkey '::set-env name=X::y' || true
      - id: action
        env: {{COMMAND: logs, ARGUMENTS: {job}}}
        shell: bash
        run: {action}
      - run: echo "given=<${{{{ steps.given.outputs.digest }}}}> action=<${{{{ steps.action.outputs.digest }}}}>"
"""


@pytest.mark.slow
@pytest.mark.needs("act")
def test_act_takes_no_word_of_a_job_for_a_command(forged: Shop, tmp_path: Path, require: Callable[[str], str]) -> None:
    require("act")
    action: dict[str, Any] = document.parse_document(ACTION.read_text(), "action.yml").data
    script = json.dumps(action["runs"]["steps"][1]["run"])
    source = tmp_path / "source"
    source.mkdir()
    subprocess.run(["git", "init", "-q", source], check=True)
    known = [f"{name}={forged.env[name]}" for name in ("HOME", "XDG_STATE_HOME", "LANG")]
    monkey = " ".join(["env", *known, *MONKEY])
    [job] = [job["job"] for job in forged.json("list", "jobs", "sweep") if job["state"] == "failed"]
    (tmp_path / "flow.yml").write_text(FLOW.format(root=forged.root, monkey=monkey, action=script, job=job))
    words = [str(act_program()), "push", "-C", str(source), "-W", str(tmp_path / "flow.yml"), "--json"]
    words += ["-P", "ubuntu-latest=-self-hosted", "--no-cache-server"]
    own = {**forged.env, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    code, rows, _ = run_act(words, own, tmp_path, lambda row: False)
    assert code == 0, "\n".join(rows)
    given = [row for row in rows if re.fullmatch(r"\W*given=<[^$]*>", row)]
    assert len(given) == 1 and re.search(r"given=<[0-9a-f]{16}> action=<>$", given[0]), given
    assert FORGED not in given[0]
    # What act obeys, it shows behind one of these signs.
    obeyed = [row for row in rows if re.match(r"\s+[\u2699\u2757\u2753\U0001f6a7\U0001f4ac]", row)]
    assert obeyed == [] or all("set-output:: digest" in row and FORGED not in row for row in obeyed), obeyed
