"""Decision: which precision for which hardware, and what to know of it."""

from dataclasses import dataclass
from enum import StrEnum

from launcher.errors import QuantizeError

_BLACKWELL, _ADA, _TURING = 10.0, 8.9, 7.5
"""CUDA compute capabilities."""
_LARGE = 13e9
"""Parameters from which four bits cost more than the average shows."""


class Scheme(StrEnum):
    """Precision of weights and activations."""

    INT8 = "int8"
    """W8A8: eight-bit integers, weights by channel, activations by token."""
    INT4 = "int4"
    """W4A16: weights of four bits in groups, activations stay in 16."""
    FP8 = "fp8"
    """Eight-bit floats, weights by channel, activations by token; needs no records to calibrate with."""


@dataclass(frozen=True, slots=True)
class Target:
    """The hardware that will serve it."""

    name: str
    """As people say it: ``CPU``, ``NVIDIA H100``."""
    is_cpu: bool
    capability: float | None = None
    """CUDA compute capability; ``None`` when it is not known."""

    @property
    def has_int8(self) -> bool:
        """Whether vLLM computes with 8-bit integers there; where it is not known, it is taken to."""
        return self.capability is None or _TURING <= self.capability < _BLACKWELL


@dataclass(frozen=True, slots=True)
class Choice:
    """A scheme, why, and what else to know."""

    scheme: Scheme
    why: str
    warnings: tuple[str, ...] = ()


def choose(asked: Scheme | None, target: Target, *, parameters: int, is_mixture: bool) -> Choice:
    """The scheme asked for, or the one for the hardware (``None``).

    Raises :class:`QuantizeError` for one that vLLM 0.32 cannot serve there.
    """
    choice = _best(target) if asked is None else Choice(asked, f"{_TITLES[asked]}, as asked for")
    if problem := _refusal(choice.scheme, target, is_mixture):
        raise QuantizeError(problem)
    return Choice(choice.scheme, choice.why, (*choice.warnings, *_warnings(choice.scheme, target, parameters)))


_TITLES = {Scheme.INT8: "INT8 (W8A8)", Scheme.INT4: "INT4 (W4A16)", Scheme.FP8: "FP8 (W8A8)"}


def title(scheme: Scheme) -> str:
    """For people."""
    return _TITLES[scheme]


def _best(target: Target) -> Choice:
    if target.is_cpu:
        return Choice(Scheme.INT8, "INT8: CPUs compute with 8-bit integers natively, and FP8 is emulated there")
    if target.capability is None:
        return Choice(
            Scheme.INT8,
            f"INT8: it is not known what {target.name} computes natively, and INT8 runs on Turing to Hopper",
            ("name the GPU as its driver does (--target 'NVIDIA H100'), so that the scheme fits it",),
        )
    if target.capability >= _ADA:
        return Choice(Scheme.FP8, f"FP8: {target.name} (compute capability {target.capability}) computes it natively")
    if target.capability >= _TURING:
        return Choice(
            Scheme.INT8, f"INT8: {target.name} (compute capability {target.capability}) has it, and has no FP8"
        )
    return Choice(Scheme.INT4, f"INT4: {target.name} (compute capability {target.capability}) has no 8-bit arithmetic")


def _refusal(scheme: Scheme, target: Target, is_mixture: bool) -> str | None:
    cc = target.capability
    if scheme is Scheme.INT8 and cc is not None and cc >= _BLACKWELL:
        return f"vLLM has no INT8 kernels for Blackwell ({target.name}, compute capability {cc}): use --scheme fp8"
    if scheme is Scheme.INT8 and cc is not None and cc < _TURING:
        return f"{target.name} (compute capability {cc}) has no INT8 arithmetic, which Turing (7.5) brought"
    if scheme is Scheme.INT8 and target.is_cpu and is_mixture:
        return "vLLM 0.32 has no INT8 kernel for mixtures of experts on a CPU: use --scheme int4, or name a --target"
    return None


def _warnings(scheme: Scheme, target: Target, parameters: int) -> tuple[str, ...]:
    found = []
    if scheme is Scheme.FP8 and target.is_cpu:
        found.append("a CPU emulates FP8: expect prompts to take 3 to 10 times as long as in 16 bits")
    if scheme is Scheme.FP8 and target.capability is not None and target.capability < _ADA:
        found.append(f"{target.name} has no FP8 arithmetic: only memory is saved, it is computed in 16 bits (Marlin)")
    if scheme is Scheme.INT4 and parameters >= _LARGE:
        found.append(
            f"a model of {parameters / 1e9:.0f} billion parameters loses most in mathematics and code at INT4: judge "
            "it with a task of yours (--task), not by the average"
        )
    return tuple(found)
