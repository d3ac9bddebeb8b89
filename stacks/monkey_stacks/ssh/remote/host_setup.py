"""Making a host what it should be. Each step finds what is there already: any may be cut off, and come again."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from monkey.fleet.agent_state import is_agent_alive
from monkey.untrusted_files import make_private_directory
from monkey_stacks.ssh.remote import agents, authorized_keys, bundles, keep_alive
from monkey_stacks.ssh.remote.host_facts import collect_facts
from monkey_stacks.ssh.remote.keep_alive import SYSTEMD
from monkey_stacks.ssh.remote.paths import FleetDirectory, clear_tree, remove_empty, write_file

#: Seconds within which a store must have answered.
_PATIENCE_SECONDS = 90
#: Where installers keep what they fetched: variable to directory of the cache.
_FETCHED = {"PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv"}


class StoreUnreachableHere(Exception):
    """The store cannot be used from here: (message, hint)."""


def observe_fleet(place: FleetDirectory, said: str, store: str) -> dict[str, Any]:
    """Return what this host is, and what of the fleet is on it; changes nothing.

    `store`: the directory of the store, "" where it is none, or is not there yet.
    """
    key = place.ssh / "id.pub"
    return {
        **collect_facts(said),
        "bundles": bundles.list_bundles(place),
        "agents": [agents.inspect_agent(place, agent) for agent in place.agents()],
        "secrets": _secrets_digests(place),
        "signers": place.hash_signers(),
        "key": key.read_text().strip() if key.exists() else "",
        "orphans": _orphans(place),
        "lacks": _lacks(store) if store else "",
    }


def _lacks(store: str) -> str:
    """Say why a store in a directory cannot be used from here, as far as a look can tell; "" where it can."""
    if not Path(store).is_dir():
        return f"there is no directory {store}"
    return "" if os.access(store, os.R_OK | os.W_OK | os.X_OK) else f"no right to write to {store}"


def _secrets_digests(place: FleetDirectory) -> list[Any]:
    """Return a key, and digests of the secrets under it by their names."""
    key = secrets.token_hex(16)
    return [key, {name: agents.digest_secret(key, line) for name, line in _secret_lines(place).items()}]


def _secret_lines(place: FleetDirectory) -> dict[str, str]:
    """Return name to line of the secrets that are here."""
    try:
        lines = place.secrets.read_text().split("\n")
    except FileNotFoundError:
        return {}
    return {line.partition("=")[0]: line for line in lines if line}


def _orphans(place: FleetDirectory) -> list[str]:
    """Return units of this fleet that belong to no agent's directory."""
    known = {keep_alive.name_unit(place, agent) for agent in place.agents()}
    prefix = f"monkey-{place.fleet}-{place.host.name}-"
    return sorted({path.name for path in keep_alive.find_units().glob(f"{prefix}*.service")} - known)


def list_fleets(place: FleetDirectory) -> dict[str, Any]:
    """Return all that any fleet has on this host: names of fleets, where they were met, and processes."""
    units = keep_alive.list_units(place.host)
    fleets = [path.name for path in place.host.iterdir() if path.is_dir()] if place.host.is_dir() else []
    return {
        "directories": sorted(fleets),
        "units": sorted({name.removeprefix("monkey-").partition(f"-{place.host.name}-")[0] for name in units}),
        "crontab": keep_alive.list_crontab_fleets(place.host),
        "processes": agents.list_marked(f"{place.host}/"),
        "files": [str(path) for path in _leftovers(place)],
        "living": sorted(fleet for fleet in fleets if _at_work(FleetDirectory(str(place.workdir), fleet))),
    }


def _at_work(place: FleetDirectory) -> bool:
    """Say whether an agent lives here that takes claims."""
    newest = place.agents()[-1:]
    return bool(newest) and is_agent_alive(newest[0]) and not (newest[0] / "drain").exists()


