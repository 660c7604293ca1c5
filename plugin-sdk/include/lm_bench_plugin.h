/* The contract between lm-bench and native plugins, version 1.0.0, for C11 and C++17, with what authors of collectors
 * need around it. `lm-bench plugin new NAME --lang c` makes a project that uses it.
 *
 * A collector defines one object, `lmb_collector`, with LMB_COLLECTOR. `lm-bench plugin build` adds the entry that the
 * host looks for, and what plugin.toml says.
 *
 * Rules: views end with the call that received them; nothing is freed by whom it was not allocated; results go out
 * through the host's callbacks; calls never overlap; no exception leaves a function. Metrics depend on nothing but
 * the events: no clock, no random numbers, no files. Transcendental functions are those of `host->math`, not of the
 * platform, and the code is compiled with -ffp-contract=off, so that the numbers are the same everywhere. */
#ifndef LM_BENCH_PLUGIN_H
#define LM_BENCH_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- generated from plugin-sdk/abi/src/lib.rs; do not edit ------------------------------------ */

/* Name of the symbol that each native plugin exports. */
#define LMB_ENTRY_SYMBOL "lmb_entry_v1"

/* First bytes of LmbEntryV1. */
#define LMB_MAGIC {'L', 'M', 'B', 'P', 'L', 'U', 'G', '1'}

/* The call succeeded. */
#define LMB_STATUS_OK 0

/* The call failed; the plugin said why through LmbHostV1.fault. */
#define LMB_STATUS_FAULT 1

/* Borrowed bytes; text is UTF-8. ptr may be null when len is 0. */
typedef struct LmbBytes {
    /* First byte. */
    const uint8_t *ptr;
    /* Number of bytes. */
    size_t len;
} LmbBytes;

/* What the exported symbol holds. */
typedef struct LmbEntryV1 {
    /* LMB_MAGIC. */
    uint8_t magic[8];
    /* Size of this struct in bytes. */
    uint32_t size;
    /* 0; for later use. */
    uint32_t flags;
    /* The manifest as JSON, the same bytes as the file's .lmb.manifest section. */
    LmbBytes manifest;
    /* Looks an interface up by id; null when the plugin does not offer it. */
    const void *(*interface)(LmbBytes id);
} LmbEntryV1;

/* Element types of LmbColumnV1.element. */

/* 8-bit unsigned integer. */
#define LMB_ELEMENT_U8 UINT32_C(0)
/* 16-bit unsigned integer. */
#define LMB_ELEMENT_U16 UINT32_C(1)
/* 32-bit unsigned integer. */
#define LMB_ELEMENT_U32 UINT32_C(2)
/* 64-bit unsigned integer. */
#define LMB_ELEMENT_U64 UINT32_C(3)
/* 64-bit signed integer. */
#define LMB_ELEMENT_I64 UINT32_C(4)
/* binary32. */
#define LMB_ELEMENT_F32 UINT32_C(5)
/* binary64. */
#define LMB_ELEMENT_F64 UINT32_C(6)
/* Symbol id, stored as a 32-bit unsigned integer. */
#define LMB_ELEMENT_SYM UINT32_C(7)

/* One column of a batch. */
typedef struct LmbColumnV1 {
    /* First element, aligned for its type. */
    const void *data;
    /* Number of elements: rows times width. */
    uint64_t len;
    /* Elements per row. */
    uint32_t width;
    /* One of LMB_ELEMENT_…. */
    uint32_t element;
} LmbColumnV1;

/* A batch. */
typedef struct LmbBatchV1 {
    /* Size of this struct in bytes. */
    uint32_t size;
    /* Number of rows, at least 1. */
    uint32_t rows;
    /* Position of the kind in the subscription. */
    uint32_t kind;
    /* Number of columns. */
    uint32_t columns_len;
    /* Number of the batch within its kind. */
    uint64_t seq;
    /* Rows of the kind that were lost just before. */
    uint64_t lost_before;
    /* Events per row. */
    double weight;
    /* The columns. */
    const LmbColumnV1 *columns;
} LmbBatchV1;

