"""Images on this machine: each is pulled once however many jobs ask, and counts in the cache.

podman and docker keep images in storage of their own. An entry of the cache stands for each, with its size. When the
cache has removed an entry, the next agent that pulls an image removes this one from the storage.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import subprocess
from collections.abc import Mapping, Set
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.fleet.container_runtime import ContainerRuntime
from monkey.removal import remove_file
from monkey.spec.job.recipe import BUILD_TIMEOUT_SECONDS
from monkey.untrusted_files import hold_below
from monkey_agent.cache.cache import CacheUse
from monkey_agent.containers.image_pull import SIZE, ImagePull, locate_image
from monkey_agent.environments.environment_pool import EnvironmentPool

#: How names of entries begin. Beside environments, as they are made, locked and removed in the same way.
_PREFIX = "image-"
#: The directory of the cache with a file for each image in a runtime's storage that was pulled for us.
_KEPT = "images"
#: Seconds that the removal of an image may take.
_PATIENCE_SECONDS = 120.0


class ImagePool(EnvironmentPool):
    """The images that agents of the user pulled."""

    build = ImagePull
    failure = "the image cannot be pulled"

    async def pull(
        self,
        runtime: ContainerRuntime,
        image: str,
        withheld: Set[str] = frozenset(),
        limit: float = BUILD_TIMEOUT_SECONDS,
    ) -> tuple[str, CacheUse]:
        """Return the image (NAME@DIGEST) as the runtime takes it, and the right to use it; pull it if need be.

        See `use`, also for what it raises.
        """
        wanted = {"image": image, "runtime": runtime.kind, "program": runtime.program}
        path, use = await self.use(wanted, withheld, limit)
        if not (path / ".kept").exists():
            await asyncio.to_thread(self._keep_account, path, wanted)
        return locate_image(runtime.kind, image, path), use

    @staticmethod
    def name_entry(wanted: Mapping[str, str]) -> str:
        """See `EnvironmentPool`: a name of the digest, so that images with several names are pulled once."""
        image = wanted["image"] if wanted["runtime"] in ("podman", "docker") else wanted["image"].partition("@")[2]
        return _PREFIX + hashlib.sha256(f"{wanted['runtime']} {image}".encode()).hexdigest()[:32]

    @staticmethod
    def is_complete(path: Path) -> bool:
        """See `EnvironmentPool`."""
        return (path / ".complete").exists()

    @staticmethod
    def measure_elsewhere(path: Path) -> int:
        """See `EnvironmentPool`."""
        try:
            return int((path / SIZE).read_bytes())
        except (OSError, ValueError):
            return 0

    def _keep_account(self, path: Path, wanted: Mapping[str, str]) -> None:
        """Note an image that is in a runtime's own storage, and remove from there those that left the cache."""
        kept = self._cache.root / _KEPT
        with hold_below(self._cache.root, _KEPT, make=True):
            pass
        if (path / SIZE).exists():
            write_atomically(kept / path.name, f"{wanted['program']}\n{wanted['image']}\n".encode())
        (path / ".kept").touch()
        for file in kept.iterdir():
            if not (self._directory / file.name).exists() and not file.name.startswith("."):
                program, image = file.read_text().splitlines()
                with contextlib.suppress(OSError, subprocess.SubprocessError):
                    # One that a container uses stays, and is tried again.
                    subprocess.run(
                        [program, "rmi", image],
                        env=self._env,
                        stdin=subprocess.DEVNULL,
                        capture_output=True,
                        timeout=_PATIENCE_SECONDS,
                        check=True,
                    )
                    remove_file(file)
