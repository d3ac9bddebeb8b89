"""`monkey trust`: your signing key, and whose entries of sweeps' logs count for you."""

from __future__ import annotations

from pathlib import Path

import click

from monkey.cli.session import find_project, json_option
from monkey.cli.terminal.text import dump_json, make_printable
from monkey.config_directory import locate_config_directory
from monkey.errors import MonkeyError, SigningError
from monkey.signing.allowed_signers import AllowedSigner, format_key_time, read_allowed_signers
from monkey.signing.keys.public_key import BadPublicKey, PublicKey, parse_public_key
from monkey.signing.keys.user_key import UserKeyFile
from monkey.signing.secret_grants import GRANTS_FILE, SecretGrants
from monkey.signing.signer_list import SIGNERS_FILE, add_signer, remove_signers


@click.command("trust")
@click.argument("key", nargs=-1, metavar="[KEY]")
@click.option("--name", metavar="NAME", help="Name of the signer (default: the comment of KEY).")
@click.option("--remove", "removed", metavar="SIGNER", help="Trust this name or fingerprint no longer.")
@click.option("--secret", "granted", multiple=True, metavar="NAME", help="Let others' revisions name this secret here.")
@click.option("--no-secret", "withheld", multiple=True, metavar="NAME", help="Take that back; may be repeated.")
@json_option
def trust_command(
    key: tuple[str, ...],
    name: str | None,
    removed: str | None,
    granted: tuple[str, ...],
    withheld: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show your signing key and the trusted signers; with KEY, trust one more.

    KEY is the line that `monkey trust` prints for another person, or a file with it. Entries that a trusted signer
    writes into a sweep's log count for you and for your machines: that person can run code there.

    --secret and --no-secret are for the project around you. Your own revisions may name all secrets.
    """
    changes = [bool(key), removed is not None, bool(granted or withheld)]
    if sum(changes) > 1 or (any(changes) and as_json):
        raise click.UsageError(
            "KEY, --remove, --secret and --json exclude each other (--secret and --no-secret do not)"
        )
    if name is not None and not key:
        raise click.UsageError("--name is for KEY")
    home = locate_config_directory()
    if key:
        _add(home / SIGNERS_FILE, " ".join(key), name)
    elif removed is not None:
        for signer in remove_signers(home / SIGNERS_FILE, removed):
            click.echo(f"no longer trusted: {_describe(signer)}")
    elif granted or withheld:
        _grant(SecretGrants(home / GRANTS_FILE), granted, withheld)
    else:
        _show(home, as_json)


def _add(path: Path, said: str, name: str | None) -> None:
    key = _read_key(said)
    own = UserKeyFile().read()
    if own is not None and own.public == key:
        raise SigningError("this is your own key, which is always trusted", hint="give the line to your colleagues")
    if not (name or key.comment):
        raise SigningError("the key has no comment to take the signer's name from", hint="add --name NAME")
    signer = AllowedSigner(name or key.comment, key)
    added = add_signer(path, signer)
    click.echo(f"{'trusted from now on' if added else 'trusted already'}: {_describe(signer)}")
    if added and sum(signer.name == other.name for other in read_allowed_signers(path)) > 1:
        click.echo(f"Another key has this name, too, and both count: `monkey trust --remove {signer.name}` takes both.")
    if added:
        click.echo("They can run code as you here; on SSH hosts and rented machines from your next `monkey apply` on.")


def _read_key(said: str) -> PublicKey:
    """Return the key in the words of a command line, or in the file that they name."""
    try:
        if said.startswith("ssh-"):
            return parse_public_key(said)
        return parse_public_key(Path(said).expanduser().read_bytes()[: 1 << 16].decode(errors="replace"))
    except BadPublicKey as exc:
        raise SigningError(str(exc), hint="KEY is a line `ssh-ed25519 AAAA…`, or a .pub file with one") from exc
    except OSError as exc:
        raise MonkeyError(f"the key in {said!r} cannot be read: {exc.strerror}") from exc


def _grant(grants: SecretGrants, granted: tuple[str, ...], withheld: tuple[str, ...]) -> None:
    project = find_project().name
    grants.change(project, add=frozenset(granted), remove=frozenset(withheld))
    names = ", ".join(sorted(grants.projects.get(project, ()))) or "none"
    click.echo(make_printable(f"secrets that other signers' revisions may name in project {project}: {names}"))


def _show(home: Path, as_json: bool) -> None:
    file = UserKeyFile()
    own, path = file.open_public(), home / SIGNERS_FILE
    try:
        signers = read_allowed_signers(path)
    except FileNotFoundError:
        signers = []
    projects = SecretGrants(home / GRANTS_FILE).projects
    if as_json:
        listed = [{"name": signer.name, "fingerprint": signer.key.fingerprint} for signer in signers]
        secrets = {project: sorted(names) for project, names in projects.items()}
        own_key = {"fingerprint": own.fingerprint, "key": own.line, "file": str(file.path)}
        click.echo(dump_json({"own": own_key, "signers": listed, "secrets": secrets}, indent=2))
        return
    lines = [f"your signing key: {own.fingerprint} ({file.path})", f"  {own.line}"]
    lines += ["", f"trusted signers ({path}):" if signers else "no other signer is trusted"]
    lines += [f"  {_describe(signer)}" for signer in signers]
    for project, names in sorted(projects.items()):
        lines += [f"secrets that their revisions may name in project {project}: {', '.join(sorted(names))}"]
    click.echo(make_printable("\n".join(lines)))


def _describe(signer: AllowedSigner) -> str:
    after = "" if signer.after is None else f" from {format_key_time(signer.after)}"
    before = "" if signer.before is None else f" until {format_key_time(signer.before)}"
    return f"{signer.name} {signer.key.fingerprint}{after}{before}"
