"""A class that is no batching policy."""


class NotAPolicy:
    """Has nothing a policy has."""