/* A label. */
typedef struct LmbLabelV1 {
    /* Key. */
    LmbBytes key;
    /* Value. */
    LmbBytes value;
} LmbLabelV1;

/* A value of a distribution and its count. */
typedef struct LmbBucketV1 {
    /* Value. */
    double value;
    /* Count. */
    uint64_t count;
} LmbBucketV1;

/* Shapes of LmbMetricV1.shape. */

/* The value is count. */
#define LMB_SHAPE_COUNTER UINT32_C(0)
/* The value is number. */
#define LMB_SHAPE_GAUGE UINT32_C(1)
/* The value is buckets. */
#define LMB_SHAPE_DISTRIBUTION UINT32_C(2)
/* There is no value; reason says why. */
#define LMB_SHAPE_UNAVAILABLE UINT32_C(3)

/* A reported metric. */
typedef struct LmbMetricV1 {
    /* Size of this struct in bytes. */
    uint32_t size;
    /* One of LMB_SHAPE_…. */
    uint32_t shape;
    /* Name of the declared metric. */
    LmbBytes name;
    /* Labels. */
    const LmbLabelV1 *labels;
    /* Number of labels. */
    size_t labels_len;
    /* Value of a counter. */
    uint64_t count;
    /* Value of a gauge. */
    double number;
    /* Value of a distribution, ascending. */
    const LmbBucketV1 *buckets;
    /* Number of buckets. */
    size_t buckets_len;
    /* Why there is no value. */
    LmbBytes reason;
    /* Events behind the value. */
    uint64_t samples;
} LmbMetricV1;

/* Transcendental functions with the same bits for every plugin in every language. Plugins written in Rust take
 * them from the SDK; a plugin in C must not take those of its platform. Each may be called from anywhere. */
typedef struct LmbMathV1 {
    /* Size of this struct in bytes. */
    uint32_t size;
    /* 0; for later use. */
    uint32_t flags;
    /* e to the power of x. */
    double (*exp)(double x);
    /* 2 to the power of x. */
    double (*exp2)(double x);
    /* Natural logarithm. */
    double (*log)(double x);
    /* Natural logarithm of 1 + x. */
    double (*log1p)(double x);
    /* Logarithm to base 2. */
    double (*log2)(double x);
    /* Logarithm to base 10. */
    double (*log10)(double x);
    /* x to the power of y. */
    double (*pow)(double x, double y);
    /* Cube root. */
    double (*cbrt)(double x);
    /* Sine of radians. */
    double (*sin)(double x);
    /* Cosine of radians. */
    double (*cos)(double x);
    /* Hyperbolic tangent. */
    double (*tanh)(double x);
} LmbMathV1;

/* The host's callbacks; valid during the call that receives them, on the calling thread only. */
typedef struct LmbHostV1 {
    /* Size of this struct in bytes. */
    uint32_t size;
    /* 0; for later use. */
    uint32_t flags;
    /* Passed back to each callback. */
    void *context;
    /* Writes a log line; level 0 debug, 1 info, 2 warn, 3 error. */
    void (*log)(void *context, uint32_t level, LmbBytes text);
    /* Looks a symbol up: returns its text, or a null ptr; valid until the current call returns. */
    LmbBytes (*symbol)(void *context, uint32_t id);
    /* Takes a reported metric. */
    void (*metric)(void *context, const LmbMetricV1 *metric);
    /* Takes the answer of describe and subscribe. */
    void (*reply)(void *context, LmbBytes json);
    /* Takes the reason before a call returns LMB_STATUS_FAULT; code 1 configuration, 2 data, 3 contract, 4 panic. */
    void (*fault)(void *context, uint32_t code, LmbBytes message);
    /* Mathematics; valid as long as the plugin is loaded. */
    const LmbMathV1 *math;
} LmbHostV1;

