"""Are the files there that the proxy reads when it starts, after the engines have loaded?"""

import os
from collections.abc import Iterator
from pathlib import Path

from launcher.preflight.finding import Case, Fault, Layer, Rule

_TLS = "name a file in PEM that the proxy can read"
_REFERENCE = "make it while the baseline runs: launcher baseline URL --out {}"


def _unreadable(case: Case) -> Iterator[Fault]:
    """A certificate, its key, or reference answers that the proxy could not read, so that it would not start."""
    proxy = case.profile.proxy
    wanted = []
    if proxy.tls is not None:
        wanted += [("proxy.tls.certificate", proxy.tls.certificate, _TLS), ("proxy.tls.key", proxy.tls.key, _TLS)]
    if proxy.reference is not None:
        file = proxy.reference.file
        wanted.append(("proxy.reference.file", file, _REFERENCE.format(file)))
    for key, file, fix in wanted:
        if not Path(file).is_file():
            yield Fault(key, f"there is no file {file}", fix)
        elif not os.access(file, os.R_OK):
            yield Fault(key, f"{file} may not be read by this user", fix)


RULES = (Rule("host/proxy-files", Layer.HOST, "the files that the profile names", _unreadable),)
