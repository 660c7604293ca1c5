// Drives the collector as the host does. `npm test` runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { collector } from '../src/collector.js';

const MS = 1_000_000n;

function decode(lostBefore) {
  collector.onBatch({
    kind: 0,
    seq: 0n,
    rows: 3,
    weight: 1,
    lostBefore,
    columns: [
      { width: 1, data: { tag: 'u8s', val: Uint8Array.of(1, 1, 1) } },
      { width: 1, data: { tag: 'u64s', val: BigUint64Array.of(2n * MS, 4n * MS, 27n * MS) } },
    ],
  });
  return Object.fromEntries(collector.checkpoint().map((metric) => [metric.name, metric.value]));
}

test('one of three steps is slow', () => {
  collector.open('{"slow_ms":20}', '{}', []);
  const metrics = decode(0n);
  assert.deepEqual(metrics.slow_steps, { tag: 'counter', val: 1n });
  assert.deepEqual(metrics.slow_step_ratio, { tag: 'gauge', val: 1 / 3 });
  // The cube root of 2 * 4 * 27 = 6^3.
  assert.ok(Math.abs(metrics.step_time_geomean_ms.val - 6) < 1e-12);
});

test('lost steps are not counted', () => {
  collector.open('{}', '{}', []);
  const metrics = decode(2n);
  assert.equal(metrics.slow_steps.tag, 'unavailable');
  assert.equal(metrics.slow_step_ratio.tag, 'gauge');
});

test('a wrong configuration is refused', () => {
  assert.throws(() => collector.subscribe('{"slow":1}', '{}'), { code: 'config', message: /unknown field `slow`/ });
  assert.throws(() => collector.subscribe('{"slow_ms":"20"}', '{}'), { message: /not a number/ });
  assert.throws(() => collector.subscribe('{"slow_ms":0}', '{}'), { message: /above 0/ });
});
