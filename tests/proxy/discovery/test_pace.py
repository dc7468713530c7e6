"""How often the API server is asked."""

from proxy.discovery.pace import BRISK, FIRST, LONGEST, pause_after


def after(*rounds: tuple[float, bool]) -> float:
    pause = FIRST
    for lasted, seen in rounds:
        pause = pause_after(pause, lasted, seen=seen)
    return pause


def test_a_watch_that_has_lasted_is_followed_by_the_next_at_once():
    assert after(*[(0.0, False)] * 9, (30.0, True)) == FIRST


def test_watches_that_end_at_once_do_not_keep_the_server_busy_nor_changes_unseen():
    assert after(*[(0.01, True)] * 9) == BRISK


def test_a_server_that_does_not_answer_is_asked_ever_more_seldom():
    assert after(*[(0.01, False)] * 9) == LONGEST
    assert after(*[(0.01, False)] * 9, (0.01, True)) == BRISK
