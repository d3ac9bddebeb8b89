"""What OpenSSH's client said, in our words; what real servers say is in tests/acceptance/test_host_refusals.py."""

from __future__ import annotations

from monkey.errors import HostAway
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey_stacks.ssh.errors import is_passing, make_silence_error

#: Of a host on a busy machine, whose sshd was up long before it let users in.
BOOTING = (
    '"System is booting up. Unprivileged users are not permitted to log in yet. Please come back later. For technical '
    'details, see pam_nologin(8)."\nConnection closed by 10.213.133.11 port 22\r\n'
)


def test_a_host_that_is_booting_is_not_one_behind_a_firewall() -> None:
    error = make_silence_error(parse_ssh_host("gpu1"), 255, BOOTING)
    assert isinstance(error, HostAway) and error.message == "gpu1 lets no users in (System is booting up)"
    assert "try again" in (error.hint or "") and is_passing(255, BOOTING)
