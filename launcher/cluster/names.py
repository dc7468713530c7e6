"""Decision: what releases may be called."""

import re

_LONGEST = 53
"""Characters that Helm allows."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def release_of(profile: str) -> str:
    """The release of a profile with this name: as near to it as names of Services allow."""
    name = re.sub(r"[^a-z0-9]+", "-", profile.lower()).strip("-")
    if not name[:1].isalpha():  # a Service may not begin with a digit
        name = f"duet-{name}"
    return name[:_LONGEST].strip("-")


def is_release(name: str) -> bool:
    """Whether Helm takes it."""
    return len(name) <= _LONGEST and _NAME.fullmatch(name) is not None
