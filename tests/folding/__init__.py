"""A disk that does not tell upper from lower case, nor Unicode forms: the tests on it, and the machine that has it."""