/* Interface lmb.collector/1. */
typedef struct LmbCollectorV1 {
    /* Size of this struct in bytes. */
    uint32_t size;
    /* 0; for later use. */
    uint32_t flags;
    /* Replies with the JSON schema of the configuration. */
    int32_t (*describe)(const LmbHostV1 *host);
    /* Replies with the subscription as JSON. config and run are JSON objects. */
    int32_t (*subscribe)(const LmbHostV1 *host, LmbBytes config, LmbBytes run);
    /* Creates an instance. resolved is the JSON answer to the subscription. */
    int32_t (*open)(const LmbHostV1 *host, LmbBytes config, LmbBytes run, LmbBytes resolved, void **instance);
    /* Takes a batch. */
    int32_t (*on_batch)(void *instance, const LmbHostV1 *host, const LmbBatchV1 *batch);
    /* Takes the number of rows of a kind that were lost after its last batch. Called at most once per kind, before
     * finish, and only for a number above 0. */
    int32_t (*lost_after)(void *instance, const LmbHostV1 *host, uint32_t kind, uint64_t rows);
    /* Reports all metrics so far through LmbHostV1.metric. */
    int32_t (*checkpoint)(void *instance, const LmbHostV1 *host);
    /* Reports the final metrics; the instance is destroyed afterwards and only destroy may follow. */
    int32_t (*finish)(void *instance, const LmbHostV1 *host);
    /* Frees the instance. */
    void (*destroy)(void *instance);
} LmbCollectorV1;

/* Rows that a probe hands over: whole columns, borrowed for the callback. The host checks lengths, widths and elements
 * against the kind's declaration and copies; memory of its own never leaves it. */
typedef struct LmbRowsV1 {
    /* Size of this struct in bytes. */
    uint32_t size;
    /* Number of rows, at least 1. */
    uint32_t rows;
    /* Position of the kind in the manifest. */
    uint32_t kind;
    /* Number of columns: those of the manifest, in its order. */
    uint32_t columns_len;
    /* The columns, without t_ns, which the host adds. */
    const LmbColumnV1 *columns;
} LmbRowsV1;

/* The host's callbacks for a probe; valid during the call that receives them, on the calling thread only. */
typedef struct LmbProbeHostV1 {
    /* Size of this struct in bytes. */
    uint32_t size;
    /* 0; for later use. */
    uint32_t flags;
    /* Passed back to each callback. */
    void *context;
    /* Number of the process that is measured; the probe may run in another one. */
    uint64_t process;
    /* Writes a log line; level 0 debug, 1 info, 2 warn, 3 error. */
    void (*log)(void *context, uint32_t level, LmbBytes text);
    /* The symbol of a text, for columns of symbols; the same text has the same symbol for the life of the instance. */
    uint32_t (*symbol)(void *context, LmbBytes text);
    /* Takes rows during sample. What breaks the declaration ends the probe, whatever the call returns. */
    void (*rows)(void *context, const LmbRowsV1 *rows);
    /* Takes the answer of describe. */
    void (*reply)(void *context, LmbBytes json);
    /* Takes the reason before a call returns LMB_STATUS_FAULT; code 1 configuration, 2 data, 3 contract, 4 panic. */
    void (*fault)(void *context, uint32_t code, LmbBytes message);
} LmbProbeHostV1;

/* Interface lmb.probe/1: a source of rows of kinds vendor.NAME.KIND, which the manifest declares. Calls never
 * overlap, and none but destroy follows a fault. */
typedef struct LmbProbeV1 {
    /* Size of this struct in bytes. */
    uint32_t size;
    /* 0; for later use. */
    uint32_t flags;
    /* Replies with the JSON schema of the configuration. */
    int32_t (*describe)(const LmbProbeHostV1 *host);
    /* Creates an instance. config and run are JSON objects. */
    int32_t (*open)(const LmbProbeHostV1 *host, LmbBytes config, LmbBytes run, void **instance);
    /* The part of the run that is measured begins: what lies before does not count. */
    int32_t (*start)(void *instance, const LmbProbeHostV1 *host);
    /* Takes a sample: hands over what there is since the last one through LmbProbeHostV1.rows. The host stamps all
     * rows of the call with the time at which it began. */
    int32_t (*sample)(void *instance, const LmbProbeHostV1 *host);
    /* The measured part is over: no sample follows. */
    int32_t (*stop)(void *instance, const LmbProbeHostV1 *host);
    /* Frees the instance. */
    void (*destroy)(void *instance);
} LmbProbeV1;

