"""Nodes that clouds may take back, as their clusters mark them. Pure."""

from __future__ import annotations

from typing import Any

#: Labels of such nodes, each with its value: of Google, Azure, Amazon's managed groups, and Karpenter.
_LABELS = (
    ("cloud.google.com/gke-spot", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("karpenter.sh/capacity-type", "spot"),
)
#: Those of the labels that are taints, too: they keep other pods away.
_TAINTS = ("cloud.google.com/gke-spot", "kubernetes.azure.com/scalesetpriority")


def write_spot_affinity() -> dict[str, Any]:
    """Return the affinity of pods that run on such nodes, and on no others: one of the labels is enough."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in _LABELS]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def list_spot_tolerations() -> list[dict[str, Any]]:
    """Return what pods tolerate of such nodes."""
    values = dict(_LABELS)
    return [{"key": key, "operator": "Equal", "value": values[key], "effect": "NoSchedule"} for key in _TAINTS]
