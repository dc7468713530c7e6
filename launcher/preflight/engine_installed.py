"""Is the engine that the plan starts installed?"""

import shlex
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from launcher.engine_args import ENGINE_MODULE
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from launcher.profile import Device
from proxy.topology import ConnectorKind

_NIXL = {ConnectorKind.NIXL_PULL, ConnectorKind.NIXL_PUSH, ConnectorKind.MULTI}
_PACKAGES = {
    ConnectorKind.MOONCAKE: ("mooncake", "mooncake-transfer-engine"),
    ConnectorKind.LMCACHE: ("lmcache", "lmcache"),
}
"""Connectors whose package does not come with Duet: its module, and its name."""
KNOWN = "0.32"
"""The version of vLLM that all rules speak of."""
_EXTRA = {Device.CPU: "cpu", Device.CUDA: "gpu"}


def _missing(case: Case) -> Iterator[Fault]:
    """What is missing to start an engine, without importing it."""
    plan, inventory = case.plan, case.inventory
    program = plan.engines[0].argv[0]
    if plan.engines[0].argv[1 : 1 + len(ENGINE_MODULE)] != ENGINE_MODULE:
        if shutil.which(program) is None:
            yield Fault(
                "engine_command",
                f"engine_command starts {program}, which is not on the PATH",
                "write the path of the program, or remove the key: then vLLM of the launcher's own Python is started",
            )
        return
    extra = _EXTRA[plan.device]
    install = (
        f"in Duet's checkout, scripts/install {extra}, or {shlex.quote(inventory.python)} -m pip install '.[{extra}]'"
    )
    if find_spec("vllm") is None:
        yield Fault("device", f"vLLM is not installed in {inventory.python}", f"install it: {install}")
    elif plan.connector in _NIXL and not (find_spec("nixl") or find_spec("nixl_cu12")):
        yield Fault(
            "kv_transfer.connector", "NIXL, which moves the KV cache, is not installed", f"install it: {install}"
        )
    elif plan.connector in _PACKAGES:
        module, package = _PACKAGES[plan.connector]
        if find_spec(module) is None:
            pip = f"{shlex.quote(inventory.python)} -m pip install {package}"
            yield Fault(
                "kv_transfer.connector", f"{package}, which moves the KV cache, is not installed", f"install it: {pip}"
            )
    if find_spec("torchvision") and _broken_torchvision():
        yield Fault(
            "device",
            "the installed torchvision does not match torch, so vLLM cannot start",
            "text models do not need it: "
            f"{shlex.quote(inventory.python)} -m pip uninstall -y torchvision torchaudio torchcodec",
        )


def _broken_torchvision() -> bool:
    """A torchvision built for another torch fails at import with `operator torchvision::nms does not exist`.

    A CPU torch carries a local version (``+cpu``) that a matching torchvision carries too.
    """
    try:
        torch, vision = version("torch"), version("torchvision")
    except PackageNotFoundError:
        return False
    return torch.partition("+")[2] != vision.partition("+")[2]


def _version(case: Case) -> Iterator[Fault]:
    """An engine of another version than the one that command lines and rules are made for."""
    installed = case.inventory.engine_version
    if installed and not installed.startswith(f"{KNOWN}."):
        yield Fault(
            "device",
            f"vLLM {installed} is installed, and this version of Duet is made for {KNOWN}",
            f"install vLLM {KNOWN}, or ask its own parser (`launcher check --layer engine`) and prove the pairs",
            "options, log lines and KV protocols change with each version",
            {"installed": installed, "known": KNOWN},
            Severity.WARNING,
        )


RULES = (
    Rule("host/engine-version", Layer.HOST, "vLLM's release notes", _version),
    Rule("host/engine-installed", Layer.HOST, "the packages of the launcher's own Python", _missing),
)
