/* What the sources of the WASM door for C share. `lm-bench plugin build --door wasm` compiles them with a collector's
 * own source; the collector sees the header of the contract and the folder `include`, and nothing of this. */
#ifndef LM_BENCH_WASM_DOOR_H
#define LM_BENCH_WASM_DOOR_H

#include "lm_bench_plugin.h"

/* Tells the host why the component stops, and traps. The host shows the text as it shows that of a panic. */
_Noreturn void lmb_stop(const char *reason);

/* -- memory of one call ------------------------------------------------------------------------
 * Arguments that the host writes, symbols that it looks up, and all that a call makes on its way. */

/* Memory until the call ends; never null. */
void *lmb_call_alloc(size_t size, size_t align);

/* Ends the call. What it made stays readable until the next one begins: the host reads the result after this. */
void lmb_call_end(void);

/* -- text --------------------------------------------------------------------------------------- */

/* The text as UTF-8: what is none becomes U+FFFD. */
LmbBytes lmb_utf8(LmbBytes text);

/* -- what crosses the boundary, in the layout of the component model ----------------------------- */

/* list<string>: LmbBytes has the layout of a string. */
typedef struct Texts {
    LmbBytes *items;
    size_t len;
} Texts;

/* want */
typedef struct Want {
    LmbBytes kind;
    Texts columns, optional;
    /* 0 all, 1 every-nth */
    uint8_t sampling;
    uint32_t nth;
} Want;

/* subscription */
typedef struct Subscription {
    Want *wants;
    size_t wants_len;
    uint32_t max_rows;
} Subscription;

/* resolved-column */
typedef struct ResolvedColumn {
    LmbBytes name;
    uint8_t element, list;
    LmbBytes unit;
    uint8_t nonfinite;
} ResolvedColumn;

/* resolved-kind */
typedef struct ResolvedKind {
    LmbBytes kind;
    uint16_t id;
    ResolvedColumn *columns;
    size_t columns_len;
} ResolvedKind;

/* Reads a subscription; null, or what is wrong with it. */
const char *lmb_read_subscription(LmbBytes json, Subscription *subscription);

/* Writes the answer to a subscription as JSON, as the host writes it for a native library. */
LmbBytes lmb_write_resolved(const ResolvedKind *kinds, size_t len);

#endif
