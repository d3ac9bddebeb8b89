"""What `monkey init --provider ssh` does: ask hosts, and write an entry of monkey.yaml by what they say."""
