"""A bucket of our own, which fails as real ones do: S3's and Google's XML over HTTP, with faults.

    with FakeBucket() as bucket:
        bucket.faults.script([Fault.BUSY_AFTER])
        store = await open_store(bucket.url("s3"))
        ...
        assert bucket.counts["PUT"] == 2

`objects` is what is in it and how it changes, `faults` when it fails, `dialect` what requests and answers look like,
`server` HTTP.
"""

from tests.bucket.faults import Fault, Faults
from tests.bucket.server import FakeBucket, Refusal

__all__ = ["FakeBucket", "Fault", "Faults", "Refusal"]
