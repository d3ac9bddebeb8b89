"""Jobs in containers, by the real runtimes: what they see, and what they may take."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.acceptance.image_shop import (
    LONG,
    SPEC,
    apply,
)
from tests.acceptance.shop import Shop, until
from tests.acceptance.test_gitlab_pipeline import make_wheel
from tests.kubernetes.image import list_python_files
from tests.registry import Registry, serve_registry
from tests.services import free_port, serve_program

pytestmark = [pytest.mark.slow, pytest.mark.needs("docker-registry"), pytest.mark.needs("busybox")]


def test_a_job_runs_in_its_image(shop: Shop, registry: Registry, runtime: str) -> None:
    (shop.root / "data").mkdir()
    (shop.root / "data" / "numbers").write_text("1 2 3\n")
    command = (
        "cat /inside; echo; echo kind=$KIND; id -u; cat $MONKEY_DATASET_DIGITS/numbers; ls $PYTHONPATH/monkey; "
        "echo kept > kept; echo i={i}; cat job.py | test -n x && echo code; touch $MONKEY_DATASET_DIGITS/x || "
        "echo refused; test -e /root/.pyenv || test -e $HOME/project || echo alone; echo secret=$TOKEN"
    )
    image = f"{registry.name}/lab/tools:v1"
    text = SPEC.format(command=repr(command), image=image, jobs=2).replace("outputs: []", "outputs: [kept]")
    shop.spec(text + "datasets: {digits: data}\nsecrets: [TOKEN]\nenv: {HOME: /tmp, MOOD: calm}\n")
    shop.env["TOKEN"] = "hunter2-and-more"
    shop.run("apply")
    said = shop.run("logs", "sweep").stdout
    assert shop.states() == {"succeeded": 2}, said
    assert "hunter2" not in said and "secret=***" in said
    assert runtime == "charliecloud" or "refused" in said, "datasets can only be read"
    for line in ("the image", "kind=of-the-image", str(os.getuid()), "1 2 3", "job.py", "code", "alone", "i=1"):
        assert line in said, said


def test_requirements_and_setup_beside_an_image_run_in_it(
    shop: Shop, registry: Registry, runtime: str, tmp_path: Path
) -> None:
    if runtime != "podman" and not LONG:
        pytest.skip("podman does it in half a minute; MONKEY_LONG=1 tries the others, too")
    python, links = list_python_files()
    wheels = Path("/usr/share/python-wheels").glob("*")
    files: dict[str, bytes | str] = {**python, **links, **{str(path): path.read_bytes() for path in wheels}}
    files |= {f"{name}/.keep": b"" for name in ("tmp", "proc", "dev", "sys")} | {"etc/group": b"root:x:0:\n"}
    registry.push("lab/python", "v1", {path.lstrip("/"): data for path, data in files.items()})
    make_wheel(tmp_path)
    port = free_port()
    server = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(tmp_path), str(port)]
    (shop.root / "where.py").write_text(
        "import importlib.metadata as m, sys; print('stub', m.version('stub'), sys.prefix)\n"
        "print(open(sys.prefix + '/setup/made').read())\n"
    )
    needs = f"requirements: ['stub @ http://127.0.0.1:{port}/stub-1-py3-none-any.whl'], "
    setup = """python -c "import importlib.metadata as m, sys; print(m.version('stub'), sys.prefix)" >made
