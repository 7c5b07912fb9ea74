from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load.faults.impairment import (
    Bandwidth,
    BurstLoss,
    Delay,
    Distribution,
    Drift,
    Duplicate,
    Impairment,
    Jitter,
    Loss,
    Reorder,
)
from load.faults.link import Link, Passage

SHARES = st.floats(0, 1)
SECONDS = st.floats(0, 0.2)
DISTRIBUTIONS = st.sampled_from(["uniform", "normal", "exponential", "pareto"])
IMPAIRMENTS = st.builds(
    Impairment,
    loss=st.none() | st.builds(Loss, SHARES),
    burst_loss=st.none() | st.builds(BurstLoss, st.floats(0, 0.4), st.floats(1, 10)),
    delay=st.none() | st.builds(Delay, SECONDS),
    jitter=st.none() | st.builds(Jitter, SECONDS, DISTRIBUTIONS, st.booleans()),
    reorder=st.none() | st.builds(Reorder, SHARES, SECONDS),
    duplicate=st.none() | st.builds(Duplicate, SHARES, SECONDS),
    bandwidth=st.none() | st.builds(Bandwidth, st.floats(1e4, 1e7), st.integers(1500, 20_000)),
    drift=st.none() | st.builds(Drift, st.floats(-200, 200), st.floats(1, 300)),
)
PACKETS = st.lists(st.tuples(st.integers(20, 1500), st.floats(0, 0.1)), max_size=80)  # bytes, seconds since the last


def run(impairment: Impairment, packets: list[tuple[int, float]], seed: int = 1) -> tuple[Link, list[Passage]]:
    link, now, passages = Link(impairment, np.random.default_rng(seed)), 100.0, []
    for size, gap_s in packets:
        now += gap_s
        passages.append(link.offer(size, now))
    return link, passages


def arrivals(packets: list[tuple[int, float]]) -> list[float]:
    return list(100.0 + np.cumsum([gap_s for _, gap_s in packets])) if packets else []


def paced(num: int, size: int = 100) -> list[tuple[int, float]]:
    return [(size, 0.02)] * num


@given(IMPAIRMENTS, PACKETS)
def test_every_packet_is_delivered_lost_or_dropped_once_and_copies_are_counted(impairment, packets) -> None:
    link, passages = run(impairment, packets)
    tally = link.tally
    assert tally.num_offered == len(packets)
    assert tally.num_delivered + tally.num_lost + tally.num_dropped == len(packets)
    fates = [passage.fate for passage in passages]
    assert (tally.num_delivered, tally.num_lost) == (fates.count("delivered"), fates.count("lost"))
    assert sum(len(passage.leaves_s) for passage in passages) == tally.num_delivered + tally.num_copies
    assert all(bool(passage.leaves_s) == (passage.fate == "delivered") for passage in passages)


@given(IMPAIRMENTS, PACKETS)
def test_nothing_leaves_before_it_came(impairment, packets) -> None:
    _, passages = run(impairment, packets)
    for passage, at_s in zip(passages, arrivals(packets), strict=True):
        assert all(leaves_s >= at_s - 1e-9 for leaves_s in passage.leaves_s)


@given(IMPAIRMENTS.filter(lambda i: i.reorder is None and (i.jitter is None or i.jitter.keeps_order)), PACKETS)
def test_order_is_kept_where_nothing_reorders(impairment, packets) -> None:
    _, passages = run(impairment, packets)
    first = [passage.leaves_s[0] for passage in passages if passage.leaves_s]
    assert first == sorted(first)


@given(IMPAIRMENTS, PACKETS, st.integers(0, 2**32))
def test_the_same_seed_gives_the_same(impairment, packets, seed: int) -> None:
    assert run(impairment, packets, seed)[1] == run(impairment, packets, seed)[1]


@given(IMPAIRMENTS, PACKETS)
def test_what_is_lost_does_not_depend_on_the_rest_of_the_path(impairment, packets) -> None:
    alone = Impairment(loss=impairment.loss, burst_loss=impairment.burst_loss)
    lost = [passage.fate == "lost" for passage in run(impairment, packets)[1]]
    assert lost == [passage.fate == "lost" for passage in run(alone, packets)[1]]


@settings(max_examples=200)
@given(IMPAIRMENTS.filter(lambda i: i.bandwidth is not None), PACKETS)
def test_the_bandwidth_holds_over_any_window(impairment, packets) -> None:
    assert impairment.bandwidth is not None
    rate_bit_per_s = impairment.bandwidth.rate_bit_per_s
    _, passages = run(impairment, packets)
    left = sorted(
        (leaves_s, size) for passage, (size, _) in zip(passages, packets, strict=True) for leaves_s in passage.leaves_s
    )
    for i, (start_s, _) in enumerate(left):
        bits = 0
        for end_s, size in left[i + 1 :]:  # after `start_s`, up to `end_s`
            bits += 8 * size
            assert bits <= rate_bit_per_s * (end_s - start_s) * (1 + 1e-6) + 1e-3


