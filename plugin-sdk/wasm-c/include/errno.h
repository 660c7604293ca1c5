/* Of <errno.h>: what the functions of <stdlib.h> set. */
#ifndef LM_BENCH_ERRNO_H
#define LM_BENCH_ERRNO_H
#ifdef __cplusplus
extern "C" {
#endif
extern int errno;
#define ERANGE 34
#ifdef __cplusplus
}
#endif
#endif
