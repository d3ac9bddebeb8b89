"""The double of Pulumi's provider for AWS: boto3 in it, moto's server behind."""
