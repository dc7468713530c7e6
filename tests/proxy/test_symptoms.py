"""What an engine's counters say of hand-overs, between two looks at them."""

import pytest

from proxy.health.readings import Readings, symptom
from tests.fakes import answers


def readings(**counts: int) -> Readings:
    sources = dict.fromkeys(answers.SOURCES, 0)
    found = Readings.of(answers.metrics("fake", sources, 0, started=0.0, generated=0, counts=counts))
    assert found is not None
    return found


LATE, EXPIRED = "nixl_num_notifications_after_expiry", "nixl_num_kv_expired_reqs"


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        ({}, {}, ""),
        ({}, {EXPIRED: 3}, ""),
        ({EXPIRED: 1}, {EXPIRED: 1, LATE: 2}, "KV was read after its lease, by its own counter: 2 answers"),
        ({LATE: 2, EXPIRED: 1}, {LATE: 2, EXPIRED: 1}, ""),
        ({}, {"nixl_num_failed_transfers": 1}, "1 transfers failed"),
    ],
)
def test_late_notices_of_expired_kv_and_failed_transfers_make_suspect(before, now, says):
    assert symptom(readings(**before), readings(**now)).startswith(says)
    assert bool(symptom(readings(**before), readings(**now))) is bool(says)


def test_a_late_notice_without_any_expired_kv_is_one_of_a_client_that_left():
    assert symptom(readings(), readings(**{LATE: 1})) == ""
