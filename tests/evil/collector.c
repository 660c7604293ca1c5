/* A native collector that misbehaves as its configuration says: {"at": CALL, "misdeed": NAME, "path": WHERE}. Without one it
 * behaves, and is the good one beside it. The preprocessor makes the library itself wrong: see the table in native.rs. */
#include "lm_bench_plugin.h"
#include "misdeeds.h"

#include <math.h>

#ifndef ID
#define ID "evil-native"
#endif
#ifndef MAGIC
#define MAGIC LMB_MAGIC
#endif
#ifndef ENTRY_SIZE
#define ENTRY_SIZE sizeof(LmbEntryV1)
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(LmbCollectorV1)
#endif
#ifndef UNIT
#define UNIT "1"
#endif
#ifndef SCHEMA
#define SCHEMA "1"
#endif

#define DECLARED(name, kind)                                                                               \
    "{\"name\":\"" name "\",\"unit\":\"" UNIT "\",\"kind\":\"" kind "\",\"direction\":\"neither\","               \
    "\"formula\":\"\",\"about\":\"\",\"labels\":[\"of\"]}"
#define MANIFEST(version)                                                                                  \
    "{\"schema\":" SCHEMA ",\"id\":\"" ID "\",\"version\":\"" version "\",\"about\":\"sums an index\","          \
    "\"license\":\"MIT\",\"sdk\":\"none\",\"requires\":[\"lmb.collector/1\"],\"metrics\":["                     \
    DECLARED("index_sum", "counter") "," DECLARED("ratio", "gauge") "," DECLARED("times", "distribution") "]}"

__attribute__((section(".lmb.manifest"), used))
static const char section[sizeof(MANIFEST("1.0.0")) - 1] = MANIFEST("1.0.0");

static struct { uint64_t sum, batches; } state;
static char misdeed_name[64], misdeed_at[32];

/* The text of a key of the configuration, which is JSON without spaces. */
static void value_of(LmbBytes json, const char *key, char *out, size_t room) {
    char text[8192], pattern[64];
    size_t length = json.len < sizeof text - 1 ? json.len : sizeof text - 1;
    memcpy(text, json.ptr, length);
    text[length] = 0;
    snprintf(pattern, sizeof pattern, "\"%s\":\"", key);
    char *found = strstr(text, pattern);
    if (found == NULL) return;
    found += strlen(pattern);
    snprintf(out, room, "%.*s", (int)strcspn(found, "\""), found);
}

static void counter_named(const LmbHostV1 *host, LmbBytes name, const LmbLabelV1 *labels, size_t labels_len) {
    LmbMetricV1 metric = lmb_metric("", LMB_SHAPE_COUNTER, labels, labels_len);
    metric.name = name;
    host->metric(host->context, &metric);
}
static void named(const LmbHostV1 *host, const char *name) { counter_named(host, lmb_text(name), NULL, 0); }
static void labelled(const LmbHostV1 *host, const char *key, const char *value) {
    LmbLabelV1 label = lmb_label(key, value);
    counter_named(host, lmb_text("index_sum"), &label, 1);
}
static void number(const LmbHostV1 *host, double value) {
    LmbMetricV1 metric = lmb_metric("ratio", LMB_SHAPE_GAUGE, NULL, 0);
    metric.number = value;
    host->metric(host->context, &metric);
}
static void values(const LmbHostV1 *host, double first, uint64_t count, double second) {
    LmbBucketV1 buckets[2] = {{first, count}, {second, 1}};
    lmb_distribution(host, "times", NULL, 0, buckets, 2);
}

