"""The command that this plugin adds."""


def greet(name: str) -> None:
    """Greet somebody."""
    print(f"Hello, {name}")
