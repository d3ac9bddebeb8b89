"""Failures that a script hides under `-e` all the same: what is told, and of which commands nothing is."""

from __future__ import annotations

import subprocess
import time

import pytest

from monkey.spec.command.lost_failures import list_lost_failures
from tests.unit.spec.commands import compiled

#: Commands to the text at which the advice stands, and words of it.
TOLD = [
    ("python a & python b & wait", "wait", "for pid in $pids; do wait $pid; done"),
    ("a & wait", "wait", "pids="),
    ("a &\nb &\nwait\n", "wait", "pids="),
    ("for s in 1 2; do python t $s & done; wait", "wait", "pids="),
    ("(a; b) & wait; c", "wait", "pids="),
    ("{{ a & }}; wait", "wait", "pids="),
    ("a &", "a &", "leave out its `&`"),
    ("a; nohup python t.py > log 2>&1 &\n", "nohup", "leave out its `&`"),
    ("a &> log &\n# and that is all\n", "log &", "leave out its `&`"),
    ("nohup python a > log 2>&1 &\necho started", "nohup", "leave out its `&`"),
    ("python a || true", "true", "leave out `|| true`"),
    ("python a | tee log || :", ":", "leave out `|| :`"),
    ("a; python b || echo 'it failed'", "echo", "leave out `|| echo`"),
    ("cd x && ./t {lr} || true # never mind\n", "true", "leave out `|| true`"),
    ("python a && python b; python c", "python a", "a line of its own"),
    ("cd x\npython a && python b\npython c {lr}", "python a", "a line of its own"),
    ("for i in 1 2; do python a && b; done", "do python a", "a line of its own"),
    ("python a && b; true", "python a", "a line of its own"),
    ("python a\ncode=$?\nexit $code", "code=", "COMMAND || code=$?"),
    ("python a; if [ $? = 3 ]; then b; fi", "if [", "COMMAND || code=$?"),
    ('python a; exit "$?"', "exit", "COMMAND || code=$?"),
]


@pytest.mark.parametrize(("command", "place", "advice"), TOLD)
def test_what_hides_a_failure_is_told_where_it_stands(command: str, place: str, advice: str) -> None:
    compiled(command)
    ((offset, told),) = list_lost_failures(command)
    assert command[offset:].startswith(place)
    assert advice in told


@pytest.mark.parametrize(
    "command",
    [
        "python a && python b",
        "python a 2>&1 | tee log",
        "python a &> log; b",
        "python a >& log; b",
        "python 'a & b'",
        'python "a & wait" | b',
        "a & pid=$!; b; wait $pid",
        "server & python train.py",
        "python serve.py & python train.py",
        "for i in 1 2 3; do python a && break; done",
        "python a && exit 0; python b",
        "server & python a; kill %1; wait",
        "nvidia-smi -l > gpu.log & trap 'kill 0' EXIT; python a; wait",
        "rm x || true\npython a",
        "a || exit 1",
        "python a\nrm x || true",
        "python a\n[ -f log ] || echo 'no log'",
        "[ -f x ] && rm x; python a",
        "a & b & wait -n",
        "if python a && python b; then c; fi; d",
        "python a && python b || exit 1; c",
        "a || code=$?; exit $code",
        "if a; then b; else exit $?; fi",
        "trap 'c=$?; echo $c' EXIT; python a",
        "set +e; python a; exit $?",
        "python a; b",
        "x=$(a & wait); b",
        'python "$@" || exit 1',
        "python a | head -1",
        "! python a; c=$?; echo $c",
        "wait",
        "a\\& b; c",
        "if true; then python a && python b; fi",
        "a |& tee log",
        "python a # b & wait",
        "exec python a > l",
        "python a; true",
        "case x in a) b;; esac",
        "cat <<E\na & wait\nE",
        ["a", "&"],
        'a --q "a && b; c" ; d',
        "X=${{Y}} a; b",
        "a || {{ echo $?; exit 1; }}",
        "python a\n# exit $? here\npython b",
        "python a; b # $?",
        "python a; echo 'costs $?'",
        "python train.py",
        "a 'b",
        "# a &\nb",
        "cd x && python a\npython b",
        "a && b; c=$?",
        "a; echo $?; b",
        "",
    ],
)
def test_other_commands_have_no_such_advice(command: str | list[str]) -> None:
    assert list_lost_failures(command) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "false & true & wait",
            'false & pids="$pids $!"; true & pids="$pids $!"; for pid in $pids; do wait $pid; done',
        ),
        ("false || true", "false || [ $? = 3 ]"),
        ("sh -c false && true; true", "sh -c false\ntrue\ntrue"),
    ],
)
def test_the_line_to_write_fails(before: str, after: str) -> None:
    assert subprocess.run(compiled(before).render({}).argv).returncode == 0, "what is warned of"
    assert subprocess.run(compiled(after).render({}).argv).returncode == 1
    assert list_lost_failures(before) and not list_lost_failures(after)


def test_the_longest_scripts_take_no_time() -> None:
    begun = time.process_time()
    for part in ("[", "a & ", "python a && b; ", "a\n", "python a;x=$?\n", "|", "a=", "$"):
        list_lost_failures(part * 1_000_000)
        list_lost_failures((part * 10_000)[:10_000])
    assert time.process_time() - begun < 30
