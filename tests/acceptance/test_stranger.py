"""A stranger's branch at `monkey plan`: it is read, it starts no program, and it shows nobody's keys."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.shop import MONKEY, Shop

FLAGS = ["-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
EXEC = re.compile(r'execve\("[^"]*", \[(.*?)\], .* = 0$', re.MULTILINE)
ONE_JOB = "command: echo {i}\nparameters: {i: [1]}\noutputs: []\n"


@pytest.fixture
def pwned(tmp_path: Path) -> Path:
    """Return the file that a stranger's program makes."""
    return tmp_path / "pwned"


@pytest.fixture
def branch(shop: Shop, require: Callable[[str], str]) -> Shop:
    """Return a project in a repository of git's."""
    require("git")
    shop.spec(ONE_JOB)
    git(shop, "init", "-q")
    return shop


def git(shop: Shop, *words: str, at: str = ".") -> None:
    """Run git in a directory of the project, without anybody's configuration."""
    identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, "-C", str(shop.root / at), *words], env=shop.env, check=True, timeout=60)


def arm(config: Path, pwned: Path) -> None:
    """Have a repository name a program that git starts to look at files."""
    with config.open("a") as file:
        file.write(f"[core]\n\tfsmonitor = \"sh -c 'touch {pwned}; exit 1'\"\n")


def vendor(shop: Shop, pwned: Path, name: str = "vendored") -> Path:
    """Put a repository into the project as one is unpacked from an archive."""
    inner = shop.root / name
    (inner / "lib").mkdir(parents=True)
    (inner / "lib" / "model.py").write_text("model")
    git(shop, "init", "-q", at=name)
    git(shop, "add", ".", at=name)
    git(shop, "commit", "-q", "-m", "theirs", at=name)
    arm(inner / ".git" / "config", pwned)
    return inner


def clone_with_a_bare_one(shop: Shop, pwned: Path) -> None:
    """Make the project a clone whose branch has a bare repository, with code in it."""
    bare = shop.root / "lib" / "vendored"
    git(shop, "init", "-q", "--bare", str(bare))
    (bare / "train.py").write_text("train")
    for name in ("objects", "refs"):
        (bare / name / "keep").touch()  # git keeps no empty directory
    config = bare / "config"
    config.write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n")
    arm(config, pwned)
    git(shop, "add", ".")
    git(shop, "commit", "-q", "-m", "innocent")
    clone = shop.root.with_name("clone")
    git(shop, "clone", "-q", str(shop.root), str(clone))
    shop.root = clone


def test_a_directory_that_looks_like_a_repository_is_code_and_no_more(branch: Shop, pwned: Path) -> None:
    branch.spec(ONE_JOB + "code: {root: lib/vendored, include: [train.py]}\n")
    clone_with_a_bare_one(branch, pwned)
    assert "code: 5 bytes to upload" in branch.run("plan").stdout, "its files are listed as the project's"
    assert not pwned.exists()


def test_a_repository_that_is_no_submodule_is_not_asked_and_told(branch: Shop, pwned: Path) -> None:
    vendor(branch, pwned)
    said = branch.run("plan").stdout
    assert "warning: vendored is a repository of its own and no submodule" in said and "git submodule add" in said
    assert not pwned.exists()


def test_code_in_a_repository_that_is_no_submodule_is_refused(branch: Shop, pwned: Path) -> None:
    inner = vendor(branch, pwned)
    branch.spec(ONE_JOB + "code: {root: vendored/lib}\n")
    said = branch.run("plan", code=1).stderr
    assert f"{inner} is a repository of its own" in said and "git submodule add" in said
    assert not pwned.exists()


def test_an_unpacked_repository_that_is_a_submodule_of_the_index_starts_nothing(branch: Shop, pwned: Path) -> None:
    """Its settings came with the archive, and not from a clone; `git add` makes a submodule of it."""
    inner = vendor(branch, pwned)
    with (inner / ".git" / "config").open("a") as config:
        config.write(f'[filter "evil"]\n\tclean = "sh -c \\"touch {pwned}; cat\\""\n')
    (inner / ".gitattributes").write_text("*.py filter=evil\n")
    git(branch, "-c", "advice.addEmbeddedRepo=false", "add", ".")
    git(branch, "commit", "-q", "-m", "innocent")
    os.utime(inner / "lib" / "model.py", (1, 1))  # git must look into it again, by way of the filter
    pwned.unlink(missing_ok=True)
    assert "vendored is a repository" not in branch.run("plan").stdout, "its files are code"
    assert not pwned.exists()


