"""What tests of pilots on this machine's Slurm say and count: their project's entry, its sweeps, what it leaves."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.shop import Shop

PROVIDER = """\
project: shop
store: {store}
providers:
  cluster:
    type: slurm
    time: {time}
    pilots: {pilots}
    cpus: 2
    memory: 300MiB
    idle_timeout: 2s
    workdir: {work}
    scratch: {scratch}
    {more}
"""


def describe(
    shop: Shop, base: Path, *, time: str = "10m", pilots: int = 2, store: Path | str = "", more: str = ""
) -> None:
    """Write monkey.yaml: pilots whose store is below `base`, unless `more` says another place."""
    more = more or f"store_path: {base / 'store'}"
    of = {"work": base / "work", "scratch": base / "scratch", "store": store or base / "store"}
    (shop.root / "monkey.yaml").write_text(PROVIDER.format(time=time, pilots=pilots, more=more, **of))


def sweep(shop: Shop, *, jobs: int, seconds: float = 0.05, more: str = "") -> None:
    command = f"command: python3 job.py '{shop.ledger.directory}' {seconds} {{i}}\n"
    shop.spec(f"{command}parameters: {{i: {{range: [0, {jobs}]}}}}\nprovider: cluster\noutputs: []\n{more}")


def list_files(base: Path) -> list[str]:
    """Return what is left of a fleet on the shared file system, and on the nodes' own disk."""
    places = (base / "work", base / "scratch")
    return [str(path) for place in places if place.exists() for path in place.rglob("*")]


def say(shop: Shop, *words: str, code: int | None = 0) -> str:
    """Return what `monkey` says on both outputs."""
    done = shop.run(*words, code=code)
    return done.stdout + done.stderr


def overlaps(shop: Shop) -> list[object]:
    return [line for line in shop.ledger.lines if line.what == "overlap"]
