"""Machines with kernels of their own that mount one NFS server."""
