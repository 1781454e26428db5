"""A search that never says the same n-gram twice."""
