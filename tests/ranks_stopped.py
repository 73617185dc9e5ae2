"""Two ranks as torchrun starts them for tests: rank 0 stops, until somebody lets it go on."""

import os
import signal

from vedute.commands import _ranks
from vedute.scale import ranks

_ranks.quiet()
ranks.LONG_WAIT = 2.0
with _ranks.joined():
    if ranks.rank() == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    assert ranks.all_have("the same")
