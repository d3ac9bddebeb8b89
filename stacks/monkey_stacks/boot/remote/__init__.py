"""What runs on a machine that boots, as root: one text is made of it, which needs nothing but an image's Python."""