/* -- end of what is generated ------------------------------------------------------------------ */

/* The collector's functions, which the plugin's source defines:
 *
 *     const LmbCollectorV1 lmb_collector =
 *         LMB_COLLECTOR(subscribe, open, on_batch, lost_after, checkpoint, finish, destroy);
 *
 * The build adds `describe`, which tells the schema of the configuration from plugin.toml. */
extern const LmbCollectorV1 lmb_collector;
#define LMB_COLLECTOR(...) {(uint32_t)sizeof(LmbCollectorV1), 0, NULL, __VA_ARGS__}

/* Reasons of a fault. */
enum { LMB_FAULT_CONFIG = 1, LMB_FAULT_DATA = 2, LMB_FAULT_CONTRACT = 3 };

/* Levels of a log line. */
enum { LMB_LOG_DEBUG = 0, LMB_LOG_INFO = 1, LMB_LOG_WARN = 2, LMB_LOG_ERROR = 3 };

/* Text that ends with a zero byte, as a view. */
static inline LmbBytes lmb_text(const char *text) {
    LmbBytes bytes = {(const uint8_t *)text, text ? strlen(text) : 0};
    return bytes;
}

/* Writes a log line. */
static inline void lmb_log(const LmbHostV1 *host, uint32_t level, const char *text) {
    host->log(host->context, level, lmb_text(text));
}

/* Answers `subscribe` with a subscription as JSON, and gives the status to return. */
static inline int32_t lmb_reply(const LmbHostV1 *host, const char *json) {
    host->reply(host->context, lmb_text(json));
    return LMB_STATUS_OK;
}

/* Tells why a call fails, in one line, and gives the status to return. There is no call after it but `destroy`. */
static inline int32_t lmb_fault(const LmbHostV1 *host, uint32_t code, const char *reason) {
    host->fault(host->context, code, lmb_text(reason));
    return LMB_STATUS_FAULT;
}

/* -- columns -------------------------------------------------------------------------------------
 * Columns have the order of the subscription. The pointer leads to rows times width elements; it is null when there is
 * no such column or its elements have another type. */

static inline const void *lmb_column(const LmbBatchV1 *batch, uint32_t at, uint32_t element) {
    if (at >= batch->columns_len || batch->columns[at].element != element) return NULL;
    return batch->columns[at].data;
}
static inline const uint8_t *lmb_u8(const LmbBatchV1 *batch, uint32_t at) {
    return (const uint8_t *)lmb_column(batch, at, LMB_ELEMENT_U8);
}
static inline const uint16_t *lmb_u16(const LmbBatchV1 *batch, uint32_t at) {
    return (const uint16_t *)lmb_column(batch, at, LMB_ELEMENT_U16);
}
static inline const uint32_t *lmb_u32(const LmbBatchV1 *batch, uint32_t at) {
    return (const uint32_t *)lmb_column(batch, at, LMB_ELEMENT_U32);
}
static inline const uint64_t *lmb_u64(const LmbBatchV1 *batch, uint32_t at) {
    return (const uint64_t *)lmb_column(batch, at, LMB_ELEMENT_U64);
}
static inline const int64_t *lmb_i64(const LmbBatchV1 *batch, uint32_t at) {
    return (const int64_t *)lmb_column(batch, at, LMB_ELEMENT_I64);
}
static inline const float *lmb_f32(const LmbBatchV1 *batch, uint32_t at) {
    return (const float *)lmb_column(batch, at, LMB_ELEMENT_F32);
}
static inline const double *lmb_f64(const LmbBatchV1 *batch, uint32_t at) {
    return (const double *)lmb_column(batch, at, LMB_ELEMENT_F64);
}
/* Ids of symbols; `host->symbol` gives the text. They may travel as plain numbers. */
static inline const uint32_t *lmb_sym(const LmbBatchV1 *batch, uint32_t at) {
    const void *symbols = lmb_column(batch, at, LMB_ELEMENT_SYM);
    return symbols ? (const uint32_t *)symbols : lmb_u32(batch, at);
}

