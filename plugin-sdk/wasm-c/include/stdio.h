/* Of <stdio.h>: texts in memory. A component has no files and no output. */
#ifndef LM_BENCH_STDIO_H
#define LM_BENCH_STDIO_H
#include <stdarg.h>
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#define restrict __restrict
#endif
__attribute__((format(printf, 3, 4))) int snprintf(char *restrict text, size_t room, const char *restrict format, ...);
__attribute__((format(printf, 3, 0))) int vsnprintf(char *restrict text, size_t room, const char *restrict format,
                                                    va_list arguments);

#define LMB_NO_OUTPUT __attribute__((unavailable("a component has no output: write a line to the log with lmb_log")))
typedef struct LmbFile FILE;
extern FILE *stdout, *stderr;
LMB_NO_OUTPUT int printf(const char *restrict format, ...);
LMB_NO_OUTPUT int fprintf(FILE *restrict file, const char *restrict format, ...);
LMB_NO_OUTPUT int puts(const char *text);
LMB_NO_OUTPUT int fputs(const char *restrict text, FILE *restrict file);
LMB_NO_OUTPUT int putchar(int byte);
LMB_NO_OUTPUT int fflush(FILE *file);
LMB_NO_OUTPUT FILE *fopen(const char *restrict path, const char *restrict mode);
#ifdef __cplusplus
#undef restrict
}
#endif
#endif
