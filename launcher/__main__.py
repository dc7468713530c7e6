"""``python -m launcher``: the same as the ``launcher`` console script."""

from launcher.entry import main

main()
