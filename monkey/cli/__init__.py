"""The command line: `main` answers or finds the verb, `session` opens the project for it."""
