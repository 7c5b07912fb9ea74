from hypothesis import given
from hypothesis import strategies as st

from voice.config import EndpointingConfig
from voice.endpointing import (
    NOISE_WAIT_S,
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

CONFIG = EndpointingConfig(patience=0.3)  # waits longer than the shortest where there is doubt
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


def test_two_silent_windows_start_speculation_once_and_questions_repeat():
    decisions = feed(Endpointer(CONFIG), (SPEECH, 20), (SILENCE, 10))

    assert kinds(decisions) == [SpeechStarted, Speculate, AskTurnModel, AskTurnModel, AskTurnModel]
    first = next(i for i, d in decisions if isinstance(d, Speculate))
    assert first == 20 + 1  # the second silent window


def test_recognition_starts_in_a_lull_that_vad_still_takes_for_speech():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20))
    decisions = [endpointer.window(SPEECH, is_quiet=True) for _ in range(3)]
    assert [[type(d) for d in ds] for ds in decisions] == [[SpeechGoesOn], [Speculate, SpeechGoesOn], [SpeechGoesOn]]
    endpointer.read("And then I went to the")
    known = endpointer.certainty

    decisions = [d for _ in range(3) for d in endpointer.window(SILENCE, is_quiet=True)]

    assert decisions == [AskTurnModel(0)]
    assert endpointer.certainty == known  # what was read counts in the pause


def test_a_lull_in_a_word_is_void_when_the_word_goes_on():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20))
    for _ in range(2):
        endpointer.window(SPEECH, is_quiet=True)

    assert endpointer.window(SPEECH)[0] == Resumed()
    assert endpointer.read("And then") == []


def test_the_soft_end_of_a_word_is_read_as_well():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20))
    for _ in range(2):
        endpointer.window(SPEECH, is_quiet=True)

    decisions = [endpointer.window(SILENCE), endpointer.window(SILENCE)]

    assert decisions == [[Resumed()], [Speculate(), AskTurnModel(0)]]


def test_soft_speech_is_no_lull():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20))
    decisions = [d for _ in range(20) for d in endpointer.window(SPEECH, is_quiet=True)]

    assert [type(d) for d in decisions if not isinstance(d, SpeechGoesOn)] == [Speculate, Resumed]


def test_a_turn_model_that_has_answered_is_not_asked_again_in_the_pause():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20), (SILENCE, 3))
    endpointer.answer(0, 0.01)
    endpointer.read("And then I went to the")

    assert not any(isinstance(d, AskTurnModel) for _, d in feed(endpointer, (SILENCE, 30)))


def test_a_turn_model_that_does_not_answer_is_asked_to_the_end():
    decisions = feed(Endpointer(CONFIG), (SPEECH, 20), (SILENCE, 60))

    asked = [i for i, d in decisions if isinstance(d, AskTurnModel)]
    ended = next(i for i, d in decisions if isinstance(d, TurnEnded))
    assert ended - asked[-1] <= 3


def test_a_surer_answer_later_in_the_pause_does_not_shorten_the_wait():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20), (SILENCE, 5))
    endpointer.answer(0, 0.1)
    before = endpointer.wait_s()

    endpointer.answer(1, 0.9)

    assert endpointer.wait_s() == before


def test_a_sure_turn_model_and_a_whole_sentence_end_the_turn_at_the_shortest_wait():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 60), (SILENCE, 3))

    assert endpointer.answer(0, 0.98) == []
    assert endpointer.read("I would like to change my address.") == []
    decisions = feed(endpointer, (SILENCE, 3))

    [(window, ended)] = [(i, d) for i, d in decisions if isinstance(d, TurnEnded)]
    assert abs((3 + window + 1) * WINDOW_S - CONFIG.min_wait_s) <= WINDOW_S / 2
    assert ended.probability == 0.98


def test_an_answer_that_comes_late_ends_the_turn_at_once():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 60), (SILENCE, 6))

    assert [type(d) for d in endpointer.answer(0, 0.98)] == [TurnEnded]


def test_a_transcript_that_comes_late_ends_the_turn_at_once():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 60), (SILENCE, 6))
    endpointer.answer(0, 0.3)

    assert [type(d) for d in endpointer.read("That is all, thank you.")] == [TurnEnded]


def test_an_unfinished_sentence_is_waited_for_to_the_bound():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20), (SILENCE, 3))
    endpointer.answer(0, 0.01)
    endpointer.read("I would like to")

    [(window, _)] = [(i, d) for i, d in feed(endpointer, (SILENCE, 60)) if isinstance(d, TurnEnded)]

    assert abs((3 + window + 1) * WINDOW_S - CONFIG.max_wait_s) <= WINDOW_S


def test_without_model_and_transcript_the_turn_ends_between_the_bounds():
    decisions = feed(Endpointer(CONFIG), (SPEECH, 20), (SILENCE, 60))

    [(window, _)] = [(i, d) for i, d in decisions if isinstance(d, TurnEnded)]
    assert CONFIG.min_wait_s < (window - 19) * WINDOW_S < CONFIG.max_wait_s