static void undeclared(const LmbHostV1 *host) { named(host, "undeclared"); }
static void empty_name(const LmbHostV1 *host) { named(host, ""); }
static void control_name(const LmbHostV1 *host) { named(host, "index\x1b[2J\nsum"); }
static void long_name(const LmbHostV1 *host) {
    static char name[1 << 20];
    memset(name, 'x', sizeof name - 1);
    named(host, name);
}
static void bad_utf8(const LmbHostV1 *host) { named(host, "index_\xff\xfe"); }
static void duplicate(const LmbHostV1 *host) { named(host, "index_sum"); }
static void undeclared_label(const LmbHostV1 *host) { labelled(host, "layer", "1"); }
static void empty_label(const LmbHostV1 *host) { labelled(host, "", "1"); }
static void control_label(const LmbHostV1 *host) { labelled(host, "of", "a\x1b[31mb"); }
static void long_label(const LmbHostV1 *host) {
    static char value[1 << 20];
    memset(value, 'v', sizeof value - 1);
    labelled(host, "of", value);
}
static void twin_labels(const LmbHostV1 *host) {
    LmbLabelV1 labels[2] = {lmb_label("of", "a"), lmb_label("of", "b")};
    counter_named(host, lmb_text("index_sum"), labels, 2);
}
static void many_labels(const LmbHostV1 *host) { counter_named(host, lmb_text("index_sum"), NULL, SIZE_MAX); }
static void many_metrics(const LmbHostV1 *host) {
    char value[16];
    for (int at = 0; at < 100000; at++) {
        snprintf(value, sizeof value, "%d", at);
        labelled(host, "of", value);
    }
}
static void not_a_number(const LmbHostV1 *host) { number(host, NAN); }
static void infinite(const LmbHostV1 *host) { number(host, -INFINITY); }
static void nan_values(const LmbHostV1 *host) { values(host, NAN, 1, 1.0); }
static void descending(const LmbHostV1 *host) { values(host, 2.0, 1, 1.0); }
static void overflow(const LmbHostV1 *host) { values(host, 1.0, UINT64_MAX, 2.0); }
static void huge_distribution(const LmbHostV1 *host) {
    static LmbBucketV1 buckets[1000000];
    for (int at = 0; at < 1000000; at++) buckets[at] = (LmbBucketV1){at, 1};
    lmb_distribution(host, "times", NULL, 0, buckets, 1000000);
}
static void wrong_shape(const LmbHostV1 *host) {
    LmbMetricV1 metric = lmb_metric("ratio", LMB_SHAPE_COUNTER, NULL, 0);
    host->metric(host->context, &metric);
}
static void unknown_shape(const LmbHostV1 *host) {
    LmbMetricV1 metric = lmb_metric("ratio", 77, NULL, 0);
    host->metric(host->context, &metric);
}
static void small_metric(const LmbHostV1 *host) {
    LmbMetricV1 metric = lmb_metric("ratio", LMB_SHAPE_GAUGE, NULL, 0);
    metric.size = 8;
    host->metric(host->context, &metric);
}
static void null_metric(const LmbHostV1 *host) { host->metric(host->context, NULL); }
static void no_reason(const LmbHostV1 *host) { lmb_unavailable(host, "ratio", NULL, 0, " \n "); }
static void log_flood(const LmbHostV1 *host) {
    for (int at = 0; at < 1000000; at++) lmb_log(host, LMB_LOG_ERROR, "a line that nobody needs");
}
static void log_escapes(const LmbHostV1 *host) {
    lmb_log(host, 99, "\x1b]0;owned\x07\x1b[2J\r\nerror: the host says so \xff");
}
static void fault_and_go_on(const LmbHostV1 *host) {
    host->fault(host->context, 77, lmb_text("a fault that the status denies"));
}
static void two_megabytes(const LmbHostV1 *host) {
    static char text[2 << 20];
    memset(text, '[', sizeof text - 1);
    host->reply(host->context, lmb_text(text));
}
static void no_json(const LmbHostV1 *host) { lmb_reply(host, "{\"wants\": \xff"); }
static void deep_json(const LmbHostV1 *host) {
    static char text[1 << 19];
    memset(text, '[', sizeof text - 1);
    host->reply(host->context, lmb_text(text));
}
static void no_rows(const LmbHostV1 *host) { lmb_reply(host, "{\"wants\":[],\"max_rows\":0}"); }

#define ALONE(name) {#name, name, NULL}
#define WITH_HOST(name) {#name, NULL, name}
static const struct { const char *name; void (*alone)(void); void (*with_host)(const LmbHostV1 *); } misdeeds[] = {
    ALONE(spin), ALONE(segfault), ALONE(abort), ALONE(divide), ALONE(trap), ALONE(recurse), ALONE(leave),
    ALONE(leave_at_once), ALONE(leak), ALONE(share), ALONE(write_a_file), ALONE(cut_a_file), ALONE(remove_a_file), ALONE(make_a_folder),
    ALONE(make_a_pipe), ALONE(signal_the_program), ALONE(stop), ALONE(fork_a_child), ALONE(escape),
    ALONE(exec_another), ALONE(end_the_thread), ALONE(signal_the_group), ALONE(close_everything),
    ALONE(close_everything_and_spin), ALONE(write_to_everything), ALONE(seal_everything), ALONE(leave_a_thread),
    ALONE(install_handlers), ALONE(change_the_process), ALONE(print), ALONE(print_escapes), ALONE(loop_at_exit),
    WITH_HOST(undeclared), WITH_HOST(empty_name), WITH_HOST(control_name), WITH_HOST(long_name), WITH_HOST(bad_utf8),
    WITH_HOST(duplicate), WITH_HOST(undeclared_label), WITH_HOST(empty_label), WITH_HOST(control_label),
    WITH_HOST(long_label), WITH_HOST(twin_labels), WITH_HOST(many_labels), WITH_HOST(many_metrics),
    WITH_HOST(not_a_number), WITH_HOST(infinite), WITH_HOST(nan_values), WITH_HOST(descending), WITH_HOST(overflow),
    WITH_HOST(huge_distribution), WITH_HOST(wrong_shape), WITH_HOST(unknown_shape), WITH_HOST(small_metric),
    WITH_HOST(null_metric), WITH_HOST(no_reason), WITH_HOST(log_flood), WITH_HOST(log_escapes),
    WITH_HOST(fault_and_go_on), WITH_HOST(two_megabytes), WITH_HOST(no_json), WITH_HOST(deep_json), WITH_HOST(no_rows),
};

