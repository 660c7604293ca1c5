/* A collector against the contract 1.0.0 as it was frozen. Never edited: it has to run on every later version of lm-bench.
 *
 * cc -std=c11 -O2 -ffp-contract=off -shared -fPIC -o token_census.so token-census.c */
#include "lm_bench_plugin.h"

#define METRIC(name, kind, labels)                                                                                   \
    "{\"name\":\"" name "\",\"unit\":\"1\",\"kind\":\"" kind "\",\"direction\":\"neither\",\"formula\":\"\","        \
    "\"about\":\"\",\"labels\":[" labels "]}"
#define MANIFEST                                                                                                     \
    "{\"schema\":1,\"id\":\"token-census\",\"version\":\"1.0.0\",\"about\":\"Counts tokens\",\"license\":\"MIT\","   \
    "\"sdk\":\"1.0.0\",\"requires\":[\"lmb.collector/1\"],\"metrics\":[" METRIC("rows", "counter", "") ","           \
    METRIC("tokens", "counter", "\"of\"") "," METRIC("tokens_log", "gauge", "") ","                                  \
    METRIC("indices", "distribution", "") "," METRIC("engine_time", "gauge", "") "]}"

__attribute__((section(".lmb.manifest"), used)) static const char manifest[sizeof MANIFEST - 1] = MANIFEST;

typedef struct Census {
    uint64_t rows, tokens, even, odd, lost;
} Census;

static int32_t describe(const LmbHostV1 *host) { return lmb_reply(host, "{\"type\":\"object\"}"); }

static int32_t subscribe(const LmbHostV1 *host, LmbBytes config, LmbBytes run) {
    (void)run;
    if (lmb_config(host, config, NULL, 0) != LMB_STATUS_OK) return LMB_STATUS_FAULT;
    return lmb_reply(host,
                     "{\"wants\":[{\"kind\":\"token\",\"columns\":[\"index\",\"tokens_in_chunk\"]}],\"max_rows\":32}");
}

static int32_t open_census(const LmbHostV1 *host, LmbBytes config, LmbBytes run, LmbBytes resolved, void **instance) {
    (void)config, (void)run, (void)resolved;
    lmb_log(host, LMB_LOG_INFO, "the census begins");
    *instance = calloc(1, sizeof(Census));
    return *instance ? LMB_STATUS_OK : lmb_fault(host, LMB_FAULT_DATA, "no memory");
}

static int32_t on_batch(void *instance, const LmbHostV1 *host, const LmbBatchV1 *batch) {
    Census *own = (Census *)instance;
    const uint32_t *index = lmb_u32(batch, 0), *tokens = lmb_u32(batch, 1);
    uint32_t row;
    if (!index || !tokens) return lmb_fault(host, LMB_FAULT_CONTRACT, "columns of another type than expected");
    own->lost += batch->lost_before;
    for (row = 0; row < batch->rows; row++) {
        own->rows++;
        own->tokens += tokens[row];
        if (index[row] % 2 == 0) own->even++;
        else own->odd++;
    }
    return LMB_STATUS_OK;
}

static int32_t lost_after(void *instance, const LmbHostV1 *host, uint32_t kind, uint64_t rows) {
    (void)host, (void)kind;
    ((Census *)instance)->lost += rows;
    return LMB_STATUS_OK;
}

static int32_t checkpoint(void *instance, const LmbHostV1 *host) {
    const Census *own = (const Census *)instance;
    const LmbLabelV1 all = lmb_label("of", "all");
    const LmbBucketV1 parity[] = {{0.0, own->even}, {1.0, own->odd}};
    lmb_counter(host, "rows", NULL, 0, own->rows);
    lmb_counter(host, "tokens", &all, 1, own->tokens);
    lmb_gauge(host, "tokens_log", NULL, 0, own->rows, host->math->log((double)own->tokens));
    if (own->even > 0 && own->odd > 0) lmb_distribution(host, "indices", NULL, 0, parity, 2);
    lmb_unavailable(host, "engine_time", NULL, 0, "a museum has no clock");
    return LMB_STATUS_OK;
}

static const LmbCollectorV1 table = {
    sizeof table, 0, describe, subscribe, open_census, on_batch, lost_after, checkpoint, checkpoint, free,
};

static const void *find_interface(LmbBytes id) {
    static const char name[] = "lmb.collector/1";
    return id.len == sizeof name - 1 && memcmp(id.ptr, name, id.len) == 0 ? &table : NULL;
}

const LmbEntryV1 lmb_entry_v1 = {
    LMB_MAGIC, sizeof(LmbEntryV1), 0, {(const uint8_t *)manifest, sizeof manifest}, find_interface,
};
