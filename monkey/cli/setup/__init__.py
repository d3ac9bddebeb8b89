"""The work of `monkey init` beyond files: machines that it asks for, and what they need."""
