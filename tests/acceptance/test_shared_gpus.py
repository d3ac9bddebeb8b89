"""Jobs that share a GPU, by the ledger that they keep of CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

from tests.acceptance.ledger import whole_lines
from tests.acceptance.shop import Shop, until


def test_four_quarters_get_one_gpu_and_a_whole_one_gets_another(shop: Shop) -> None:
    shop.env["CUDA_VISIBLE_DEVICES"] = "GPU-one,GPU-two"
    devices, hold = shop.ledger.directory / "devices", shop.ledger.directory / "hold"
    note = f'echo "{{kind}} $CUDA_VISIBLE_DEVICES" >> {devices}; while test -e {hold}-{{kind}}; do sleep .02; done'
    command = f"command: [sh, -c, '{note}']"
    resources = "resources: {{cpus: 0.01, gpus: {gpus}}}\n"
    for name, gpus, jobs in (("quarters", 0.25, 4), ("whole", 1, 1), ("late", 0.25, 1)):
        text = f"{command}\nparameters: {{kind: [{name}], i: {{range: [0, {jobs}]}}}}\n"
        shop.spec(text + resources.format(gpus=gpus), name=name)
    holds = {name: hold.with_name(f"hold-{name}") for name in ("quarters", "whole")}
    for path in holds.values():
        path.touch()
    shop.run("apply", "--detach", "specs/quarters.yaml")
    until(lambda: len(whole_lines(devices)) == 4, "four run at once")
    shop.run("apply", "--detach", "specs/whole.yaml")
    until(lambda: len(whole_lines(devices)) == 5, "the other GPU is whole")
    shop.run("apply", "--detach", "specs/late.yaml")
    assert whole_lines(devices) == ["quarters GPU-one"] * 4 + ["whole GPU-two"]
    holds["quarters"].unlink()
    shop.run("apply", "specs/late.yaml")
    assert whole_lines(devices)[5:] == ["late GPU-one"], "the other one is still whole"
    holds["whole"].unlink()