/* Whether this is the call to misbehave in, as `name` says. */
static int told(const char *at, const char *name) {
    return strcmp(misdeed_at, at) == 0 && strcmp(misdeed_name, name) == 0;
}

static void act(const char *at, const LmbHostV1 *host) {
    if (strcmp(misdeed_at, at) != 0) return;
    for (size_t number = 0; number < sizeof misdeeds / sizeof *misdeeds; number++) {
        if (strcmp(misdeeds[number].name, misdeed_name) != 0) continue;
        if (misdeeds[number].alone) misdeeds[number].alone();
        else if (host) misdeeds[number].with_host(host);
    }
}

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void constructed(void) {
    CONSTRUCTOR();
}
#endif
#ifdef UNDEFINED
extern int lm_bench_has_no_such_symbol;
int undefined(void) { return lm_bench_has_no_such_symbol; }
#endif
#ifdef TWO_MANIFESTS
__attribute__((section(".lmb.manifest2"), used)) static const char second[] = MANIFEST("2.0.0");
#endif

static int32_t describe(const LmbHostV1 *host) { return lmb_reply(host, "{}"); }

static int32_t subscribe(const LmbHostV1 *host, LmbBytes config, LmbBytes run) {
    (void)run;
    value_of(config, "misdeed", misdeed_name, sizeof misdeed_name);
    value_of(config, "at", misdeed_at, sizeof misdeed_at);
    value_of(config, "path", misdeed_path, sizeof misdeed_path);
    if (told("subscribe", "say_nothing")) return LMB_STATUS_OK;
    lmb_reply(host, "{\"wants\":[{\"kind\":\"token\",\"columns\":[\"index\"]}],\"max_rows\":5}");
    act("subscribe", host);
    return LMB_STATUS_OK;
}

static int32_t open_collector(const LmbHostV1 *host, LmbBytes config, LmbBytes run, LmbBytes resolved, void **instance) {
    (void)config, (void)run, (void)resolved;
    act("open", host);
    *instance = told("open", "no_instance") ? NULL : &state;
    return LMB_STATUS_OK;
}

static int32_t on_batch(void *instance, const LmbHostV1 *host, const LmbBatchV1 *batch) {
    (void)instance;
    const uint32_t *index = lmb_u32(batch, 0);
    if (batch->seq > 0) {
        act("batch", host);
        if (told("batch", "write_to_the_columns")) *(volatile uint32_t *)(uintptr_t)index = 77;
        if (told("batch", "read_beyond_the_columns")) {
            for (size_t at = 0;; at += 1024) sink += ((volatile const uint32_t *)index)[at];
        }
        if (told("batch", "status")) return 77;
    }
    state.batches++;
    for (uint32_t row = 0; row < batch->rows; row++) state.sum += index[row];
    return LMB_STATUS_OK;
}

static int32_t lost_after(void *instance, const LmbHostV1 *host, uint32_t kind, uint64_t rows) {
    (void)instance, (void)kind;
    act("lost_after", host);
    state.sum += 1000 * rows;
    return LMB_STATUS_OK;
}

static int32_t report(const LmbHostV1 *host) {
    lmb_counter(host, "index_sum", NULL, 0, state.sum);
    return LMB_STATUS_OK;
}

static int32_t checkpoint(void *instance, const LmbHostV1 *host) {
    (void)instance;
    report(host);
    if (state.batches > 2) act("checkpoint", host);
    return LMB_STATUS_OK;
}

static int32_t finish(void *instance, const LmbHostV1 *host) {
    (void)instance;
    report(host);
    act("finish", host);
    return LMB_STATUS_OK;
}

static void destroy(void *instance) {
    (void)instance;
    act("destroy", NULL);
}

#ifdef NULL_FUNCTION
#undef LMB_COLLECTOR
#define FUNCTIONS describe, subscribe, open_collector, on_batch, lost_after, NULL, finish, destroy
#else
#define FUNCTIONS describe, subscribe, open_collector, on_batch, lost_after, checkpoint, finish, destroy
#endif
static const LmbCollectorV1 table = {TABLE_SIZE, 0, FUNCTIONS};

static const void *find_interface(LmbBytes id) {
    (void)id;
#if defined(NO_INTERFACE)
    return NULL;
#elif defined(CROOKED_TABLE)
    return (const char *)&table + 1;
#else
    return &table;
#endif
}
#ifdef NULL_INTERFACE
#define INTERFACE NULL
#else
#define INTERFACE find_interface
#endif

#if defined(OTHER_MANIFEST)
static const char other[] = MANIFEST("6.6.6");
#define ENTRY_MANIFEST {(const uint8_t *)other, sizeof other - 1}
#elif defined(ENDLESS_MANIFEST)
#define ENTRY_MANIFEST {(const uint8_t *)section, SIZE_MAX}
#else
#define ENTRY_MANIFEST {(const uint8_t *)section, sizeof section}
#endif

#ifndef NO_ENTRY
__attribute__((visibility("default"))) extern const LmbEntryV1 lmb_entry_v1;
const LmbEntryV1 lmb_entry_v1 = {MAGIC, ENTRY_SIZE, 0, ENTRY_MANIFEST, INTERFACE};
#endif
