/* What `lm-bench plugin build` adds to a collector in C or C++: the entry that the host looks for, and the manifest, in
 * the section that the host reads without loading the library. */
#include "lm_bench_plugin.h"

__attribute__((section(".lmb.manifest"), used)) static const uint8_t manifest[] = {
#include "manifest.inc"
};

static const void *find_interface(LmbBytes id) {
    static const char collector[] = "lmb.collector/1";
    if (id.len == sizeof collector - 1 && memcmp(id.ptr, collector, id.len) == 0) return &lmb_collector;
    return NULL;
}

__attribute__((visibility("default"))) extern const LmbEntryV1 lmb_entry_v1;
const LmbEntryV1 lmb_entry_v1 = {
    LMB_MAGIC, sizeof(LmbEntryV1), 0, {manifest, sizeof manifest}, find_interface,
};
