/* Of <inttypes.h>: conversions of printf. */
#ifndef LM_BENCH_INTTYPES_H
#define LM_BENCH_INTTYPES_H
#include <stdint.h>
#define PRId8 "hhd"
#define PRIu8 "hhu"
#define PRId16 "hd"
#define PRIu16 "hu"
#define PRId32 "d"
#define PRIu32 "u"
#define PRIx32 "x"
#define PRId64 "lld"
#define PRIu64 "llu"
#define PRIx64 "llx"
#endif
