/* Of <string.h>: bytes and texts. */
#ifndef LM_BENCH_STRING_H
#define LM_BENCH_STRING_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#define restrict __restrict
#endif
void *memcpy(void *restrict to, const void *restrict from, size_t len);
void *memmove(void *to, const void *from, size_t len);
void *memset(void *to, int byte, size_t len);
int memcmp(const void *left, const void *right, size_t len);
void *memchr(const void *bytes, int byte, size_t len);
size_t strlen(const char *text);
size_t strnlen(const char *text, size_t max);
int strcmp(const char *left, const char *right);
int strncmp(const char *left, const char *right, size_t len);
char *strchr(const char *text, int byte);
char *strrchr(const char *text, int byte);
char *strstr(const char *text, const char *wanted);
char *strcpy(char *restrict to, const char *restrict from);
char *strncpy(char *restrict to, const char *restrict from, size_t len);
char *strcat(char *restrict to, const char *restrict from);
char *strdup(const char *text);
#ifdef __cplusplus
#undef restrict
}
#endif
#endif
