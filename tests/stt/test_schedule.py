from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from stt.schedule import Entry, Priority, Schedule

FINAL, SPECULATE, FILE, PARTIAL = Priority


def entry(priority: Priority, deadline_s: float = 100.0) -> Entry:
    return Entry(priority, deadline_s)


def test_the_most_urgent_goes_first_and_equals_in_order_of_arrival() -> None:
    schedule: Schedule[Entry] = Schedule(8, 8)
    first, second = entry(FINAL), entry(FINAL)
    waiting = [entry(PARTIAL), entry(FILE), entry(SPECULATE), first, second]
    for each in waiting:
        schedule.add(each)
    taken = [schedule.take() for _ in waiting]
    assert [each and each.priority for each in taken] == [FINAL, FINAL, SPECULATE, FILE, PARTIAL]
    assert taken[:2] == [first, second]


def test_background_work_leaves_an_instance_idle() -> None:
    schedule: Schedule[Entry] = Schedule(2, 8)
    for priority in (PARTIAL, FILE, FILE):
        schedule.add(entry(priority))
    assert (taken := schedule.take()) is not None
    assert taken.priority is FILE
    assert schedule.take() is None
    schedule.add(final := entry(FINAL))
    assert schedule.take() is final


def test_a_single_instance_serves_files_but_no_partials() -> None:
    schedule: Schedule[Entry] = Schedule(1, 8)
    schedule.add(entry(PARTIAL))
    assert schedule.take() is None
    schedule.add(file := entry(FILE))
    assert schedule.take() is file


def test_above_the_bound_the_newest_of_the_least_urgent_is_refused() -> None:
    schedule: Schedule[Entry] = Schedule(1, 2)
    schedule.add(entry(FINAL))
    schedule.take()
    schedule.add(speculation := entry(SPECULATE))
    schedule.add(entry(FINAL))
    assert schedule.overflow() is None
    schedule.add(entry(FINAL))
    assert schedule.overflow() is speculation
    schedule.add(last := entry(FINAL))
    assert schedule.overflow() is last


def test_a_promoted_speculation_overtakes() -> None:
    schedule: Schedule[Entry] = Schedule(1, 8)
    speculations = [entry(SPECULATE), entry(SPECULATE, deadline_s=5)]
    for each in speculations:
        schedule.add(each)
    speculations[1].promote(FINAL, 3)
    assert speculations[1].deadline_s == 5
    assert schedule.take() is speculations[1]


@dataclass
class Step:
    what: str
    priority: Priority
    wait_s: float


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["add", "take", "finish", "remove", "expire"]),
        st.sampled_from(list(Priority)),
        st.floats(0, 3),
    ),
    max_size=80,
)


@given(st.integers(1, 3), st.integers(1, 4), STEPS)
def test_no_request_is_lost_served_twice_or_served_late(
    num_instances: int, max_waiting: int, steps: list[Step]
) -> None:
    schedule: Schedule[Entry] = Schedule(num_instances, max_waiting)
    open_: list[Entry] = []
    left: list[Entry] = []
    now = 0.0
    for step in steps:
        now += step.wait_s
        match step.what:
            case "add":
                new = entry(step.priority, now + step.wait_s)
                open_.append(new)
                schedule.add(new)
                if refused := schedule.overflow():
                    assert all(refused.priority >= each.priority for each in open_ if each not in left)
                    left.append(refused)
            case "take":
                left += schedule.expired(now)
                num_idle = num_instances - schedule.num_running
                if taken := schedule.take():
                    assert taken.deadline_s > now
                    assert all(taken.priority <= each.priority for each in open_ if each not in left)
                    assert taken.priority is not PARTIAL or num_idle > 1
                    left.append(taken)
            case "finish" if schedule.num_running:
                schedule.finish()
            case "remove" if open_:
                assert schedule.remove(open_[-1]) is (open_[-1] not in left)
                left += [open_[-1]] if open_[-1] not in left else []
            case "expire":
                left += schedule.expired(now)
        assert len(schedule) == len(open_) - len(left) <= max_waiting
        assert 0 <= schedule.num_running <= num_instances
    assert len(left) == len(set(map(id, left)))
