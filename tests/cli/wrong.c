/* A collector that counts steps and samples of a GPU, sound but for the one fault that it is compiled with. */
#include "lm_bench_plugin.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 0, GPU = 1, PHASE = 0, HOST_NS = 1, SM_ACTIVE = 0, KNOWN_PHASES = 4 };

typedef struct Counts {
    uint64_t steps, samples, lost, batches, checkpoints;
    uint64_t phases[KNOWN_PHASES];
} Counts;

static int32_t read_config(const LmbHostV1 *host, LmbBytes config) {
#ifdef TAKES_ANY_KEY
    (void)host, (void)config;
    return LMB_STATUS_OK;
#else
    double limit = 1.0;
    const LmbOption options[] = {{"limit", &limit, NULL}};
    return lmb_config(host, config, options, 1);
#endif
}

static int32_t subscribe(const LmbHostV1 *host, LmbBytes config, LmbBytes run) {
    (void)run;
    if (read_config(host, config) != LMB_STATUS_OK) return LMB_STATUS_FAULT;
#ifdef ASKS_TWICE
    return lmb_reply(host, "{\"wants\":[{\"kind\":\"step\",\"columns\":[\"phase\",\"host_ns\",\"phase\"]},"
                           "{\"kind\":\"gpu\",\"columns\":[\"sm_active\"]}],\"max_rows\":1000}");
#else
    return lmb_reply(host, "{\"wants\":[{\"kind\":\"step\",\"columns\":[\"phase\",\"host_ns\"]},"
                           "{\"kind\":\"gpu\",\"columns\":[\"sm_active\"]}],\"max_rows\":1000}");
#endif
}

static int32_t open_collector(const LmbHostV1 *host, LmbBytes config, LmbBytes run, LmbBytes resolved,
                              void **instance) {
    (void)run, (void)resolved;
    if (read_config(host, config) != LMB_STATUS_OK) return LMB_STATUS_FAULT;
#ifdef SHARES_STATE
    static Counts shared;
    *instance = &shared;
#else
    *instance = calloc(1, sizeof(Counts));
#endif
    return LMB_STATUS_OK;
}

static void destroy(void *instance) {
#ifdef SHARES_STATE
    (void)instance;
#else
    free(instance);
#endif
}

static int32_t lost_after(void *instance, const LmbHostV1 *host, uint32_t kind, uint64_t rows) {
    (void)host, (void)kind;
#ifdef DISLIKES_LOSSES
    return lmb_fault(host, LMB_FAULT_DATA, "there must be no losses");
#endif
    ((Counts *)instance)->lost += rows;
    return LMB_STATUS_OK;
}

static int32_t on_batch(void *instance, const LmbHostV1 *host, const LmbBatchV1 *batch) {
    Counts *own = (Counts *)instance;
    uint32_t row;
    own->batches++;
    own->lost += batch->lost_before;
#ifdef DISLIKES_WEIGHTS
    if (batch->weight != 1.0) return lmb_fault(host, LMB_FAULT_DATA, "each row stands for itself");
#endif
#ifdef FLOODS_LOG
    for (row = 0; row < 1000; row++) lmb_log(host, 1, "a line that nobody needs");
#endif
#ifdef SLOW_WITH_MANY_ROWS
    if (batch->rows > 500)
        for (;;) usleep(1000);
#endif
#ifdef LARGE_WITH_MANY_ROWS
    if (batch->rows > 500) {
        volatile char *large = (volatile char *)malloc(200u << 20);
        if (!large) return lmb_fault(host, LMB_FAULT_DATA, "no memory");
        for (size_t at = 0; at < 200u << 20; at += 4096) large[at] = 1;
    }
#endif
    if (batch->kind == GPU) {
        const float *active = lmb_f32(batch, SM_ACTIVE);
        if (!active) return lmb_fault(host, LMB_FAULT_CONTRACT, "another type");
        for (row = 0; row < batch->rows; row++) {
#ifdef DISLIKES_NAN
            if (isnan(active[row])) return lmb_fault(host, LMB_FAULT_DATA, "sm_active is no number");
#endif
            own->samples++;
        }
        return LMB_STATUS_OK;
    }
    const uint8_t *phases = lmb_u8(batch, PHASE);
    const uint64_t *host_ns = lmb_u64(batch, HOST_NS);
    if (!phases || !host_ns) return lmb_fault(host, LMB_FAULT_CONTRACT, "another type");
    for (row = 0; row < batch->rows; row++) {
#ifdef KNOWS_ALL_PHASES
        if (phases[row] >= KNOWN_PHASES) abort();
#endif
#ifdef TRUSTS_TIMES
        if (host_ns[row] > UINT64_MAX / 2) abort();
#endif
        own->steps++;
        if (phases[row] < KNOWN_PHASES) own->phases[phases[row]]++;
    }
    return LMB_STATUS_OK;
}

static int32_t report(Counts *own, const LmbHostV1 *host) {
#ifdef NEEDS_ROWS
    if (own->steps == 0) return lmb_fault(host, LMB_FAULT_DATA, "there were no steps");
#endif
#ifdef COUNTS_BATCHES
    lmb_counter(host, "steps", NULL, 0, own->batches);
#else
    lmb_counter(host, "steps", NULL, 0, own->steps);
#endif
    lmb_counter(host, "samples", NULL, 0, own->samples);
#ifdef DEPENDS_ON_PROCESS
    lmb_gauge(host, "share", NULL, 0, own->steps, (double)getpid());
#else
    lmb_ratio(host, "share", NULL, 0, own->steps, (double)own->phases[0], (double)own->steps);
#endif
#ifdef REPORTS_UNDECLARED
    if (own->batches > 2) lmb_counter(host, "batches", NULL, 0, own->batches);
#endif
    return LMB_STATUS_OK;
}

static int32_t checkpoint(void *instance, const LmbHostV1 *host) {
    Counts *own = (Counts *)instance;
    int32_t status = report(own, host);
    own->checkpoints++;
#ifdef FORGETS_AT_CHECKPOINT
    memset(own, 0, sizeof *own);
#endif
    return status;
}

static int32_t finish(void *instance, const LmbHostV1 *host) {
    Counts *own = (Counts *)instance;
#ifdef COUNTS_CHECKPOINTS
    own->steps += own->checkpoints;
#endif
#ifdef ADDS_AT_THE_END
    own->samples++;
#endif
    return report(own, host);
}

const LmbCollectorV1 lmb_collector =
    LMB_COLLECTOR(subscribe, open_collector, on_batch, lost_after, checkpoint, finish, destroy);