def _leftovers(place: FleetDirectory) -> list[Path]:
    """Return what is here of us, though no fleet of any host that shares it needs it."""
    if any(path.is_dir() for path in place.host.parent.glob("*/*")):
        return place.stray_locks()
    if not (place.bundles.is_dir() or place.cached() or place.stray_locks()):
        return []
    parts = (place.bundles, place.cache if place.cached() else None, place.host.parent, place.lock)
    return [path for path in parts if path and path.exists()]


def prepare_store_access(place: FleetDirectory, asked: dict[str, Any]) -> str:
    """Write the secrets, the signers and the way to the store.

    Returns the public key that the store's host must let in, "" for none.
    """
    with place.locked():
        make_private_directory(place.directory)
        kept = {name: line for name, line in _secret_lines(place).items() if name in asked["kept"]}
        # Empty, too: an agent is told of the file when it begins, and may get a secret later.
        write_file(
            place.secrets, "".join(f"{line}\n" for _, line in sorted({**kept, **asked["secrets"]}.items())).encode()
        )
        # A living agent reads it again.
        write_file(place.signers, asked["signers"].encode())
        if not asked["ssh"]:
            clear_tree(place.ssh, place.workdir)
            return ""
        make_private_directory(place.ssh)
        public = authorized_keys.make_pair(place.ssh / "id", asked["ssh"]["comment"])
        write_file(place.ssh / "known_hosts", asked["ssh"]["known_hosts"].encode())
        here = str(place.ssh)
        config = asked["ssh"]["config"].replace("@HERE@", here).replace("@TOKENS@", here.replace("%", "%%"))
        write_file(place.ssh / "config", config.encode())
        return public


def converge_agent(place: FleetDirectory, asked: dict[str, Any]) -> str:
    """See that one agent lives that was started as asked, and that all others drain.

    Returns "" when it is so, "bundle" where that is to be installed first. Raises agents.Failed, StoreAway, OSError.
    """
    with place.locked():
        found = place.agents()
        newest = found[-1] if found else None
        if newest is not None and is_agent_alive(newest) and _is_as_asked(newest, asked):
            _keep(place, newest, asked)
        else:
            if not place.bundle(asked["bundle"]).is_dir():
                return "bundle"
            _check_store(place, asked)
            newest = _begin(place, asked, newest)
            if newest is None:
                return "bundle"
        for agent in place.agents():
            if agent != newest:
                agents.drain_agent(place, agent)
        _remove_orphans(place)
        with place.bundles_locked():
            bundles.remove_old_bundles(place)
    return ""


def _is_as_asked(agent: Path, asked: dict[str, Any]) -> bool:
    settings = agents.read_agent_settings(agent)
    key, digest = settings.get("credentials", ["", ""])
    started = (settings.get("kept") == SYSTEMD) == (asked["kept"] == SYSTEMD)
    same = settings.get("digest") == asked["digest"] and started and not (agent / "drain").exists()
    return bool(same and key and agents.digest_secret(key, _text(asked["credentials"])) == digest)


def _text(credentials: dict[str, str]) -> str:
    return json.dumps(credentials, sort_keys=True)


def _keep(place: FleetDirectory, agent: Path, asked: dict[str, Any]) -> None:
    settings = agents.read_agent_settings(agent)
    if settings.get("kept") != asked["kept"]:
        write_file(agent / "settings.json", json.dumps({**settings, "kept": asked["kept"]}).encode())
    agents.keep_agent(place, agent, _command(place, agent, asked["bundle"]), asked["kept"])


def _command(place: FleetDirectory, agent: Path, bundle: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(place.bundle(bundle)), str(agent)]


