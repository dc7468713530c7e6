"""What is held out is never calibrated on, nor anything like it."""

import json

from launcher.quantize.worker.duet_quantizing.chosen import choose
from launcher.quantize.worker.duet_quantizing.near import is_near, signatures
from launcher.quantize.worker.duet_quantizing.record import read
from launcher.quantize.worker.duet_quantizing.rendering import Renderer
from tests.launcher.quantize.worker.records import chat, sentences
from tests.launcher.quantize.worker.tokenizer import Words


def chosen(told, records: int = 512, held_out: int = 64, max_tokens: int = 2048, template: str | None = "one"):
    drawn = [read(number, json.dumps(each).encode()) for number, each in enumerate(told, 1)]
    return choose(drawn, Renderer(Words(template)), records=records, held_out=held_out, max_tokens=max_tokens)


def near(*texts: str) -> bool:
    rows = signatures(texts)
    return is_near(rows[0], rows[1:])


def test_records_are_held_out_first_and_calibrated_with_then():
    found = chosen([chat(text, "yes") for text in sentences(700)])
    assert (len(found.held_out), len(found.calibration), len(found.used)) == (64, 512, 576)


def test_of_few_records_fewer_are_held_out_and_never_more_than_half():
    counts = {count: chosen([chat(text, "yes") for text in sentences(count)]) for count in (300, 100, 20)}
    assert {count: (len(found.held_out), len(found.calibration)) for count, found in counts.items()} == {
        300: (60, 240),
        100: (32, 68),
        20: (10, 10),
    }


def test_texts_that_share_most_of_their_words_are_near_duplicates():
    one, other = sentences(2)
    assert near(one, one.replace("w3 ", "w4 ", 1).upper())
    assert not near(one, other)
    assert not near(one, " ".join(one.split()[:20] + other.split()[20:]))


def test_short_and_unspaced_texts_are_compared_too():
    assert near("Hello!", "hello")
    assert not near("Hello", "Goodbye")
    assert near("今日は天気がとても良いので公園を散歩しました", "今日は天気がとても良いので公園を散歩しました。")
    assert not near("今日は天気がとても良いので公園を散歩しました", "東京で一番おいしいラーメン屋を教えてください")


def test_a_template_that_all_share_makes_no_record_like_another():
    instructions = sentences(1, seed=9, words=300)[0]
    found = chosen([chat(f"{instructions} {text}", "yes") for text in sentences(200, words=20)])
    assert found.near_duplicates == 0
    assert len(found.calibration) + len(found.held_out) == 200


def test_near_duplicates_of_what_is_held_out_are_not_calibrated_with():
    texts = sentences(100)
    variants = [chat(text.replace("w0", "other", 1), "yes") for text in texts[:40]]
    found = chosen([*(chat(text, "yes") for text in texts), *variants])
    assert found.like_held_out == 32  # as many as are held out
    assert found.near_duplicates == 40
    assert len(found.calibration) == 140 - 32 - 32


def test_an_answer_that_was_cut_away_is_not_held_out_but_calibrated_with():
    told = [chat(text, "yes") for text in sentences(100, words=80)] + [
        chat(text, "yes") for text in sentences(50, seed=1)
    ]
    found = chosen(told, max_tokens=60)
    assert all(len(held["ids"]) <= 60 and held["scored"] for held in found.held_out)
    assert (len(found.held_out), len(found.calibration), found.truncated) == (32, 118, 100)


def test_records_without_answers_plain_ones_and_refused_ones_are_counted():
    texts = sentences(130)
    critic = [{"messages": [{"role": "critic", "content": text}]} for text in texts[:7]]
    found = chosen([*critic, *(chat(text) for text in texts[7:70]), *({"text": text} for text in texts[70:])])
    assert (found.refused, found.unanswered, found.plain) == (7, 32, 60)
