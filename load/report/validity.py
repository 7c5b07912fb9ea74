"""Whether a run's figures mean anything: the generator's own lateness and its share of the CPU. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from load.report.document import MAX_CPU_SHARE, MAX_SCHEDULING_ERROR_S, Validity
from load.report.statistics import percentile

MIN_FOR_P99 = 100  # of fewer the 99th percentile is the worst of all, and one late request would decide
MIN_DURATION_S = 5.0  # a shorter run is mostly its own beginning, which says nothing about the CPU


def judge(
    late_s: Sequence[float], cpu_share: float, duration_s: float, *, shares_cores: bool, num_cores: int
) -> Validity:
    """`late_s`: of each thing sent, how much later than planned it left. `cpu_share` is that of all `duration_s`."""
    p50, p99 = (percentile(late_s, p) if len(late_s) else None for p in (50, 99))
    percent = 99 if len(late_s) >= MIN_FOR_P99 else 90
    late = percentile(late_s, percent) if len(late_s) else None
    found = []
    if late is None:
        found.append("nothing was sent")
    elif late > MAX_SCHEDULING_ERROR_S:
        found.append(
            f"the generator could not keep time: {100 - percent} % of what it sent left more than {1000 * late:.1f} ms"
            f" late, {1000 * MAX_SCHEDULING_ERROR_S:.0f} ms is the limit"
        )
    if cpu_share > MAX_CPU_SHARE and duration_s >= MIN_DURATION_S:
        found.append(f"the generator used {cpu_share:.0%} of a core: it cannot be told from a slow server")
    if not found and shares_cores:
        of_all = cpu_share / num_cores
        note = f"generator and server share {num_cores} cores; the generator took {of_all:.0%} of them"
    else:
        note = ""
    return Validity(
        is_valid=not found,
        reason="; ".join(found) or note,
        num_timed=len(late_s),
        scheduling_error_p50_s=p50,
        scheduling_error_p99_s=p99,
        scheduling_error_max_s=max(late_s, default=None),
        cpu_share=cpu_share,
        shares_cores=shares_cores,
    )
