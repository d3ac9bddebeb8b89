"""AWS, asked: account, catalog of instance types, groups, inventory."""
