"""`log_limit`: of a long log the store has the first half and the last, at any time; readers say what is missing."""

from __future__ import annotations

import base64
import gzip
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import services
from tests.acceptance.shop import Shop, until
from tests.bucket import FakeBucket
from tests.trusting import trust

pytestmark = pytest.mark.slow

LIMIT = 2 << 20
HALF = LIMIT // 2
#: Lines of 84 bytes, which no packing makes much smaller: 20 MB.
LINES = 240_000
#: Prints so many of them in bursts, then waits for a file, and prints a last one. A second attempt is short.
CHATTER = """\
import base64, os, random, sys, time

dice, bursts = random.Random(5), int(sys.argv[1])
if os.environ["MONKEY_ATTEMPT"] == "2":
    sys.exit("again")
for burst in range(bursts):
    for i in range(240_000 // bursts):
        print(f"{burst * (240_000 // bursts) + i:07d}", base64.b85encode(dice.randbytes(60)).decode())
    sys.stdout.flush()
    time.sleep(0.25)
while bursts > 1 and not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
print("the last line")
"""
WORDS = re.compile(
    r"\n… [0-9.]+ [KM]iB \(([0-9,]+) bytes\) of this log were left out here \(log_limit: 2 MiB\) …\n".encode()
)


def write_chatter(shop: Shop, bursts: int, store: str = "") -> bytes:
    """Write the project, and return what its job prints."""
    at = f"store: {store}\n" if store else ""
    (shop.root / "monkey.yaml").write_text(f"project: shop\nlog_limit: 2 MiB\n{at}")
    (shop.root / "chatter.py").write_text(CHATTER)
    shop.spec(f"command: [python3, chatter.py, '{bursts}', {shop.root}/go]\nparameters: {{}}\noutputs: []\n")
    dice = random.Random(5)
    lines = (b"%07d %s\n" % (i, base64.b85encode(dice.randbytes(60))) for i in range(LINES))
    return b"".join(lines) + b"the last line\n"


def shorten(whole: bytes) -> bytes:
    """Return what is to be kept of a log."""
    count = len(whole) - LIMIT
    words = f"\n… {count / (1 << 20):.1f} MiB ({count:,} bytes) of this log were left out here (log_limit: 2 MiB) …\n"
    return whole[:HALF] + words.encode() + whole[-HALF:]


def read_log(shop: Shop, *what: str) -> bytes:
    """Return what `monkey logs` writes to a pipe."""
    with shop.start("logs", *what, text=False) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    return bytes(out)


def find_place(got: bytes, whole: bytes) -> int:
    """Return how far a reader came in a log, all of whose parts must be where its lines for what is missing say."""
    place = 0
    first, *others = WORDS.split(got)
    # A follower that keeps up gets more than the first half before the first line for what is missing.
    assert len(first) >= HALF
    for text, missing in zip([first, *others[1::2]], [*others[::2], b"0"], strict=True):
        assert text == whole[place : place + len(text)], f"other bytes at {place:,}"
        place += len(text) + int(missing.replace(b",", b""))
    return place


def weigh(store: Path) -> int:
    """Return the bytes of all files in a store, some of which may go meanwhile."""
    said = subprocess.run(["du", "-sb", store], capture_output=True, text=True, check=False).stdout
    return int(said.split()[0])


@pytest.fixture
def bucket() -> Iterator[FakeBucket]:
    with FakeBucket() as made:
        yield made


def test_a_long_log_keeps_its_halves_and_says_what_is_missing(shop: Shop, store: Path) -> None:
    whole = write_chatter(shop, 1)
    shop.run("apply")
    (job,) = [one["job"] for one in shop.json("list", "jobs")]
    stored = sorted((store / f"projects/shop/jobs/{job}/out/00000001/log").iterdir())
    kept = gzip.decompress(b"".join(path.read_bytes() for path in stored))
    assert kept == shorten(whole)
    shipments = store / "projects/shop/shipments"
    until(lambda: not any(path.is_file() for path in shipments.rglob("*0*1")), "segments go when the attempt is over")
    assert weigh(store) < LIMIT + 200_000
    assert read_log(shop, job) == kept
    assert read_log(shop, "sweep", "-f") == kept
    # A change of it is shown, and makes no job stale.
    (shop.root / "monkey.yaml").write_text("project: shop\n")
    assert "log_limit 2 MiB → none" in shop.run("apply").stdout
    assert shop.states() == {"succeeded": 1}


