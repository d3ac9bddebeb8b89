"""Buckets, as far as a store needs one.

`ForceNew` of internal/service/s3 of terraform-provider-aws (see `tests.clouds.aws`): bucket.go,
bucket_public_access_block.go.
"""

from __future__ import annotations

from typing import ClassVar

from tests.clouds.aws.api import Api, Gone, as_list, as_map
from tests.clouds.kind import Kind, Props, Refused


class Bucket(Kind):
    token, words, named = "aws:s3/bucket:Bucket", "S3 Bucket", "bucket"
    forces = frozenset({"bucket", "bucketNamespace", "bucketPrefix", "objectLockEnabled", "region"})
    only_here = frozenset({"bucketPrefix", "forceDestroy"})
    defaults: ClassVar = {"forceDestroy": False}

    def make(self, cloud: Api, want: Props) -> str:
        place = {"LocationConstraint": cloud.region} if cloud.region != "us-east-1" else None
        cloud.ask("s3", "CreateBucket", Bucket=want["bucket"], CreateBucketConfiguration=place)
        return str(want["bucket"])

    def finish(self, cloud: Api, id_: str, want: Props) -> None:
        if want.get("tags"):
            cloud.ask("s3", "PutBucketTagging", Bucket=id_, Tagging={"TagSet": as_list(want["tags"])})

    def read(self, cloud: Api, id_: str) -> Props | None:
        if cloud.find("s3", "HeadBucket", Bucket=id_) is None:
            return None
        try:
            tags = as_map(cloud.ask("s3", "GetBucketTagging", Bucket=id_)["TagSet"])
        except Refused:
            tags = {}
        names = {"bucket": id_, "arn": f"arn:aws:s3:::{id_}", "region": cloud.region}
        return {**names, "tags": tags, "tagsAll": tags}

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        if self.read(cloud, id_) is None:
            raise Gone(f"couldn't find resource ({id_})")
        self.finish(cloud, id_, new)

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        cloud.find("s3", "DeleteBucket", Bucket=id_)


class PublicAccessBlock(Kind):
    token, words = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "S3 Bucket Public Access Block"
    forces = frozenset({"bucket", "region"})
    _FLAGS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")

    def make(self, cloud: Api, want: Props) -> str:
        flags = {name[0].upper() + name[1:]: bool(want.get(name)) for name in self._FLAGS}
        cloud.ask("s3", "PutPublicAccessBlock", Bucket=want["bucket"], PublicAccessBlockConfiguration=flags)
        return str(want["bucket"])

    def read(self, cloud: Api, id_: str) -> Props | None:
        try:
            raw = cloud.ask("s3", "GetPublicAccessBlock", Bucket=id_)["PublicAccessBlockConfiguration"]
        except Refused:
            return None
        flags = {name: raw[name[0].upper() + name[1:]] for name in self._FLAGS}
        return {"bucket": id_, "region": cloud.region, **flags}

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        self.make(cloud, new)

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        cloud.find("s3", "DeletePublicAccessBlock", Bucket=id_)


KINDS = [Bucket, PublicAccessBlock]
