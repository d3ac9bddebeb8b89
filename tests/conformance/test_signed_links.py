"""Links to objects of buckets: they read one object, and no other, without credentials."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request

import pytest

from monkey.store.open import open_store
from monkey.store.store_port import LinkSigner
from tests import services


async def write_and_sign(url: str) -> str:
    store = await open_store(url, begin=True)
    try:
        assert isinstance(store, LinkSigner)
        await store.put("bundle/a.tar.gz", b"code")
        await store.put("bundle/b.tar.gz", b"secret")
        return await store.sign_link("bundle/a.tar.gz", 600)
    finally:
        await store.close()


@pytest.mark.parametrize(
    "scheme",
    [pytest.param("s3", marks=pytest.mark.needs("moto")), pytest.param("az", marks=pytest.mark.needs("azurite"))],
)
@pytest.mark.slow
def test_a_link_reads_its_object_below_the_store_s_prefix(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in services.KEYS.items():
        monkeypatch.setenv(name, value)
    with services.moto() if scheme == "s3" else services.azurite() as endpoint:
        account = f"account={services.AZURE_ACCOUNT}&" if scheme == "az" else ""
        url = f"{scheme}://{services.BUCKET}/some/prefix?{account}endpoint={endpoint}"
        link = asyncio.run(write_and_sign(url))
        with urllib.request.urlopen(link) as answer:
            assert answer.read() == b"code"
        if scheme == "az":  # moto takes any signature
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(link.replace("a.tar.gz", "b.tar.gz"))
            refused.value.close()
