"""Why the signature of an entry does not count."""

from __future__ import annotations


class SignatureRefused(ValueError):
    """The signature of an entry does not count; the message is short, and for people."""


class Unsigned(SignatureRefused):
    """The entry has no signature."""


class BadSignature(SignatureRefused):
    """The signature was not made for these bytes in this place, or is none of ours."""


class UnknownSigner(SignatureRefused):
    """The signature is good, and nothing here trusts the key that made it."""
