"""What machines of a cloud fetch: the bundle that hosts have, uv for images without an installer, the signers."""

from __future__ import annotations

from monkey.fleet.fleet_port import Say
from monkey.signing.machine_list import check_signers, hash_signers, spell_signers_key
from monkey.store.content.upload_progress import Begin, show_no_progress
from monkey.store.create import Lost, create_object
from monkey.store.store_port import Store
from monkey_stacks.bundle import bundle
from monkey_stacks.bundle.bundle import Bundle
from monkey_stacks.bundle.wheels import WheelTarget

#: Clouds' names of processors, and ours.
PROCESSORS = {"x86_64": "x86_64", "amd64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
#: What is compiled in a bundle runs on these Pythons, and with this glibc (Debian 10) and newer.
PYTHONS, LIBC = ((3, 11), (3, 12), (3, 13), (3, 14)), "glibc 2.28"


def build_for_store(store_url: str, architecture: str) -> Bundle:
    """Return the bundle for machines of an architecture, as a cloud names it: x86_64 or amd64, arm64 or aarch64.

    Raises FleetError where a wheel is not to be had, OSError.
    """
    target = WheelTarget(PYTHONS[0], f"linux-{PROCESSORS[architecture]}", LIBC, PYTHONS[1:])
    return bundle.build_bundle(store_url.partition("://")[0], target, tools=("uv",))


async def publish_once(store: Store, built: Bundle, signers: str, say: Say, bars: Begin = show_no_progress) -> None:
    """Put the bundle and the list of signers into the store, unless they are there. Raises StoreError, SigningError."""
    await bundle.publish_bundle(store, built, say, bars)
    sha256 = hash_signers(signers)
    outcome = await create_object(store, spell_signers_key(sha256), signers.encode())
    if isinstance(outcome, Lost):
        check_signers(outcome.existing, sha256)