def _begin(place: FleetDirectory, asked: dict[str, Any], newest: Path | None) -> Path | None:
    """Start an agent: in the directory of the newest if that one is dead, which so gets back what it had; else beside.

    Returns None where its bundle is gone.
    """
    beside = [agent for agent in place.agents() if is_agent_alive(agent)]
    if newest is None or newest in beside:
        agent, anew = place.directory / str(int(newest.name) + 1 if newest else 1), True
    else:
        agent, anew = newest, False
    with place.bundles_locked():
        if not place.bundle(asked["bundle"]).is_dir():
            return None
        if not anew and (agents.read_agent_settings(agent).get("kept") == SYSTEMD) != (asked["kept"] == SYSTEMD):
            keep_alive.stop_by_systemd(place, agent)
            keep_alive.remove_from_crontab(place, agent)
        place.claim_cache()
        _write_settings(place, agent, asked, beside)
    try:
        agents.start_agent(place, agent, _command(place, agent, asked["bundle"]), asked["kept"])
    except BaseException:
        if anew:
            with contextlib.suppress(OSError):
                agents.end_agents([agent], place, patience=5)
        raise
    return agent


def _write_settings(place: FleetDirectory, agent: Path, asked: dict[str, Any], beside: list[Path]) -> None:
    make_private_directory(agent)
    key = secrets.token_hex(16)
    arguments = [*asked["arguments"], *place.arguments]
    for other in beside:
        arguments += ["--beside", str(other)]
    write_file(agent / "credentials.json", json.dumps(asked["credentials"]).encode())
    settings = {
        "bundle": asked["bundle"],
        "digest": asked["digest"],
        "credentials": [key, agents.digest_secret(key, _text(asked["credentials"]))],
        "kept": asked["kept"],
        "store": asked["store"],
        "arguments": arguments,
        "environment": agents.make_agent_environment(_variables(place)),
    }
    write_file(agent / "settings.json", json.dumps(settings, indent=1).encode())


def _variables(place: FleetDirectory) -> dict[str, str]:
    """Return the agent's arguments on this host."""
    said = {"MONKEY_SECRETS_FILE": str(place.secrets)}
    # Below ~/.cache, what environments are built from would stay when all else is taken away.
    said |= {name: str(place.cache / tool) for name, tool in _FETCHED.items() if name not in os.environ}
    return {**said, "MONKEY_SSH_CONFIG": str(place.ssh / "config")} if place.ssh.is_dir() else said


def _check_store(place: FleetDirectory, asked: dict[str, Any]) -> None:
    """Create and read something in the store from here, by the bundle that the agent will have.

    Raises StoreUnreachableHere.
    """
    environment = {**agents.make_agent_environment(_variables(place)), **asked["credentials"]}
    command = [sys.executable, "-I", "-S", str(place.bundle(asked["bundle"])), "--check", asked["store"]]
    try:
        run = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_SECONDS, env=environment, cwd="/"
        )
    except subprocess.TimeoutExpired:
        raise StoreUnreachableHere(
            f"the store {asked['store']} did not answer for {_PATIENCE_SECONDS} s", None
        ) from None
    try:
        said = json.loads(run.stdout)
    except ValueError:
        said = {}
    if "message" in said:
        raise StoreUnreachableHere(said["message"], said["hint"])
    if run.returncode:
        words = run.stderr.decode(errors="replace")[-2000:].strip() or f"it ended with exit code {run.returncode}"
        raise StoreUnreachableHere(f"the agent cannot be run: {words}", None)


def _remove_orphans(place: FleetDirectory) -> None:
    for name in _orphans(place):
        number = name.removesuffix(".service").rpartition("-")[2]
        keep_alive.stop_by_systemd(place, place.directory / number)


def remove_agents(place: FleetDirectory) -> None:
    """Remove all that this fleet ever had here, and what the last one shared with others. Raises OSError."""
    if place.host.is_dir():
        with place.locked():
            agents.end_agents(place.agents(), place)
            _remove_orphans(place)
            keep_alive.remove_from_crontab(place)
            clear_tree(place.directory, place.workdir)
        place.clear_stray_locks()
        remove_empty(place.host)
    if place.workdir.is_dir():
        remove_empty(place.host.parent)
        if not place.host.parent.exists():
            with place.bundles_locked():
                if not place.host.parent.exists():
                    bundles.clear_all(place)
                    if place.cached():
                        clear_tree(place.cache, place.workdir)
                    clear_tree(place.lock, place.workdir)
            remove_empty(place.workdir)
