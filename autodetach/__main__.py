"""``python -m autodetach``, and the command of that name."""

import signal

_interrupting = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _interrupting:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as long as there is nothing to clear up


def main() -> None:
    from autodetach import cli

    if _interrupting:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
