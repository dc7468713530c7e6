"""What the files of a profile's models say, read by their headers: is it all there, does it go together?"""

from launcher.preflight.checkpoints import (
    adapter,
    contents,
    coverage,
    draft_kind,
    draft_method,
    draft_size,
    draft_vocabulary,
    groups,
    kernels,
    kind,
    precision,
    readable_schemes,
    source,
    text,
    together,
    whole,
)
from launcher.preflight.finding import Rule

RULES: tuple[Rule, ...] = (
    *source.RULES,
    *whole.RULES,
    *kind.RULES,
    *text.RULES,
    *precision.RULES,
    *kernels.RULES,
    *readable_schemes.RULES,
    *groups.RULES,
    *contents.RULES,
    *together.RULES,
    *coverage.RULES,
    *draft_kind.RULES,
    *draft_method.RULES,
    *draft_vocabulary.RULES,
    *draft_size.RULES,
    *adapter.RULES,
)
