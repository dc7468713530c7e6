"""How the log is written: for people, or one JSON object a line for a collector of logs."""

import json
import logging
import sys
from datetime import UTC, datetime
from types import TracebackType

from proxy.record import Fields
from proxy.settings import Log, LogFormat

logger = logging.getLogger(__name__)

_TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"
_MESSAGE, _EXCEPTION = 4000, 6000
"""The most letters of each; whoever keeps the log cuts lines of more than 64 KiB, and half an object is none."""


def begin(settings: Log) -> None:
    """From now on all that this process says goes to its standard error in that format, and what libraries say."""
    # What the log's lines do not name is not looked up for each (the ways that logging's documentation describes).
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    as_json = settings.format is LogFormat.JSON
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else logging.Formatter(_TEXT))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    if as_json:  # else Python writes these past the log
        logging.captureWarnings(True)
        sys.excepthook = _defect


class JsonLines(logging.Formatter):
    """``time`` (UTC), ``level``, ``logger``, ``message``; the fields of a request; ``exception`` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
        }
        if isinstance(record.msg, Fields):
            line |= {"message": "request", **record.msg}
        else:
            line["message"] = record.getMessage()[:_MESSAGE]
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)[-_EXCEPTION:]
        return json.dumps(line)


def _defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        logger.critical("the proxy ends by a defect", exc_info=(kind, error, trace))
