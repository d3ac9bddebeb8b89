"""The one hand: what `plan` shows is made so, and what was made is looked after."""
