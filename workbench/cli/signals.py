"""Signals that end a command as Ctrl-C does."""

import signal


def heed_signals() -> None:
    """Let a batch system's SIGTERM, and a terminal that is closed, interrupt a command: nothing stays half-written.

    Not so a terminal's end that ``nohup`` has ignored.
    """

    def hang_up(*_: object) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the shell tells of its end, and the terminal of its own
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, hang_up)
