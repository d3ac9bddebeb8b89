"""Agents of other users on a host, by their processes."""

from __future__ import annotations

import os
import pwd
import subprocess

import pytest

from monkey_stacks.ssh.remote.host_facts import list_other_users


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of other users")
def test_another_user_with_an_agent_is_seen() -> None:
    user = pwd.getpwnam("nobody")
    others = list_other_users()
    command = ["sh", "-c", "read line", f"/home/ben/.monkey/bundles/{'a' * 64}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, user=user.pw_uid) as agent:
        assert list_other_users() == sorted({*others, "nobody"})
        agent.communicate(b"\n")
    with subprocess.Popen(command, stdin=subprocess.PIPE) as agent:
        assert pwd.getpwuid(os.getuid()).pw_name not in list_other_users(), "our own share with us"
        agent.communicate(b"\n")
