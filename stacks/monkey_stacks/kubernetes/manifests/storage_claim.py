"""The volume claim that `storage:` asks for: made where it is missing, and never deleted. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monkey.spec.project.engines.kubernetes_settings import KubernetesSettings

#: Where pods see the volume, and the variable that tells jobs so.
STORAGE_PLACE, STORAGE_VARIABLE = "/storage", "STORAGE_DIR"


def write_storage_claim(label: str, labels: Mapping[str, str], of: KubernetesSettings) -> dict[str, Any]:
    """Return the claim, which has the fleet's label as its name. Several pilots may be on several nodes."""
    mode = "ReadWriteOnce" if of.pilots == 1 else "ReadWriteMany"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": label, "labels": dict(labels)},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": str(of.storage)}}},
    }
