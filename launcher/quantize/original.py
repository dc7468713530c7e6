"""The 16-bit model that is quantized: where it is, and what it says of itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher import model_folder, weights
from launcher.bundled.catalogue import CATALOGUE
from launcher.bundled.prepare import prepare
from launcher.errors import QuantizeError
from launcher.inventory import Checkpoint
from launcher.model_folder import ModelFolder
from launcher.quantize.units import Parts, parts_of


@dataclass(frozen=True, slots=True)
class Original:
    """A model that can be quantized."""

    name: str
    """As the user said it."""
    path: Path
    folder: ModelFolder
    parts: Parts
    digest: str
    """Of its files, by samples (:mod:`launcher.weights`)."""

    @property
    def is_folder(self) -> bool:
        """Whether it was named as a folder, and not as a hub id or a bundled model."""
        return self.path == Path(self.name).expanduser().resolve()

    @property
    def size(self) -> int:
        """Bytes of its weights."""
        return sum(self.folder.weight_files.values())

    @property
    def parameters(self) -> int:
        """Numbers in all tensors."""
        return sum(tensor.elements for tensor in self.folder.tensors)

    @property
    def linear_size(self) -> int:
        """Bytes of the weights that can be quantized."""
        return 2 * sum(unit.parameters for unit in self.parts.units)

    @property
    def is_mixture(self) -> bool:
        """Whether it has experts."""
        return bool(self.packed_experts) or any(unit.name.endswith(".experts") for unit in self.parts.units)

    @property
    def packed_experts(self) -> tuple[str, ...]:
        """Beginnings of the names of experts that are stored as one tensor, which the quantizer has to take apart."""
        found = {
            tensor.name.rpartition(".experts.")[0] + ".experts."
            for tensor in self.folder.tensors
            if ".experts." in tensor.name and len(tensor.shape) == 3
        }
        return tuple(sorted(found))


def original(name: str, cache: Path, environ: Mapping[str, str], tell: Callable[[str], None]) -> Original:
    """Of a folder, a hub id that is on this machine, or a bundled model, which is fetched.

    Raises :class:`QuantizeError` for one that is not there, or cannot be quantized.
    """
    path = path_of(name, cache, environ, tell)
    folder = model_folder.read(path)
    parts = parts_of(folder)
    try:
        digest = weights.digest(path)
    except OSError as exc:
        raise QuantizeError(f"cannot read {exc.filename or path}: {exc.strerror}") from exc
    assert digest is not None  # parts were found
    return Original(name, path, folder, parts, digest)


def path_of(name: str, cache: Path, environ: Mapping[str, str], tell: Callable[[str], None]) -> Path:
    """Where it is; raises :class:`QuantizeError` when it is nowhere."""
    if name in CATALOGUE:
        prepare(name, cache, tell)
        return cache / "models" / name
    if not name.strip():
        raise QuantizeError("MODEL is empty: name a folder, a hub id that is in the cache, or a bundled model")
    given = Path(name).expanduser()
    if given.is_dir():
        return given.resolve()
    found = weights.folder_of(Checkpoint(name), environ)
    if found is None:
        bundled = ", ".join(CATALOGUE)
        raise QuantizeError(
            f"{name} is no folder here, and no model in the Hugging Face cache: name a folder, fetch it with "
            f"`hf download {name}`, or use a bundled model ({bundled})"
        )
    return found
