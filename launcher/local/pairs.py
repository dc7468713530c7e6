"""Asks a running deployment's proxy how hand-overs between its instances went, or to prove them now."""

from dataclasses import dataclass

import httpx
from pydantic import TypeAdapter, ValidationError

from launcher.errors import RunDirectoryError
from launcher.local.asking import allowed, ask
from launcher.local.run_directory import RunDirectory

PROVING = 600.0
"""Seconds; canaries through the pairs of one decode instance run one after the other."""


@dataclass(frozen=True, slots=True)
class ProofReport:
    """What the last canary through a pair has shown."""

    verdict: str
    """``proven``, ``recomputed``, ``wrong_text``, ``failed``, ``undecided`` or ``impossible``."""
    at: float
    """Seconds since the epoch."""
    reason: str
    tokens: int
    """Of the prompt, that decode took from prefill."""
    seconds: float | None
    """From sending the prompt to prefill until decode's whole answer."""
    bytes: int | None
    bytes_per_second: float | None
    """Of the KV transfer, where the engines count it."""
    transfer_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class PairReport:
    """One prefill and one decode instance, since both run."""

    prefill: str
    decode: str
    standing: str
    """``untried``, ``proven``, ``working``, ``failing``, ``suspect``, ``out``, ``away``,
    ``trial`` or ``refused``."""
    gets_requests: bool
    handed_over: int
    failed: int
    last_handed_over: float | None
    """Seconds since the epoch."""
    reason: str
    """What speaks against it."""
    proof: ProofReport | None


@dataclass(frozen=True, slots=True)
class Matrix:
    """All pairs."""

    pairs: tuple[PairReport, ...]
    blamed: dict[str, str]
    """Instances none of whose pairs works though their partners work with others, and why."""

    @property
    def works(self) -> bool:
        """Whether all pairs get requests and nothing speaks against any."""
        return all(pair.gets_requests and pair.standing != "failing" for pair in self.pairs)

    @property
    def proven(self) -> bool:
        """Whether the last canary through every pair came through."""
        return all(pair.proof is not None and pair.proof.verdict == "proven" for pair in self.pairs)


_MATRIX = TypeAdapter(Matrix)


def to_json(matrix: Matrix) -> str:
    """As indented JSON."""
    return _MATRIX.dump_json(matrix, indent=2).decode()


def gather(directory: RunDirectory) -> Matrix:
    """All pairs; raises :class:`RunDirectoryError` when nothing runs or the proxy does not say."""
    return read(ask(directory, "GET", "/pairs", 5.0))


def prove(directory: RunDirectory) -> Matrix:
    """All pairs, after a canary through each; raises :class:`RunDirectoryError` as :func:`gather` does."""
    return read(ask(directory, "POST", "/pairs/prove", PROVING))


def read(answer: httpx.Response) -> Matrix:
    """What the proxy has answered; raises :class:`RunDirectoryError` when that are no pairs."""
    try:
        return _MATRIX.validate_json(allowed(answer))
    except ValidationError as exc:
        raise RunDirectoryError(f"{answer.request.url} answered {answer.status_code}, not the pairs") from exc
