import sys

from .store import main

sys.exit(main())
