#!/usr/bin/env python3
"""What a scan of a busy program decodes adds up to what the runtime counts, at whatever instant it is
stopped: a false alarm is a fault."""

import collections
import pathlib
import tempfile

from harness import Daemon, repeat_count
from tap import Suite, check_equal, note
from victim import busy

suite = Suite()


def check_scans(version):
    """Scans in both modes, full and census, of a program that allocates and collects all the time."""
    verdicts = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="goheapd-self-check-") as folder:
        config = pathlib.Path(folder, "goheapd.conf")
        config.write_text("min_stop_interval = 0\n")
        pathlib.Path(folder).chmod(0o755)
        with Daemon("--config", config) as daemon, busy(version) as target:
            for turn in range(repeat_count(20, 500)):
                scan = daemon.scan(target.pid, mode=("fork", "stop")[turn % 2],
                                   depth=("full", "census", "full")[turn % 3])["scan"]
                verdicts[scan["trust"]["self_check"]] += 1
    note(f"{sum(verdicts.values())} scans: {dict(verdicts)}")
    check_equal(set(verdicts), {"ok"}, "what the scans say of themselves")


for one in ("1.19", "1.24", "1.27"):
    suite.test(f"go{one}: scans of a busy program add up")(lambda one=one: check_scans(one))

suite.run()
