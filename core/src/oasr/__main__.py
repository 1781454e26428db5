"""`python -m oasr` is `oasr`."""

import sys

from oasr.cli.main import main

sys.exit(main())
