/* Bytes and texts: <string.h>, what of <stdlib.h> is neither memory nor numbers, and the repair of UTF-8. */
#include "door.h"

/* The compiler has instructions for these three. */
void *memcpy(void *restrict to, const void *restrict from, size_t len) { return __builtin_memcpy(to, from, len); }
void *memmove(void *to, const void *from, size_t len) { return __builtin_memmove(to, from, len); }
void *memset(void *to, int byte, size_t len) { return __builtin_memset(to, byte, len); }

int memcmp(const void *left, const void *right, size_t len) {
    const uint8_t *a = left, *b = right;
    for (; len; len--, a++, b++) {
        if (*a != *b) return *a < *b ? -1 : 1;
    }
    return 0;
}

void *memchr(const void *bytes, int byte, size_t len) {
    const uint8_t *at = bytes;
    for (; len; len--, at++) {
        if (*at == (uint8_t)byte) return (void *)at;
    }
    return NULL;
}

size_t strlen(const char *text) {
    const char *at = text;
    while (*at) at++;
    return (size_t)(at - text);
}

size_t strnlen(const char *text, size_t max) {
    const char *end = memchr(text, 0, max);
    return end ? (size_t)(end - text) : max;
}

int strncmp(const char *left, const char *right, size_t len) {
    for (; len; len--, left++, right++) {
        if (*left != *right) return (uint8_t)*left < (uint8_t)*right ? -1 : 1;
        if (!*left) break;
    }
    return 0;
}

int strcmp(const char *left, const char *right) { return strncmp(left, right, SIZE_MAX); }

char *strchr(const char *text, int byte) {
    for (; *text != (char)byte; text++) {
        if (!*text) return NULL;
    }
    return (char *)text;
}

char *strrchr(const char *text, int byte) {
    const char *found = NULL;
    do {
        if (*text == (char)byte) found = text;
    } while (*text++);
    return (char *)found;
}

char *strstr(const char *text, const char *wanted) {
    size_t len = strlen(wanted);
    for (; strncmp(text, wanted, len) != 0; text++) {
        if (!*text) return NULL;
    }
    return (char *)text;
}

char *strcpy(char *restrict to, const char *restrict from) { return memcpy(to, from, strlen(from) + 1); }

char *strncpy(char *restrict to, const char *restrict from, size_t len) {
    size_t used = strnlen(from, len);
    memcpy(to, from, used);
    memset(to + used, 0, len - used);
    return to;
}

char *strcat(char *restrict to, const char *restrict from) {
    strcpy(to + strlen(to), from);
    return to;
}

char *strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* -- order ---------------------------------------------------------------------------------------- */

/* Merges two sorted runs of `from` into `to`. */
static void merge(uint8_t *to, const uint8_t *from, size_t left, size_t right, size_t size,
                  int (*compare)(const void *, const void *)) {
    const uint8_t *a = from, *b = from + left * size;
    while (left || right) {
        int first = left && (!right || compare(a, b) <= 0);
        memcpy(to, first ? a : b, size);
        to += size;
        if (first) a += size, left--;
        else b += size, right--;
    }
}

/* A merge sort: equal elements keep their order, so that sums over them do not depend on the platform. */
void qsort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *)) {
    uint8_t *from = items, *to, *spare;
    size_t run, at;
    if (count < 2 || size == 0) return;
    spare = to = calloc(count, size);
    if (!spare) lmb_stop("no memory to sort in");
    for (run = 1; run < count; run *= 2) {
        uint8_t *swap = from;
        for (at = 0; at < count; at += 2 * run) {
            size_t left = count - at < run ? count - at : run, rest = count - at - left;
            merge(to + at * size, from + at * size, left, rest < run ? rest : run, size, compare);
        }
        from = to;
        to = swap;
    }
    if (from != items) memcpy(items, from, count * size);
    free(spare);
}

void *bsearch(const void *key, const void *items, size_t count, size_t size,
              int (*compare)(const void *, const void *)) {
    const uint8_t *from = items;
    while (count) {
        const uint8_t *middle = from + count / 2 * size;
        int order = compare(key, middle);
        if (order == 0) return (void *)middle;
        if (order > 0) {
            from = middle + size;
            count--;
        }
        count /= 2;
    }
    return NULL;
}

int abs(int number) { return number < 0 ? -number : number; }
long labs(long number) { return number < 0 ? -number : number; }
long long llabs(long long number) { return number < 0 ? -number : number; }

/* -- the end -------------------------------------------------------------------------------------- */

_Noreturn void abort(void) { lmb_stop("it called abort()"); }

_Noreturn void exit(int status) {
    char text[48];
    snprintf(text, sizeof text, "it called exit(%d)", status);
    lmb_stop(text);
}

_Noreturn void lmb_assert_failed(const char *condition, const char *file, int line) {
    char text[256];
    snprintf(text, sizeof text, "assertion failed: %s, %s:%d", condition, file, line);
    lmb_stop(text);
}

/* -- UTF-8 ---------------------------------------------------------------------------------------- */

/* Length of the character at the start, or minus the length of what cannot be the start of one. */
static int character(const uint8_t *at, size_t len) {
    uint8_t first = at[0], low = 0x80, high = 0xbf;
    int follow = first < 0x80 ? 0 : first < 0xc2 ? -1 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : -1;
    int found;
    if (follow < 0) return -1;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
    for (found = 1; found <= follow; found++) {
        if ((size_t)found >= len || at[found] < low || at[found] > high) return -found;
        low = 0x80;
        high = 0xbf;
    }
    return found;
}

LmbBytes lmb_utf8(LmbBytes text) {
    size_t at = 0, out = 0;
    uint8_t *repaired;
    int step;
    if (!text.ptr) text.len = 0;
    while (at < text.len && (step = character(text.ptr + at, text.len - at)) > 0) at += (size_t)step;
    if (at == text.len) return text;
    /* U+FFFD has three bytes, and stands for one at least. */
    if (text.len > SIZE_MAX / 4) lmb_stop("a text is longer than the memory");
    repaired = lmb_call_alloc(3 * text.len, 1);
    for (at = 0; at < text.len;) {
        step = character(text.ptr + at, text.len - at);
        memcpy(repaired + out, step > 0 ? text.ptr + at : (const uint8_t *)"\xef\xbf\xbd", step > 0 ? (size_t)step : 3);
        out += step > 0 ? (size_t)step : 3;
        at += (size_t)(step > 0 ? step : -step);
    }
    text.ptr = repaired;
    text.len = out;
    return text;
}
