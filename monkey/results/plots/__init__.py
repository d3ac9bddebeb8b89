"""What plots of a sweep show, before anything draws them."""
