/* The component of a collector in C: the six functions that the host calls, around the table `lmb_collector` that a
 * native library has too. Names, arguments and layouts are those that the canonical ABI of the component model gives
 * lm-bench:collector@1.0.0 (wit/1.0.0/collector.wit); wit-component checks them when it wraps the module. */
#include "door.h"

#define PACKAGE "lm-bench:collector/"
#define EXPORT(name) __attribute__((export_name(PACKAGE "collector@1.0.0#" name)))
#define IMPORT(interface, name)                                                                                        \
    __attribute__((import_module(PACKAGE interface "@1.0.0"), import_name(name))) extern

/* -- imports ------------------------------------------------------------------------------------ */

typedef struct OptionalText {
    uint8_t some;
    LmbBytes text;
} OptionalText;

IMPORT("host", "log") void import_log(uint32_t level, const uint8_t *text, size_t len);
IMPORT("host", "symbol") void import_symbol(uint32_t id, OptionalText *result);
IMPORT("math", "exp") double import_exp(double x);
IMPORT("math", "exp2") double import_exp2(double x);
IMPORT("math", "log") double import_ln(double x);
IMPORT("math", "log1p") double import_log1p(double x);
IMPORT("math", "log2") double import_log2(double x);
IMPORT("math", "log10") double import_log10(double x);
IMPORT("math", "pow") double import_pow(double x, double y);
IMPORT("math", "cbrt") double import_cbrt(double x);
IMPORT("math", "sin") double import_sin(double x);
IMPORT("math", "cos") double import_cos(double x);
IMPORT("math", "tanh") double import_tanh(double x);

static const LmbMathV1 math = {
    sizeof(LmbMathV1), 0,           import_exp,  import_exp2, import_ln,  import_log1p, import_log2,
    import_log10,      import_pow,  import_cbrt, import_sin,  import_cos, import_tanh,
};

_Noreturn void lmb_stop(const char *reason) {
    import_log(LMB_LOG_ERROR, (const uint8_t *)reason, strlen(reason));
    __builtin_trap();
}

/* -- results ------------------------------------------------------------------------------------ */

/* value; `data` is a count, a number, or pointer and length of buckets or of a reason */
typedef struct Value {
    uint8_t shape;
    union {
        uint64_t count;
        double number;
        struct {
            const void *items;
            size_t len;
        } list;
    } data;
} Value;

/* metric: LmbLabelV1 has the layout of tuple<string, string>, LmbBucketV1 that of tuple<f64, u64>. */
typedef struct Metric {
    LmbBytes name;
    const LmbLabelV1 *labels;
    size_t labels_len;
    Value value;
    uint64_t samples;
} Metric;

/* result<_, fault> and its kin: all four have the same size. */
typedef struct Result {
    uint8_t failed;
    union {
        struct {
            uint8_t code;
            LmbBytes message;
        } fault;
        struct {
            Metric *items;
            size_t len;
        } metrics;
        Subscription subscription;
    } is;
} Result;

_Static_assert(sizeof(Want) == 32 && sizeof(Metric) == 40 && sizeof(Result) == 16, "layout of the component model");
_Static_assert(sizeof(ResolvedKind) == 20 && sizeof(ResolvedColumn) == 24, "layout of the component model");

/* -- one call ------------------------------------------------------------------------------------ */

/* Largest answer of `subscribe` in bytes, as for native libraries. */
enum { REPLY_BYTES = 1 << 20 };

static struct {
    int faulted, replied;
    uint32_t code;
    LmbBytes message, reply;
    /* The first reason to refuse what was reported. */
    const char *refused;
    Metric *metrics;
    size_t metrics_len, metrics_room;
} call;

static void *instance;
static int is_open;

static LmbBytes kept(LmbBytes text) {
    LmbBytes copy = {NULL, 0};
    if (text.len == 0 || !text.ptr) return copy;
    text = lmb_utf8(text);
    copy.ptr = lmb_call_alloc(text.len, 1);
    copy.len = text.len;
    memcpy((void *)copy.ptr, text.ptr, text.len);
    return copy;
}

static void on_log(void *context, uint32_t level, LmbBytes text) {
    (void)context;
    text = lmb_utf8(text);
    import_log(level < LMB_LOG_ERROR ? level : LMB_LOG_ERROR, text.ptr, text.len);
}

static LmbBytes on_symbol(void *context, uint32_t id) {
    OptionalText found;
    LmbBytes none = {NULL, 0};
    (void)context;
    import_symbol(id, &found);
    return found.some ? found.text : none;
}

