"""A plan as people read it: factored rows of parameters, lines, Markdown."""
