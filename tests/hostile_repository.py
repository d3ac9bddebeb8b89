"""Repositories of a stranger: each of its traps makes a file if a program of its is started, or shows what a link
leads to, or has something written elsewhere. A seed chooses the traps and where they lie."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

#: What a file of the user's says, to which links lead.
PRIVATE = "machine lab login me password hunter2hunter2\n"
#: Sections of git's settings that name a program; {} is a command.
SECTIONS = (
    '[core]\n\tfsmonitor = "{}"\n',
    '[core]\n\tpager = "{}"\n\teditor = "{}"\n\taskPass = "{}"\n\tsshCommand = "{}"\n\tgitProxy = "{}"\n',
    "[core]\n\thooksPath = hooks\n\tfsmonitor = true\n\tuntrackedCache = true\n",
    '[filter "evil"]\n\tclean = "{}"\n\tsmudge = "{}"\n\tprocess = "{}"\n\trequired = true\n',
    '[diff]\n\texternal = "{}"\n[diff "evil"]\n\ttextconv = "{}"\n\tcommand = "{}"\n',
    '[credential]\n\thelper = "!{}"\n[gpg]\n\tprogram = "{}"\n[log]\n\tshowSignature = true\n',
    '[alias]\n\tstatus = "!{}"\n\tls-files = "!{}"\n[merge "evil"]\n\tdriver = "{}"\n',
    '[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\turl = .\n\tpromisor = true\n\tuploadpack = "{} --"\n',
    "[include]\n\tpath = ../evil.inc\n[core]\n\tworktree = /\n",
)
#: Modules that a program of Python's could meet in its working directory.
MODULES = (
    "json",
    "yaml",
    "git",
    "dvc",
    "monkey",
    "click",
    "site",
    "sitecustomize",
    "usercustomize",
    "conftest",
    "setup",
)
#: Files that plan reads by name, or that git or DVC does.
READ = (
    *("monkey.yaml", "specs/linked.yaml", "requirements.txt", ".gitignore", ".gitattributes", ".gitmodules"),
    *(".dvcignore", "linked.dvc", "dvc.yaml", "dvc.lock", ".dvc/config", ".dvc/config.local", ".dvc/tmp/lock"),
    *("code/linked.py", "data/linked", ".monkey/stores.json", ".monkey/store/format"),
    *(".monkey/store/projects/project/sweeps/sweep/1", ".monkey/store/projects/project/adoptions/x/1"),
)
#: Directories that something could be written into.
WRITTEN = (".monkey", ".dvc", ".dvc/tmp", ".dvc/cache", "specs", "data", "code/deep", ".monkey/store")
SPEC = "command: python job.py {i}\nparameters: {i: {range: [0, 3]}}\noutputs: []\n"
NAMES = ("-rf", "new\nline.py", ":(glob)**", "größe.py", " ", "a'b\"c.py", "{i}.py", "$(touch pwned)", "\udcff.py")


class HostileRepository:
    """One of them, made below a directory, which also has the home of who plans there."""

    def __init__(self, base: Path, seed: int) -> None:
        """Make it."""
        self.root, self.home, self.pwned = base / "project", base / "home", base / "pwned"
        self._dice, self._origin = random.Random(seed), base / "origin"
        self.traps: list[str] = []
        (self.home / "elsewhere").mkdir(parents=True)
        (self.home / ".netrc").write_text(PRIVATE)
        self._env = {"PATH": os.environ["PATH"], "HOME": str(base), "GIT_CONFIG_NOSYSTEM": "1"}
        self._make()

    def _make(self) -> None:
        """Commit some traps, clone that, and unpack others into the clone."""
        committed: list[Callable[[Path], None]] = [
            *(self._link_file, self._link_directory, self._bare, self._attributes, self._modules, self._submodule),
            *(self._dvc, self._spec, self._names, self._state),
        ]
        unpacked: list[Callable[[Path], None]] = [self._nested, self._nested, self._pointer, self._link_directory]
        self._origin.mkdir()
        self._git(self._origin, "init", "-q")
        self._put(self._origin / "specs/sweep.yaml", SPEC)
        self._put(self._origin / "job.py", "print()\n")
        for trap in self._some(committed, 6):
            trap(self._origin)
        self._git(self._origin, "add", "-f", ".", fails=True)
        self._git(self._origin, "commit", "-q", "-m", "innocent", fails=True)
        self._git(self._origin.parent, "clone", "-q", str(self._origin), str(self.root), fails=True)
        if not (self.root / ".git" / "index").exists():  # git itself refuses some
            shutil.rmtree(self.root, ignore_errors=True)
            self._origin.rename(self.root)
        for trap in self._some(unpacked, 2):
            trap(self.root)
        if self._dice.random() < 0.3:
            self._git(self.root, "add", "-f", ".", fails=True)
        for path in self.root.rglob("*.py"):
            if self._dice.random() < 0.5 and path.is_file():
                os.utime(path, (1, 1))  # git must look into it again

    def _some(self, traps: list[Callable[[Path], None]], most: int) -> list[Callable[[Path], None]]:
        chosen = self._dice.sample(traps, self._dice.randint(1, most))
        self.traps += [trap.__name__.strip("_") for trap in chosen]
        return chosen

    def _git(self, at: Path, *words: str, fails: bool = False) -> None:
        identity = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "advice.addEmbeddedRepo=false")
        command = ["git", *identity, "-c", "core.fsmonitor=false", "-C", str(at), *words]
        subprocess.run(command, env=self._env, check=not fails, capture_output=True, timeout=60)
        self.pwned.unlink(missing_ok=True)  # by our own call

    def _put(self, path: Path, text: str) -> None:
        """Write a file, unless something stands in its way."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, errors="surrogateescape")
        except OSError:
            self.traps.append(f"no {path.name!r}")

    def _place(self, root: Path) -> Path:
        """Return a directory that is not there yet."""
        names = ("vendored", "lib", "third party", "code", "data")
        return root.joinpath(*self._dice.choices(names, k=self._dice.randint(1, 2)), f"x{self._dice.randrange(99)}")

    def _evil(self) -> str:
        return f"sh -c 'touch {self.pwned}; cat' "

    def _link(self, path: Path, target: str | Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():
                path.unlink()
            path.symlink_to(target)
        except OSError:
            self.traps.append(f"no link {path.name!r}")

    def _link_file(self, root: Path) -> None:
        targets = (
            self.home / ".netrc",
            "/etc/passwd",
            "../../.git/config",
            ".git/config",
            "/dev/zero",
            "/nowhere",
            ".",
        )
        for name in self._dice.sample(READ, self._dice.randint(1, 3)):
            self._link(root / name, self._dice.choice(targets))

    def _link_directory(self, root: Path) -> None:
        targets = (self.home / "elsewhere", self.home, "/", "..", ".git")
        for name in self._dice.sample(WRITTEN, self._dice.randint(1, 2)):
            self._link(root / name, self._dice.choice(targets))

    def _settings(self, bare: bool = False) -> str:
        sections = self._dice.sample(SECTIONS, self._dice.randint(1, 4))
        top = f"[core]\n\trepositoryformatversion = {self._dice.choice('01')}\n\tbare = {str(bare).lower()}\n"
        evil = self._evil().replace('"', '\\"')
        return top + "".join(section.replace("{}", evil) for section in sections)

    def _bare(self, root: Path) -> None:
        """Put in what git takes for a bare repository, though it is committed."""
        at = self._place(root)
        for name, text in {
            "HEAD": "ref: refs/heads/main\n",
            "objects/keep": "",
            "refs/keep": "",
            "config": self._settings() + "\tworktree = .\n",
            "train.py": "train",
            "index": "",
        }.items():
            self._put(at / name, text)
        self._hooks(at / "hooks")
        inside = at.relative_to(root).as_posix()
        self._put(root / "specs/vendored.yaml", f"{SPEC}code: {{root: {inside!r}, include: ['*.py']}}\n")

    def _hooks(self, at: Path) -> None:
        for name in ("post-index-change", "fsmonitor-watchman", "pre-commit", "post-checkout", "reference-transaction"):
            self._put(at / name, f"#!/bin/sh\ntouch {self.pwned}\n")
            if (at / name).is_file():
                (at / name).chmod(0o755)

    def _attributes(self, root: Path) -> None:
        line = "* filter=evil diff=evil merge=evil working-tree-encoding=UTF-16 text\n"
        self._put(root / self._dice.choice((".gitattributes", "code/.gitattributes", "specs/.gitattributes")), line)

    def _modules(self, root: Path) -> None:
        for name in self._dice.sample(MODULES, 4):
            self._put(root / f"{name}.py", f"open({str(self.pwned)!r}, 'w')\n")
        for name in ("git", "sh", "python3", "az", "pulumi"):
            self._put(root / "bin" / name, f"#!/bin/sh\ntouch {self.pwned}\n")
            if (root / "bin" / name).is_file():
                (root / "bin" / name).chmod(0o755)
        self._put(root / ".envrc", f"touch {self.pwned}\n")
        self._put(root / "evil.pth", f"import os; os.system('touch {self.pwned}')\n")

    def _submodule(self, root: Path) -> None:
        """Name submodules by commands, and have one in the index that is not there."""
        module = f"ext::sh -c touch% {self.pwned}"
        self._put(root / ".gitmodules", f'[submodule "m"]\n\tpath = m\n\turl = {module}\n\tupdate = !{self._evil()}\n')
        entry = f"160000,{'1' * 40},m"
        self._git(root, "update-index", "--add", "--cacheinfo", entry, fails=True)

    def _dvc(self, root: Path) -> None:
        away = self.home / "elsewhere"
        settings = self._dice.choice(("[core]\n", f"[core]\nsite_cache_dir = {away}/site\n"))
        settings += self._dice.choice(("", "hardlink_lock = true\n", "no_scm = true\n", "autostage = true\n"))
        settings += self._dice.choice(("", f"[cache]\ndir = {away}/cache\n", "[cache]\nlocal = r\n"))
        settings += f'[remote "r"]\nurl = {self._dice.choice((f"{away}/remote", "ssh://nowhere.invalid/x"))}\n'
        self._put(root / ".dvc/config", settings)
        self._put(root / "data/a", "a")
        md5 = "0cc175b9c0f1b6a831c399e269772661"
        self._put(
            root / "gone.dvc",
            f"outs:\n- md5: {md5}\n  size: 1\n  hash: md5\n  path: {self._dice.choice(('gone', '/x'))}\n",
        )
        self._put(root / "dvc.yaml", f"vars: [params.py]\nstages: {{s: {{cmd: touch {self.pwned}, outs: [made]}}}}\n")
        self._put(root / "params.py", f"open({str(self.pwned)!r}, 'w')\n")
        path = self._dice.choice(("data", "data/a", "gone", "made"))
        self._put(root / "specs/data.yaml", f"{SPEC}datasets: {{d: {path}}}\n")

    def _spec(self, root: Path) -> None:
        odd = (
            "code: {root: .git}\n",
            "code: {root: ., include: ['**']}\n",
            "code: {root: '..'}\n",
            "environment: {python: '3.11', requirements: .git/config}\n",
            "environment: {python: '3.11', requirements: requirements.txt}\n",
            "datasets: {d: .git}\n",
            "datasets: {d: data}\n",
            "outputs: ['../../**']\n",
        )
        text = SPEC.replace("outputs: []\n", "") if (chosen := self._dice.choice(odd)).startswith("outputs") else SPEC
        self._put(root / "specs/odd.yaml", text + chosen)
        self._put(root / "requirements.txt", f"--index-url http://nowhere.invalid/\n-e {self.home}\n")
        self._put(root / "monkey.yaml", self._dice.choice(("project: x\n", "store: store\n", "store: .git/store\n")))

    def _names(self, root: Path) -> None:
        for name in self._dice.sample(NAMES, 4):
            self._put(root / "code" / name, "x")

    def _state(self, root: Path) -> None:
        """Bring what monkey leaves in a project: its memory, and a store, which may be none."""
        self._put(root / ".monkey/stores.json", self._dice.choice(("{}", "[]", '{"x": 1}', "[" * 5000)))
        self._put(root / ".monkey/store/format", self._dice.choice(('{"format": 1, "id": "evil"}', "{}", "[" * 5000)))
        self._put(root / ".monkey/store/projects/project/sweeps/sweep/1", "{}")

    def _nested(self, root: Path) -> None:
        """Unpack a repository with settings of its own, as an archive brings it."""
        at = self._place(root)
        try:
            at.mkdir(parents=True)
        except OSError:
            return
        self._git(at, "init", "-q")
        self._put(at / "model.py", "model")
        self._put(at / ".gitattributes", "* filter=evil\n")
        self._git(at, "add", ".")
        self._git(at, "commit", "-q", "-m", "theirs")
        self._hooks(at / ".git/hooks")
        self._put(at / ".git/config", self._settings())
        self._put(at / "evil.inc", f'[core]\n\tfsmonitor = "{self._evil()}"\n')
        os.utime(at / "model.py", (1, 1))

    def _pointer(self, root: Path) -> None:
        """Unpack a directory whose `.git` is a file that names another one."""
        at, where = self._place(root), self._place(root)
        self._bare_at(where)
        self._put(at / ".git", f"gitdir: {self._dice.choice((where, self.root / '.git', '/'))}\n")
        self._put(at / "model.py", "model")

    def _bare_at(self, at: Path) -> None:
        for name, text in {
            "HEAD": "ref: refs/heads/main\n",
            "objects/k": "",
            "refs/k": "",
            "config": self._settings(),
        }.items():
            self._put(at / name, text)
