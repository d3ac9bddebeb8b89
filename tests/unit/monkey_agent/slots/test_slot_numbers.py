"""Numbers of slots: no two jobs of a machine have the same, whichever agents run them."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from monkey_agent.slots.slot_numbers import SlotNumbers

HOLDER = """
from monkey_agent.slots.slot_numbers import SlotNumbers
numbers = SlotNumbers()
print(*(numbers.take() for _ in range(3)), flush=True)
input()
"""


def test_numbers_are_small_and_are_used_again() -> None:
    numbers = SlotNumbers()
    first, second, third = (numbers.take() for _ in range(3))
    assert len({first, second, third}) == 3
    numbers.give(second)
    assert numbers.take() == second
    for number in (first, second, third):
        numbers.give(number)
    assert numbers.take() == first


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere agents do not know each other's numbers")
def test_agents_of_one_machine_have_different_numbers_and_a_killed_one_has_none() -> None:
    command = [sys.executable, "-c", HOLDER]
    numbers = SlotNumbers()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = set(map(int, other.stdout.readline().split()))
        ours = {numbers.take() for _ in range(3)}
        other.kill()
    assert len(theirs) == 3 and not theirs & ours
    assert {numbers.take() for _ in range(3)} & theirs, "the kernel took them back"


def test_where_no_socket_can_be_had_an_agent_has_numbers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> socket.socket:
        raise OSError("too many open files")

    monkeypatch.setattr("socket.socket", refuse)
    numbers = SlotNumbers()
    assert [numbers.take(), numbers.take()] == [0, 1]
    numbers.give(0)
    assert numbers.take() == 0
