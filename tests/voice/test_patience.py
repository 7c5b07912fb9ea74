from voice.patience import DRAIN_MARGIN_S, GOODBYE_S, GRACE_S, Due, Patience


def patience() -> Patience:
    return Patience(0.0, idle_after_s=15, max_call_s=600, drain_timeout_s=30)


def test_the_first_silence_is_asked_about_and_the_second_ends_the_call():
    p = patience()

    assert p.due(14.9, quiet_since_s=0.0, draining=False) is None
    assert p.due(15.0, quiet_since_s=0.0, draining=False) is Due.IDLE_PROMPT
    assert p.due(20.0, quiet_since_s=18.0, draining=False) is None
    assert p.due(33.0, quiet_since_s=18.0, draining=False) is Due.IDLE_GOODBYE


def test_a_word_of_the_caller_starts_the_patience_anew():
    p = patience()
    p.due(15.0, quiet_since_s=0.0, draining=False)
    p.heard_caller()

    assert p.due(40.0, quiet_since_s=25.0, draining=False) is Due.IDLE_PROMPT


def test_the_longest_call_ends_between_turns_or_after_a_grace():
    p = patience()

    assert p.due(600.0, quiet_since_s=None, draining=False) is None
    assert p.due(601.0, quiet_since_s=600.5, draining=False) is Due.LENGTH_GOODBYE
    assert p.due(600.0 + GRACE_S, quiet_since_s=None, draining=False) is Due.LENGTH_END


def test_a_draining_server_says_goodbye_between_turns_and_before_its_time_is_up():
    p = patience()
    first_s = 130.0 - GOODBYE_S - GRACE_S

    assert p.due(100.0, quiet_since_s=99.0, draining=True) is None
    assert p.due(first_s - 0.1, quiet_since_s=110.0, draining=True) is None
    assert p.due(first_s, quiet_since_s=None, draining=True) is None
    assert p.due(first_s, quiet_since_s=first_s - 0.1, draining=True) is Due.DRAIN_GOODBYE
    assert p.due(first_s + GOODBYE_S, quiet_since_s=None, draining=True) is None  # the goodbye is being said
    assert p.due(130.0 - DRAIN_MARGIN_S, quiet_since_s=None, draining=True) is Due.DRAIN_END


def test_a_server_without_time_to_drain_ends_its_calls_at_once():
    p = Patience(0.0, idle_after_s=15, max_call_s=600, drain_timeout_s=0)

    assert p.due(1.0, quiet_since_s=0.0, draining=True) is Due.DRAIN_END
