"""A link by which anything that speaks HTTP reads one object of a bucket for a while, without credentials."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from monkey.errors import StoreRefused
from monkey.store.bucket.client import make_clients
from monkey.store.bucket.object_names import ObjectNames
from monkey.store.bucket.url import BucketUrl, parse_bucket_url


async def sign_object_link(url: str, key: str, seconds: float) -> str:
    """Return a link to the object `key` of the store at `url`, by which all who have it read the object for so long.

    Raises StoreError, StoreRefused where the credentials here cannot sign.
    """
    address = parse_bucket_url(url)
    # A client without a prefix: what it signs is the object's whole path.
    client, _ = make_clients(BucketUrl(address.scheme, address.bucket, "", address.options))
    path = "/".join(filter(None, [address.prefix, ObjectNames(address.scheme).of(key)]))
    try:
        signer = cast("S3Store | GCSStore | AzureStore", client)
        return await obstore.sign_async(signer, "GET", path, timedelta(seconds=seconds))
    except BaseError as exc:
        raise StoreRefused(
            f"the credentials here cannot sign a link to an object of {url}: {str(exc).splitlines()[0]}",
            hint="use keys of your own: an access key (s3), a service account's key file (gs), an account's key (az)",
        ) from exc
