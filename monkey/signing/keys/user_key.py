"""The user's own key: a file in the configuration directory, made when something is first signed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from monkey.atomic_write import create_atomically, write_atomically
from monkey.config_directory import locate_config_directory
from monkey.errors import SigningError
from monkey.signing.keys.owned_file import read_owned_file
from monkey.signing.keys.private_key import (
    BadPrivateKey,
    PrivateKey,
    decode_private_key,
    encode_private_key,
    make_private_key,
)
from monkey.signing.keys.public_key import PublicKey
from monkey.untrusted_files import make_private_directory

#: Names another file with an unencrypted Ed25519 key of OpenSSH's, such as ~/.ssh/id_ed25519; it is never made.
KEY_VARIABLE = "MONKEY_SIGNING_KEY"
_WHAT = "the signing key"
_HINT = f"name another unencrypted Ed25519 key by {KEY_VARIABLE}; `ssh-keygen -t ed25519 -N '' -f FILE` makes one"


class UserKeyFile:
    """Where the user's key is, or will be."""

    def __init__(self, directory: Path | None = None, environ: Mapping[str, str] | None = None) -> None:
        """Look into `directory` (the user's configuration by default), unless `environ` (ours) names a file."""
        said = os.environ if environ is None else environ
        named = said.get(KEY_VARIABLE, "")
        self._is_named = bool(named)
        home = locate_config_directory(environ) if directory is None else directory
        self.path = Path(named).expanduser() if named else home / "signing_key"

    def read(self) -> PrivateKey | None:
        """Return the key; None where none was made yet. Raises SigningError where one is there that cannot be used."""
        try:
            data = read_owned_file(self.path, _WHAT, private=True)
        except FileNotFoundError:
            if self._is_named:
                raise SigningError(f"{KEY_VARIABLE} names a file that is not there: {self.path}", hint=_HINT) from None
            return None
        try:
            return decode_private_key(data)
        except BadPrivateKey as exc:
            raise SigningError(f"the signing key in {self.path} cannot be used: {exc}", hint=_HINT) from exc

    def open(self) -> PrivateKey:
        """Return the key, and make it first where there is none: of several that do so at once, all get the same."""
        key = self.read()
        if key is None:
            try:
                make_private_directory(self.path.parent)
                create_atomically(self.path, encode_private_key(make_private_key()), mode=0o600)
            except OSError as exc:
                raise SigningError(f"{_WHAT} cannot be made in {self.path}: {exc.strerror}", hint=_HINT) from exc
            key = self.read()
        if key is None:
            raise SigningError(f"the signing key in {self.path} was removed while it was made")
        self._publish(key)
        return key

    def open_public(self) -> PublicKey:
        """Return the public key as other people get it: its comment says whose it is. Else as `open`."""
        return _name_owner(self.open())

    def _publish(self, key: PrivateKey) -> None:
        """Write the public key beside a key of our own, for people to copy; nothing of monkey reads it.

        A file that is there may be that of an earlier key. Where none can be written, the key can be used all the same.
        """
        path, line = self.path.with_name(f"{self.path.name}.pub"), f"{_name_owner(key).line}\n"
        if self._is_named:
            return
        with contextlib.suppress(OSError):
            if not path.exists() or key.public.line not in path.read_text(errors="replace"):
                write_atomically(path, line, mode=0o644)


def _name_owner(key: PrivateKey) -> PublicKey:
    """Return the public key with `user@machine`, by which a colleague who gets it knows whose it is."""
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an account without an entry in passwd, as in many containers
        user = str(os.getuid())
    return PublicKey(key.public.raw, f"{user}@{os.uname().nodename}")
