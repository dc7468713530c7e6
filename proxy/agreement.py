"""Decision: whether a prefill and a decode instance are alike enough for one's KV cache to be right in the other.

Engines notice some differences at the first request and some never: of other weights with equal shapes, or of another
chat template, only the text tells. So what is known of two instances is compared before they are paired.

What is not known of one of them is not compared. A fact that is neither in :class:`Fact` nor under a rule has to be
equal.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

Facts = Mapping[str, str]
"""What is known of one instance, by the fact's name."""

NOT_SET = "(not set)"
"""The value of what is left to the engine's default."""
_AUTOMATIC = "auto"
"""The value of what the engine decides when it starts."""
ADAPTER = "adapter "
"""Begins the name of the fact where an adapter comes from; its own name follows."""
BETWEEN_NAMES = ", "
_MOST_MODELS = 64
"""That are told apart: each is a label of metrics."""


class Fact(StrEnum):
    """The names of those facts that several modules speak of."""

    VERSION = "vLLM version"
    MODEL = "model"
    """The literal text that the engine is given: NIXL's handshake compares it."""
    SERVED_NAMES = "served model names"
    """What clients call the model: prefill refuses a name that only decode knows."""
    WEIGHTS = "digest of the weights"
    DRAFT_WEIGHTS = "digest of the draft's weights"
    DTYPE = "dtype"
    KV_DTYPE = "KV cache dtype"
    BLOCK_SIZE = "block size"
    """Tokens in a block of the KV cache."""
    SPECULATION = "speculation"
    """Method and draft, of methods whose draft has layers in the KV cache."""
    CONNECTOR = "KV connector"
    """With several, all of them."""
    HASH_ALGORITHM = "prefix hash algorithm"
    HASH_SEED = "prefix hash seed"
    TENSOR_PARALLEL = "tensor parallel size"
    MAX_MODEL_LEN = "longest sequence"
    """In tokens."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One instance and what is known of it."""

    name: str
    facts: Facts


def differences(prefill: Identity, decode: Identity) -> tuple[str, ...]:
    """What keeps KV caches from being handed over, each with both values; empty when the two agree.

    For example ``block size differs: prefill-0 has 32, decode-0 has 16``.
    """
    return tuple(
        f"{name} differs: {prefill.name} has {value}, {decode.name} has {decode.facts[name]}"
        for name, value in prefill.facts.items()
        if name in decode.facts and not _agree(name, prefill.facts, decode.facts)
    )


def served_models(identities: Iterable[Identity]) -> frozenset[str]:
    """The names by which clients may ask for a model or an adapter, as far as they are known; of many, the first."""
    names = set[str]()
    for identity in identities:
        names |= {name.removeprefix(ADAPTER) for name in identity.facts if name.startswith(ADAPTER)}
        names |= set(filter(None, identity.facts.get(Fact.SERVED_NAMES, "").split(BETWEEN_NAMES)))
    return frozenset(sorted(names)[:_MOST_MODELS])


def disagreement(prefill: Identity, decode: Identity) -> str:
    """The same as one line."""
    return "; ".join(differences(prefill, decode))


def contradiction(declared: Identity, observed: Facts) -> str:
    """Where an engine says something else of itself than its configuration does; empty when it does not."""
    return "; ".join(
        f"{name} of {declared.name} is {observed[name]} by its own account, {value} by the configuration"
        for name, value in declared.facts.items()
        if name in observed and observed[name] != value and value != _AUTOMATIC
    )


def _agree(name: str, prefill: Facts, decode: Facts) -> bool:
    return prefill[name] == decode[name] or (name in _RULES and _RULES[name](prefill, decode))


def _blocks_fit(prefill: Facts, decode: Facts) -> bool:
    """NIXL reads blocks into larger ones; not when prefill's heads are spread over more devices than decode's."""
    ours, theirs = _number(prefill, Fact.BLOCK_SIZE), _number(decode, Fact.BLOCK_SIZE)
    spread = _number(prefill, Fact.TENSOR_PARALLEL) > _number(decode, Fact.TENSOR_PARALLEL) > 0
    return _by_address(prefill) and _by_address(decode) and not spread and 0 < ours <= theirs and theirs % ours == 0


def _hashes_do_not_matter(prefill: Facts, decode: Facts) -> bool:
    """A connector that decode tells where the blocks lie needs no names for them."""
    return _by_address(prefill) and _by_address(decode)


def _may_differ(prefill: Facts, decode: Facts) -> bool:
    return True


_RULES: Mapping[str, Callable[[Facts, Facts], bool]] = {
    Fact.BLOCK_SIZE: _blocks_fit,
    Fact.HASH_ALGORITHM: _hashes_do_not_matter,
    Fact.HASH_SEED: _hashes_do_not_matter,
    Fact.TENSOR_PARALLEL: _may_differ,
    Fact.MAX_MODEL_LEN: _may_differ,
}
"""Whether two different values of a fact are all right."""


def _by_address(facts: Facts) -> bool:
    return all(name.startswith("Nixl") for name in facts.get(Fact.CONNECTOR, "Nixl").split(" + "))


def _number(facts: Facts, name: Fact) -> int:
    text = facts.get(name, "")
    return int(text) if text.isdecimal() else 0
