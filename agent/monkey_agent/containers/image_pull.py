"""The pull of one image, by its runtime, into the runtime's own storage or a directory of the cache."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from monkey.errors import ImageError
from monkey.spec.job.image_reference import parse_image_reference
from monkey.transfer.images.registry_client import RegistryClient
from monkey.transfer.images.registry_login import find_login
from monkey_agent.environments.environment_build import EnvironmentBuild, EnvironmentBuildFailed

#: Files of an entry: the size in bytes of an image that its runtime keeps, and an image as apptainer runs it.
SIZE, SIF = "size", "image.sif"
#: The directory of an entry in which charliecloud unpacks.
_STORAGE = "storage"


class ImagePull(EnvironmentBuild):
    """One pull; `wanted` has the runtime's kind, its program and the image: NAME@DIGEST."""

    async def _steps(self, wanted: Mapping[str, str]) -> None:
        image, program, what = wanted["image"], wanted["program"], f"pull the image {wanted['image']}"
        self._path.mkdir(parents=True)
        match wanted["runtime"]:
            case "apptainer":
                plain = await self._allow_http(image, "--no-https")
                await self._must(what, program, "pull", *plain, str(self._path / SIF), f"docker://{image}")
            case "charliecloud":
                await self._pull_by_charliecloud(what, image)
            case _:
                # docker's daemon takes a registry of this machine as it is.
                plain = await self._allow_http(image, "--tls-verify=false") if wanted["runtime"] == "podman" else []
                await self._must(what, program, "pull", "--quiet", *plain, image)
                log = self._log.stat().st_size
                size = ["image", "inspect", "--format", "{{.Size}}", image]
                await self._must("measure the image", program, *size)
                said = self._log.read_bytes()[log:].split()
                (self._path / SIZE).write_bytes(said[-1])

    async def _allow_http(self, image: str, option: str) -> list[str]:
        """Return the option that a runtime needs for a registry without HTTPS, where this is one of this machine."""
        client = RegistryClient(parse_image_reference(image).registry)
        try:
            return [option] if await asyncio.to_thread(client.speaks_plain_http) else []
        except ImageError:  # the runtime says what is wrong
            return []

    async def _pull_by_charliecloud(self, what: str, image: str) -> None:
        program = shutil.which("ch-image", path=self._env.get("PATH"))
        if not program:
            raise EnvironmentBuildFailed("its image cannot be pulled: there is no ch-image (hint: install it)")
        if await self._allow_http(image, "http"):
            raise EnvironmentBuildFailed(
                f"could not {what}: charliecloud needs HTTPS, and this registry has none "
                "(hint: give it a certificate, or install podman)"
            )
        try:
            login = find_login(parse_image_reference(image), self._env, Path(self._env.get("HOME") or "/"))
        except ImageError as exc:
            raise EnvironmentBuildFailed(str(exc)) from exc
        # Its interpreter is `env python3`: not that of an activated environment, which has not its modules.
        beside = f"{Path(program).parent}{os.pathsep}{self._env.get('PATH', os.defpath)}"
        env = {"USER": "monkey", **self._env, "PATH": beside}
        if login:
            env |= {"CH_IMAGE_USERNAME": login.user, "CH_IMAGE_PASSWORD": login.password}
        command = [program, "pull", "--no-cache", "--storage", str(self._path / _STORAGE)]
        await self._must(what, *command, *(["--auth"] if login else []), image, env=env)


def locate_image(runtime: str, image: str, path: Path) -> str:
    """Return a pulled image as its runtime takes it; `path`: its entry in the cache."""
    if runtime == "apptainer":
        return str(path / SIF)
    if runtime == "charliecloud":
        [unpacked] = os.scandir(path / _STORAGE / "img")
        return unpacked.path
    return image
