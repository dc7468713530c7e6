"""``python -m launcher``: the same as the ``launcher`` console script."""

from launcher.cli import main

main()
