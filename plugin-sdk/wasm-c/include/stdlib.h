/* Of <stdlib.h>: memory, numbers from text, order. */
#ifndef LM_BENCH_STDLIB_H
#define LM_BENCH_STDLIB_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#define restrict __restrict
#endif
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
__attribute__((malloc)) void *malloc(size_t size);
__attribute__((malloc)) void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void free(void *block);
double strtod(const char *restrict text, char **restrict rest);
long strtol(const char *restrict text, char **restrict rest, int base);
unsigned long strtoul(const char *restrict text, char **restrict rest, int base);
long long strtoll(const char *restrict text, char **restrict rest, int base);
unsigned long long strtoull(const char *restrict text, char **restrict rest, int base);
double atof(const char *text);
int atoi(const char *text);
long atol(const char *text);
long long atoll(const char *text);
int abs(int number);
long labs(long number);
long long llabs(long long number);
void qsort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *));
void *bsearch(const void *key, const void *items, size_t count, size_t size,
              int (*compare)(const void *, const void *));
/* Both end the collector, and the host tells it. */
__attribute__((noreturn)) void abort(void);
__attribute__((noreturn)) void exit(int status);
#ifdef __cplusplus
#undef restrict
}
#endif
#endif
