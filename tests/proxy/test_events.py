"""Server-sent events in bytes."""

import pytest

from proxy.events import Event, events, last_event, whole_events


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_has_a_name_and_the_data_of_all_its_lines(end):
    text = end.join([b": ping", b"", b"event: x", b"data: a", b"data:b", b"id: 1", b"", b"data: half"])
    assert [(event.name, event.data) for event in events(text)] == [(b"", b""), (b"x", b"a\nb")]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (b"", b""),
        (b"data: 1\n", b""),
        (b"data: 1\n\n", b"data: 1\n\n"),
        (b"data: 1\r\n\r\ndata", b"data: 1\r\n\r\n"),
        (b"data: 1\r\ndata: 2\r\n", b""),
        (b"data: 1\n\ndata: 2\n\nda", b"data: 1\n\ndata: 2\n\n"),
    ],
)
def test_what_is_complete_is_told_from_what_is_not(text, whole):
    assert whole_events(text) == (whole, text.removeprefix(whole))


def test_an_event_knows_where_it_lies():
    assert [*events(b"data: 1\n\ndata: 2\n\n")][1] == Event(9, 18, b"", b"2")


@pytest.mark.parametrize("text", [b"data: 1\n\ndata: 2\n\n: ping\n\n", b"data: 1\n\ndata: 2\n", b"data: 2"])
def test_the_last_event_that_says_something_is_found(text):
    assert last_event(text).data == b"2"


def test_nothing_said_has_no_last_event():
    assert last_event(b": ping\n\n") is None
