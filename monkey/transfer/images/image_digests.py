"""The digests of the images that specs name: asked once, and said with the line of the spec where that fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from monkey.errors import ImageError
from monkey.spec.job.image_reference import ImageReference
from monkey.spec.yaml.mistakes import Mistake

if TYPE_CHECKING:
    from monkey.spec.sweep.models import Spec


class ImageDigests:
    """The digests of images, each asked once however many specs name it."""

    def __init__(self) -> None:
        """Start without any."""
        self._known: dict[ImageReference, str] = {}

    def of(self, spec: Spec) -> str | None:
        """Return the digest of a spec's image; None without one. Raises SpecError, with the line."""
        image = spec.environment.image
        if image is None or image.digest:
            return image.digest if image else None
        try:
            if image not in self._known:
                # Most specs name no image: their plans wait for no library of HTTP.
                from monkey.transfer.images import registry_client, registry_login

                login = registry_login.find_login(image, os.environ, Path("~").expanduser())
                self._known[image] = registry_client.RegistryClient(image.registry, login).resolve(image)
        except ImageError as exc:
            raise spec.document.error([Mistake(("environment", "image"), exc.message, exc.hint)]) from exc
        return self._known[image]
