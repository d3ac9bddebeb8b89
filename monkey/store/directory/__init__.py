"""The store in a directory of this machine or of a shared file system."""
