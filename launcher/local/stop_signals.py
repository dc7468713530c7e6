"""The signals that stop a deployment."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_signals() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Set on the first and on the second of SIGINT, SIGTERM and SIGHUP (a closed terminal)."""
    first, second = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup means it
        signals.append(signal.SIGHUP)
    for number in signals:
        loop.add_signal_handler(number, lambda: (second if first.is_set() else first).set())
    try:
        yield first, second
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