def test_what_a_partial_clone_lacks_is_fetched_by_nobody(branch: Shop, pwned: Path) -> None:
    inner = vendor(branch, pwned)
    (inner / "other").mkdir()
    (inner / "other" / "data.py").write_text("data")
    git(branch, "add", ".", at="vendored")
    git(branch, "commit", "-q", "-m", "more", at="vendored")
    git(branch, "sparse-checkout", "set", "--cone", "--sparse-index", "lib", at="vendored")
    command = ["git", "-C", str(inner), "rev-parse", "HEAD:other"]
    tree = subprocess.run(command, env=branch.env, check=True, capture_output=True, text=True).stdout.strip()
    (inner / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    with (inner / ".git" / "config").open("a") as config:
        config.write("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n")
        config.write(f'[remote "origin"]\n\turl = {branch.root}\n\tpromisor = true\n')
        config.write(f"\tuploadpack = \"sh -c 'touch {pwned}; exit 1' --\"\n")
    git(branch, "-c", "advice.addEmbeddedRepo=false", "add", ".")
    pwned.unlink(missing_ok=True)
    branch.run("plan")
    assert not pwned.exists()


def test_plan_starts_git_alone_and_always_with_its_flags(
    branch: Shop, pwned: Path, require: Callable[[str], str], tmp_path: Path
) -> None:
    strace, trace = require("strace"), tmp_path / "trace"
    clone_with_a_bare_one(branch, pwned)
    vendor(branch, pwned)
    vendor(branch, pwned, "module")
    git(branch, "add", "module")
    command = [strace, "-f", "-s", "4096", "-e", "trace=execve", "-o", str(trace), *MONKEY, "plan"]
    done = subprocess.run(command, cwd=branch.root, env=branch.env, capture_output=True, text=True, timeout=120)
    if "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    _, *started = [re.findall(r'"([^"]*)"', words) for words in EXEC.findall(trace.read_text())]
    assert all(Path(words[0]).name == "git" for words in started), started
    what = "whether the store is tracked, the state, the remote, the files, the submodules, and the files of one"
    assert len(started) == 6, what
    assert all(words[1 : 1 + len(FLAGS)] == FLAGS for words in started), started
    assert not pwned.exists()


@pytest.mark.parametrize("place", ["i-0abc$(id>pwned)", "$(id>pwned)@there", "%24(id%3epwned)@there"])
def test_names_in_a_store_s_url_never_reach_a_shell(shop: Shop, place: str) -> None:
    shop.spec(ONE_JOB)
    settings = Path(shop.env["HOME"], ".ssh", "config")
    settings.parent.mkdir()
    # As AWS documents it for its session manager.
    settings.write_text('Host *\n  ProxyCommand sh -c "echo --target %h --user %r; false"\n')
    (shop.root / "monkey.yaml").write_text(f'project: shop\nstore: "ssh://{place}/data/x"\n')
    said = shop.run("plan", code=1).stderr
    assert not (shop.root / "pwned").exists()
    assert "monkey.yaml:2:8: expected ssh://host/directory, found" in said


@pytest.mark.parametrize(
    ("link", "file", "named"),
    [
        ("monkey.yaml", "monkey.yaml", []),
        ("specs/other.yaml", "specs/other.yaml", []),
        ("specs/other.yaml", "specs/other.yaml", ["specs/other.yaml"]),
        ("specs", "specs/keys.yaml", []),
        ("more", "more/keys.yaml", ["more"]),
    ],
)
def test_a_link_out_of_the_project_shows_nothing(shop: Shop, link: str, file: str, named: list[str]) -> None:
    if link != "specs":
        shop.spec(ONE_JOB)
    keys = Path(shop.env["HOME"], "keys")
    keys.mkdir()
    (keys / "keys.yaml").write_text("[default]\naws_secret_access_key = hunter2hunter2\n")
    path = shop.root / link
    path.unlink(missing_ok=True)
    path.symlink_to(keys / "keys.yaml" if link.endswith(".yaml") else keys)
    done = shop.run("plan", *named, code=1)
    assert f"{file}:1:1: the file is not read: it is outside of the project" in done.stderr
    assert "default" not in done.stderr and "hunter2" not in done.stderr and str(keys) not in done.stderr


@pytest.mark.needs("dvc")
def test_settings_of_dvc_that_are_a_link_out_are_not_shown(shop: Shop) -> None:
    shop.spec(ONE_JOB + "datasets: {d: data}\ncode: {include: [job.py]}\n")
    keys, settings = Path(shop.env["HOME"], ".netrc"), shop.root / ".dvc" / "config"
    keys.write_text("machine lab login me password hunter2\n")
    settings.parent.mkdir()
    settings.symlink_to(keys)
    (shop.root / "data").write_text("data")
    said = shop.run("plan", code=1).stderr
    assert "hunter2" not in said and f"{settings} is not read: it is outside of the project" in said


@pytest.mark.needs("dvc")
def test_settings_of_dvc_in_the_branch_move_nothing(branch: Shop, tmp_path: Path) -> None:
    """Nothing is written there, nor into the tree: DVC itself would make a lock, a directory and a .gitignore."""
    branch.spec(ONE_JOB + "datasets: {d: data}\ncode: {include: [job.py]}\n")
    (branch.root / "data").write_text("data")
    (branch.root / ".dvc").mkdir()
    settings = f"[core]\nsite_cache_dir = {tmp_path}/away\n[cache]\ndir = {tmp_path}/away\n"
    (branch.root / ".dvc" / "config").write_text(settings)
    before = {path for path in branch.root.rglob("*") if ".git" not in path.parts}
    assert "dataset d: 4 bytes in 1 object to upload" in branch.run("plan").stdout
    assert {path for path in branch.root.rglob("*") if ".git" not in path.parts} == before
    assert not (tmp_path / "away").exists()


@pytest.mark.needs("dvc")
def test_a_command_of_dvc_is_waited_for_by_its_own_lock(branch: Shop) -> None:
    branch.spec(ONE_JOB + "datasets: {d: data}\ncode: {include: [job.py]}\n")
    (branch.root / "data").write_text("data")
    (branch.root / ".dvc" / "tmp").mkdir(parents=True)
    (branch.root / ".dvc" / "config").touch()
    with (branch.root / ".dvc" / "tmp" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as DVC's commands take it
        assert "wait for the other dvc command" in branch.run("plan", code=1).stderr
    assert "1 new" in branch.run("plan").stdout


@pytest.mark.parametrize("provider", ["lab", "cloud"])
def test_a_plan_without_the_store_starts_git_alone_and_talks_to_nobody(
    branch: Shop, require: Callable[[str], str], tmp_path: Path, provider: str
) -> None:
    strace, trace = require("strace"), tmp_path / "trace"
    branch.spec(f"{ONE_JOB}provider: {provider}\nexpires: 2h\ndatasets: {{d: gone}}\n")
    cloud = "{type: aws, region: eu-west-1, instance_type: g5.xlarge, max_instances: 3, price: 1.01}"
    providers = f"providers: {{lab: {{type: ssh, hosts: [somewhere]}}, cloud: {cloud}}}\n"
    (branch.root / "monkey.yaml").write_text(f"project: shop\nstore: ssh://somewhere/data\n{providers}")
    command = [strace, "-f", "-e", "trace=execve,connect,socket", "-o", str(trace), *MONKEY, "plan", "--no-store"]
    done = subprocess.run(command, cwd=branch.root, env=branch.env, capture_output=True, text=True, timeout=120)
    if "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    assert "? i=1 = 1 job" in done.stdout and "dataset d: gone was not looked at" in done.stdout
    assert ("3 × g5.xlarge × 2 h × $1.01 = $6.06" in done.stdout) is (provider == "cloud")
    _, *started = EXEC.findall(trace.read_text())
    assert started and all('"git"' in words for words in started), started
    assert "AF_INET" not in trace.read_text() and "connect(" not in trace.read_text()
