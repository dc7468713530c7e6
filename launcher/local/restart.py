"""Ends instances of a running deployment and starts them again, one after the other, without losing requests."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from launcher.errors import InstanceDiedError, NotReadyError, ProofError, RunDirectoryError
from launcher.local import control, drain, pairs, proxy_file
from launcher.local.deployment import PROXY, Deployment, State
from launcher.local.run_directory import RunDirectory
from proxy.topology import Role

_NOTICED_WITHIN = 30.0
"""Seconds in which the proxy should find an instance healthy that is."""
_PROVEN_WITHIN = 60.0
_STEP = 1.0
ANSWERING = (Role.DECODE, Role.AGGREGATED)
"""Roles of which an instance alone can answer."""
_AS_THEY_ARE: Mapping[str, Sequence[str]] = MappingProxyType({})


def restart(
    directory: RunDirectory,
    names: Sequence[str],
    *,
    drain_first: bool,
    within: float,
    tell: Callable[[str], None],
    argv: Mapping[str, Sequence[str]] = _AS_THEY_ARE,
) -> bool:
    """Each: drained, ended, started, ready, in traffic again, its pairs proven; then the next.

    ``argv``: new command lines of engines, which they keep from then on. One that does not start with its own gets its
    old one back, and its error is raised.

    Returns whether all were drained within so many seconds; if not, the one that was not runs on, in traffic, and none
    after it is touched. Raises a :class:`LauncherError` when one cannot be restarted, :class:`ProofError` when a pair
    does not work afterwards.
    """
    deployment = directory.running()
    known = [each.name for each in deployment.instances]
    if unknown := sorted(set(names) - set(known)):
        raise RunDirectoryError(f"no instance {', '.join(unknown)}; there are: {', '.join(known)}")
    with directory.alone("restart"):
        for name in dict.fromkeys(names):
            if _role(deployment, name) == PROXY:
                tell(f"{name}: ends when its requests have, and starts again")
                control.order(directory.path, control.Order(name))
            elif not _restart(directory, name, argv.get(name), drain_first=drain_first, within=within, tell=tell):
                return False
            tell(f"{name}: ready")
    return True


def _restart(
    directory: RunDirectory,
    name: str,
    argv: Sequence[str] | None,
    *,
    drain_first: bool,
    within: float,
    tell: Callable[[str], None],
) -> bool:
    takes_out = drain_first and name not in proxy_file.draining(directory.proxy_config)
    try:
        if drain_first:
            if nobody_else_answers(directory, name):
                tell(f"{name}: nobody else can answer: requests get 503 until it is back")
            if not drain.drain(directory, [name], within=within, tell=tell):
                return False
        tell(f"{name}: ends and starts again")
        _order(directory, name, argv, tell)
        if not drain.await_healthy(directory, name, _NOTICED_WITHIN):
            raise ProofError(f"{name} is ready, but the proxy does not find it healthy: see `launcher status`")
    finally:
        if takes_out:
            drain.resume(directory, [name])
    _await_proof(directory, name, tell)
    return True


def _order(directory: RunDirectory, name: str, argv: Sequence[str] | None, tell: Callable[[str], None]) -> None:
    if argv is None:
        control.order(directory.path, control.Order(name))
        return
    if (plan := directory.read_plan()) is None:
        raise RunDirectoryError(f"the plan in {directory.path} cannot be read: {name} keeps the options that it has")
    before = next(engine.argv for engine in plan.engines if engine.name == name)
    try:
        control.order(directory.path, control.Order(name, tuple(argv)))
    except (InstanceDiedError, NotReadyError):
        tell(f"{name}: does not start with its new options: starting it again with those it had")
        control.order(directory.path, control.Order(name, before))
        raise


def _await_proof(directory: RunDirectory, name: str, tell: Callable[[str], None]) -> None:
    """Until a canary has come through all pairs of it; the proxy gives those requests that work."""
    if not proxy_file.proves_pairs(directory.proxy_config):
        return
    deadline = time.monotonic() + _PROVEN_WITHIN
    while unproven := [*_unproven(pairs.prove(directory).pairs, name)]:
        if time.monotonic() > deadline or not any(can_change for can_change, _ in unproven):
            raise ProofError(f"{name} runs again, but not all of its pairs: {'; '.join(why for _, why in unproven)}")
        time.sleep(_STEP)
    tell(f"{name}: its pairs are proven")


def _unproven(found: Iterable[pairs.PairReport], name: str) -> Iterable[tuple[bool, str]]:
    """Of its pairs with instances in traffic: whether the next canary may come through, and why the last did not."""
    for pair in found:
        if name not in (pair.prefill, pair.decode) or pair.standing == "away":
            continue
        verdict = pair.proof.verdict if pair.proof is not None else "undecided"
        if verdict not in ("proven", "impossible"):
            reason = pair.reason if pair.proof is None else pair.proof.reason
            yield verdict == "undecided" and pair.standing != "refused", f"{pair.prefill} to {pair.decode}: {reason}"


def nobody_else_answers(directory: RunDirectory, name: str) -> bool:
    """Whether requests get 503 while this instance starts again."""
    deployment = directory.running()
    drained = proxy_file.draining(directory.proxy_config)
    return _role(deployment, name) in ANSWERING and not any(
        each.role in ANSWERING and each.state is State.READY and each.name != name and each.name not in drained
        for each in deployment.instances
    )


def _role(deployment: Deployment, name: str) -> str:
    return next(each.role for each in deployment.instances if each.name == name)
