/* A probe in C, and with READER the collector that takes its rows. Each sample is one row: its number, from 1 on, and
 * a name. MISDEED is what the third sample does instead of returning in order. */
#include <stdlib.h>
#include "lm_bench_plugin.h"

#define TEXT(literal) ((LmbBytes){(const uint8_t *)literal, sizeof(literal) - 1})
#define HEAD(id, interface) \
    "{\"schema\":1,\"id\":\"" id "\",\"version\":\"1.0.0\",\"about\":\"counts\",\"license\":\"MIT\",\"sdk\":\"none\"," \
    "\"requires\":[\"" interface "\"],\"metrics\":["
#define METRIC(name, kind) \
    "{\"name\":\"" name "\",\"unit\":\"1\",\"kind\":\"" kind "\",\"direction\":\"neither\",\"formula\":\"x\",\"about\":\"\"}"
#ifdef READER
#define MANIFEST HEAD("reader-in-c", "lmb.collector/1") METRIC("samples", "counter") "," METRIC("sum", "counter") "]}"
#else
#ifndef KIND
#define KIND "vendor.example.count"
#endif
#define MANIFEST HEAD("probe-in-c", "lmb.probe/1") "],\"kinds\":[{\"name\":\"" KIND "\",\"about\":\"a sample\"," \
    "\"columns\":[{\"name\":\"number\",\"type\":\"u64\",\"unit\":\"1\"},{\"name\":\"who\",\"type\":\"sym\",\"unit\":\"1\"}]}]}"
#endif

__attribute__((section(".lmb.manifest"), used))
static const char section[sizeof(MANIFEST) - 1] = MANIFEST;

static uint64_t state[2];

static void nothing(void *instance) { (void)instance; }

#ifdef READER
static int32_t describe(const LmbHostV1 *host) { host->reply(host->context, TEXT("{}")); return 0; }
static int32_t subscribe(const LmbHostV1 *host, LmbBytes config, LmbBytes run) {
    (void)config, (void)run;
    host->reply(host->context, TEXT("{\"wants\":[{\"kind\":\"vendor.example.count\",\"columns\":[\"number\",\"who\"]}],\"max_rows\":64}"));
    return 0;
}
static int32_t open_reader(const LmbHostV1 *host, LmbBytes config, LmbBytes run, LmbBytes resolved, void **instance) {
    (void)host, (void)config, (void)run, (void)resolved;
    *instance = state;
    return 0;
}
static int32_t on_batch(void *instance, const LmbHostV1 *host, const LmbBatchV1 *batch) {
    (void)instance;
    const uint64_t *number = batch->columns[0].data;
    const uint32_t *who = batch->columns[1].data;
    for (uint32_t row = 0; row < batch->rows; row++) {
        LmbBytes text = host->symbol(host->context, who[row]);
        if (text.len != 5 || text.ptr[0] != 'p') return 1;
        state[0]++;
        state[1] += number[row];
    }
    return 0;
}
static int32_t lost_after(void *instance, const LmbHostV1 *host, uint32_t kind, uint64_t rows) {
    (void)instance, (void)host, (void)kind, (void)rows;
    return 0;
}
static int32_t report(void *instance, const LmbHostV1 *host) {
    (void)instance;
    LmbMetricV1 metric = {.size = sizeof metric, .name = TEXT("samples"), .count = state[0], .samples = state[0]};
    if (state[0] == 0) return 0;
    host->metric(host->context, &metric);
    metric.name = TEXT("sum"), metric.count = state[1];
    host->metric(host->context, &metric);
    return 0;
}
static const LmbCollectorV1 table = {
    sizeof table, 0, describe, subscribe, open_reader, on_batch, lost_after, report, report, nothing,
};
#else
static int32_t describe(const LmbProbeHostV1 *host) { host->reply(host->context, TEXT("{}")); return 0; }
static int32_t open_probe(const LmbProbeHostV1 *host, LmbBytes config, LmbBytes run, void **instance) {
    (void)config, (void)run;
#ifdef NO_OPEN
    abort();
#endif
    if (host->process == 0) return 1;
    *instance = state;
    return 0;
}
static int32_t step(void *instance, const LmbProbeHostV1 *host) { (void)instance, (void)host; return 0; }
static void give(const LmbProbeHostV1 *host, uint64_t *number, uint32_t rows, uint64_t len) {
    uint32_t who = host->symbol(host->context, TEXT("probe"));
#ifdef WRONG_SYMBOL
    who = 7;
#endif
    LmbColumnV1 columns[2] = {{number, len, 1, LMB_ELEMENT_U64}, {&who, 1, 1, LMB_ELEMENT_SYM}};
    LmbRowsV1 view = {sizeof view, rows, 0, 2, columns};
    host->rows(host->context, &view);
}
static int32_t sample(void *instance, const LmbProbeHostV1 *host) {
    (void)instance;
    state[0]++;
#ifdef MISDEED
    if (state[0] == 3) { MISDEED; }
#endif
    give(host, &state[0], 1, 1);
    return 0;
}
static const LmbProbeV1 table = {sizeof table, 0, describe, open_probe, step, sample, step, nothing};
#endif

static const void *interface(LmbBytes id) { (void)id; return &table; }

const LmbEntryV1 lmb_entry_v1 = {
    LMB_MAGIC, sizeof(LmbEntryV1), 0, {(const uint8_t *)section, sizeof section}, interface,
};
