"""A component that is not what its kind says."""
