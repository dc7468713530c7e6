"""Entry point of the console script: answers a shell that completes a line at once, and else is the command line."""

import os
import sys

from launcher.completion.run import asked, run


def main() -> None:
    """Whatever the command line says."""
    shell = asked(os.environ)
    if shell is not None:
        sys.exit(run(shell, os.environ))
    try:
        from launcher.cli import main as command_line  # it imports everything

        command_line()
    except KeyboardInterrupt:  # while it imports; later each verb has its own answer
        sys.exit(130)
