"""Are the weights there, and as long as they should be? `offhook models verify` reads every byte; this does not. Pure
but for `read_weights`, which looks at sizes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deploy.catalogue import Model
from deploy.doctor.findings import Finding
from deploy.progress import megabytes
from deploy.store import Store
from wire.weights import COMPLETE_MARK


@dataclass(frozen=True)
class Weights:
    """`sizes`: bytes of each file that is there; `error`: why the folder cannot be read."""

    model: Model
    where: str  # key of the profile that names it
    is_complete: bool
    sizes: Mapping[str, int]
    error: str = ""


def read_weights(store: Store, models: Sequence[tuple[Model, str]]) -> list[Weights]:
    found = []
    for model, where in models:
        folder = store.folder(model)
        try:
            sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
            found.append(Weights(model, where, COMPLETE_MARK in sizes, sizes))
        except FileNotFoundError:
            found.append(Weights(model, where, False, {}))
        except OSError as error:
            found.append(Weights(model, where, False, {}, f"{folder}: {error.strerror or error}"))
    return found


def check_weights(weights: Sequence[Weights], offhook: str) -> Iterator[Finding]:
    """`offhook`: the command as it is called here."""
    for each in weights:
        yield _check(each, offhook)


def _check(weights: Weights, offhook: str) -> Finding:
    model = weights.model
    if weights.error:
        mend = "make it readable for this user, or set OFFHOOK_CACHE to a folder of yours"
        return Finding("weights", model.id, "problem", weights.error, mend)
    if not weights.is_complete:
        half = "fetched only in part" if weights.sizes else "missing"
        found = f"{half} ({megabytes(model.size_bytes)}); {weights.where} names it"
        return Finding("weights", model.id, "problem", found, f"{offhook} models pull {model.id}")
    wrong = [file for file in model.files if weights.sizes.get(file.name) != file.size_bytes]
    if wrong:
        file = wrong[0]
        size = weights.sizes.get(file.name)
        is_what = "is missing" if size is None else f"has {size} bytes instead of {file.size_bytes}"
        mend = f"{offhook} models verify {model.id}"
        return Finding("weights", model.id, "problem", f"{file.name} {is_what}", mend)
    return Finding("weights", model.id, "ok", f"{megabytes(model.size_bytes)}, sizes are right")
