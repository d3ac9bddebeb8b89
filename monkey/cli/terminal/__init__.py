"""The terminal: prompts, progress bars, live screens, log output, and text that fits it."""
