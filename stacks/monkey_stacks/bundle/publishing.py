"""The code that machines of a cloud fetch: the bundle that hosts have, and uv, for images that bring no installer."""

from __future__ import annotations

from monkey.store.store_port import Store
from monkey_stacks.bundle import bundle
from monkey_stacks.bundle.bundle import Bundle
from monkey_stacks.bundle.wheels import WheelTarget

#: Clouds' names of processors, and ours.
PROCESSORS = {"x86_64": "x86_64", "amd64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
#: What is not Python alone in a bundle runs on this one and all newer, and with this glibc (Debian 10) and newer.
PYTHON, LIBC = (3, 11), "glibc 2.28"


def build_for_store(store_url: str, architecture: str) -> Bundle:
    """Return the bundle for machines of an architecture, as a cloud names it: x86_64 or amd64, arm64 or aarch64.

    Raises FleetError where a wheel is not to be had, OSError.
    """
    target = WheelTarget(PYTHON, f"linux-{PROCESSORS[architecture]}", LIBC)
    return bundle.build_bundle(store_url.partition("://")[0], target, tools=("uv",))


async def publish_once(store: Store, built: Bundle) -> None:
    """Put the bundle into the store, unless it is there. Raises StoreError."""
    await bundle.publish_bundle(store, built)
