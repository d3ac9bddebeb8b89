"""Jobs that put a link in place of a directory of theirs: what lies behind it stays as it is, and goes nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until
from tests.hook import hook
from tests.precious import Precious
from tests.trusting import trust

pytestmark = pytest.mark.slow

#: What jobs replace, as a shell says it, and how a reason names it.
REPLACED = {
    "$MONKEY_OUTPUT_DIR": "MONKEY_OUTPUT_DIR",
    "$MONKEY_CHECKPOINT_DIR": "MONKEY_CHECKPOINT_DIR",
    "$MONKEY_METRICS_DIR": "MONKEY_METRICS_DIR",
    "$PWD": "its working directory",
    "$(dirname $PWD)": "the directory above MONKEY_OUTPUT_DIR",
}
#: Arguments: what it replaces, what it does then (a neighbour replaces nothing), and where the link leads.
JOB = """\
echo '{"m":{"ours":1},"step":1,"t":1790000000.5}' > "$MONKEY_METRICS_DIR/own.jsonl"
echo saved > "$MONKEY_CHECKPOINT_DIR/state"
echo made > result.txt
if [ "$2" != neighbour ]; then
    eval "D=\\"$1\\""
    rm -r "$D"
    ln -s "$3" "$D"
fi
[ "$2" != stay ] || exec sleep 20
"""
SPEC = """\
command: [sh, job.sh, '{{what}}', '{{then}}', '{base}/{{number}}']
parameters: {{what: {what}, then: {then}, number: {number}}}
zip: [[what, then, number]]
outputs: ["*"]
resources: {{cpus: 0.1}}
max_retries: 0
checkpoint_every: 1s
grace: 1s
"""


def test_what_lies_behind_links_stays_there(shop: Shop, tmp_path: Path, store: Path) -> None:
    """Two run at a time, so that workspaces go from job to job; some exit with 0, and some would stay."""
    rows = [(what, then) for then in ("exit", "neighbour", "stay", "neighbour") for what in REPLACED]
    precious = [Precious(tmp_path / "precious" / str(number)) for number in range(len(rows))]
    whats, thens = zip(*rows, strict=True)
    about = {"what": list(whats), "then": list(thens), "number": [*range(len(rows))]}
    (shop.root / "job.sh").write_text(JOB)
    shop.env["INFLUX_TOKEN"] = "hare"
    shop.spec(SPEC.format(base=tmp_path / "precious", **about))
    with hook() as influx:
        trust(influx.url.removesuffix("/hook"), env=shop.env)
        where = f'{{url: "{influx.url.removesuffix("/hook")}", org: lab, bucket: b, token: INFLUX_TOKEN}}'
        local = "providers: {local: {max_slots: 2}}\n"
        (shop.root / "monkey.yaml").write_text(f"project: shop\n{local}metrics: {{influxdb: {where}}}\n")
        applied = shop.run("apply", code=None)
        found = {row["parameters"]["number"]: row for row in shop.json("list", "jobs", "sweep")}
        until(lambda: sum(told.raw.count(b",ours=") for told in influx.told) >= 2 * len(REPLACED), "metrics arrive")
        shop.kill_all()
    for each in precious:
        each.check(store, Path(shop.state))
    assert not any(b"mine=" in told.raw for told in influx.told)
    assert applied.returncode == 1
    for number, (what, then) in enumerate(rows):
        row = found[number]
        if then == "neighbour":
            assert (row["state"], list(row["outputs"])) == ("succeeded", ["result.txt"])
        else:
            told = f"{REPLACED[what]} was replaced by a link to {precious[number].root}, so nothing in it is kept"
            assert (row["state"], row["exit_code"]) == ("failed", 143 if then == "stay" else None)
            assert row["reason"].startswith(told)
