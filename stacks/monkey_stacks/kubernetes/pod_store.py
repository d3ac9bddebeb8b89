"""Where pods find the store: a bucket by its URL, a directory by its path on a volume."""

from __future__ import annotations

from monkey.errors import FleetError
from monkey.spec.project.engines.kubernetes_settings import KubernetesSettings
from monkey_stacks import store_credentials

_BUCKETS = ("s3", "gs", "az")


def place_pod_store(name: str, of: KubernetesSettings, store_url: str) -> str:
    """Return the store as pods open it. Raises FleetError where they could not. `name`: the provider's, for errors."""
    if of.store_path:
        return of.store_path
    if store_url.partition("://")[0] in _BUCKETS and "://" in store_url:
        return store_credentials.strip_profile(store_url)
    raise FleetError(
        f"{name}'s pods cannot reach the store: {store_url} is neither a bucket nor on a volume of the cluster",
        hint="write store: s3://BUCKET/PREFIX (gs://, az://) into monkey.yaml; or store_path: beside type: kubernetes, "
        "where pods see this directory under that path, by one of `volumes:`",
    )
