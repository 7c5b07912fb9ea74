"""Fits the weights of `voice/completion.py` to recorded speech: `python -m bench.certainty`.

Every pause of the speakers for calibration (bench/recordings.py) gives what was known `AT_S` after it began, and
whether it was the end. Logistic regression, held to the weights that stand in the table now as a prior of width
`PRIOR_WIDTH`: a word list that hardly occurs in the recordings keeps its weight. Prints the row, and how well each
signal tells alone: the area under its curve (0.5 is none).
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.endpointing import Models, corpus, replay
from bench.paused import Turn
from bench.recordings import folder
from voice.completion import WEIGHTS, Evidence, Weights, weighed
from voice.config import EndpointingConfig
from voice.endpointing import Endpointer

AT_S = (0.192, 0.352)
PRIOR_WIDTH = 1.0
STEPS, RATE = 4000, 0.05


@dataclass(frozen=True)
class Pause:
    """Each evidence with the silence at which it was there."""

    known: tuple[tuple[float, Evidence], ...]
    is_end: bool

    def at(self, silence_s: float) -> Evidence | None:
        """None when the pause was over before."""
        if self.known[-1][0] < silence_s - 0.001:
            return None
        return [evidence for at_s, evidence in self.known if at_s <= silence_s + 0.001][-1]


class Watching(Endpointer):
    """Never ends a turn, and writes down what is known."""

    def __init__(self, config: EndpointingConfig) -> None:
        super().__init__(config)
        self.known: list[tuple[float, Evidence]] = []

    def wait_s(self) -> float:
        self.known.append((self._silence_s, self.evidence))
        return 10.0


def pauses(said: Sequence[Turn], models: Models) -> list[Pause]:
    """In which the turn model was asked."""
    found = []
    for turn in said:
        watching = Watching(EndpointingConfig())
        replay(turn, watching, models)
        spans: list[list[tuple[float, Evidence]]] = []
        for silence_s, evidence in watching.known:
            if not spans or silence_s < spans[-1][-1][0]:
                spans.append([])
            spans[-1].append((silence_s, evidence))
        found += [Pause(tuple(span), span is spans[-1]) for span in spans if span[-1][0] > AT_S[0]]
        models.save()
    return found


def fit(found: Sequence[Pause], prior: Weights) -> Weights:
    names = [field.name for field in dataclasses.fields(Weights) if field.name != "is_calibrated"]
    rows = [(weighed(e), p.is_end) for p in found for at_s in AT_S if (e := p.at(at_s)) is not None]
    x = np.array([[row.get(name, 0.0) for name in names] for row, _ in rows])
    y = np.array([is_end for _, is_end in rows], float)
    start = np.array([getattr(prior, name) for name in names])
    w = start.copy()
    for _ in range(STEPS):
        slope = x.T @ (_logistic(x @ w) - y) + (w - start) / PRIOR_WIDTH**2
        w -= RATE * slope / len(y) * 10
    for name, column in zip(names, x.T, strict=True):
        print(f"{name:10} {np.count_nonzero(column):5} of {len(y)}   area {area(column, y):.2f}")
    print(f"all together: area before {area(x @ start, y):.2f}, fitted {area(x @ w, y):.2f}")
    return Weights(**dict(zip(names, (round(float(value), 2) for value in w), strict=True)), is_calibrated=True)


def area(score: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """That an end scores higher than a pause, ties half."""
    ends, others = score[y == 1][:, None], score[y == 0][None]
    return float(np.mean((ends > others) + 0.5 * (ends == others)))


def _logistic(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-z)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--more", type=Path, action="append", default=[], help="a further folder of recordings")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    models = Models(folder() / "asked.pickle")
    _, calibration = corpus(arguments.more, arguments.seed)
    found = pauses(calibration, models)
    models.close()
    print(f"{len(found)} pauses, {sum(pause.is_end for pause in found)} of them ends")
    print(fit(found, WEIGHTS["en"]))


if __name__ == "__main__":
    main()
