"""Components that each break one law, to show that the kit sees it."""
