"""How many steps of the engine were slow, by phase. An example to change: each part that a collector has is here once.

It runs in a sandbox: no clock, no files, no network, and the metrics must depend on nothing but the events.
"""

import json

from componentize_py_types import Err
from wit_world import exports

# The host's functions: those of Python's own module differ in the last bit from one platform to the next.
from wit_world.imports import math
from wit_world.imports.types import (
    Batch,
    Fault,
    FaultCode,
    Metric,
    ResolvedKind,
    Sampling_All,
    Subscription,
    Value_Counter,
    Value_Gauge,
    Value_Unavailable,
    Want,
)

# Words for the values of a phase column; the last one stands for all that a later version of lm-bench may have.
PHASES = ["prefill", "decode", "mixed", "load", "unknown"]

# Columns in the order of the subscription.
PHASE, HOST_NS = 0, 1


class Sum:
    """A running sum with Neumaier's compensation: its error does not grow with the number of terms."""

    def __init__(self):
        self.sum = self.compensation = 0.0

    def add(self, term):
        total = self.sum + term
        if abs(self.sum) >= abs(term):
            self.compensation += (self.sum - total) + term
        else:
            self.compensation += (term - total) + self.sum
        self.sum = total

    def value(self):
        return self.sum + self.compensation


class Phase:
    """What is known of the steps of one phase."""

    def __init__(self):
        self.steps = self.slow_steps = 0
        self.weight = self.slow_weight = 0.0
        self.logs = Sum()


class State:
    """What the collector knows: a component has one instance, and calls never overlap."""

    def __init__(self, slow_ms):
        self.slow_ms = slow_ms
        self.lost = 0
        self.phases = [Phase() for _ in PHASES]


state = State(50.0)


def config_fault(message):
    return Err(Fault(FaultCode.CONFIG, message))


def read_config(text):
    """What a user may set with `--plugin-config ID.slow_ms=20`. A misspelt key must not pass."""
    config = json.loads(text)
    slow_ms = config.pop("slow_ms", 50.0)
    for unknown in config:
        raise config_fault(f"configuration: unknown field `{unknown}`")
    if isinstance(slow_ms, bool) or not isinstance(slow_ms, (int, float)):
        raise config_fault("configuration: `slow_ms` is not a number")
    if slow_ms <= 0:
        raise config_fault("slow_ms must be above 0")
    return slow_ms


def gauge(number):
    """A report has no values that are not finite."""
    if number - number == 0:
        return Value_Gauge(number)
    return Value_Unavailable("the formula gives no finite value for these events")


class Collector(exports.Collector):
    def subscribe(self, config: str, run: str) -> Subscription:
        """What to deliver. Interpreted code takes some microseconds per row and a batch may take 100 ms, so batches are
        small.
        """
        read_config(config)
        return Subscription([Want("step", ["phase", "host_ns"], [], Sampling_All())], 512)

    def open(self, config: str, run: str, resolved: list[ResolvedKind]) -> None:
        """`resolved` tells types and units of the columns; whoever wants optional columns finds there which of them
        exist.
        """
        global state
        state = State(read_config(config))

    def on_batch(self, batch: Batch) -> None:
        codes = batch.columns[PHASE].data.value
        times = batch.columns[HOST_NS].data.value
        state.lost += batch.lost_before
        for code, host_ns in zip(codes, times):
            phase = state.phases[min(code, len(PHASES) - 1)]
            ms = host_ns / 1e6
            phase.steps += 1
            phase.weight += batch.weight
            phase.logs.add(batch.weight * math.log(ms))
            if ms > state.slow_ms:
                phase.slow_steps += 1
                phase.slow_weight += batch.weight

    def lost_after(self, kind: int, rows: int) -> None:
        state.lost += rows

    def checkpoint(self) -> list[Metric]:
        """The metrics of all batches so far. Changes nothing."""
        metrics = []
        for word, phase in zip(PHASES, state.phases):
            if phase.steps == 0:
                continue
            # A share of the rows that were seen is still a share; a count is not.
            if state.lost > 0:
                slow = Value_Unavailable(f"{state.lost} steps were lost, so they cannot be counted")
            else:
                slow = Value_Counter(phase.slow_steps)
            ratio = gauge(phase.slow_weight / phase.weight)
            mean = gauge(math.exp(phase.logs.value() / phase.weight))
            for name, value, samples in (
                ("slow_steps", slow, phase.slow_steps),
                ("slow_step_ratio", ratio, phase.steps),
                ("step_time_geomean_ms", mean, phase.steps),
            ):
                samples = 0 if isinstance(value, Value_Unavailable) else samples
                metrics.append(Metric(name, [("phase", word)], value, samples))
        return metrics

    def finish(self) -> list[Metric]:
        return self.checkpoint()
