"""Homes that are not there, or cannot lock, and closed standard streams: as cron, services and clusters have them."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.shop import MONKEY, PATIENCE, Shop, until

#: An account of nobody's.
ACCOUNT = 54_331
#: A C library whose flock(2) fails below a directory, as on Lustre without `flock`, or on NFS 3 without a lock server.
NO_LOCKS = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int flock(int file, int operation) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path);
    const char *below = getenv("NO_LOCKS_BELOW");
    if (size > 0 && !strncmp(path, below, strlen(below))) {
        errno = atoi(getenv("NO_LOCKS_ERRNO"));
        return -1;
    }
    int (*next)(int, int) = dlsym(RTLD_NEXT, "flock");
    return next(file, operation);
}
"""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_who_closes_streams_gets_what_is_applied(shop: Shop, closed: str) -> None:
    shop.spec(jobs=1)
    line = f'"$@" plan {closed} && "$@" apply --detach {closed}'
    command = ["bash", "-c", line, "bash", *MONKEY]
    done = subprocess.run(command, cwd=shop.root, env=shop.env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    until(lambda: shop.states() == {"succeeded": 1}, "the job ends")


@pytest.mark.parametrize("locale", ["C", "POSIX", "de_DE.ISO-8859-15"])
def test_a_locale_that_is_not_utf_8_changes_no_name_and_no_output(shop: Shop, locale: str) -> None:
    # Where the last is not installed, it is C to programs, as on most machines that a user's LANG comes to by SSH.
    for name in ("LANG", "LC_CTYPE"):
        shop.env.pop(name, None)
    shop.env["LC_ALL"] = locale
    shop.spec(
        "name: wide\ncommand: [sh, -c, 'echo \"$1\" | tee \"$1.txt\"', sh, '{wort}']\n"
        "parameters: {wort: [Zürich, 東京]}\noutputs: ['*.txt']\n"
    )
    told = shop.run("apply").stdout
    assert "all 2 jobs succeeded" in told
    assert {job["parameters"]["wort"] for job in shop.json("list", "jobs")} == {"Zürich", "東京"}
    shop.run("fetch", "wide", "-o", "got")
    files = {file.name: file.read_text("utf-8") for file in (shop.root / "got").rglob("*.txt")}
    assert files == {"Zürich.txt": "Zürich\n", "東京.txt": "東京\n"}


@pytest.mark.skipif(os.geteuid() != 0, reason="works as another account")
def test_an_account_whose_home_is_not_there_applies_and_doctor_agrees(make_shop: Callable[..., Shop]) -> None:
    shop, place = make_shop(user=ACCOUNT), Path(f"/tmp/monkey-{ACCOUNT}")
    shop.env["HOME"] = "/nonexistent"
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        del shop.env[name]
    shop.hurry()
    shop.spec("command: [sh, -c, 'true']\nparameters: {}\noutputs: []\n")
    try:
        shop.run("apply")
        assert shop.states() == {"succeeded": 1}
        assert f"an agent here keeps its state in {place}/" in shop.run("doctor").stdout
        until(lambda: not shop.json("list", "instances"), "its agent has left")
    finally:
        shutil.rmtree(place)


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_home_without_locks_is_told_before_anything_is_stored(shop: Shop, tmp_path: Path, number: int) -> None:
    source, library = tmp_path / "locks.c", tmp_path / "locks.so"
    source.write_text(NO_LOCKS)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    shop.spec(jobs=1)
    Path(shop.state).mkdir()
    shop.env |= {"LD_PRELOAD": str(library), "NO_LOCKS_BELOW": shop.state, "NO_LOCKS_ERRNO": str(number)}
    # An agent's lock of better days is there, too.
    for _ in range(2):
        refused = shop.run("apply", code=1).stderr
        assert f"expected locks for an agent in {shop.state}/" in refused and "hint: set XDG_STATE_HOME" in refused
        assert "expected locks" in shop.run("doctor", code=1).stdout
        directory = Path(refused.split(" in ")[1].partition(",")[0])
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "lock").touch()
    assert not list(shop.root.glob(".monkey/store/projects/*/sweeps/*/*"))
