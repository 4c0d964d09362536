"""What /proc says of a process, and whether a scan left it as it was."""

import contextlib
import os
import pathlib
import time

from tap import check, check_equal

PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


def status(pid, tid=None):
    """The fields of /proc/PID/status as a dict of strings."""
    path = f"/proc/{pid}/task/{tid}/status" if tid else f"/proc/{pid}/status"
    with open(path, encoding="utf-8", errors="replace") as file:
        return dict((key, value.strip()) for key, _, value in
                    (line.partition(":") for line in file))


def threads(pid):
    return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))


def children(pid):
    """Child processes of all threads. A snapshot or a zombie of ours would be among them."""
    found = set()
    for tid in threads(pid):
        with contextlib.suppress(OSError):
            found.update(map(int, pathlib.Path(f"/proc/{pid}/task/{tid}/children")
                             .read_text().split()))
    return found


def live_thread(pid):
    """A thread that has not ended: the leader, unless that has left the others behind."""
    for tid in sorted(threads(pid), key=lambda tid: tid != pid):
        with contextlib.suppress(OSError):
            if status(pid, tid)["State"][0] not in "ZX":
                return tid
    raise ProcessLookupError(f"process {pid} has ended")


def descriptors(pid):
    """Number and aim of every open descriptor."""
    found, folder = {}, f"/proc/{pid}/task/{live_thread(pid)}/fd"
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink(f"{folder}/{name}")
    return found


def rss_bytes(pid):
    fields = pathlib.Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * PAGE_SIZE


def start_ticks(pid):
    line = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return int(line.rpartition(")")[2].split()[19])


def is_kernel_thread(pid):
    PF_KTHREAD = 0x00200000  # include/linux/sched.h
    with contextlib.suppress(OSError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return bool(int(fields[6]) & PF_KTHREAD)
    return False


def is_running(pid):
    try:
        return bool(live_thread(pid))
    except (OSError, KeyError):
        return False


def smaps(pid):
    """Every mapping as (start, end, perms, name, {field: bytes})."""
    mappings = []
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as file:
        for line in file:
            head = line.split(maxsplit=5)
            if "-" in head[0] and not head[0].endswith(":"):
                start, end = (int(part, 16) for part in head[0].split("-"))
                name = head[5].strip() if len(head) > 5 else ""
                mappings.append((start, end, head[1], name, {}))
            elif line.rstrip().endswith("kB"):
                mappings[-1][4][head[0].rstrip(":")] = int(head[1]) * 1024
    return mappings


def signal_state(pid):
    """Blocked, ignored and caught signals of every thread."""
    state = {}
    for tid in threads(pid):
        with contextlib.suppress(OSError):
            fields = status(pid, tid)
            state[tid] = {name: fields[name] for name in ("SigBlk", "SigIgn", "SigCgt")}
    return state


def has_settled(state):
    """While Go makes a thread it blocks nearly all signals, for a moment."""
    return all(bin(int(fields["SigBlk"], 16)).count("1") < 48 for fields in state.values())


def settled_signal_state(pid):
    """As it is between such moments."""
    state = {}

    def look():
        state.clear()
        state.update(signal_state(pid))
        return has_settled(state)

    eventually(look, f"process {pid} has a thread that blocks all signals")
    return state


def eventually(condition, message, seconds=5.0):
    """Waits for what takes its time to settle; returns the condition's first true value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < deadline, message)
        time.sleep(0.01)


def thread_statuses(pid):
    """Of all threads but those that end meanwhile."""
    for tid in threads(pid):
        with contextlib.suppress(OSError):
            yield status(pid, tid)


def has_no_tracer(pid):
    return all(fields.get("TracerPid") == "0" for fields in thread_statuses(pid))


def none_stopped(pid):
    """Nor dead and not let go by a tracer, as only a leader may be."""
    return all(fields["State"][0] not in ("tT" if fields["Pid"] == str(pid) else "tTZ")
               for fields in thread_statuses(pid))


@contextlib.contextmanager
def unharmed(pid, still=True):
    """Checks after the block that the target is as it was: it runs, is not traced, has no child,
    descriptor or signal setting that it had not before. Descriptors count in a still one only."""
    before = (start_ticks(pid), children(pid), descriptors(pid), settled_signal_state(pid),
              pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text())
    yield
    check(is_running(pid), f"process {pid} is gone")
    check_equal(start_ticks(pid), before[0], "start time of the target")
    eventually(lambda: has_no_tracer(pid), f"process {pid} is still traced")
    eventually(lambda: none_stopped(pid), f"process {pid} has a stopped thread")
    eventually(lambda: children(pid) == before[1],
               f"children of {pid} were {before[1]} and are {children(pid)}")
    if still:
        check_equal(descriptors(pid), before[2], "descriptors of the target")
    after = settled_signal_state(pid)
    for tid in after.keys() & before[3].keys():
        check_equal(after[tid], before[3][tid], f"signal state of thread {tid}")
    check_equal(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text(), before[4],
                "oom_score_adj of the target")
