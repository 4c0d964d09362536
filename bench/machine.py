#!/usr/bin/env python3
"""The machine that the figures of a run are of."""

import os
import platform


def processors():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return f"{len(models)} x {models[0]}" if models else f"{os.cpu_count()} x {platform.machine()}"


def memory_gib():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)


def huge_pages():
    with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as file:
        return file.read().partition("[")[2].partition("]")[0]


def main():
    print(f"Machine: {processors()}, {memory_gib():.0f} GiB, Linux {os.uname().release}, "
          f"transparent huge pages on `{huge_pages()}`, load {os.getloadavg()[0]:.1f} at the "
          f"beginning", flush=True)


if __name__ == "__main__":
    main()