echo once >>../times
"""
    for name, keys, more in (
        ("python", needs, setup),
        ("tools", needs, setup),
        ("alone", "", "cat /inside >$VIRTUAL_ENV/bin/made"),
        ("fails", "", "echo nowhere to be found\nexit 5\n"),
    ):
        command = "cat $VIRTUAL_ENV/bin/made" if name == "alone" else "python where.py"
        image = f"{registry.name}/lab/{'python' if name == 'python' else 'tools'}:v1"
        text = SPEC.format(command=command, image=image, jobs=2)
        shop.spec(text.replace("{image", "{" + keys + f"setup: {json.dumps(more)}, image"), name=name)
    with serve_program(server, port):
        shop.run("apply", code=None)
    said = shop.run("logs", "python").stdout
    assert shop.states("python") == {"succeeded": 2}, said
    assert said.count("stub 1 /") == 2 and "/environments/" in said, said
    assert len(set(re.findall("/.*/environments/.*", said))) == 1, "jobs and setup: one prefix"
    assert shop.states("alone") == {"succeeded": 2} and "the image" in shop.run("logs", "alone").stdout
    assert "set the environment up in the image" in (why := shop.json("list", "jobs", "fails")[0]["reason"])
    assert "(exit code 5): nowhere to be found" in why
    assert shop.states("tools") == {"failed": 2}
    assert "the image has no Python" in shop.json("list", "jobs", "tools")[0]["reason"]
    times = Path(shop.env["XDG_CACHE_HOME"]).glob("monkey/environments/*/venv/times")
    assert [file.read_text() for file in times] == ["once\n"], "for both jobs"


def test_a_container_stands_still_and_is_ended(shop: Shop, registry: Registry, runtime: str) -> None:
    """A cancelled job gets SIGTERM once, in each of its processes, and may end by itself."""
    command = "trap 'echo asked; exit 3' TERM; echo begun; while :; do sleep 0.1; done"
    apply(shop, registry, command, "--detach")
    until(lambda: "begun" in shop.run("logs", "sweep", code=None).stdout, "the job runs", step=0.5)
    shop.run("cancel", "sweep")
    until(lambda: not shop.states().get("running"), "the job ended", step=0.5)
    [job] = shop.json("list", "jobs", "sweep")
    assert job["exit_code"] == 3, "the job ended by itself"
    said = shop.run("logs", "sweep").stdout
    assert said.count("asked") == 1, said


def test_reasons_name_the_cause_at_the_runtime_and_at_the_registry(
    shop: Shop, registry: Registry, runtime: str, tmp_path: Path
) -> None:
    registry.push("lab/bare", "v1", {"tmp/.keep": b"", "proc/.keep": b"", "dev/.keep": b"", "etc/passwd": b""})
    files = {"bin/busybox": Path("/bin/busybox").read_bytes(), "bin/sh": "busybox", "tmp/.keep": b"", "proc/.keep": b""}
    (tmp_path / "plain").mkdir()
    with serve_registry(tmp_path / "plain") as plain:
        plain.push("lab/tools", "v1", files | {"dev/.keep": b"", "etc/passwd": b"", "etc/group": b""})
        images = {"bare": f"{registry.name}/lab/bare:v1", "plain": f"{plain.name}/lab/tools:v1"}
        images["gone"] = f"{registry.name}/lab/tools@sha256:{'0a' * 32}"
        for name, image in images.items():
            shop.spec(SPEC.format(command="'exit 0'", image=image, jobs=1) + f"name: {name}\n", name=name)
        shop.run("apply", code=None)
    bare, plainly, gone = (shop.json("list", "jobs", name)[0] for name in ("bare", "plain", "gone"))
    if runtime != "charliecloud":
        assert f"{runtime} could not start the container: the image has no /bin/sh" in bare["reason"], bare
        assert plainly["state"] == "succeeded", plainly
        assert "manifest unknown" in gone["reason"], gone["reason"]
    else:
        assert bare["state"] == "failed" and "destination not found" in bare["reason"], bare
        assert "charliecloud needs HTTPS, and this registry has none" in plainly["reason"]


#: By the number of the job: what takes too much itself, or in a child; and one that keeps within its limit.
TAKES = """\
take() {{ dd if=/dev/zero of=/dev/null bs=$1 count=1; }}
case {i} in
0) exec dd if=/dev/zero of=/dev/null bs=60000000 count=1;;
1) take 60000000 || echo went on;;
2) take 60000000; sleep 60;;
3) take 12000000; for n in 1 2 3 4 5 6 7 8 9; do take 12000000; done; sleep 1;;
esac"""


def test_the_limit_and_the_usage_of_memory_are_the_containers(shop: Shop, registry: Registry, runtime: str) -> None:
    """The runtime's own program takes more than the jobs may."""
    text = SPEC.format(command=json.dumps(TAKES), image=f"{registry.name}/lab/tools:v1", jobs=4)
    shop.spec(text + "resources: {memory: 24MiB}\n")
    shop.run("apply", code=None)
    jobs = {job["parameters"]["i"]: job for job in shop.json("list", "jobs", "sweep")}
    assert [jobs[i]["state"] for i in range(4)] == ["failed"] * 3 + ["succeeded"], jobs
    for i in range(3):
        assert jobs[i]["reason"].startswith("needed more than 24 MiB of memory: it held 2"), jobs[i]
    used = shop.json("info", jobs[3]["job"])["usage"]
    assert 12_000_000 <= used["memory_bytes"] <= 24 << 20, "of the job, not of the runtime's program"
    assert used["cpus"] > 0
