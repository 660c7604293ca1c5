/* Numbers as text: strtod and printf with each digit right, integers, and the exact functions of <math.h>. */
#include "number.h"

#include <errno.h>
#include <math.h>

int errno;

/* -- decimals: 0.d0 d1 d2 … times 10 to the power of `point` -------------------------------------- */

static void trim(Decimal *decimal) {
    while (decimal->count > 0 && decimal->digits[decimal->count - 1] == 0) decimal->count--;
    if (decimal->count == 0) decimal->point = 0;
}

static void append(Decimal *decimal, int digit) {
    if (decimal->count < DIGITS) decimal->digits[decimal->count++] = (uint8_t)digit;
    else if (digit) decimal->more = 1;
}

static void twice(Decimal *decimal) {
    int carry = 0, at;
    for (at = decimal->count - 1; at >= 0; at--) {
        int digit = 2 * decimal->digits[at] + carry;
        carry = digit >= 10;
        decimal->digits[at] = (uint8_t)(digit - 10 * carry);
    }
    if (carry) {
        if (decimal->count == DIGITS && decimal->digits[--decimal->count]) decimal->more = 1;
        memmove(decimal->digits + 1, decimal->digits, (size_t)decimal->count);
        decimal->digits[0] = 1;
        decimal->count++;
        decimal->point++;
    }
    trim(decimal);
}

static void half(Decimal *decimal) {
    int rest = 0, count = decimal->count, from = 0, at;
    /* A leading 1 leaves no digit. */
    if (count && decimal->digits[0] == 1) {
        rest = 10;
        from = 1;
        decimal->point--;
    }
    decimal->count = 0;
    for (at = from; at < count; at++) {
        int digit = rest + decimal->digits[at];
        append(decimal, digit / 2);
        rest = digit % 2 * 10;
    }
    if (rest) append(decimal, rest / 2);
    trim(decimal);
}

/* Rounds to `count` digits, half to even as printf does. */
void lmb_decimal_round(Decimal *decimal, int count) {
    int up;
    if (count >= decimal->count) return;
    if (count < 0) {
        decimal->count = decimal->point = 0;
        return;
    }
    up = decimal->digits[count] > 5 || (decimal->digits[count] == 5 && (decimal->count > count + 1 || decimal->more ||
                                                                          (count > 0 && decimal->digits[count - 1] % 2)));
    decimal->count = count;
    while (up && decimal->count > 0 && decimal->digits[decimal->count - 1] == 9) decimal->count--;
    if (up && decimal->count > 0) {
        decimal->digits[decimal->count - 1]++;
    } else if (up) {
        decimal->digits[0] = 1;
        decimal->count = 1;
        decimal->point++;
    }
    trim(decimal);
}

/* The whole part, which must be below 2^64, rounded half to even. */
static uint64_t whole(const Decimal *decimal) {
    Decimal rounded = *decimal;
    uint64_t value = 0;
    int at;
    if (rounded.point < 0) return 0;
    lmb_decimal_round(&rounded, rounded.point);
    for (at = 0; at < rounded.point; at++) value = value * 10 + (at < rounded.count ? rounded.digits[at] : 0);
    return value;
}

void lmb_decimal_of(Decimal *decimal, double number) {
    uint64_t bits, mantissa;
    int exponent, at;
    uint8_t reversed[20];
    memcpy(&bits, &number, sizeof bits);
    mantissa = bits & ((UINT64_C(1) << 52) - 1);
    exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent) mantissa |= UINT64_C(1) << 52;
    else exponent = 1;
    decimal->count = decimal->more = 0;
    for (at = 0; mantissa; mantissa /= 10) reversed[at++] = (uint8_t)(mantissa % 10);
    decimal->point = at;
    while (at) append(decimal, reversed[--at]);
    trim(decimal);
    for (at = exponent - 1075; at > 0; at--) twice(decimal);
    for (; at < 0; at++) half(decimal);
}

