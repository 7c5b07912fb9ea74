from __future__ import annotations

import signal

# Programs under test inherit which signals are ignored, and what runs in the background ignores Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
