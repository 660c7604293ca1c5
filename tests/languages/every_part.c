/* Uses every part of the header, and misbehaves when told to: `misdeed` of the configuration, a number. */
#include "lm_bench_plugin.h"

#include <math.h>

enum { MARKS = 0, ROUTES = 1, TOKENS = 2 };
enum { SILENT = 1, NO_REPLY, NO_JSON, NO_INSTANCE, SMALL, SHAPE, NOT_UTF8, SPIN, RECURSE, LEAK, ABORT, EXIT, NULL_METRIC, BOTH };

typedef struct Own {
    double misdeed;
    uint64_t marks, rows, lost, symbol_bytes, text_bytes, ids[8];
    LmbSum sum, functions;
    LmbBucketV1 *buckets;
    size_t buckets_len;
} Own;

static volatile int sink;

static int32_t read_config(const LmbHostV1 *host, LmbBytes config, double *misdeed) {
    double scale = 0.0;
    int strict = 0;
    const LmbOption options[] = {{"misdeed", misdeed, NULL}, {"scale", &scale, NULL}, {"strict", NULL, &strict}};
    *misdeed = 0.0;
    return lmb_config(host, config, options, 3);
}

static int32_t subscribe(const LmbHostV1 *host, LmbBytes config, LmbBytes run) {
    double misdeed;
    (void)run;
    if (read_config(host, config, &misdeed) != LMB_STATUS_OK) return LMB_STATUS_FAULT;
    if (misdeed == NO_REPLY) return LMB_STATUS_OK;
    if (misdeed == NO_JSON) return lmb_reply(host, "{\"wants\":[{\"kind\":\"mark\"");
    return lmb_reply(host, " {\"later\" : [1.5e3, {\"x\":null}], \"max_rows\":5,\n \"wants\":["
                           "{\"kind\":\"m\\u0061rk\",\"columns\":[\"name\",\"value\"],\"sampling\":{\"every-nth\":2}},"
                           "{\"optional\":[\"phase\",\"no_such\"],\"kind\":\"moe_route\",\"columns\":[\"counts\",\"prob_sum\",\"layer\"]},"
                           "{\"kind\":\"token\",\"columns\":[],\"sampling\":\"all\"}]}");
}

static int32_t open_collector(const LmbHostV1 *host, LmbBytes config, LmbBytes run, LmbBytes resolved, void **instance) {
    Own *own = (Own *)calloc(1, sizeof *own);
    (void)run;
    if (!own) return lmb_fault(host, LMB_FAULT_DATA, "no memory");
    if (read_config(host, config, &own->misdeed) != LMB_STATUS_OK) return LMB_STATUS_FAULT;
    if (own->misdeed == NO_INSTANCE) return LMB_STATUS_OK;
    /* The text is the same through both doors. */
    for (size_t at = 0; at < resolved.len; at++) own->text_bytes = own->text_bytes * 31 + resolved.ptr[at];
    lmb_log(host, LMB_LOG_INFO, "opened");
    *instance = own;
    return LMB_STATUS_OK;
}

static void functions(Own *own, const LmbMathV1 *math, double x) {
    const double values[] = {math->exp(x), math->exp2(x), math->log(x), math->log1p(x), math->log2(x), math->log10(x),
                             math->pow(x, 0.3), math->cbrt(x), math->sin(x), math->cos(x), math->tanh(x), sqrt(x),
                             floor(x), round(x), fmax(x, 1.5)};
    for (size_t at = 0; at < sizeof values / sizeof *values; at++) lmb_sum_add(&own->functions, values[at]);
}

