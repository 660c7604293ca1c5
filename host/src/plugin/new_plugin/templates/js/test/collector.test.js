// Drives the collector as the host does. `npm test` runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { collector } from '../src/collector.js';

function decode(lostBefore) {
  collector.onBatch({
    kind: 0,
    seq: 0,
    rows: 3,
    weight: 1,
    lostBefore,
    columns: [
      { width: 1, data: { tag: 'u8s', val: Uint8Array.of(1, 1, 1) } },
      { width: 1, data: { tag: 'u64s', val: [2e6, 4e6, 27e6] } },
    ],
  });
  return Object.fromEntries(collector.checkpoint().map((metric) => [metric.name, metric.value]));
}

test('one of three steps is slow', () => {
  collector.open('{"slow_ms":20}', '{}', []);
  const metrics = decode(0);
  assert.deepEqual(metrics.slow_steps, { tag: 'counter', val: 1 });
  assert.deepEqual(metrics.slow_step_ratio, { tag: 'gauge', val: 1 / 3 });
  // The cube root of 2 * 4 * 27 = 6^3.
  assert.ok(Math.abs(metrics.step_time_geomean_ms.val - 6) < 1e-12);
});

test('lost steps are not counted', () => {
  collector.open('{}', '{}', []);
  const metrics = decode(2);
  assert.equal(metrics.slow_steps.tag, 'unavailable');
  assert.equal(metrics.slow_step_ratio.tag, 'gauge');
});

test('a wrong configuration is refused', () => {
  assert.throws(() => collector.subscribe('{"slow":1}', '{}'), { code: 'config', message: /unknown field `slow`/ });
  assert.throws(() => collector.subscribe('{"slow_ms":"20"}', '{}'), { message: /not a number/ });
  assert.throws(() => collector.subscribe('{"slow_ms":0}', '{}'), { message: /above 0/ });
});
