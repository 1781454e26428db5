"""`python -m oasr` is `oasr`."""

from oasr.cli.main import console

console()
