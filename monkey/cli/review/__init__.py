"""What a pull request hears of plans and applies, and the consent that is read from there."""
