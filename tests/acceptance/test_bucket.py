"""A whole sweep with its store in a bucket, by one line of monkey.yaml; and what is said when the bucket will not."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.store.open import locate_url
from tests import services
from tests.acceptance.shop import Shop, until, work_through
from tests.bucket import FakeBucket, Fault, Refusal
from tests.trusting import trust

pytestmark = pytest.mark.slow

#: Most requests that a job may cost: claim, end, log and one output, and a share of what is needed once.
REQUESTS_A_JOB = 6


@pytest.fixture
def make_bucket_shop(make_shop: Callable[..., Shop]) -> Callable[[str], Shop]:
    """Return a function that makes a project whose store is at a URL, and who works there has the keys to it."""

    def make(url: str) -> Shop:
        shop = make_shop()
        shop.env.update(services.KEYS)
        if "endpoint=" in url:
            trust(url.partition("endpoint=")[2], env=shop.env)
        (shop.root / "monkey.yaml").write_text(f"project: shop\nstore: {url}\n")
        return shop

    return make


def place(kind: str, request: pytest.FixtureRequest) -> str:
    """Return the URL of a new store."""
    if kind in ("moto", "azurite"):
        scheme = {"moto": "s3", "azurite": "az"}[kind]
        return f"{scheme}://{services.BUCKET}/shop?endpoint={request.getfixturevalue(kind)}"
    bucket: FakeBucket = request.getfixturevalue("bucket")
    return bucket.url(kind)


@pytest.mark.parametrize("kind", ["s3", "gs", "moto", "azurite"])
def test_a_sweep_runs_with_its_store_in_a_bucket(
    make_bucket_shop: Callable[[str], Shop], kind: str, request: pytest.FixtureRequest
) -> None:
    shop = make_bucket_shop(place(kind, request))
    rows = work_through(shop)
    assert shop.json("fetch", "sweep")["fetched"] == 12
    assert all((shop.root / "sweep" / row["job"] / "result.txt").is_file() for row in rows)


@pytest.mark.parametrize("kind", ["s3", "azurite"])
def test_data_goes_through_the_bucket_alone(
    make_bucket_shop: Callable[[str], Shop], kind: str, request: pytest.FixtureRequest
) -> None:
    """Uploaded once; then its source is gone, and whoever runs the jobs has nothing but the bucket."""
    shop = make_bucket_shop(place(kind, request))
    source = shop.root / "data"
    source.mkdir()
    (source / "large").write_bytes(bytes(range(256)) * 80_000)
    for n in range(30):
        (source / f"{n} größe").write_text(f"{n}")
    read = "ls $MONKEY_DATASET_NUMBERS | wc -l > result.txt; md5sum < $MONKEY_DATASET_NUMBERS/large >> result.txt"
    shop.spec(f"datasets: {{numbers: data}}\ncommand: [sh, -c, '{read}; sleep $1', sh, '{{i}}']\n", jobs=3)
    shop.run("apply", "--detach")
    shop.kill_all()
    source.rename(shop.root.parent / "away")
    shutil.rmtree(shop.env["XDG_CACHE_HOME"], ignore_errors=True)
    url = (shop.root / "monkey.yaml").read_text().split("store: ")[1].strip()
    # The same name: it takes over at once what its predecessor claimed.
    other = shop.start("agent", "--store", url, "--project", "shop", "--idle-timeout", "1")
    out, err = other.communicate(timeout=120)
    assert other.returncode == 0, out + err
    shop.run("fetch", "sweep", "-o", "here")
    expected = f"31\n{hashlib.md5(bytes(range(256)) * 80_000).hexdigest()}  -\n"
    assert [path.read_text() for path in (shop.root / "here").glob("*/result.txt")] == [expected] * 3


def test_data_is_uploaded_once(make_bucket_shop: Callable[[str], Shop], bucket: FakeBucket) -> None:
    def uploads() -> int:
        return sum(kind in ("PUT", "MULTIPART") and "files/md5/" in key for kind, key in bucket.log)

    shop = make_bucket_shop(bucket.url())
    (shop.root / "data").mkdir()
    for n in range(50):
        (shop.root / "data" / str(n)).write_text(f"{n}")
    shop.spec("datasets: {numbers: data}\n", jobs=1)
    shop.run("apply")
    assert uploads() == 51
    bucket.log.clear()
    shop.run("apply")
    assert uploads() == 0
    (shop.root / "data" / "7").write_text("changed")
    shop.run("apply")
    assert uploads() == 2, "the file, and the listing"


def test_requests_are_few(make_bucket_shop: Callable[[str], Shop], bucket: FakeBucket) -> None:
    """They cost money: what docs/stores.md says of it comes from here."""
    shop = make_bucket_shop(bucket.url())
    jobs = 100
    shop.spec(jobs=jobs, seconds=0)
    shop.run("apply")
    assert sum(bucket.counts.values()) <= REQUESTS_A_JOB * jobs, bucket.counts
    shop.kill_all()  # an agent that is still there makes requests of its own
    bucket.counts.clear()
    shop.run("plan")
    assert sum(bucket.counts.values()) <= 12, bucket.counts
    bucket.counts.clear()
    shop.run("status")
    assert sum(bucket.counts.values()) <= 12, bucket.counts


def test_a_sweep_survives_thirty_percent_of_faults(make_bucket_shop: Callable[[str], Shop], bucket: FakeBucket) -> None:
    shop, jobs = make_bucket_shop(bucket.url()), 400
    shop.spec(jobs=jobs, seconds=0.02)
    shop.run("apply", "--detach")
    bucket.faults.storm(0.3, seed=400)
    # A command may give up, in words; agents do not, and in the end all is recorded while the storm still blows.
    until(lambda: shop.run("apply", code=None, patience=600).returncode == 0, "all jobs are recorded", 900)
    bucket.faults.storm(0, seed=0)
    met = bucket.faults.met
    assert all(met[fault] for fault in Fault if fault is not Fault.DENY), met
    assert 0.25 < 1 - met[Fault.NONE] / met.total() < 0.35, met
    ledger = shop.ledger
    assert not ledger.overlaps
    assert len(ledger.begins) == jobs, "a job never ran"
    assert ledger.executions <= jobs * 1.02, "faults of the store are no reason to run jobs again"
    rows = shop.json("list", "jobs", "sweep")
    assert [row["state"] for row in rows] == ["succeeded"] * jobs
    kept = {key.split("/jobs/")[1].split("/")[0]: key for key in bucket.objects.keys if key.endswith("/result.txt")}
    for row in rows:
        assert row["outputs"]["result.txt"] in ledger.digests[row["job"]], "recorded is what the job wrote"
        assert row["job"] in kept, "a result is lost"


def test_a_bucket_that_lets_two_win_is_refused(make_bucket_shop: Callable[[str], Shop], bucket: FakeBucket) -> None:
    bucket.objects.lies = True
    shop = make_bucket_shop(bucket.url())
    shop.spec()
    done = shop.run("apply", code=1)
    assert "is not safe to use" in done.stderr and "conditional writes" in done.stderr
    assert bucket.objects.keys == [] and not shop.ledger.executions


#: What the bucket answers, and what people are told.
REFUSALS = [
    (Refusal(404, "NoSuchBucket"), "there is no bucket"),
    (Refusal(400, "ExpiredToken"), "the credentials have expired"),
    (Refusal(301, "PermanentRedirect"), "wrong region"),
    (Refusal(403, "AccessDenied", "no"), "these credentials may not"),
]


@pytest.mark.parametrize(("answer", "said"), REFUSALS, ids=lambda x: getattr(x, "code", None))
def test_refusals_are_told_by_every_command(
    make_bucket_shop: Callable[[str], Shop], bucket: FakeBucket, answer: Refusal, said: str
) -> None:
    shop = make_bucket_shop(bucket.url())
    shop.spec()
    shop.run("apply")
    bucket.refusal = answer
    for command in (["plan"], ["apply"], ["status"], ["list", "jobs"]):
        told = shop.run(*command, code=1).stderr
        assert said in told and "hint" in told, told
        assert len(told.splitlines()) <= 4, told


def test_a_server_that_is_away_is_told(make_bucket_shop: Callable[[str], Shop]) -> None:
    shop = make_bucket_shop("s3://bucket/x?endpoint=http://127.0.0.1:1")
    shop.spec()
    for command in ("plan", "apply", "status"):
        assert "127.0.0.1:1 cannot be reached" in shop.run(command, code=1).stderr


def test_credentials_that_expire_stop_nothing_for_good(
    make_bucket_shop: Callable[[str], Shop], bucket: FakeBucket
) -> None:
    shop = make_bucket_shop(bucket.url())
    shop.spec(jobs=30, seconds=0.2)
    shop.run("apply", "--detach")
    until(lambda: len(shop.ledger.digests) > 3, "work begins")
    bucket.refusal = Refusal(400, "ExpiredToken")
    until(lambda: "have expired" in shop.agent_log, "the agent says why nothing goes on")
    bucket.refusal = None
    shop.run("apply")
    assert shop.states() == {"succeeded": 30}
    assert shop.ledger.executions == 30 and not shop.ledger.overlaps


def test_an_agent_notices_that_its_store_was_emptied_or_replaced(
    make_bucket_shop: Callable[[str], Shop], bucket: FakeBucket
) -> None:
    """A bucket takes writes as ever, whatever became of what was in it."""
    shop = make_bucket_shop(bucket.url())
    shop.spec(jobs=1, seconds=60)
    shop.run("apply", "--detach")
    until(lambda: shop.jobs, "work begins")
    for key in bucket.objects.keys:
        bucket.objects.delete(key)
    until(lambda: "its 'format' is gone" in shop.agent_log, "the agent says that the store is gone")
    assert "format" not in bucket.objects.keys
    bucket.objects.put("format", b'{"format": 1, "id": "another"}', if_absent=False)
    until(lambda: "another store is at" in shop.agent_log and not shop.agents, "it leaves a store that is not its own")
    assert not shop.jobs


def test_keys_are_in_no_plan_log_or_object(
    make_bucket_shop: Callable[[str], Shop], bucket: FakeBucket, tmp_path: Path
) -> None:
    secret = "very-secret-key-of-mine"
    shop = make_bucket_shop(bucket.url())
    shop.env["AWS_SECRET_ACCESS_KEY"] = secret
    shop.spec(jobs=2)
    shop.run("plan", "-o", "plan.json")
    shop.run("apply", "plan.json")
    stored = [bucket.objects.get(key) for key in bucket.objects.keys]
    assert not any(secret.encode() in found.data for found in stored if found)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in written if secret.encode() in path.read_bytes()]
    assert locate_url(bucket.url())[:11] in shop.agent_log
