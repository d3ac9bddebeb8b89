"""Clouds that tests rent from: doubles of Pulumi's providers, which speak its protocol, and what they talk to."""
