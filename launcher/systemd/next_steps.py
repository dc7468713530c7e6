"""What to do with the units that were written, in commands to paste."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from launcher.systemd.units import SECRETS, Rendering


def lines(rendering: Rendering, folder: Path, old: Sequence[Path], *, user: str | None) -> Iterator[str]:
    """``old``: files of an earlier time that are no longer wanted."""
    control = "sudo systemctl" if user else "systemctl --user"
    journal = "journalctl" if user else "journalctl --user"
    target = shlex.quote(rendering.target)
    if rendering.secret_variables:
        names = ", ".join(f"{name}=..." for name in rendering.secret_variables)
        yield f"# write {names} into {shlex.quote(str(folder / SECRETS))}, for nobody else to read (chmod 600)"
    services = " ".join(shlex.quote(str(folder / name)) for name in (*rendering.services, rendering.target))
    yield f"{control} link {services}"
    if not user:
        yield "loginctl enable-linger    # they start without you, and stay when you leave"
    yield f"{control} daemon-reload"
    yield f"{control} enable --now {target}    # enable: also after a boot"
    yield f"{control} list-dependencies {target}"
    yield f"{journal} -f {' '.join(f'-u {shlex.quote(name)}' for name in rendering.services)}"
    yield f"# after a change of the profile: write them again, then {control} daemon-reload, {control} restart {target}"
    for path in old:
        yield f"# no longer in the plan: {control} disable --now {shlex.quote(path.name)}; rm {shlex.quote(str(path))}"
