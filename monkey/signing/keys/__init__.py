"""Keys of people: Ed25519, in the files and lines that OpenSSH has for them."""
