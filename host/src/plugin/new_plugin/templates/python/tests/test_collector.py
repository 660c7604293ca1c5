"""Drives the collector as the host does. `python3 -m unittest discover tests` runs it, after a first build."""

import math
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINDINGS = ROOT / "target/plugins/{{id}}/bindings"
if not BINDINGS.is_dir():
    sys.exit("the bindings are made by a build: lm-bench plugin build . --door wasm --out out")
sys.path[:0] = [str(ROOT / "src"), str(BINDINGS)]

import wit_world.imports.math

# The host has its own functions; for a test those of Python are near enough.
wit_world.imports.math.exp = math.exp
wit_world.imports.math.log = math.log

from collector import Collector
from componentize_py_types import Err
from wit_world.imports.types import (
    Batch,
    Column,
    Data_U8s,
    Data_U64s,
    Value_Counter,
    Value_Gauge,
    Value_Unavailable,
)


def decode(config, lost_before):
    """Metrics of three steps of 2, 4 and 27 ms."""
    collector = Collector()
    collector.open(config, "{}", [])
    columns = [
        Column(1, Data_U8s(bytes([1, 1, 1]))),
        Column(1, Data_U64s([2_000_000, 4_000_000, 27_000_000])),
    ]
    collector.on_batch(Batch(0, 0, 3, 1.0, lost_before, columns))
    return {metric.name: metric.value for metric in collector.checkpoint()}


class SlowSteps(unittest.TestCase):
    def test_one_of_three_steps_is_slow(self):
        metrics = decode('{"slow_ms": 20}', 0)
        self.assertEqual(metrics["slow_steps"], Value_Counter(1))
        self.assertEqual(metrics["slow_step_ratio"], Value_Gauge(1 / 3))
        # The cube root of 2 * 4 * 27 = 6^3.
        self.assertAlmostEqual(metrics["step_time_geomean_ms"].value, 6.0, delta=1e-12)

    def test_lost_steps_are_not_counted(self):
        metrics = decode("{}", 2)
        self.assertIsInstance(metrics["slow_steps"], Value_Unavailable)
        self.assertIsInstance(metrics["slow_step_ratio"], Value_Gauge)

    def test_a_wrong_configuration_is_refused(self):
        for config, reason in [
            ('{"slow": 1}', "unknown field `slow`"),
            ('{"slow_ms": "20"}', "not a number"),
            ('{"slow_ms": 0}', "above 0"),
        ]:
            with self.assertRaises(Err) as raised:
                Collector().subscribe(config, "{}")
            self.assertIn(reason, raised.exception.value.message)


if __name__ == "__main__":
    unittest.main()
