"""Mutants: the product with one small fault each, which the quick tests are to notice."""
