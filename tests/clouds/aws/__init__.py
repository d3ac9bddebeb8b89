"""The double of Pulumi's provider for AWS: boto3 in it, moto's server behind.

pulumi-aws's own schema is no package that one can have. What forces replacement is therefore read in what it is made
from, terraform-provider-aws, all of it as of 6.47.1 and a day (Go module v1.60.1-0.20260602190131-5f2286d6d836, of 2
June 2026): arguments with `ForceNew: true`, and `region` in every kind that has it, since version 6.
"""