/* -- metrics -------------------------------------------------------------------------------------
 * `labels` are an array of `labels_len`; null and 0 where there are none. */

static inline LmbLabelV1 lmb_label(const char *key, const char *value) {
    LmbLabelV1 label = {lmb_text(key), lmb_text(value)};
    return label;
}

static inline LmbMetricV1 lmb_metric(const char *name, uint32_t shape, const LmbLabelV1 *labels, size_t labels_len) {
    LmbMetricV1 metric;
    memset(&metric, 0, sizeof metric);
    metric.size = (uint32_t)sizeof metric;
    metric.shape = shape;
    metric.name = lmb_text(name);
    metric.labels = labels;
    metric.labels_len = labels_len;
    return metric;
}

/* Reports that there is no value, and why. Never report 0 instead. */
static inline void lmb_unavailable(const LmbHostV1 *host, const char *name, const LmbLabelV1 *labels, size_t labels_len,
                                   const char *reason) {
    LmbMetricV1 metric = lmb_metric(name, LMB_SHAPE_UNAVAILABLE, labels, labels_len);
    metric.reason = lmb_text(reason);
    host->metric(host->context, &metric);
}

/* Reports a count. */
static inline void lmb_counter(const LmbHostV1 *host, const char *name, const LmbLabelV1 *labels, size_t labels_len,
                               uint64_t count) {
    LmbMetricV1 metric = lmb_metric(name, LMB_SHAPE_COUNTER, labels, labels_len);
    metric.count = count;
    metric.samples = count;
    host->metric(host->context, &metric);
}

/* Reports a number that stands for `samples` events; unavailable where it is not finite. */
static inline void lmb_gauge(const LmbHostV1 *host, const char *name, const LmbLabelV1 *labels, size_t labels_len,
                             uint64_t samples, double number) {
    LmbMetricV1 metric = lmb_metric(name, LMB_SHAPE_GAUGE, labels, labels_len);
    if (!(number - number == 0.0)) {
        lmb_unavailable(host, name, labels, labels_len, "the formula gives no finite value for these events");
        return;
    }
    metric.number = number;
    metric.samples = samples;
    host->metric(host->context, &metric);
}

/* Reports a quotient; unavailable where the denominator is 0. */
static inline void lmb_ratio(const LmbHostV1 *host, const char *name, const LmbLabelV1 *labels, size_t labels_len,
                             uint64_t samples, double numerator, double denominator) {
    if (denominator == 0.0) {
        lmb_unavailable(host, name, labels, labels_len, "nothing was measured that the value could be divided by");
    } else {
        lmb_gauge(host, name, labels, labels_len, samples, numerator / denominator);
    }
}

/* Reports distinct values in ascending order, each with its count. */
static inline void lmb_distribution(const LmbHostV1 *host, const char *name, const LmbLabelV1 *labels,
                                    size_t labels_len, const LmbBucketV1 *buckets, size_t buckets_len) {
    LmbMetricV1 metric = lmb_metric(name, LMB_SHAPE_DISTRIBUTION, labels, labels_len);
    size_t at;
    metric.buckets = buckets;
    metric.buckets_len = buckets_len;
    for (at = 0; at < buckets_len; at++) metric.samples += buckets[at].count;
    host->metric(host->context, &metric);
}

/* A running sum with Neumaier's compensation; the same bits as `math::Sum` of the SDK for Rust. */
typedef struct LmbSum {
    double sum, compensation;
} LmbSum;

static inline void lmb_sum_add(LmbSum *sum, double term) {
    double total = sum->sum + term;
    double old_size = sum->sum < 0.0 ? -sum->sum : sum->sum, new_size = term < 0.0 ? -term : term;
    sum->compensation += old_size >= new_size ? (sum->sum - total) + term : (term - total) + sum->sum;
    sum->sum = total;
}

static inline double lmb_sum_value(const LmbSum *sum) { return sum->sum + sum->compensation; }

