"""Clouds for tests: machines that are rented by an API, boot from their user data, and end as their cloud says."""
