import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.turn import TRANSITIONS, Action, Event, State, Turn


def walk(turn: Turn, events: list[Event]) -> list[Action]:
    """The actions of those events that the machine allows in its state, as a call filters them."""
    return [action for event in events if turn.allows(event) and (action := turn.step(event))]


def test_a_turn_goes_round():
    turn = Turn()

    actions = [turn.step(e) for e in (Event.SPEECH, Event.END_OF_TURN, Event.AUDIO, Event.SAID)]

    assert actions == [Action.OPEN, Action.ANSWER, Action.PLAY, Action.CLOSE]
    assert turn.state is State.LISTENING
    assert turn.number == 1


def test_speech_before_anything_was_heard_reopens_the_same_turn():
    turn = Turn()
    walk(turn, [Event.SPEECH, Event.END_OF_TURN])

    assert turn.step(Event.SPEECH) is Action.REOPEN
    assert turn.number == 1
    assert turn.state is State.HEARING


def test_barge_in_begins_a_new_turn():
    turn = Turn()
    walk(turn, [Event.SPEECH, Event.END_OF_TURN, Event.AUDIO])

    assert turn.step(Event.BARGE_IN) is Action.INTERRUPT
    assert turn.number == 2


@pytest.mark.parametrize(
    ("before", "action", "number"),
    [
        ([], Action.OPEN, 1),
        ([Event.SPEECH], Action.GO_ON, 1),
        ([Event.SPEECH, Event.END_OF_TURN], Action.REOPEN, 1),
        ([Event.SPEECH, Event.END_OF_TURN, Event.AUDIO], Action.INTERRUPT, 2),
        ([Event.PROMPT], Action.INTERRUPT, 1),
    ],
)
def test_a_key_gives_the_caller_the_turn_whoever_had_it(before: list[Event], action: Action, number: int):
    turn = Turn()
    walk(turn, before)

    assert turn.step(Event.KEY) is action
    assert (turn.state, turn.number) == (State.HEARING, number)


@given(st.lists(st.sampled_from(sorted(set(Event) - {Event.HANG_UP}, key=lambda event: event.value)), max_size=60))
def test_keys_may_be_pressed_at_any_time_of_a_call(events: list[Event]):
    turn = Turn()
    for event in events:
        walk(turn, [event])
        turn.step(Event.KEY)
        assert turn.state is State.HEARING


def test_a_failed_answer_is_apologised_for_and_listening_follows():
    turn = Turn()

    actions = walk(turn, [Event.SPEECH, Event.END_OF_TURN, Event.FAILED, Event.SAID])

    assert actions[-2:] == [Action.APOLOGISE, Action.CLOSE]
    assert turn.state is State.LISTENING


def test_an_answer_that_breaks_off_is_apologised_for_within_the_same_turn():
    turn = Turn()

    actions = walk(turn, [Event.SPEECH, Event.END_OF_TURN, Event.AUDIO, Event.FAILED, Event.SAID])

    assert actions[-2:] == [Action.APOLOGISE, Action.CLOSE]
    assert turn.number == 1


def test_an_impossible_pair_is_a_bug():
    with pytest.raises(AssertionError, match="SAID"):
        Turn().step(Event.SAID)


@given(st.lists(st.sampled_from(Event), max_size=60))
def test_a_closed_call_stays_closed_and_every_state_can_end(events: list[Event]):
    turn = Turn()
    walk(turn, events)

    if turn.state is not State.CLOSING:
        assert turn.step(Event.HANG_UP) is Action.END
    assert turn.state is State.CLOSING
    assert all(turn.step(event) is None for event in Event)


@given(st.lists(st.sampled_from(Event), max_size=60))
def test_there_is_never_a_second_answer_to_one_attempt(events: list[Event]):
    """PLAY only ever follows its own ANSWER, with nothing between that withdrew it."""
    turn, asked = Turn(), False
    for action in walk(turn, events):
        if action is Action.PLAY:
            assert asked
        if action is Action.ANSWER:
            asked = True
        elif action in (Action.PLAY, Action.REOPEN, Action.DROP, Action.APOLOGISE, Action.INTERRUPT):
            asked = False


@given(st.lists(st.sampled_from(Event), max_size=60))
def test_turn_numbers_never_go_back(events: list[Event]):
    turn, last = Turn(), 0
    for event in events:
        walk(turn, [event])
        assert last <= turn.number <= last + 1
        last = turn.number


def test_every_state_but_the_last_can_be_left_and_reached():
    sources = {state for state, _ in TRANSITIONS}
    targets = {state for state, _ in TRANSITIONS.values()}

    assert sources == set(State) - {State.CLOSING}
    assert targets == set(State)
