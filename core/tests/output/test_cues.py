"""Subtitles that can be read: how a transcript is cut into cues, and their times."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.output.cues import Cue, cues, placed
from oasr.output.units import flat, units, width
from oasr.types import Segment, Transcript, Word


def transcript(*segments: Segment, duration: float = 3600.0) -> Transcript:
    return Transcript(" ".join(segment.text for segment in segments), segments, "en", duration)


def shown(*segments: Segment, duration: float = 3600.0) -> list[Cue]:
    return cues(transcript(*segments, duration=duration), most_lines=2)


def texts(found: list[Cue]) -> list[str]:
    return [" / ".join(cue.lines) for cue in found]


def spoken(text: str, seconds: float = 0.3, pause_before: tuple[str, ...] = ()) -> Segment:
    """Each word takes as long and follows the one before, but for those that a second of silence goes before."""
    words, time = [], 0.0
    for written in text.split():
        time += 1.0 if written in pause_before else 0.0
        words.append(Word(written, time, time + seconds))
        time += seconds
    return Segment(0.0, time, text, words=tuple(words))


def test_a_short_segment_is_one_cue_with_its_times() -> None:
    assert shown(Segment(1.0, 3.0, "Good morning.")) == [Cue(1000, 3000, ("Good morning.",))]


def test_a_cue_ends_with_a_sentence() -> None:
    assert texts(shown(spoken("We came home late. The dog was gone."))) == ["We came home late.", "The dog was gone."]


def test_a_sentence_too_short_to_read_shares_its_cue() -> None:
    assert texts(shown(spoken("No. I did not see the dog."))) == ["No. I did not see the dog."]


@pytest.mark.parametrize(
    "text", ["We saw Dr. Smith at noon.", "On the 3. May it rained.", "We asked J. Smith.", 'He said "why?" and left.']
)
def test_a_point_that_ends_no_sentence_ends_no_cue(text: str) -> None:
    assert texts(shown(spoken(text, 0.5))) == [text]


def test_a_sentence_that_goes_on_in_the_next_segment_is_cut_where_it_reads_best() -> None:
    found = shown(
        Segment(0.0, 4.0, "He began a confused complaint against the wizard who had vanished behind the curtain on"),
        Segment(4.0, 4.5, "the left."),
        Segment(4.5, 6.0, "Then he went."),
    )
    assert texts(found) == [
        "He began a confused / complaint against the wizard",
        "who had vanished behind / the curtain on the left.",
        "Then he went.",
    ]
    assert [cue.end for cue in found[1:]] == [4500, 6000]


@pytest.mark.parametrize(
    ("second", "start"),
    [
        pytest.param("went home", 3.5, id="after a pause"),
        pytest.param("went home", 2.5, id="that overlaps"),
        pytest.param("We went home", 3.0, id="with a capital letter"),
        pytest.param("回家了", 3.0, id="in a script without small letters"),
        pytest.param("42 of them", 3.0, id="with a number"),
    ],
)
def test_a_segment_that_may_be_another_sentence_has_its_own_cue(second: str, start: float) -> None:
    assert texts(shown(Segment(1.0, 3.0, "and then we"), Segment(start, 5.0, second))) == ["and then we", second]


def test_after_the_end_of_a_sentence_a_segment_has_its_own_cue() -> None:
    assert texts(shown(Segment(1.0, 3.0, "Is it?"), Segment(3.0, 5.0, "it is"))) == ["Is it?", "it is"]


def test_a_cue_ends_at_a_pause() -> None:
    [first, second] = shown(spoken("and then we waited for him", pause_before=("waited",)))
    assert (first, second) == (Cue(0, 900, ("and then we",)), Cue(1900, 2800, ("waited for him",)))


def test_a_pause_after_punctuation_counts_as_well() -> None:
    assert texts(shown(spoken("well, then", 0.5, pause_before=("then",)))) == ["well,", "then"]


def test_a_cue_has_two_balanced_lines_rather_than_a_full_one_and_a_rest() -> None:
    assert texts(shown(spoken("one two three four five six seven eight nine ten", 0.2))) == [
        "one two three four five / six seven eight nine ten"
    ]


def test_lines_end_with_a_clause_where_that_is_near_the_middle() -> None:
    assert texts(shown(spoken("When the rain had stopped, they all went out for a walk", 0.2))) == [
        "When the rain had stopped, / they all went out for a walk"
    ]


def test_time_without_words_is_shared_out_by_characters() -> None:
    [first, second] = shown(Segment(10.0, 20.0, "aaaa aaaa. Bbbb bbbb."))
    assert (first.start, first.end, second.end) == (10000, 10000 + round(10000 * 11 / 21), 20000)
    assert second.start == first.end


def test_a_word_that_could_not_be_found_is_timed_by_its_neighbours() -> None:
    segment = Segment(0, 4, "it cost 13 pounds", words=(Word("it", 0, 1), Word("cost", 1, 2), Word("pounds", 3, 4)))
    assert [unit.text for unit in units(segment)] == ["it", "cost", "13", "pounds"]
    assert [unit.start for unit in units(segment)] == pytest.approx([0, 1, 2.25, 3])


def test_no_cue_lasts_longer_than_seven_seconds_though_a_word_does() -> None:
    assert shown(Segment(0.0, 30.0, "you"), duration=30) == [Cue(0, 7000, ("you",))]


def test_a_short_cue_stays_where_there_is_room() -> None:
    assert [cue.end for cue in shown(Segment(1.0, 1.1, "Yes."), Segment(1.5, 1.6, "No."))] == [1500, 2300]
    assert [cue.end for cue in shown(Segment(1.0, 1.1, "Yes."), duration=1.3)] == [1300]


def test_chinese_is_broken_by_characters_of_two_columns_and_not_before_punctuation() -> None:
    found = shown(Segment(0.0, 12.0, "我们今天要讨论一个非常重要的问题、" * 4))
    assert "".join("".join(cue.lines) for cue in found) == "我们今天要讨论一个非常重要的问题、" * 4
    assert all(width(line) <= 42 and line[0] != "、" for cue in found for line in cue.lines)


def test_a_timed_word_of_a_script_without_spaces_stays_whole() -> None:
    written = ["ありがとう", "ございます"] * 6
    words = tuple(Word(each, index / 2, index / 2 + 0.5) for index, each in enumerate(written))
    for cue in shown(Segment(0.0, 6.0, "".join(written), words=words)):
        assert all(len(line) % 5 == 0 for line in cue.lines)


def test_thai_keeps_vowels_and_marks_with_their_consonant() -> None:
    assert [unit.text for unit in units(Segment(0, 1, "เก้าอี้"))] == ["เก้า", "อี้"]


def test_mixed_scripts_join_to_the_text_again() -> None:
    text = "我用 OpenAI的模型 v3。Really?"
    assert "".join(unit.space + unit.text for unit in units(Segment(0, 1, text))) == text


def test_a_word_longer_than_a_line_has_one_of_its_own() -> None:
    address = "https://example.org/" + "x" * 60
    assert all(
        line == address or len(line) <= 42 for cue in shown(spoken(f"go to {address} now")) for line in cue.lines
    )


def test_overlapping_segments_give_cues_that_do_not() -> None:
    found = shown(Segment(0, 5, "one"), Segment(3, 6, "two"), Segment(2, 2, "three"), Segment(-1, 9, "four"))
    assert texts(found) == ["four", "one", "three", "two"]
    assert all(before.end <= after.start for before, after in pairwise(found))


def test_times_carry_into_seconds_when_rounded() -> None:
    assert placed([(59.9995, 119.9996)], 3600.0) == [(60000, 120000)]


SPANS = st.lists(st.tuples(st.floats(-5, 500), st.floats(-5, 500)), max_size=20).map(sorted)


@given(SPANS, st.floats(0, 500))
def test_placed_spans_follow_each_other_within_the_duration(spans: list[tuple[float, float]], duration: float) -> None:
    times = placed(spans, duration, 800, 7000)
    limit = round(duration * 1000)
    assert len(times) == len(spans)
    assert all(0 <= start < end <= start + 7000 for start, end in times)
    assert all(end <= start for (_, end), (start, _) in pairwise(times))
    assert limit < len(spans) or all(end <= limit for _, end in times)


WORD = st.text("abcäß.,!?-'\"<>&世界。、「」กเ้", min_size=1, max_size=50)


@st.composite
def segments_in_order(draw: st.DrawFn) -> tuple[Segment, ...]:
    found, time = [], 0.0
    for texts in draw(st.lists(st.lists(WORD, min_size=1, max_size=25), max_size=4)):
        start, words = time, []
        for text in texts:
            begin = time + draw(st.sampled_from([0.0, 0.0, 0.1, 1.5]))
            time = begin + draw(st.floats(0.01, 2.0))
            words.append(Word(text, begin, time))
        segment = Segment(start, time, " ".join(texts), words=tuple(words))
        found.append(segment if draw(st.booleans()) else replace(segment, words=()))
    return tuple(found)


@given(segments_in_order(), st.sampled_from([1, 2]))
def test_cues_hold_all_text_in_order_in_lines_that_fit(segments: tuple[Segment, ...], most_lines: int) -> None:
    whole = transcript(*segments, duration=max([each.end for each in segments], default=0.0))
    found = cues(whole, most_lines)
    said = "".join(flat(segment.text) for segment in segments).replace(" ", "")
    written = "".join("".join(cue.lines) for cue in found).replace(" ", "")
    assert written.replace("-", "") == said.replace("-", "")  # arrows are shortened
    pieces = {unit.text for segment in segments for unit in units(segment)}
    for cue in found:
        assert 1 <= len(cue.lines) <= most_lines
        assert cue.end - cue.start <= 7000
        assert all(line.strip() == line and (width(line) <= 42 or line in pieces) for line in cue.lines)


@given(segments_in_order())
def test_no_cue_breaks_a_word_between_spaces(segments: tuple[Segment, ...]) -> None:
    spaced = [segment for segment in segments if segment.text.isascii()]
    words = [word for segment in spaced for word in flat(segment.text).replace("-->", "->").split()]
    found = cues(transcript(*spaced), most_lines=2)
    assert [len(word) for cue in found for line in cue.lines for word in line.split()] == [
        len(piece.text) for segment in spaced for piece in units(segment)
    ]
    assert len(words) == sum(len(units(segment)) for segment in spaced)
