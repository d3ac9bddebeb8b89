"""The SFTP connection: requests, transfers, reconnecting."""
