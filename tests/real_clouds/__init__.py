"""Stories on real accounts: nothing here runs unless somebody asks for it and pays for it (docs/dev.md)."""
