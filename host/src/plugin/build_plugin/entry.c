/* What `lm-bench plugin build` adds to a collector in C or C++: the entry that the host looks for; the manifest, in the
 * section that the host reads without loading the library; and the schema of the configuration from plugin.toml. */
#include "lm_bench_plugin.h"

__attribute__((section(".lmb.manifest"), used)) static const uint8_t manifest[] = {
#include "manifest.inc"
};

static const uint8_t config[] = {
#include "config.inc"
};

static int32_t describe(const LmbHostV1 *host) {
    const LmbBytes json = {config, sizeof config};
    host->reply(host->context, json);
    return LMB_STATUS_OK;
}

static const void *find_interface(LmbBytes id) {
    static const char name[] = "lmb.collector/1";
    static LmbCollectorV1 table;
    if (id.len != sizeof name - 1 || memcmp(id.ptr, name, id.len) != 0) return NULL;
    table = lmb_collector;
    table.describe = describe;
    return &table;
}

__attribute__((visibility("default"))) extern const LmbEntryV1 lmb_entry_v1;
const LmbEntryV1 lmb_entry_v1 = {
    LMB_MAGIC, sizeof(LmbEntryV1), 0, {manifest, sizeof manifest}, find_interface,
};
