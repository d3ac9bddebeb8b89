"""How everything looks that a user reads. Nothing here prints, and nobody else formats."""