@given(PACKETS, st.floats(1e4, 1e6), st.integers(1500, 6000))
def test_the_queue_is_bounded(packets, rate_bit_per_s: float, queue_bytes: int) -> None:
    _, passages = run(Impairment(bandwidth=Bandwidth(rate_bit_per_s, queue_bytes)), packets)
    longest_s = 8 * (queue_bytes + 1500) / rate_bit_per_s  # a full queue behind one packet that is being sent
    for passage, at_s in zip(passages, arrivals(packets), strict=True):
        assert all(leaves_s - at_s <= longest_s + 1e-6 for leaves_s in passage.leaves_s)


def test_a_full_queue_drops_what_comes_last() -> None:
    _, passages = run(Impairment(bandwidth=Bandwidth(8_000, 3000)), [(1000, 0.0)] * 6)
    assert [passage.fate for passage in passages] == ["delivered"] * 4 + ["dropped"] * 2
    assert [passage.leaves_s[0] - 100 for passage in passages[:4]] == pytest.approx([1, 2, 3, 4])


def test_a_path_without_drops_makes_the_sender_wait() -> None:
    impairment = Impairment(bandwidth=Bandwidth(8_000, 3000)).without_drops()
    _, passages = run(impairment, [(1000, 0.0)] * 6)
    assert passages[-1].leaves_s == pytest.approx((106.0,))


@pytest.mark.parametrize("share", [0.03, 0.3])
def test_random_loss_has_its_share_and_comes_singly(share: float) -> None:
    link, passages = run(Impairment(loss=Loss(share)), paced(20_000))
    assert link.tally.lost_share == pytest.approx(share, abs=4 * (share * (1 - share) / 20_000) ** 0.5)
    assert _mean_burst(passages) == pytest.approx(1 / (1 - share), rel=0.1)


@pytest.mark.parametrize(("share", "burst", "loss_in_bad"), [(0.05, 5.0, 1.0), (0.1, 10.0, 0.5)])
def test_burst_loss_has_its_share_and_its_length(share: float, burst: float, loss_in_bad: float) -> None:
    link, passages = run(Impairment(burst_loss=BurstLoss(share, burst, loss_in_bad)), paced(60_000))
    assert link.tally.lost_share == pytest.approx(share, rel=0.15)
    if loss_in_bad == 1:
        assert _mean_burst(passages) == pytest.approx(burst, rel=0.15)


@pytest.mark.parametrize("distribution", ["uniform", "normal", "exponential", "pareto"])
def test_jitter_has_half_its_spread_for_a_mean(distribution: Distribution) -> None:
    impairment = Impairment(jitter=Jitter(0.04, distribution, keeps_order=False))
    _, passages = run(impairment, paced(20_000))
    late = [p.leaves_s[0] - at_s for p, at_s in zip(passages, arrivals(paced(20_000)), strict=True)]
    assert np.mean(late) == pytest.approx(0.02, rel=0.06)
    assert np.std(late) > 0.005
    if distribution in ("uniform", "normal"):
        assert max(late) <= 0.04 + 1e-9


def test_held_packets_are_overtaken() -> None:
    link, passages = run(Impairment(reorder=Reorder(0.2, 0.05)), paced(2000))
    order = np.argsort([passage.leaves_s[0] for passage in passages], kind="stable")
    assert link.tally.num_held == pytest.approx(400, abs=80)
    assert np.count_nonzero(np.diff(order) < 0) > 200


def test_copies_come_after_their_packet() -> None:
    link, passages = run(Impairment(duplicate=Duplicate(0.5, 0.03)), paced(1000))
    copied = [passage.leaves_s for passage in passages if len(passage.leaves_s) == 2]
    assert len(copied) == link.tally.num_copies == pytest.approx(500, abs=70)
    assert all(second - first == pytest.approx(0.03) for first, second in copied)


@pytest.mark.parametrize("ppm", [200.0, -200.0])
def test_drift_stretches_the_time_between_packets_until_it_ends(ppm: float) -> None:
    packets = [(100, 1.0)] * 401
    _, passages = run(Impairment(drift=Drift(ppm, for_s=300)), packets)
    left = np.array([passage.leaves_s[0] for passage in passages])
    assert left[300] - left[0] == pytest.approx(300 * (1 + ppm * 1e-6), abs=1e-6)
    assert left[400] - left[301] == pytest.approx(99, abs=1e-6)
    assert np.all(left >= np.array(arrivals(packets)) - 1e-9)


def _mean_burst(passages: list[Passage]) -> float:
    lost = np.array([passage.fate == "lost" for passage in passages]).astype(int)
    return float(lost.sum() / np.count_nonzero(np.diff(np.concatenate([[0], lost])) == 1))