def test_a_caller_who_pauses_long_is_given_longer_later_in_the_call():
    waits = []
    for pause in (6, 24):
        endpointer = Endpointer(CONFIG)
        endpointer.is_asked = True
        for _ in range(4):
            feed(endpointer, (SPEECH, 20), (SILENCE, 2))
            endpointer.answer(endpointer.num_questions - 1, 0.01)
            endpointer.read("I went to the")
            feed(endpointer, (SILENCE, pause - 2))
        feed(endpointer, (SPEECH, 20), (SILENCE, 3))
        endpointer.answer(endpointer.num_questions - 1, 0.1)
        waits.append(endpointer.wait_s())

    assert waits[0] < waits[1]


def test_a_caller_who_was_cut_in_on_is_given_longer():
    waits = []
    for silence in (6, 60):  # he goes on at once, or speaks again after an answer
        endpointer = Endpointer(CONFIG)
        endpointer.is_asked = True
        feed(endpointer, (SPEECH, 60), (SILENCE, 14))
        endpointer.answer(0, 0.98)
        assert not endpointer.in_speech
        feed(endpointer, (SILENCE, silence), (SPEECH, 60), (SILENCE, 3))
        endpointer.answer(endpointer.num_questions - 1, 0.4)
        waits.append(endpointer.wait_s())

    assert waits[0] > waits[1]


def test_noise_is_over_soon_whatever_the_model_thinks_of_it():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 2), (SILENCE, 3))
    endpointer.answer(0, 0.01)

    [(window, _)] = [(i, d) for i, d in feed(endpointer, (SILENCE, 60)) if isinstance(d, NoiseEnded)]

    assert (window + 4) * WINDOW_S <= NOISE_WAIT_S + WINDOW_S


def test_speech_in_the_pause_voids_question_and_answer():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20), (SILENCE, 4))

    assert kinds(feed(endpointer, (SPEECH, 1))) == [Resumed]
    assert endpointer.answer(0, 0.99) == []
    assert endpointer.read("That is all.") == []
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
            st.tuples(st.sampled_from(["", "and", "Thank you."]), st.just(0.0)),
        ),
        max_size=400,
    )
)
def test_every_utterance_starts_and_ends_once_in_any_order_of_answers(events: list[tuple[object, float]]):
    endpointer, is_open, asked = Endpointer(CONFIG), False, 0
    for what, value in events:
        if what == "window":
            decisions = endpointer.window(value)
        else:
            decisions = endpointer.answer(what, value) if isinstance(what, int) else endpointer.read(str(what))
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


DOUBTED = "They took the cross"


def after(words: str, *, config: EndpointingConfig = CONFIG, language: str = "en") -> Endpointer:
    """In a pause after `words`."""
    endpointer = Endpointer(config, language)
    feed(endpointer, (SPEECH, 40), (SILENCE, 3))
    endpointer.answer(0, 0.5)
    endpointer.read(words)
    return endpointer


def test_a_full_stop_that_nobody_expects_lengthens_the_wait_and_one_that_comes_shortens_it():
    unlikely, unknown, likely = after(DOUBTED), after(DOUBTED), after(DOUBTED)
    unlikely.expect(-4.0)
    likely.expect(0.0)

    assert likely.wait_s() < unknown.wait_s() < unlikely.wait_s()


def test_what_is_expected_late_may_end_the_turn_at_once():
    endpointer = after(DOUBTED)
    endpointer._pauses.add(0.2)
    while endpointer._silence_s < endpointer.wait_s() - 2 * WINDOW_S:
        assert feed(endpointer, (SILENCE, 1)) == []

    assert [type(d) for d in endpointer.expect(0.0)] == [TurnEnded]


def test_a_language_model_is_asked_where_it_can_matter():
    assert after(DOUBTED).may_expect
    assert not after("").may_expect
    assert not after(DOUBTED, language="ko").may_expect
    assert not after(DOUBTED, config=EndpointingConfig(ask_language_model=False)).may_expect
    assert not Endpointer(CONFIG).may_expect


def test_a_turn_that_is_about_to_end_does_not_wait_for_a_language_model():
    endpointer = after("That is all, thank you.")
    feed(endpointer, (SILENCE, 1))

    assert endpointer.in_speech
    assert not endpointer.may_expect


def test_an_answer_to_a_question_is_not_judged_as_a_sentence():
    endpointer = after(DOUBTED)
    endpointer.is_asked = True

    assert not endpointer.may_expect


def test_what_was_expected_of_an_earlier_pause_is_void():
    endpointer = after(DOUBTED)
    endpointer.expect(-4.0)
    feed(endpointer, (SPEECH, 5), (SILENCE, 1))

    assert endpointer.expect(0.0) == []
    assert endpointer.evidence.stop_logprob is None


def test_a_lull_that_was_read_stays_read_when_others_have_precedence():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20))
    for _ in range(2):
        endpointer.window(SPEECH, is_quiet=True)

    decisions = [d for _ in range(2) for d in endpointer.window(SILENCE, is_quiet=True, is_eager=False)]

    assert decisions == [AskTurnModel(0)]


def test_no_lull_is_read_while_others_have_precedence():
    endpointer = Endpointer(CONFIG)
    feed(endpointer, (SPEECH, 20))
    decisions = [d for _ in range(4) for d in endpointer.window(SPEECH, is_quiet=True, is_eager=False)]

    assert not [d for d in decisions if isinstance(d, Speculate)]
