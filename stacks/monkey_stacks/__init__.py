"""Machines: what turns a provider of monkey.yaml into hosts with agents on them."""
