"""moto's server, with what it does otherwise than AWS put right: `python moto_server.py ADDRESS PORT`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup
from moto.core.types import Base64EncodedString
from moto.ec2.models.instances import Instance, InstanceBackend
from moto.ec2.models.launch_templates import LaunchTemplateVersion
from moto.server import DomainDispatcherApplication, create_backend_app  # type: ignore[attr-defined]  # no `__all__`
from werkzeug.serving import run_simple

#: One request at a time: it looks whether a key is there, and writes it later, and of 2,500 pairs of rivals eight both
#: won when its threads were as many as requests.
_TURN = threading.Lock()


def user_data(version: Any) -> Any:
    """A template's later versions forget that theirs is encoded, and no group could use them."""
    said = version.data.get("UserData")
    return Base64EncodedString(said) if isinstance(said, str) else said


def updating(update: Callable[..., None]) -> Callable[..., None]:
    """What a change of a group does not name stays: of a policy of several types nothing would be left."""

    @wraps(update)
    def keeping(self: Any, *args: Any, **said: Any) -> None:
        had = self.mixed_instances_policy
        update(self, *args, **said)
        if not said.get("mixed_instances_policy") and not said.get("launch_template"):
            self.mixed_instances_policy = had

    return keeping


def running(run: Callable[..., Any]) -> Callable[..., Any]:
    """A machine's disks have the tags that its template says."""

    @wraps(run)
    def tagging(self: Any, *args: Any, **said: Any) -> Any:
        if said.get("launch_template"):
            data = self._get_template_from_args(said["launch_template"]).data
            for each in data.get("TagSpecifications") or ():
                if each["ResourceType"] == "volume":
                    tags = {tag["Key"]: tag["Value"] for tag in each.get("Tags", ())}
                    said["tags"] = {**said.get("tags", {}), "volume": tags}
        return run(self, *args, **said)

    return tagging


def adding(add: Callable[..., None]) -> Callable[..., None]:
    """A disk that a template names is there instead of the image's, not beside it."""

    @wraps(add)
    def replacing(self: Any, size: int, device_path: str, *args: Any, **said: Any) -> None:
        if device_path in self.block_device_mapping:
            old = self.block_device_mapping[device_path].volume_id
            self.ec2_backend.detach_volume(old, self.id, device_path)
            self.ec2_backend.delete_volume(old)
        add(self, size, device_path, *args, **said)

    return replacing


def ending(end: Callable[..., Any]) -> Callable[..., Any]:
    """What came with a machine goes with it: the interface that nobody made for it."""

    @wraps(end)
    def leaving(self: Any) -> Any:
        for each in self.nics.values():
            if each.description == "Primary network interface":
                each.delete_on_termination = True
        return end(self)

    return leaving


def scheduling(put: Callable[..., Any]) -> Callable[..., Any]:
    """What is scheduled is so for one group: another's may be called the same."""

    @wraps(put)
    def putting(self: Any, name: str, *args: Any, **said: Any) -> Any:
        made, actions = put(self, name, *args, **said), self.scheduled_actions
        actions[f"{name}/{made.scheduled_action_name}"] = actions.pop(made.scheduled_action_name)
        return made

    return putting


def unscheduling(remove: Callable[..., None]) -> Callable[..., None]:
    """See `scheduling`."""

    @wraps(remove)
    def removing(self: Any, auto_scaling_group_name: str, scheduled_action_name: str) -> None:
        actions, key = self.scheduled_actions, f"{auto_scaling_group_name}/{scheduled_action_name}"
        if key in actions:
            actions[scheduled_action_name] = actions.pop(key)
        remove(self, auto_scaling_group_name, scheduled_action_name)

    return removing


def clearing(remove: Callable[..., None]) -> Callable[..., None]:
    """What is scheduled for a group goes with it."""

    @wraps(remove)
    def removing(self: Any, group_name: str) -> None:
        remove(self, group_name)
        actions = self.scheduled_actions
        for key in [key for key, each in actions.items() if each.auto_scaling_group_name == group_name]:
            del actions[key]

    return removing


def serve(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    """Answer a request of WSGI's."""
    with _TURN:
        answer: Iterable[bytes] = APP(environ, start)
        return answer


LaunchTemplateVersion.user_data = property(user_data)
FakeAutoScalingGroup.update = updating(FakeAutoScalingGroup.update)
InstanceBackend.run_instances = running(InstanceBackend.run_instances)
Instance.add_block_device = adding(Instance.add_block_device)
Instance.terminate = ending(Instance.terminate)
for name, mended in (
    ("put_scheduled_update_group_action", scheduling),
    ("delete_scheduled_action", unscheduling),
    ("delete_auto_scaling_group", clearing),
):
    setattr(AutoScalingBackend, name, mended(getattr(AutoScalingBackend, name)))
APP = DomainDispatcherApplication(create_backend_app)

if __name__ == "__main__":
    run_simple(sys.argv[1], int(sys.argv[2]), serve, threaded=True)