static void on_fault(void *context, uint32_t code, LmbBytes message) {
    (void)context;
    call.faulted = 1;
    call.code = code;
    call.message = kept(message);
}

static void on_reply(void *context, LmbBytes json) {
    if (json.len > REPLY_BYTES) {
        char text[80];
        snprintf(text, sizeof text, "answered with %zu bytes, %d are allowed", json.len, (int)REPLY_BYTES);
        on_fault(context, LMB_FAULT_CONTRACT, lmb_text(text));
        return;
    }
    call.replied = 1;
    call.reply = kept(json);
}

static void refuse(const char *reason) {
    if (!call.refused) call.refused = reason;
}

static const LmbLabelV1 *kept_labels(const LmbMetricV1 *metric) {
    LmbLabelV1 *labels = lmb_call_alloc(metric->labels_len * sizeof *labels, _Alignof(LmbLabelV1));
    size_t at;
    for (at = 0; at < metric->labels_len; at++) {
        labels[at].key = kept(metric->labels[at].key);
        labels[at].value = kept(metric->labels[at].value);
    }
    return labels;
}

static Value kept_value(const LmbMetricV1 *metric) {
    Value value = {(uint8_t)metric->shape, {0}};
    LmbBytes reason;
    size_t bytes = metric->buckets_len * sizeof *metric->buckets;
    switch (metric->shape) {
    case LMB_SHAPE_COUNTER: value.data.count = metric->count; break;
    case LMB_SHAPE_GAUGE: value.data.number = metric->number; break;
    case LMB_SHAPE_DISTRIBUTION:
        if (!metric->buckets) break;
        value.data.list.items = memcpy(lmb_call_alloc(bytes, _Alignof(LmbBucketV1)), metric->buckets, bytes);
        value.data.list.len = metric->buckets_len;
        break;
    default:
        reason = kept(metric->reason);
        value.data.list.items = reason.ptr;
        value.data.list.len = reason.len;
    }
    return value;
}

/* Labels and buckets beyond this are a broken contract anyway; so many are not copied. */
enum { MANY = 1 << 24 };

static void on_metric(void *context, const LmbMetricV1 *metric) {
    Metric *kept_metric;
    (void)context;
    if (!metric || metric->size < sizeof *metric) {
        refuse("reported a metric that is smaller than version 1 has it");
        return;
    }
    if (metric->shape > LMB_SHAPE_UNAVAILABLE) {
        char *text = lmb_call_alloc(64, 1);
        snprintf(text, 64, "reported a metric of unknown shape %u", (unsigned)metric->shape);
        refuse(text);
        return;
    }
    if (metric->labels_len > MANY || metric->buckets_len > MANY) {
        refuse("reported a metric with more labels or values than are allowed");
        return;
    }
    if (call.metrics_len == call.metrics_room) {
        size_t room = call.metrics_room ? 2 * call.metrics_room : 32;
        call.metrics = realloc(call.metrics, room * sizeof *call.metrics);
        if (!call.metrics) lmb_stop("no memory for the metrics");
        call.metrics_room = room;
    }
    kept_metric = &call.metrics[call.metrics_len++];
    kept_metric->name = kept(metric->name);
    kept_metric->labels_len = metric->labels ? metric->labels_len : 0;
    kept_metric->labels = kept_metric->labels_len ? kept_labels(metric) : NULL;
    kept_metric->value = kept_value(metric);
    kept_metric->samples = metric->samples;
}

static const LmbHostV1 host = {
    sizeof(LmbHostV1), 0, NULL, on_log, on_symbol, on_metric, on_reply, on_fault, &math,
};

static void begin(void) {
    call.faulted = call.replied = 0;
    call.refused = NULL;
    call.metrics_len = 0;
}

static void contract(const char *message) { on_fault(NULL, LMB_FAULT_CONTRACT, lmb_text(message)); }

/* Ends a call: the collector's status and what it told make the result. */
static Result *ended(int32_t status) {
    static Result result;
    memset(&result, 0, sizeof result);
    if (status == LMB_STATUS_OK && call.faulted) {
        call.code = LMB_FAULT_CONTRACT;
    } else if (status != LMB_STATUS_OK && !call.faulted) {
        char text[64];
        snprintf(text, sizeof text, "a call returned status %d without a reason", (int)status);
        contract(text);
    } else if (status == LMB_STATUS_OK && call.refused) {
        contract(call.refused);
    }
    if (call.faulted) {
        result.failed = 1;
        /* Codes count from 1; one that there is not stands for a broken contract. */
        result.is.fault.code = (uint8_t)(call.code - 1 <= 3 ? call.code - 1 : LMB_FAULT_CONTRACT - 1);
        result.is.fault.message = call.message;
    }
    lmb_call_end();
    return &result;
}

