"""Several workers on one machine, each a process of its own."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

from mha_lab.interrupts import keep_interrupts
from mha_lab.sweeping.plan import Plan


@contextmanager
def more_processes(plan: Plan, size: int) -> Iterator[list[BaseProcess]]:
    """``n_jobs - 1`` further workers, in processes of their own."""
    context = multiprocessing.get_context("spawn")  # a fork would share torch's threads
    processes = [
        context.Process(target=_work_quietly, args=(plan, size), daemon=False)
        for _ in range(plan.settings.n_jobs - 1)
    ]
    for process in processes:
        process.start()
    try:
        yield list(processes)
    except BaseException:
        for process in processes:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGINT)
        raise
    finally:
        for process in processes:
            process.join()


def _work_quietly(plan: Plan, size: int) -> None:
    """A further worker; it ends with the process that started it."""
    from mha_lab.config import compose
    from mha_lab.sweeping.space import read_space
    from mha_lab.sweeping.worker import join, work

    keep_interrupts()
    os.setpgrp()  # Ctrl-C goes to the first process, which passes it on once
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        base = compose(plan.overrides, run_dir="RUN")
        work(plan, read_space(plan.space), join(plan, base, size))
    except KeyboardInterrupt:
        os._exit(130)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def share_cores(n_jobs: int) -> None:
    """Divide the cores among workers; to be called before torch is imported.

    Threads of several workers on the same core wait for each other actively.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if n_jobs > 1:
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (cores or 1) // n_jobs)))
