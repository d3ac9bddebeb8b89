"""`monkey status` names what stands in a store where monkey never puts it, also when no agent lives to meet it."""

from __future__ import annotations

import os

from tests.acceptance.shop import Shop, until


def test_a_status_names_links_and_pipes_though_no_agent_lives(shop: Shop) -> None:
    shop.hurry()
    shop.spec(jobs=1, seconds=0)
    shop.run("apply", "--yes")
    until(lambda: not shop.agents, "the agent leaves")
    store = shop.root / ".monkey" / "store"
    (store / "tmp").rename(store.parent / "moved")
    (store / "tmp").symlink_to(store.parent / "moved")
    os.mkfifo(store / "projects/shop/sweeps/sweep/00000002")
    told = shop.run("status").stdout
    assert "No agent is at work" in told
    assert f"'tmp' in the store is a link to '{store.parent}/moved'" in told, told
    assert "'projects/shop/sweeps/sweep/00000002' in the store is no file: a pipe" in told, told
    assert set(map(str.strip, told.splitlines())).issuperset(shop.json("status")["problems"])
