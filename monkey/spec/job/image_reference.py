"""Names of container images, as container tools write them: `python:3.12`, `ghcr.io/lab/train@sha256:…`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monkey.spec.yaml.mistakes import MistakesError, describe_value, make_mistake_error

#: The registry of names that say none, and the directory of those of its images that have one word for a name.
_DEFAULT_REGISTRY, _DEFAULT_DIRECTORY = "docker.io", "library"
_REGISTRY = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
_WORD = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?P<registry>{_REGISTRY})/)?(?P<repository>{_WORD}(?:/{_WORD})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
#: Characters that a name of a repository, with its registry, may have.
_LONGEST = 255


@dataclass(frozen=True)
class ImageReference:
    """The name of an image, with nothing left to a default."""

    registry: str
    repository: str
    tag: str
    #: "sha256:…" if the name says it; "" where the tag alone does.
    digest: str = ""

    @property
    def name(self) -> str:
        """The repository with its registry: `docker.io/library/python`."""
        return f"{self.registry}/{self.repository}"

    def __str__(self) -> str:
        return self.name + (f"@{self.digest}" if self.digest else f":{self.tag}")


def parse_image_reference(text: object) -> ImageReference:
    """Return the image that a text names; raises MistakesError."""
    hint = "write NAME:TAG or NAME@sha256:…, as `docker pull` takes it: python:3.12"
    found = _match_reference(text) if isinstance(text, str) else None
    if found is None and isinstance(text, str) and "@" in text and _match_reference(text.partition("@")[0]):
        raise make_mistake_error(
            f"expected a digest of 64 hexadecimal digits after {text.partition('@')[0]}@sha256:, "
            f"found {describe_value(text.partition('@')[2])}",
            "copy the whole digest from `docker images --digests`; other hashes than sha256 are not supported",
        )
    if found is None:
        raise make_mistake_error(f"expected the name of an image, found {describe_value(text)}", hint)
    registry, repository = found["registry"], found["repository"]
    # A first word without a dot or a port is a directory of the default registry.
    if registry and not ("." in registry or ":" in registry or registry == "localhost"):
        registry, repository = None, f"{registry}/{repository}"
    if registry in ("index.docker.io", "registry-1.docker.io"):
        registry = _DEFAULT_REGISTRY
    if registry in (None, _DEFAULT_REGISTRY) and "/" not in repository:
        repository = f"{_DEFAULT_DIRECTORY}/{repository}"
    if not found["tag"] and not found["digest"]:
        raise make_mistake_error(
            f"expected an image with a tag or a digest, found {describe_value(text)}",
            f"name the version: {text}:TAG; `latest` is a tag, too",
        )
    return ImageReference(registry or _DEFAULT_REGISTRY, repository, found["tag"] or "", found["digest"] or "")


def spell_pinned_image(name: str | None, digest: str | None) -> str:
    """Return NAME@DIGEST of the image that a sweep's settings name, and its recipe; "" without an image."""
    return f"{parse_image_reference(name).name}@{digest}" if name and digest else ""


def is_image_digest(text: object) -> bool:
    """Say whether a text is a digest as the identity of an image is written: sha256:…."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def is_image_name(text: object) -> bool:
    """Say whether a text is the name of an image as a sweep's settings have it: nothing is left to a default."""
    try:
        return isinstance(text, str) and str(parse_image_reference(text)) == text
    except MistakesError:
        return False


def _match_reference(text: str) -> re.Match[str] | None:
    found = _REFERENCE.fullmatch(text) if len(text) <= 2 * _LONGEST else None
    return found if found and len(text.partition("@")[0]) <= _LONGEST else None
