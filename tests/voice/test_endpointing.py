from hypothesis import given
from hypothesis import strategies as st

from voice.config import EndpointingConfig
from voice.endpointing import (
    WINDOW_S,
    WINDOW_SAMPLES,
    AskTurnModel,
    Decision,
    Endpointer,
    NoiseEnded,
    Resumed,
    Speculate,
    SpeechGoesOn,
    SpeechStarted,
    TurnEnded,
)

CONFIG = EndpointingConfig()
SPEECH, SILENCE = 0.9, 0.1


def feed(endpointer: Endpointer, *runs: tuple[float, int]) -> list[tuple[int, Decision]]:
    """(window number, decision) of runs of equal windows."""
    windows = [p for p, count in runs for _ in range(count)]
    return [(i, d) for i, p in enumerate(windows) for d in endpointer.window(p)]


def kinds(decisions: list[tuple[int, Decision]]) -> list[type]:
    return [type(d) for _, d in decisions if not isinstance(d, SpeechGoesOn)]


def test_speech_starts_where_its_first_window_began():
    decisions = feed(Endpointer(CONFIG), (SILENCE, 5), (SPEECH, 2))

    assert decisions == [(6, SpeechStarted(5 * WINDOW_SAMPLES))]


def test_one_loud_window_is_a_click():
    assert feed(Endpointer(CONFIG), (SILENCE, 5), (SPEECH, 1), (SILENCE, 20)) == []


def test_three_silent_windows_start_speculation_once_and_questions_repeat():
    decisions = feed(Endpointer(CONFIG), (SPEECH, 20), (SILENCE, 10))

    assert kinds(decisions) == [SpeechStarted, Speculate, AskTurnModel, AskTurnModel, AskTurnModel]
    first = next(i for i, d in decisions if isinstance(d, Speculate))
    assert first == 20 + 2  # the third silent window


def test_a_sure_turn_model_ends_the_turn_at_the_shortest_wait():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20), (SILENCE, 3))

    assert endpointer.answer(0, 0.98) == []
    decisions = feed(endpointer, (SILENCE, 3))

    [(window, ended)] = [(i, d) for i, d in decisions if isinstance(d, TurnEnded)]
    assert abs((3 + window + 1) * WINDOW_S - CONFIG.min_wait_s) <= WINDOW_S / 2
    assert ended.probability == 0.98


def test_an_answer_that_comes_late_ends_the_turn_at_once():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20), (SILENCE, 7))

    assert [type(d) for d in endpointer.answer(0, 0.9)] == [TurnEnded]


def test_without_an_answer_the_longest_wait_ends_the_turn():
    decisions = feed(Endpointer(CONFIG), (SPEECH, 20), (SILENCE, 40))

    [(window, _)] = [(i, d) for i, d in decisions if isinstance(d, TurnEnded)]
    assert abs((window - 19) * WINDOW_S - CONFIG.max_wait_s) <= WINDOW_S / 2


def test_speech_in_the_pause_voids_question_and_answer():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20), (SILENCE, 4))

    assert kinds(feed(endpointer, (SPEECH, 1))) == [Resumed]
    assert endpointer.answer(0, 0.99) == []
    assert not any(isinstance(d, TurnEnded) for _, d in feed(endpointer, (SILENCE, 4)))


def test_too_little_speech_is_noise():
    decisions = feed(Endpointer(CONFIG), (SPEECH, 2), (SILENCE, 40))

    assert kinds(decisions)[-1] is NoiseEnded


def test_a_caller_who_never_pauses_is_cut_at_the_longest_turn():
    decisions = feed(Endpointer(CONFIG), (SPEECH, int(CONFIG.max_turn_s / WINDOW_S) + 5))

    assert TurnEnded in kinds(decisions)


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_surer_the_model_the_shorter_the_wait(low: float, high: float):
    waits = []
    for probability in sorted((low, high)):
        endpointer = Endpointer(CONFIG)
        feed(endpointer, (SPEECH, 20), (SILENCE, 3))
        endpointer.answer(0, probability)
        waits.append(endpointer.wait_s())

    assert CONFIG.min_wait_s <= waits[1] <= waits[0] <= CONFIG.max_wait_s


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("window"), st.floats(0, 1)),
            st.tuples(st.integers(0, 6), st.floats(0, 1)),
        ),
        max_size=400,
    )
)
def test_every_utterance_starts_and_ends_once_in_any_order_of_answers(events: list[tuple[object, float]]):
    endpointer, is_open, asked = Endpointer(CONFIG), False, 0
    for what, value in events:
        decisions = endpointer.window(value) if what == "window" else endpointer.answer(int(str(what)), value)
        for decision in decisions:
            match decision:
                case SpeechStarted():
                    assert not is_open
                    is_open = True
                case TurnEnded() | NoiseEnded():
                    assert is_open
                    is_open = False
                case AskTurnModel(question):
                    assert is_open
                    assert question == asked
                    asked += 1
                case _:
                    assert is_open
        assert endpointer.in_speech == is_open