/* The word that labels metrics for a value of a `phase` column. */
static inline const char *lmb_phase_name(uint8_t phase) {
    static const char *const names[] = {"prefill", "decode", "mixed", "load"};
    return phase < 4 ? names[phase] : "unknown";
}

/* -- configuration -------------------------------------------------------------------------------
 * A configuration is a JSON object of numbers and truth values. The defaults stand in the variables beforehand:
 *
 *     double slow_ms = 50.0;
 *     const LmbOption options[] = {{"slow_ms", &slow_ms, NULL}};
 *     if (lmb_config(host, config, options, 1) != LMB_STATUS_OK) return LMB_STATUS_FAULT;
 */
typedef struct LmbOption {
    const char *key;
    /* One of the two takes the value; the other is null. A truth value is 0 or 1. */
    double *number;
    int *truth;
} LmbOption;

static inline const char *lmb_json_blanks(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
    return at;
}

/* Reads a value into its option; null when it has another type. */
static inline const char *lmb_json_value(const char *at, const char *end, const LmbOption *option) {
    char number[64];
    size_t length = 0;
    char *rest;
    if (option->truth) {
        int truth = end - at >= 4 && memcmp(at, "true", 4) == 0;
        if (!truth && !(end - at >= 5 && memcmp(at, "false", 5) == 0)) return NULL;
        *option->truth = truth;
        return at + (truth ? 4 : 5);
    }
    while (at + length < end && length + 1 < sizeof number && at[length] && strchr("+-.0123456789eE", at[length])) {
        number[length] = at[length];
        length++;
    }
    number[length] = 0;
    *option->number = strtod(number, &rest);
    return length > 0 && rest == number + length ? at + length : NULL;
}

static inline int32_t lmb_config_fault(const LmbHostV1 *host, const char *form, const char *key, size_t length) {
    char text[200];
    /* A key is shown up to 100 bytes. */
    snprintf(text, sizeof text, form, (int)(length < 100 ? length : 100), key);
    return lmb_fault(host, LMB_FAULT_CONFIG, text);
}

/* Reads a configuration. A key that is not among the options and a value of another type are faults, of which the
 * host has been told when the result is not LMB_STATUS_OK. */
static inline int32_t lmb_config(const LmbHostV1 *host, LmbBytes config, const LmbOption *options, size_t options_len) {
    const char *at = (const char *)config.ptr, *end, *key;
    size_t length, option;
    if (config.len == 0) return LMB_STATUS_OK;
    end = at + config.len;
    at = lmb_json_blanks(at, end);
    if (at == end || *at++ != '{') return lmb_fault(host, LMB_FAULT_CONFIG, "configuration: not a JSON object");
    at = lmb_json_blanks(at, end);
    while (at < end && *at == '"') {
        key = ++at;
        /* No option has a quotation mark or a backslash in its key, so a key that has one is unknown anyway. */
        while (at < end && *at != '"') at++;
        length = (size_t)(at - key);
        for (option = 0; option < options_len; option++) {
            if (strlen(options[option].key) == length && memcmp(options[option].key, key, length) == 0) break;
        }
        if (option == options_len) {
            return lmb_config_fault(host, "configuration: unknown field `%.*s`", key, length);
        }
        at = at < end ? lmb_json_blanks(at + 1, end) : end;
        if (at < end && *at == ':') at = lmb_json_value(lmb_json_blanks(at + 1, end), end, &options[option]);
        else at = NULL;
        if (!at) {
            return lmb_config_fault(host, options[option].truth ? "configuration: `%.*s` is neither true nor false"
                                                                : "configuration: `%.*s` is not a number",
                                    key, length);
        }
        at = lmb_json_blanks(at, end);
        if (at == end || *at != ',') break;
        at = lmb_json_blanks(at + 1, end);
    }
    if (at == end || *at != '}' || lmb_json_blanks(at + 1, end) != end) {
        return lmb_fault(host, LMB_FAULT_CONFIG, "configuration: not a JSON object");
    }
    return LMB_STATUS_OK;
}

#ifdef __cplusplus
}
#endif

#endif
