"""Where the faults of a scenario take effect: the path of its call, the stages behind the server, their processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from load.errors import LoadError
from load.faults.breaks import BREAKS
from load.faults.impairment import NETWORK_FAULTS, NetworkFault
from load.faults.kill import PROCESS_FAULTS, Processes, carry_out
from load.faults.parse import Fault
from load.faults.path import CallPath, PathFault
from load.faults.stage_proxy import StageProxy
from load.faults.stages import STAGES, Stage


def of_path(faults: Iterable[Fault]) -> list[PathFault]:
    """Those on the way between caller and server."""
    return [fault for fault in faults if isinstance(fault, (*NETWORK_FAULTS, *BREAKS))]


def needs_own_stack(faults: Iterable[Fault]) -> str | None:
    """The kind of the first that only a stack started for the run can have."""
    inside = (*PROCESS_FAULTS, *(kind for kinds in STAGES.values() for kind in kinds))
    return next((fault.KIND for fault in faults if isinstance(fault, inside)), None)


@dataclass(frozen=True)
class Site:
    """`stages` and `processes` are those of a stack that was started for the run; of another server there are none."""

    stages: Mapping[Stage, StageProxy] = field(default_factory=dict)
    processes: Processes | None = None

    def require(self, faults: Iterable[Fault]) -> None:
        """Raises: LoadError for the first fault that cannot be had here."""
        if self.processes is None and (kind := needs_own_stack(faults)) is not None:
            raise LoadError(f"{kind} is a fault of a stack that was started for the run", "start one: --start PROFILE")

    def clear(self) -> None:
        """Stages are as they were; requests under way keep their fault."""
        for proxy in self.stages.values():
            proxy.plan.clear()

    def set(
        self, fault: Fault, path: CallPath, before: Iterable[NetworkFault], tasks: asyncio.TaskGroup
    ) -> asyncio.Task[int] | None:
        """From now on. `before`: what is on the path already. What happens to a process goes on as a task.

        Raises: LoadError.
        """
        if isinstance(fault, NETWORK_FAULTS):
            path.change([*before, fault])
            return None
        if isinstance(fault, BREAKS):
            path.do(fault)
            return None
        self.require([fault])
        if isinstance(fault, PROCESS_FAULTS):
            assert self.processes is not None
            return tasks.create_task(carry_out(fault, self.processes))
        [stage] = [stage for stage, kinds in STAGES.items() if isinstance(fault, kinds)]
        self.stages[stage].plan.set([fault])
        return None