static double double_of(Decimal *decimal) {
    uint64_t bits;
    int exponent = 0;
    double number;
    trim(decimal);
    if (decimal->count == 0 || decimal->point < -330) return 0.0;
    if (decimal->point > 310) return HUGE_VAL;
    /* To a value from 1/2 to 1, as long as the exponent lasts; then to 53 binary digits before the point. */
    for (; decimal->point > 0; exponent++) half(decimal);
    for (; exponent > -1021 && (decimal->point < 0 || decimal->digits[0] < 5); exponent--) twice(decimal);
    for (; exponent < -1021; exponent++) half(decimal);
    for (int shift = 0; shift < 53; shift++) twice(decimal);
    bits = whole(decimal);
    if (bits == UINT64_C(1) << 53) {
        bits >>= 1;
        exponent++;
    }
    if (exponent > 1024) return HUGE_VAL;
    if (bits & UINT64_C(1) << 52) bits += (uint64_t)(exponent + 1021) << 52;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Reads the digits of a decimal number; null where there are none. */
static const char *decimal_digits(const char *at, Decimal *decimal) {
    int any = 0, fraction = 0;
    for (;; at++) {
        if (*at >= '0' && *at <= '9') {
            any = 1;
            if (decimal->count || *at != '0') {
                append(decimal, *at - '0');
                decimal->point += !fraction;
            } else {
                decimal->point -= fraction;
            }
        } else if (*at == '.' && !fraction) {
            fraction = 1;
        } else {
            return any ? at : NULL;
        }
    }
}

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

double strtod(const char *restrict text, char **restrict rest) {
    static Decimal decimal;
    const char *at = text, *digits;
    double number;
    int minus;
    while (is_space(*at)) at++;
    minus = *at == '-';
    at += minus || *at == '+';
    decimal.count = decimal.point = decimal.more = 0;
    digits = decimal_digits(at, &decimal);
    if (!digits) {
        if (rest) *rest = (char *)text;
        return 0.0;
    }
    at = digits;
    if (*at == 'e' || *at == 'E') {
        const char *exponent = at + 1;
        int down = *exponent == '-', value = 0;
        exponent += down || *exponent == '+';
        if (*exponent >= '0' && *exponent <= '9') {
            for (; *exponent >= '0' && *exponent <= '9'; exponent++) {
                if (value < 100000) value = value * 10 + (*exponent - '0');
            }
            at = exponent;
            if (decimal.count) decimal.point += down ? -value : value;
        }
    }
    if (rest) *rest = (char *)at;
    number = double_of(&decimal);
    if (number == HUGE_VAL) errno = ERANGE;
    return minus ? -number : number;
}

double atof(const char *text) { return strtod(text, NULL); }

/* -- integers -------------------------------------------------------------------------------------- */

static unsigned digit_of(char c) {
    if (c >= '0' && c <= '9') return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'z') return (unsigned)(c - 'a' + 10);
    return c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A' + 10) : 99;
}

/* Size and sign of a number, cut at `most` for each sign. */
static uint64_t integer(const char *text, char **rest, int base, const uint64_t most[2], int *minus) {
    const char *at = text, *end = text;
    uint64_t value = 0;
    int too_large = 0;
    while (is_space(*at)) at++;
    *minus = *at == '-';
    at += *minus || *at == '+';
    if ((base == 0 || base == 16) && at[0] == '0' && (at[1] | 32) == 'x' && digit_of(at[2]) < 16) {
        at += 2;
        base = 16;
    }
    if (base == 0) base = *at == '0' ? 8 : 10;
    for (; digit_of(*at) < (unsigned)base; end = ++at) {
        too_large |= __builtin_mul_overflow(value, (uint64_t)base, &value);
        too_large |= __builtin_add_overflow(value, (uint64_t)digit_of(*at), &value);
    }
    if (rest) *rest = (char *)end;
    if (too_large || value > most[*minus]) {
        errno = ERANGE;
        value = most[*minus];
        /* An unsigned number that is too large is the largest, whatever its sign. */
        if (most[0] == most[1]) *minus = 0;
    }
    return value;
}

long long strtoll(const char *restrict text, char **restrict rest, int base) {
    static const uint64_t most[] = {INT64_MAX, UINT64_C(1) << 63};
    int minus;
    uint64_t value = integer(text, rest, base, most, &minus);
    return (long long)(minus ? 0 - value : value);
}

unsigned long long strtoull(const char *restrict text, char **restrict rest, int base) {
    static const uint64_t most[] = {UINT64_MAX, UINT64_MAX};
    int minus;
    uint64_t value = integer(text, rest, base, most, &minus);
    return minus ? 0 - value : value;
}

long strtol(const char *restrict text, char **restrict rest, int base) {
    static const uint64_t most[] = {INT32_MAX, UINT64_C(1) << 31};
    int minus;
    uint64_t value = integer(text, rest, base, most, &minus);
    return (long)(minus ? 0 - value : value);
}

unsigned long strtoul(const char *restrict text, char **restrict rest, int base) {
    static const uint64_t most[] = {UINT32_MAX, UINT32_MAX};
    int minus;
    uint64_t value = integer(text, rest, base, most, &minus);
    return (unsigned long)(minus ? 0 - value : value);
}

int atoi(const char *text) { return (int)strtol(text, NULL, 10); }
long atol(const char *text) { return strtol(text, NULL, 10); }
long long atoll(const char *text) { return strtoll(text, NULL, 10); }

/* -- the functions of <math.h> that IEEE 754 defines to the bit: instructions of WebAssembly -------- */

#define EXACT(name) \
    double name(double x) { return __builtin_##name(x); } \
    float name##f(float x) { return __builtin_##name##f(x); }
EXACT(fabs)
EXACT(sqrt)
EXACT(floor)
EXACT(ceil)
EXACT(trunc)
EXACT(rint)
EXACT(nearbyint)

double copysign(double x, double sign) { return __builtin_copysign(x, sign); }
float copysignf(float x, float sign) { return __builtin_copysignf(x, sign); }
double round(double x) {
    double whole_part = __builtin_trunc(x);
    if (__builtin_fabs(x - whole_part) >= 0.5) whole_part += __builtin_copysign(1.0, x);
    return __builtin_copysign(whole_part, x);
}
float roundf(float x) { return (float)round(x); }
double fmin(double x, double y) { return x != x || y < x ? y : x; }
double fmax(double x, double y) { return x != x || y > x ? y : x; }
float fminf(float x, float y) { return x != x || y < x ? y : x; }
float fmaxf(float x, float y) { return x != x || y > x ? y : x; }
