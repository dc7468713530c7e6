"""Decision: options that do nothing, or do not go together. The quantizer or the engine would find most, late."""

from collections.abc import Iterator

from launcher.errors import QuantizeError
from launcher.quantize.calibration import LEAST_RECORDS, MOST_RECORDS, TOO_MANY, USUAL_RECORDS
from launcher.quantize.original import Original
from launcher.quantize.recipe import FITTING, Algorithm
from launcher.quantize.request import Request
from launcher.quantize.scheme import Scheme


def refuse(request: Request, scheme: Scheme, original: Original, tensor_parallel: int) -> None:
    """Raises :class:`QuantizeError` for options that do nothing, or that do not go together."""
    for problem in _problems(request, scheme, original, tensor_parallel):
        raise QuantizeError(problem)


def _problems(request: Request, scheme: Scheme, original: Original, tensor_parallel: int) -> Iterator[str]:
    given, fitting = request.algorithm, FITTING[scheme]
    if given is not None and given not in fitting:
        instead = " or ".join(each.value for each in fitting)
        yield f"--algorithm {given.value} does not go with {scheme.value}: use {instead}"
    if request.fast and Algorithm.RTN in (given, fitting[0]):
        cause = "--algorithm rtn" if given else scheme.value
        yield f"--fast does nothing with {cause}, which rounds to nearest anyhow: leave it out"
    if request.tensor_parallel is not None and scheme is not Scheme.INT4:
        yield (
            f"--tensor-parallel does nothing with {scheme.value}, whose scales do not depend on it: leave it out; how "
            "the model is served while it is judged says --profile"
        )
    heads = original.folder.text.get("num_attention_heads")
    if isinstance(heads, int) and heads % tensor_parallel:
        yield (
            f"tensor parallelism of {tensor_parallel} does not divide the {heads} attention heads of {original.path}: "
            "give --tensor-parallel (or the profile) a number that does"
        )
    if request.records > MOST_RECORDS:
        yield f"--records {request.records}: {TOO_MANY}"
    if scheme is not Scheme.FP8 and request.records < LEAST_RECORDS and not request.force:
        yield (
            f"--records {request.records}: {scheme.value} needs at least {LEAST_RECORDS} to calibrate with, "
            f"{USUAL_RECORDS} are usual; ask for more, or --force"
        )
    if original.path in (request.out.resolve(), *request.out.resolve().parents):
        yield f"--out {request.out} is in the model's own folder, which is never changed: name one elsewhere"
