"""The version of monkey, in a module that imports nothing: code of every floor asks for it."""

__version__ = "0.1.0"
