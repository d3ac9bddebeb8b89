"""Jobs that run side by side have ports of their own by MONKEY_SLOT, those of another project, too."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.acceptance.shop import Shop

#: Below those that a kernel hands out by itself.
PORT = 29_517
#: Ends once as many have a port as all sweeps have jobs together.
SERVER = """\
import os, socket, sys, time
server = socket.socket()
server.bind(("127.0.0.1", int(sys.argv[1]) + int(os.environ["MONKEY_SLOT"])))
server.listen()
with open(sys.argv[2], "a") as ledger:
    print(server.getsockname()[1], file=ledger)
while len(open(sys.argv[2]).readlines()) < int(sys.argv[3]):
    time.sleep(0.05)
"""


@pytest.mark.slow
def test_eight_jobs_of_two_projects_listen_at_once(make_shop: Callable[..., Shop]) -> None:
    shop, other = make_shop(), make_shop("other")
    ledger = shop.root.parent / "ports"
    for site in (shop, other):
        (site.root / "server.py").write_text(SERVER)
        command = f"command: [python3, server.py, '{PORT}', '{ledger}', '8', '{{i}}']\n"
        site.spec(f"{command}outputs: []\nresources: {{cpus: 0.1}}\n", jobs=4)
        site.run("apply", "--detach")
    for site in (shop, other):
        site.run("apply")
        assert site.states() == {"succeeded": 4}
    ports = list(map(int, ledger.read_text().split()))
    assert len(set(ports)) == 8 and max(ports) < PORT + 1000
