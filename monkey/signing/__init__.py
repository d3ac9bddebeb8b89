"""Who made an entry: keys of people, signatures in OpenSSH's form, and the signers whom a process trusts."""
