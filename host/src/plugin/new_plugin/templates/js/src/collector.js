// How many steps of the engine were slow, by phase. An example to change: each part that a collector has is here once.
//
// It runs in a sandbox: no clock, no files, no network, and the metrics must depend on nothing but the events.

// The host's: Math.log differs in the last bit from one engine to the next.
import { exp, log } from 'lm-bench:collector/math@1.0.0';

// Words for the values of a phase column; the last one stands for all that a later version of lm-bench may have.
const PHASES = ['prefill', 'decode', 'mixed', 'load', 'unknown'];

// Columns in the order of the subscription.
const PHASE = 0;
const HOST_NS = 1;

// The state: a component has one instance, and calls never overlap.
let slowMs;
let lost;
let phases;

export const collector = {
  // What to deliver. Interpreted code takes some microseconds per row and a batch may take 100 ms, so batches are small.
  subscribe(config, run) {
    readConfig(config);
    return {
      wants: [{ kind: 'step', columns: ['phase', 'host_ns'], optional: [], sampling: { tag: 'all' } }],
      maxRows: 512,
    };
  },

  // `resolved` tells types and units of the columns; whoever wants optional columns finds there which of them exist.
  open(config, run, resolved) {
    slowMs = readConfig(config);
    lost = 0;
    phases = PHASES.map(() => ({ steps: 0, slowSteps: 0, weight: 0, slowWeight: 0, logs: new Sum() }));
  },

  // A column is an array of numbers, of u8 a Uint8Array. Integers are exact up to 2^53. Results take numbers too: a BigInt
  // there ends the collector.
  onBatch(batch) {
    const codes = batch.columns[PHASE].data.val;
    const times = batch.columns[HOST_NS].data.val;
    const weight = batch.weight;
    lost += batch.lostBefore;
    for (let row = 0; row < batch.rows; row++) {
      const phase = phases[Math.min(codes[row], PHASES.length - 1)];
      const ms = times[row] / 1e6;
      phase.steps += 1;
      phase.weight += weight;
      phase.logs.add(weight * log(ms));
      if (ms > slowMs) {
        phase.slowSteps += 1;
        phase.slowWeight += weight;
      }
    }
  },

  lostAfter(kind, rows) {
    lost += rows;
  },

  // The metrics of all batches so far. Changes nothing.
  checkpoint() {
    return phases.flatMap((phase, code) => {
      if (phase.steps === 0) return [];
      const metric = (name, samples, value) => ({
        name,
        labels: [['phase', PHASES[code]]],
        value,
        samples: value.tag === 'unavailable' ? 0 : samples,
      });
      // A share of the rows that were seen is still a share; a count is not.
      const slow =
        lost > 0
          ? { tag: 'unavailable', val: `${lost} steps were lost, so they cannot be counted` }
          : { tag: 'counter', val: phase.slowSteps };
      return [
        metric('slow_steps', phase.slowSteps, slow),
        metric('slow_step_ratio', phase.steps, gauge(phase.slowWeight / phase.weight)),
        metric('step_time_geomean_ms', phase.steps, gauge(exp(phase.logs.value() / phase.weight))),
      ];
    });
  },

  finish() {
    return collector.checkpoint();
  },
};

// What a user may set with `--plugin-config ID.slow_ms=20`. A misspelt key must not pass.
function readConfig(text) {
  const { slow_ms = 50, ...others } = JSON.parse(text);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw configFault(`configuration: unknown field \`${unknown}\``);
  if (typeof slow_ms !== 'number') throw configFault('configuration: `slow_ms` is not a number');
  if (slow_ms <= 0) throw configFault('slow_ms must be above 0');
  return slow_ms;
}

// What is thrown from a call is the reason for its failure; there is no call after it.
function configFault(message) {
  return { code: 'config', message };
}

// A report has no values that are not finite.
function gauge(number) {
  return Number.isFinite(number)
    ? { tag: 'gauge', val: number }
    : { tag: 'unavailable', val: 'the formula gives no finite value for these events' };
}

// A running sum with Neumaier's compensation: its error does not grow with the number of terms.
class Sum {
  #sum = 0;
  #compensation = 0;

  add(term) {
    const total = this.#sum + term;
    this.#compensation +=
      Math.abs(this.#sum) >= Math.abs(term) ? this.#sum - total + term : term - total + this.#sum;
    this.#sum = total;
  }

  value() {
    return this.#sum + this.#compensation;
  }
}
