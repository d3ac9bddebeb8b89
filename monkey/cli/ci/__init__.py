"""The work of `monkey init --ci`: workflows for a forge, and the commands that are left to run by hand."""