def test_a_bucket_keeps_the_halves_too(shop: Shop, bucket: FakeBucket) -> None:
    whole = write_chatter(shop, 1, bucket.url())
    shop.env.update(services.KEYS)
    trust(bucket.endpoint, env=shop.env)
    shop.run("apply")
    assert read_log(shop, "sweep") == shorten(whole)
    found = [bucket.objects.get(key) for key in bucket.objects.keys]
    assert sum(len(each.data) for each in found if each) < LIMIT + 200_000


def test_the_limit_holds_while_a_job_runs_and_is_followed(shop: Shop, store: Path) -> None:
    whole = write_chatter(shop, 40)
    shop.run("apply", "--detach")
    heaviest, got = 0, bytearray()
    with shop.start("logs", "-f", "sweep", text=False, bufsize=0) as follower:
        assert follower.stdout is not None
        while not got.endswith(whole[-200:-14]):
            data = follower.stdout.read(1 << 20)
            assert data
            got += data
            heaviest = max(heaviest, weigh(store))
        assert find_place(bytes(got), whole) == len(whole) - 14
        assert WORDS.search(got), "it wrote faster than it was shipped"
        assert heaviest < LIMIT * 9 / 8 + 200_000
        now = read_log(shop, "sweep")
        assert find_place(now, whole) == len(whole) - 14
        assert now.endswith(whole[-HALF:-14])
        (shop.root / "go").touch()
        rest, _ = follower.communicate(timeout=60)
    assert rest == b"the last line\n", "nothing twice where the log becomes a file"
    assert read_log(shop, "sweep") == shorten(whole)
    until(lambda: weigh(store) < LIMIT + 200_000, "segments go when the attempt is over")


def test_what_a_killed_agent_leaves_has_a_half_behind_the_first(shop: Shop, store: Path) -> None:
    whole = write_chatter(shop, 40)
    shop.run("apply", "--detach")
    with shop.start("logs", "-f", "sweep", text=False, bufsize=0) as follower:
        assert follower.stdout is not None
        got = bytearray()
        # On a busy machine the job may have ended before so much was read of it: then a line says what is missing.
        while len(got) <= LIMIT or (len(got) < 2 * LIMIT and not WORDS.search(got)):
            data = follower.stdout.read(1 << 20)
            assert data
            got += data
        follower.kill()
    shop.kill_all()
    left = read_log(shop, "sweep")
    place = find_place(left, whole)
    assert place > LIMIT
    # It may have been killed right after it skipped a part, so a part may be missing in the half, and is told.
    assert sum(map(len, WORDS.split(left)[2::2])) >= HALF
    assert weigh(store) < LIMIT * 9 / 8 + 300_000
    # The next agent here still has the whole log, and keeps as much of it as the limit allows.
    shop.run("apply", code=1)
    (job,) = [one["job"] for one in shop.json("list", "jobs")]
    kept = read_log(shop, job, "--attempt", "1")
    head, missing, tail = WORDS.split(kept)
    assert head == whole[:HALF] and len(tail) == HALF
    place = HALF + int(missing.replace(b",", b""))
    assert tail == whole[place : place + HALF]
    assert read_log(shop, job) == b"again\n"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("many", "expected a size, found the text 'many'"),
        ("100 KiB", "expected 1MiB or more, found the text '100 KiB'"),
        ("-1", "expected a size, found -1"),
        ("[1MiB]", "expected a size, found a list"),
    ],
)
def test_a_limit_that_is_none_is_refused_with_its_line(shop: Shop, written: str, said: str) -> None:
    (shop.root / "monkey.yaml").write_text(f"project: shop\nlog_limit: {written}\n")
    refused = shop.run("plan", code=1).stderr
    assert "monkey.yaml:2:" in refused and said in refused, refused
