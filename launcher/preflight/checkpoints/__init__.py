"""What the files of a profile's models say, read by their headers: is it all there, does it go together?"""

from launcher.preflight.checkpoints import contents, coverage, groups, kernels, kind, precision, source, text, whole
from launcher.preflight.finding import Rule

RULES: tuple[Rule, ...] = (
    *source.RULES,
    *whole.RULES,
    *kind.RULES,
    *text.RULES,
    *precision.RULES,
    *kernels.RULES,
    *groups.RULES,
    *contents.RULES,
    *coverage.RULES,
)
