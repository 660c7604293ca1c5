/* A native plugin in C, for the tests of what the host checks before it calls anything. The preprocessor
 * makes it proper or wrong: MAGIC, ENTRY_SIZE, TABLE_SIZE, NO_INTERFACE, OTHER_MANIFEST, SILENT_FAULT, and
 * MISDEED, the name of a function in ../evil/misdeeds.h that the second batch calls. */
#include <stddef.h>
#include <stdint.h>

#ifdef MISDEED
#include "../evil/misdeeds.h"
#endif

#ifndef MAGIC
#define MAGIC "LMBPLUG1"
#endif
#ifndef ENTRY_SIZE
#define ENTRY_SIZE sizeof(struct entry)
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(struct collector)
#endif

struct bytes { const uint8_t *ptr; size_t len; };
struct label { struct bytes key, value; };
struct bucket { double value; uint64_t count; };
struct metric {
    uint32_t size, shape;
    struct bytes name;
    const struct label *labels;
    size_t labels_len;
    uint64_t count;
    double number;
    const struct bucket *buckets;
    size_t buckets_len;
    struct bytes reason;
    uint64_t samples;
};
struct math {
    uint32_t size, flags;
    double (*exp)(double), (*exp2)(double), (*log)(double), (*log1p)(double), (*log2)(double), (*log10)(double);
    double (*pow)(double, double), (*cbrt)(double), (*sin)(double), (*cos)(double), (*tanh)(double);
};
struct host {
    uint32_t size, flags;
    void *context;
    void (*log)(void *, uint32_t, struct bytes);
    struct bytes (*symbol)(void *, uint32_t);
    void (*metric)(void *, const struct metric *);
    void (*reply)(void *, struct bytes);
    void (*fault)(void *, uint32_t, struct bytes);
    const struct math *math;
};
struct column { const void *data; uint64_t len; uint32_t width, element; };
struct batch {
    uint32_t size, rows, kind, columns_len;
    uint64_t seq, lost_before;
    double weight;
    const struct column *columns;
};
struct collector {
    uint32_t size, flags;
    int32_t (*describe)(const struct host *);
    int32_t (*subscribe)(const struct host *, struct bytes, struct bytes);
    int32_t (*open)(const struct host *, struct bytes, struct bytes, struct bytes, void **);
    int32_t (*on_batch)(void *, const struct host *, const struct batch *);
    int32_t (*lost_after)(void *, const struct host *, uint32_t, uint64_t);
    int32_t (*checkpoint)(void *, const struct host *);
    int32_t (*finish)(void *, const struct host *);
    void (*destroy)(void *);
};
struct entry {
    uint8_t magic[8];
    uint32_t size, flags;
    struct bytes manifest;
    const void *(*interface)(struct bytes);
};

#define TEXT(literal) { (const uint8_t *)literal, sizeof(literal) - 1 }
#define MANIFEST(version)                                                                          \
    "{\"schema\":1,\"id\":\"written-in-c\",\"version\":\"" version "\",\"about\":\"sums an index\","    \
    "\"license\":\"MIT\",\"sdk\":\"none\",\"requires\":[\"lmb.collector/1\"],\"metrics\":[{\"name\":"    \
    "\"index_sum\",\"unit\":\"1\",\"kind\":\"counter\",\"direction\":\"neither\",\"formula\":"         \
    "\"sum(token.index)\",\"about\":\"\"}]}"

__attribute__((section(".lmb.manifest"), used))
static const char section[sizeof(MANIFEST("1.0.0")) - 1] = MANIFEST("1.0.0");

static uint64_t sum;

static int32_t describe(const struct host *host) {
    host->reply(host->context, (struct bytes)TEXT("{}"));
    return 0;
}

static int32_t subscribe(const struct host *host, struct bytes config, struct bytes run) {
    (void)config, (void)run;
    host->reply(host->context, (struct bytes)TEXT("{\"wants\":[{\"kind\":\"token\",\"columns\":[\"index\"]}],\"max_rows\":5}"));
    return 0;
}

static int32_t open_collector(const struct host *host, struct bytes config, struct bytes run, struct bytes resolved, void **instance) {
    (void)host, (void)config, (void)run, (void)resolved;
    sum = 0;
    *instance = &sum;
    return 0;
}

static int32_t on_batch(void *instance, const struct host *host, const struct batch *batch) {
    (void)host;
#ifdef SILENT_FAULT
    return 1;
#endif
#ifdef MISDEED
    if (batch->seq > 0) MISDEED();
#endif
    const uint32_t *index = batch->columns[0].data;
    for (uint32_t row = 0; row < batch->rows; row++) *(uint64_t *)instance += index[row];
    return 0;
}

static int32_t lost_after(void *instance, const struct host *host, uint32_t kind, uint64_t rows) {
    (void)host, (void)kind;
    *(uint64_t *)instance += 1000 * rows;
    return 0;
}

static int32_t report(void *instance, const struct host *host) {
    struct metric metric = {
        .size = sizeof metric, .shape = 0, .name = TEXT("index_sum"), .count = *(uint64_t *)instance, .samples = 1,
    };
    host->metric(host->context, &metric);
    return 0;
}

static void destroy(void *instance) { (void)instance; }

static const struct collector table = {
    TABLE_SIZE, 0, describe, subscribe, open_collector, on_batch, lost_after, report, report, destroy,
};

static const void *interface(struct bytes id) {
    (void)id;
#ifdef NO_INTERFACE
    return NULL;
#else
    return &table;
#endif
}

#ifdef OTHER_MANIFEST
static const char other[] = MANIFEST("6.6.6");
#define ENTRY_MANIFEST { (const uint8_t *)other, sizeof other - 1 }
#else
#define ENTRY_MANIFEST { (const uint8_t *)section, sizeof section }
#endif

#ifndef NO_ENTRY
const struct entry lmb_entry_v1 = { MAGIC, ENTRY_SIZE, 0, ENTRY_MANIFEST, interface };
#endif
