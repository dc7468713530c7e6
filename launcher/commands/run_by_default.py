"""A group of verbs of which one may be left out."""

from typing import Any

from typer.core import TyperGroup

_COMPLETION = ("--install-completion", "--show-completion")


class RunByDefault(TyperGroup):
    """``launcher GROUP X`` means ``launcher GROUP run X``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # of click's own type
        """Put the verb in where there is none."""
        if args and args[0] not in self.commands and args[0] not in {"--help", *_COMPLETION}:
            args = ["run", *args]
        return super().parse_args(ctx, args)