static int32_t marks(Own *own, const LmbHostV1 *host, const LmbBatchV1 *batch) {
    const uint32_t *names = lmb_sym(batch, 0);
    const double *values = lmb_f64(batch, 1);
    if (!names || !values || lmb_u8(batch, 0) || lmb_i64(batch, 9)) {
        return lmb_fault(host, LMB_FAULT_CONTRACT, "columns of another type than expected");
    }
    for (uint32_t row = 0; row < batch->rows; row++) {
        LmbBytes text = host->symbol(host->context, names[row]);
        own->symbol_bytes += text.len;
        own->ids[names[row] % 8]++;
        lmb_sum_add(&own->sum, values[row] * batch->weight);
        functions(own, host->math, values[row]);
        own->buckets = (LmbBucketV1 *)realloc(own->buckets, (own->buckets_len + 1) * sizeof *own->buckets);
        own->buckets[own->buckets_len].value = values[row];
        own->buckets[own->buckets_len++].count = row + 1;
    }
    own->marks += batch->rows;
    return host->symbol(host->context, 12345).ptr ? LMB_STATUS_FAULT : LMB_STATUS_OK;
}

static int32_t routes(Own *own, const LmbHostV1 *host, const LmbBatchV1 *batch) {
    const uint32_t *counts = lmb_u32(batch, 0);
    const float *sums = lmb_f32(batch, 1);
    const uint16_t *layers = lmb_u16(batch, 2);
    const uint8_t *phases = lmb_u8(batch, 3);
    uint64_t items = (uint64_t)batch->rows * batch->columns[0].width;
    if (!counts || !sums || !layers || !phases || lmb_u64(batch, 0) || batch->columns[1].len != items) {
        return lmb_fault(host, LMB_FAULT_CONTRACT, "columns of another type than expected");
    }
    for (uint64_t at = 0; at < items; at++) lmb_sum_add(&own->sum, (double)counts[at] * (double)sums[at] + layers[0]);
    own->rows += batch->rows + phases[0];
    return LMB_STATUS_OK;
}

static void recurse(void) {
    volatile char frame[4096];
    frame[0] = (char)sink;
    if (sink >= 0) recurse();
    sink += frame[0];
}

static int32_t misbehave(double misdeed, const LmbHostV1 *host) {
    static const uint8_t not_utf8[] = "a\xe2\x82z\xff";
    LmbBytes bytes = {not_utf8, sizeof not_utf8 - 1};
    if (misdeed == SILENT) return 7;
    if (misdeed == BOTH) host->fault(host->context, LMB_FAULT_DATA, lmb_text("told, and yet fine"));
    if (misdeed == NOT_UTF8) {
        host->fault(host->context, LMB_FAULT_DATA, bytes);
        return LMB_STATUS_FAULT;
    }
    while (misdeed == SPIN) sink++;
    if (misdeed == RECURSE) recurse();
    while (misdeed == LEAK) {
        volatile char *block = (volatile char *)malloc(1 << 20);
        if (!block) abort();
        for (int at = 0; at < 1 << 20; at += 4096) block[at] = 1;
    }
    if (misdeed == ABORT) abort();
    if (misdeed == EXIT) exit(3);
    return LMB_STATUS_OK;
}

static int32_t on_batch(void *instance, const LmbHostV1 *host, const LmbBatchV1 *batch) {
    Own *own = (Own *)instance;
    own->lost += batch->lost_before * (batch->kind + 1) + batch->seq;
    if (batch->kind == MARKS) return marks(own, host, batch);
    if (batch->kind == ROUTES) return routes(own, host, batch);
    return misbehave(own->misdeed, host);
}

static int32_t lost_after(void *instance, const LmbHostV1 *host, uint32_t kind, uint64_t rows) {
    (void)host;
    ((Own *)instance)->lost += 1000 * rows + kind;
    return LMB_STATUS_OK;
}

static int ascending(const void *left, const void *right) {
    double a = ((const LmbBucketV1 *)left)->value, b = ((const LmbBucketV1 *)right)->value;
    return (a > b) - (a < b);
}

