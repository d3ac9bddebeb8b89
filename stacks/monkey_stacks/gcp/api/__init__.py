"""Google Cloud, asked: account, catalog of machine types, groups, inventory."""