/* -- exports ------------------------------------------------------------------------------------- */

EXPORT("subscribe")
Result *export_subscribe(const uint8_t *config, size_t config_len, const uint8_t *run, size_t run_len) {
    const LmbBytes config_text = {config, config_len}, run_text = {run, run_len};
    Subscription subscription = {NULL, 0, 0};
    const char *wrong;
    Result *result;
    int32_t status;
    begin();
    if (lmb_collector.size < sizeof lmb_collector) {
        contract("its table of functions is smaller than version 1 has it");
        return ended(LMB_STATUS_FAULT);
    }
    status = lmb_collector.subscribe(&host, config_text, run_text);
    if (status == LMB_STATUS_OK && !call.faulted) {
        if (!call.replied) {
            contract("a call succeeded without an answer");
        } else if ((wrong = lmb_read_subscription(call.reply, &subscription)) != NULL) {
            char text[200];
            snprintf(text, sizeof text, "its subscription cannot be read: %s", wrong);
            contract(text);
        }
    }
    result = ended(status);
    if (!result->failed) result->is.subscription = subscription;
    return result;
}

EXPORT("open")
Result *export_open(const uint8_t *config, size_t config_len, const uint8_t *run, size_t run_len,
                    const ResolvedKind *resolved, size_t resolved_len) {
    const LmbBytes config_text = {config, config_len}, run_text = {run, run_len};
    int32_t status;
    begin();
    status = lmb_collector.open(&host, config_text, run_text, lmb_write_resolved(resolved, resolved_len), &instance);
    if (status == LMB_STATUS_OK && !call.faulted && !instance) contract("open succeeded without an instance");
    is_open = status == LMB_STATUS_OK && !call.faulted;
    return ended(status);
}

/* Whether there is a collector to call; tells when there is none. */
static int opened(void) {
    begin();
    if (!is_open) contract("the collector is not open");
    return is_open;
}

/* column */
typedef struct Column {
    uint32_t width;
    uint8_t element;
    const void *items;
    size_t len;
} Column;

EXPORT("on-batch")
Result *export_on_batch(uint32_t kind, uint64_t seq, uint32_t rows, double weight, uint64_t lost_before,
                        const Column *columns, size_t columns_len) {
    LmbColumnV1 *views;
    LmbBatchV1 batch;
    size_t at;
    if (!opened()) return ended(LMB_STATUS_FAULT);
    views = lmb_call_alloc(columns_len * sizeof *views, _Alignof(LmbColumnV1));
    for (at = 0; at < columns_len; at++) {
        /* The contract numbers the elements as the header does; ids of symbols travel as u32. */
        const LmbColumnV1 view = {columns[at].items, columns[at].len, columns[at].width, columns[at].element};
        views[at] = view;
    }
    batch = (LmbBatchV1){sizeof batch, rows, kind, (uint32_t)columns_len, seq, lost_before, weight, views};
    return ended(lmb_collector.on_batch(instance, &host, &batch));
}

EXPORT("lost-after")
Result *export_lost_after(uint32_t kind, uint64_t rows) {
    if (!opened()) return ended(LMB_STATUS_FAULT);
    return ended(lmb_collector.lost_after(instance, &host, kind, rows));
}

static Result *report(int32_t (*call_it)(void *, const LmbHostV1 *)) {
    Result *result = ended(call_it(instance, &host));
    if (!result->failed) {
        result->is.metrics.items = call.metrics;
        result->is.metrics.len = call.metrics_len;
    }
    return result;
}

EXPORT("checkpoint")
Result *export_checkpoint(void) { return opened() ? report(lmb_collector.checkpoint) : ended(LMB_STATUS_FAULT); }

EXPORT("finish")
Result *export_finish(void) {
    Result *result;
    if (!opened()) return ended(LMB_STATUS_FAULT);
    result = report(lmb_collector.finish);
    if (!result->failed) {
        lmb_collector.destroy(instance);
        is_open = 0;
    }
    return result;
}

/* Runs the constructors of globals, once; without it the linker would run them before each call. */
void __wasm_call_ctors(void);
__attribute__((export_name("_initialize"))) void initialize(void) { __wasm_call_ctors(); }
