"""Jobs in containers of a user without rights."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.image_shop import (
    LEFT,
    LONG,
    SETS,
    SPEC,
    VICTIMS,
    belongs,
    find_all,
    find_sleepers,
    limit_runtimes,
)
from tests.acceptance.shop import MONKEY, Shop, until
from tests.registry import Registry
from tests.rootless import USER, RootlessUser

pytestmark = [
    pytest.mark.slow,
    *map(pytest.mark.needs, ("docker-registry", "busybox", "mount", "unprivileged")),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]
QUICK = {"podman": ("supervisor", "agent client supervisor"), "charliecloud": ("agent client supervisor",)}
KILLS = [(name, victims) for name in QUICK for victims in SETS if LONG or victims in QUICK[name]]


class Home:
    """The project of a user without rights, and what his engine knows."""

    def __init__(self, shop: Shop, user: RootlessUser, kind: str, image: str) -> None:
        self.shop, self.user, self.kind, self.image = shop, user, kind, image

    def run(self, *words: str) -> str:
        return self.user.run(list(words), self.shop.root, self.shop.env)

    def apply(self, command: str, jobs: int, *words: str) -> None:
        self.shop.spec(SPEC.format(command=repr(command), image=self.image, jobs=jobs))
        self.run(*MONKEY, "apply", *words)

    def list_containers(self) -> set[str]:
        return set(self.run("podman", "ps", "--all", "--quiet").split()) if self.kind == "podman" else set()


@pytest.fixture
def home(
    request: pytest.FixtureRequest,
    make_shop: Callable[..., Shop],
    registry: Registry,
    tmp_path: Path,
) -> Iterator[Home]:
    shop, user = make_shop("home", user=USER), RootlessUser(tmp_path)
    cache = limit_runtimes(shop, registry, tmp_path, request.param)
    (cache / "runtime").mkdir(0o700)
    shop.env |= {"XDG_RUNTIME_DIR": str(cache / "runtime"), "USER": "monkeytest"}
    user.give(cache, tmp_path / "engine.conf", tmp_path / "storage.conf")
    user.reach(tmp_path / "programs", Path(registry.certificate))
    home = Home(shop, user, request.param, f"{registry.name}/lab/tools:v1")
    yield home
    shop.kill_all()
    if request.param == "podman":
        # A container that is just ending cannot be removed.
        clear = "podman rm --all --force --time=0 || echo left"
        until(lambda: "left" not in home.run("sh", "-c", clear), "podman removed its containers", step=0.5)
        home.run("podman", "system", "reset", "--force")
        for pid in find_all("catatonit -P"):
            if (Path("/proc") / str(pid)).stat().st_uid == USER:
                os.kill(pid, signal.SIGKILL)
    shutil.rmtree(cache)


@pytest.mark.parametrize(
    ("home", "victims"),
    [pytest.param(*kill, marks=pytest.mark.needs(kill[0])) for kill in KILLS],
    indirect=["home"],
)
def test_no_container_of_a_user_without_rights_is_left(home: Home, victims: str) -> None:
    home.apply("sleep 4247{i} & sleep 4246{i}; true", 2, "--detach")
    running = until(lambda: (found := find_sleepers()) and len(found) == 4 and found, "jobs run", 40)
    assert all(Path(f"/proc/{pid}/root/inside").exists() for pid in running), "the jobs are in containers"
    assert {Path(f"/proc/{pid}").stat().st_uid for pid in running} == {USER}, "and are his own processes"
    listed = home.list_containers()
    assert len(listed) == (2 if home.kind == "podman" else 0)
    words = [word for victim in victims.split() for word in VICTIMS[victim]]
    killed = [pid for word in words for pid in find_all(word) if belongs(pid, home.shop)]
    assert len(killed) >= len(victims.split())
    for pid in killed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not running & find_sleepers(), f"containers end once {victims} is killed", LEFT)
    until(lambda: not listed & home.list_containers(), "the engine lists none of them", LEFT)


@pytest.mark.parametrize("home", [pytest.param("podman", marks=pytest.mark.needs("podman"))], indirect=True)
def test_memory_of_a_user_without_rights_is_held_and_never_that_of_the_runtimes_program(home: Home) -> None:
    """Where podman enforces no limit, looks at the container's processes do; its own program takes more."""
    takes = "if [ {i} = 0 ]; then dd if=/dev/zero of=/dev/null bs=60000000 count=3000; else sleep 1.5; fi"
    home.shop.spec(SPEC.format(command=repr(takes), image=home.image, jobs=2) + "resources: {memory: 24MiB}\n")
    home.run(*MONKEY, "apply", "--detach")

    def ended() -> list[dict[str, Any]]:
        jobs = json.loads(home.run(*MONKEY, "list", "jobs", "sweep", "--json"))
        return jobs if {job["state"] for job in jobs} == {"failed", "succeeded"} else []

    takers, keepers = until(ended, "both jobs end", step=0.5)
    assert takers["reason"].startswith("needed more than 24 MiB of memory: it held "), takers
    assert keepers["usage"].get("memory_bytes", 0) < 24 << 20, keepers
