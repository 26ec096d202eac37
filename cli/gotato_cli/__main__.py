"""`python -m gotato_cli`."""

import sys

from . import main

sys.exit(main())