/* Numbers as text and back: each digit is right on both sides. */
static uint64_t texts(void) {
    static const double numbers[] = {0.0, -0.5, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, 123456789.125, 2.5, 1e22};
    static const char *const formats[] = {"%.17g", "%f", "%.3e", "%+10.2f|", "%-12g|", "%.0f", "%#.4g", "%010.3f", "%G"};
    static const char *const inputs[] = {"0.1", "1e-7", "9007199254740993", "2.2250738585072011e-308", "1.7976931348623159e308",
                                         "4.9e-324", "2.4703282292062327e-324", "179769313486231580793e289", "12.5e", "1e23"};
    uint64_t hash = 0;
    char text[400], *rest;
    for (size_t number = 0; number < sizeof numbers / sizeof *numbers; number++) {
        for (size_t format = 0; format < sizeof formats / sizeof *formats; format++) {
            snprintf(text, sizeof text, formats[format], numbers[number]);
            for (const char *at = text; *at; at++) hash = hash * 31 + (uint8_t)*at;
        }
    }
    for (size_t input = 0; input < sizeof inputs / sizeof *inputs; input++) {
        double number = strtod(inputs[input], &rest);
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        hash = hash * 31 + bits + (uint64_t)(rest - inputs[input]);
    }
    snprintf(text, sizeof text, "%5d|%-5u|%x|%#o|%c|%.2s|%lld|%hhu|%%|%03d|%*d", -42, 7u, 255u, 8u, 'z', "abc", -(1LL << 60), (unsigned char)300, -7, 6, 1);
    for (const char *at = text; *at; at++) hash = hash * 31 + (uint8_t)*at;
    return hash >> 1;
}

static int32_t checkpoint(void *instance, const LmbHostV1 *host) {
    const Own *own = (const Own *)instance;
    const LmbLabelV1 labels[] = {lmb_label("phase", lmb_phase_name(1)), lmb_label("of", "\xc3\xa4")};
    LmbBucketV1 *sorted = (LmbBucketV1 *)malloc((own->buckets_len + 1) * sizeof *sorted);
    size_t kept = 0;
    LmbMetricV1 wrong = lmb_metric("rows", LMB_SHAPE_COUNTER, NULL, 0);
    if (own->misdeed == SMALL) wrong.size = 8;
    if (own->misdeed == SHAPE) wrong.shape = 9;
    if (own->misdeed == SMALL || own->misdeed == SHAPE) host->metric(host->context, &wrong);
    if (own->misdeed == NULL_METRIC) host->metric(host->context, NULL);
    if (own->buckets_len) memcpy(sorted, own->buckets, own->buckets_len * sizeof *sorted);
    qsort(sorted, own->buckets_len, sizeof *sorted, ascending);
    for (size_t at = 0; at < own->buckets_len; at++) {
        if (kept && sorted[kept - 1].value == sorted[at].value) sorted[kept - 1].count += sorted[at].count;
        else sorted[kept++] = sorted[at];
    }
    lmb_counter(host, "rows", labels, 2, own->rows + own->marks);
    lmb_counter(host, "lost", NULL, 0, own->lost);
    lmb_counter(host, "symbols", NULL, 0, own->symbol_bytes + own->ids[0] + 10 * own->ids[1]);
    lmb_counter(host, "resolved", NULL, 0, own->text_bytes >> 1);
    lmb_counter(host, "texts", NULL, 0, texts());
    lmb_gauge(host, "sum", NULL, 0, own->rows, lmb_sum_value(&own->sum));
    lmb_gauge(host, "functions", NULL, 0, own->rows, lmb_sum_value(&own->functions));
    lmb_ratio(host, "ratio", NULL, 0, own->rows, lmb_sum_value(&own->sum), (double)own->marks);
    lmb_distribution(host, "values", NULL, 0, sorted, kept);
    lmb_unavailable(host, "nothing", NULL, 0, "it is \xff" "for a test");
    free(sorted);
    return LMB_STATUS_OK;
}

static void destroy(void *instance) {
    free(((Own *)instance)->buckets);
    free(instance);
}

const LmbCollectorV1 lmb_collector =
    LMB_COLLECTOR(subscribe, open_collector, on_batch, lost_after, checkpoint, checkpoint, destroy);
