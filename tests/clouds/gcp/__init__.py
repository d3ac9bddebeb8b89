"""The double of Pulumi's provider for Google: files instead of a cloud."""
