/* How many steps of the engine were slow, by phase. An example to change: each part that a collector has is here once. */
#include "lm_bench_plugin.h"

/* The known phases, and one place for all that a later version of lm-bench may have. */
enum { PHASES = 5 };

/* Columns in the order of the subscription. */
enum { PHASE = 0, HOST_NS = 1 };

/* What is known of the steps of one phase. */
typedef struct Phase {
    uint64_t steps, slow_steps;
    double weight, slow_weight;
    LmbSum logs;
} Phase;

typedef struct SlowSteps {
    double slow_ms;
    uint64_t lost;
    Phase phases[PHASES];
} SlowSteps;

/* Reads what a user may set with `--plugin-config ID.slow_ms=20`. */
static int32_t read_config(const LmbHostV1 *host, LmbBytes config, double *slow_ms) {
    const LmbOption options[] = {{"slow_ms", slow_ms, NULL}};
    *slow_ms = 50.0;
    if (lmb_config(host, config, options, 1) != LMB_STATUS_OK) return LMB_STATUS_FAULT;
    if (*slow_ms <= 0.0) return lmb_fault(host, LMB_FAULT_CONFIG, "slow_ms must be above 0");
    return LMB_STATUS_OK;
}

/* What to deliver. A batch has at most max_rows rows. */
static int32_t subscribe(const LmbHostV1 *host, LmbBytes config, LmbBytes run) {
    double slow_ms;
    (void)run;
    if (read_config(host, config, &slow_ms) != LMB_STATUS_OK) return LMB_STATUS_FAULT;
    return lmb_reply(host, "{\"wants\":[{\"kind\":\"step\",\"columns\":[\"phase\",\"host_ns\"]}],\"max_rows\":4096}");
}

/* `resolved` tells types and units of the columns; whoever wants optional columns finds there which of them exist. */
static int32_t open_collector(const LmbHostV1 *host, LmbBytes config, LmbBytes run, LmbBytes resolved,
                              void **instance) {
    SlowSteps *own = (SlowSteps *)calloc(1, sizeof *own);
    (void)run, (void)resolved;
    if (!own) return lmb_fault(host, LMB_FAULT_DATA, "no memory");
    if (read_config(host, config, &own->slow_ms) != LMB_STATUS_OK) {
        free(own);
        return LMB_STATUS_FAULT;
    }
    *instance = own;
    return LMB_STATUS_OK;
}

static int32_t lost_after(void *instance, const LmbHostV1 *host, uint32_t kind, uint64_t rows) {
    (void)host, (void)kind;
    ((SlowSteps *)instance)->lost += rows;
    return LMB_STATUS_OK;
}

static int32_t on_batch(void *instance, const LmbHostV1 *host, const LmbBatchV1 *batch) {
    SlowSteps *own = (SlowSteps *)instance;
    const uint8_t *phases = lmb_u8(batch, PHASE);
    const uint64_t *host_ns = lmb_u64(batch, HOST_NS);
    uint32_t row;
    if (!phases || !host_ns) return lmb_fault(host, LMB_FAULT_CONTRACT, "columns of another type than expected");
    own->lost += batch->lost_before;
    for (row = 0; row < batch->rows; row++) {
        Phase *phase = &own->phases[phases[row] < PHASES ? phases[row] : PHASES - 1];
        double ms = (double)host_ns[row] / 1e6;
        phase->steps++;
        phase->weight += batch->weight;
        /* The host's: log() of <math.h> differs in the last bit from one platform to the next. */
        lmb_sum_add(&phase->logs, batch->weight * host->math->log(ms));
        if (ms > own->slow_ms) {
            phase->slow_steps++;
            phase->slow_weight += batch->weight;
        }
    }
    return LMB_STATUS_OK;
}

/* Reports the metrics of all batches so far, and changes nothing. */
static int32_t checkpoint(void *instance, const LmbHostV1 *host) {
    const SlowSteps *own = (const SlowSteps *)instance;
    int code;
    for (code = 0; code < PHASES; code++) {
        const Phase *phase = &own->phases[code];
        const LmbLabelV1 label = lmb_label("phase", lmb_phase_name((uint8_t)code));
        if (phase->steps == 0) continue;
        /* A share of the rows that were seen is still a share; a count is not. */
        if (own->lost > 0) {
            char reason[80];
            snprintf(reason, sizeof reason, "%llu steps were lost, so they cannot be counted",
                     (unsigned long long)own->lost);
            lmb_unavailable(host, "slow_steps", &label, 1, reason);
        } else {
            lmb_counter(host, "slow_steps", &label, 1, phase->slow_steps);
        }
        lmb_ratio(host, "slow_step_ratio", &label, 1, phase->steps, phase->slow_weight, phase->weight);
        lmb_gauge(host, "step_time_geomean_ms", &label, 1, phase->steps,
                  host->math->exp(lmb_sum_value(&phase->logs) / phase->weight));
    }
    return LMB_STATUS_OK;
}

const LmbCollectorV1 lmb_collector =
    LMB_COLLECTOR(subscribe, open_collector, on_batch, lost_after, checkpoint, checkpoint, free);
