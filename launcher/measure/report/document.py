"""Decision: a measurement as JSON, and how to repeat it from that."""

import json
from dataclasses import dataclass, replace

from pydantic import TypeAdapter, ValidationError

from launcher.errors import MeasureError
from launcher.measure.bench_shape import VERSION, Benched, Sent, Settings
from launcher.measure.workload import Workload
from launcher.measure.workload_file import Work
from launcher.plain import to_json


@dataclass(frozen=True, slots=True)
class Again:
    """What of a report says how to measure again."""

    target: str
    reference: str | None
    overrides: tuple[str, ...]
    settings: Settings
    sent: Sent
    version: int

    @property
    def work(self) -> Work:
        """The same requests."""
        return Work(self.sent.name, Workload.model_validate_json(json.dumps(self.sent.workload)), self.sent.recorded)


def document(benched: Benched) -> str:
    """All but the samples."""
    return to_json(replace(benched, samples=()))


def again(text: bytes, file: str) -> Again:
    """Raises :class:`MeasureError` when it is no report of `bench`."""
    try:
        found = TypeAdapter(Again).validate_json(text)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise MeasureError(
            f"{file} is no report.json of `launcher bench` ({where}: {first['msg']}): name one that it wrote"
        ) from exc
    if found.version != VERSION:
        raise MeasureError(
            f"{file} is a report of version {found.version}, this Duet reads {VERSION}: use the one that wrote it"
        )
    return found
