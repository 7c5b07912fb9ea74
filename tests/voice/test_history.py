import itertools

from hypothesis import given
from hypothesis import strategies as st

from voice.history import History


def test_only_what_was_heard_is_remembered():
    history = History("Be kind.", 12)
    history.add("", "Hello.")
    history.add("What time is it?", "It is")

    assert history.prompt("Go on.") == [
        {"role": "system", "content": "Be kind."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": "It is"},
        {"role": "user", "content": "Go on."},
    ]


def test_an_unheard_answer_leaves_two_user_turns_that_become_one():
    history = History("Be kind.", 12)
    history.add("Are you", "")

    assert history.prompt("there?")[1:] == [{"role": "user", "content": "Are you there?"}]


exchanges = st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=40)


@given(exchanges, st.integers(1, 8))
def test_roles_alternate_and_the_prompt_is_bounded(said: list[tuple[str, str]], max_turns: int):
    history = History("s", max_turns)
    for user, heard in said:
        history.add(user, heard)
    roles = [message["role"] for message in history.prompt("now")]

    assert roles[0] == "system"
    assert all(a != b for a, b in itertools.pairwise(roles))
    assert len(roles) <= 2 + 2 * max_turns


@given(exchanges)
def test_a_prompt_extends_the_one_before_while_nothing_is_dropped(said: list[tuple[str, str]]):
    history, before = History("s", 100), History("s", 100).prompt()
    for user, heard in said:
        history.add(user or "u", heard or "h")
        now = history.prompt()
        assert now[: len(before)] == before
        before = now
