"""A forge that is sent no secret: what is masked in logs is masked in comments and statuses, too."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from monkey.forge.forge_port import Forge, StatusState
from monkey.forge.secret_text import mask_secrets


class MaskedForge:
    """A forge, and the environment whose secrets no text for it may have. See `Forge`."""

    def __init__(self, forge: Forge, environ: Mapping[str, str]) -> None:
        """Pass on to `forge` what is asked of it."""
        self._forge, self._environ = forge, environ
        self.read_status, self.list_pulls_of, self.read_pull = forge.read_status, forge.list_pulls_of, forge.read_pull
        self.list_open_pulls, self.can_write = forge.list_open_pulls, forge.can_write
        self.name_author = forge.name_author

    def write_comment(self, pull: int, key: str, text: str, others: Collection[str] = ()) -> str:
        return self._forge.write_comment(pull, key, mask_secrets(text, self._environ), others)

    def set_status(self, commit: str, context: str, state: StatusState, text: str, url: str = "") -> None:
        self._forge.set_status(commit, context, state, mask_secrets(text, self._environ), url)
