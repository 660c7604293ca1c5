/* snprintf and vsnprintf: all conversions of C11 but %a, %n and wide characters. */
#include "number.h"

#include <stdarg.h>

typedef struct Out {
    char *text;
    size_t room, len;
} Out;

typedef struct Spec {
    int minus, plus, blank, alternate, zero, width, precision;
    /* Length of an integer: -2 char, -1 short, 0 int, 1 long, 2 long long, 3 size_t and ptrdiff_t, 4 intmax_t. */
    int length;
    char conversion;
} Spec;

static void put(Out *out, char c) {
    if (out->len + 1 < out->room) out->text[out->len] = c;
    out->len++;
}

static void put_bytes(Out *out, const char *bytes, size_t len) {
    for (; len; len--) put(out, *bytes++);
}

static void put_many(Out *out, char c, int count) {
    for (; count > 0; count--) put(out, c);
}

/* Puts sign or prefix, zeros and body into the width; `zeros` are those that belong to the number. */
static void put_padded(Out *out, const Spec *spec, const char *prefix, int zeros, const char *body, size_t body_len) {
    int blanks = spec->width - (int)(strlen(prefix) + body_len) - zeros;
    if (spec->zero && !spec->minus && blanks > 0) {
        zeros += blanks;
        blanks = 0;
    }
    if (!spec->minus) put_many(out, ' ', blanks);
    put_bytes(out, prefix, strlen(prefix));
    put_many(out, '0', zeros);
    put_bytes(out, body, body_len);
    if (spec->minus) put_many(out, ' ', blanks);
}

static const char *sign_of(const Spec *spec, int minus) { return minus ? "-" : spec->plus ? "+" : spec->blank ? " " : ""; }

static void put_integer(Out *out, Spec spec, uint64_t value, const char *prefix) {
    const char *digits = spec.conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    unsigned base = strchr("xXp", spec.conversion) ? 16 : spec.conversion == 'o' ? 8 : 10;
    char body[24];
    size_t at = sizeof body;
    int zeros;
    uint64_t rest;
    for (rest = value; rest; rest /= base) body[--at] = digits[rest % base];
    zeros = (spec.precision < 0 ? 1 : spec.precision) - (int)(sizeof body - at);
    if (spec.conversion == 'o' && spec.alternate && zeros < 1) zeros = 1;
    /* A precision turns the flag 0 off. */
    if (spec.precision >= 0) spec.zero = 0;
    put_padded(out, &spec, prefix, zeros > 0 ? zeros : 0, body + at, sizeof body - at);
}

/* Digit number `at` of a decimal, counted from the first. */
static char digit(const Decimal *decimal, int at) {
    return (char)('0' + (at >= 0 && at < decimal->count ? decimal->digits[at] : 0));
}

/* Writes a number with `after` digits behind the point, 0 to SHOWN. */
enum { SHOWN = 1100, BODY = 320 + SHOWN };

static size_t fixed(char *body, const Decimal *decimal, int after, int point) {
    int at = decimal->point > 0 ? 0 : decimal->point - 1;
    size_t len = 0;
    for (; at < decimal->point; at++) body[len++] = digit(decimal, at);
    if (after || point) body[len++] = '.';
    for (; after; after--, at++) body[len++] = digit(decimal, at);
    return len;
}

static size_t scientific(char *body, const Decimal *decimal, int after, int point, char letter) {
    int exponent = decimal->count ? decimal->point - 1 : 0, at;
    size_t len = 0;
    body[len++] = digit(decimal, 0);
    if (after || point) body[len++] = '.';
    for (at = 1; at <= after; at++) body[len++] = digit(decimal, at);
    body[len++] = letter;
    body[len++] = exponent < 0 ? '-' : '+';
    if (exponent < 0) exponent = -exponent;
    if (exponent >= 100) body[len++] = (char)('0' + exponent / 100);
    body[len++] = (char)('0' + exponent / 10 % 10);
    body[len++] = (char)('0' + exponent % 10);
    return len;
}

static size_t trimmed(const char *body, size_t len) {
    if (!memchr(body, '.', len)) return len;
    while (body[len - 1] == '0') len--;
    return body[len - 1] == '.' ? len - 1 : len;
}

static size_t shortest(char *body, Decimal *decimal, const Spec *spec, int precision) {
    int exponent, letter = spec->conversion - 2;
    size_t len, mantissa, kept;
    if (precision == 0) precision = 1;
    lmb_decimal_round(decimal, precision);
    exponent = decimal->count ? decimal->point - 1 : 0;
    if (exponent >= -4 && exponent < precision) {
        len = fixed(body, decimal, precision - 1 - exponent, spec->alternate);
        return spec->alternate ? len : trimmed(body, len);
    }
    len = scientific(body, decimal, precision - 1, spec->alternate, (char)letter);
    if (spec->alternate) return len;
    mantissa = (size_t)((char *)memchr(body, letter, len) - body);
    kept = trimmed(body, mantissa);
    memmove(body + kept, body + mantissa, len - mantissa);
    return kept + len - mantissa;
}

static void put_double(Out *out, Spec spec, double number) {
    static Decimal decimal;
    static char body[BODY];
    int upper = spec.conversion < 'a', precision = spec.precision < 0 ? 6 : spec.precision;
    const char *sign = sign_of(&spec, number != number ? 0 : __builtin_signbit(number) != 0);
    size_t len;
    if (number - number != 0.0) {
        spec.zero = 0;
        put_padded(out, &spec, sign, 0, number != number ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf", 3);
        return;
    }
    /* No f64 has more digits than are shown; the rest would be zeros. */
    if (precision > SHOWN) precision = SHOWN;
    lmb_decimal_of(&decimal, number);
    switch (spec.conversion | 32) {
    case 'f':
        lmb_decimal_round(&decimal, decimal.point + precision);
        len = fixed(body, &decimal, precision, spec.alternate);
        break;
    case 'e':
        lmb_decimal_round(&decimal, precision + 1);
        len = scientific(body, &decimal, precision, spec.alternate, spec.conversion);
        break;
    default: len = shortest(body, &decimal, &spec, precision);
    }
    put_padded(out, &spec, sign, 0, body, len);
}

static int read_number(const char **format, va_list *arguments) {
    int value = 0;
    if (**format == '*') {
        (*format)++;
        return va_arg(*arguments, int);
    }
    for (; **format >= '0' && **format <= '9'; (*format)++) {
        if (value < 100000) value = value * 10 + (**format - '0');
    }
    return value;
}

static Spec read_spec(const char **format, va_list *arguments) {
    Spec spec = {0, 0, 0, 0, 0, 0, -1, 0, 0};
    for (;; (*format)++) {
        if (**format == '-') spec.minus = 1;
        else if (**format == '+') spec.plus = 1;
        else if (**format == ' ') spec.blank = 1;
        else if (**format == '#') spec.alternate = 1;
        else if (**format == '0') spec.zero = 1;
        else break;
    }
    spec.width = read_number(format, arguments);
    if (spec.width < 0) {
        spec.minus = 1;
        spec.width = -spec.width;
    }
    if (**format == '.') {
        (*format)++;
        spec.precision = read_number(format, arguments);
    }
    for (;; (*format)++) {
        if (**format == 'h') spec.length--;
        else if (**format == 'l') spec.length++;
        else if (**format == 'z' || **format == 't') spec.length = 3;
        else if (**format == 'j') spec.length = 4;
        else if (**format != 'L') break;
    }
    spec.conversion = **format;
    return spec;
}

static int64_t signed_argument(const Spec *spec, va_list *arguments) {
    switch (spec->length) {
    case -2: return (signed char)va_arg(*arguments, int);
    case -1: return (short)va_arg(*arguments, int);
    case 0: return va_arg(*arguments, int);
    case 1:
    case 3: return va_arg(*arguments, long);
    default: return va_arg(*arguments, long long);
    }
}

static uint64_t unsigned_argument(const Spec *spec, va_list *arguments) {
    switch (spec->length) {
    case -2: return (unsigned char)va_arg(*arguments, unsigned);
    case -1: return (unsigned short)va_arg(*arguments, unsigned);
    case 0: return va_arg(*arguments, unsigned);
    case 1:
    case 3: return va_arg(*arguments, unsigned long);
    default: return va_arg(*arguments, unsigned long long);
    }
}

static void convert(Out *out, Spec spec, va_list *arguments) {
    int64_t number;
    uint64_t value;
    const char *text;
    char c;
    switch (spec.conversion) {
    case 'd':
    case 'i':
        number = signed_argument(&spec, arguments);
        put_integer(out, spec, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, sign_of(&spec, number < 0));
        break;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        value = unsigned_argument(&spec, arguments);
        text = !spec.alternate || value == 0 ? "" : spec.conversion == 'x' ? "0x" : spec.conversion == 'X' ? "0X" : "";
        put_integer(out, spec, value, text);
        break;
    case 'p': put_integer(out, spec, (uintptr_t)va_arg(*arguments, void *), "0x"); break;
    case 'c':
        c = (char)va_arg(*arguments, int);
        spec.zero = 0;
        put_padded(out, &spec, "", 0, &c, 1);
        break;
    case 's':
        text = va_arg(*arguments, const char *);
        if (!text) text = "(null)";
        spec.zero = 0;
        put_padded(out, &spec, "", 0, text, strnlen(text, spec.precision < 0 ? SIZE_MAX : (size_t)spec.precision));
        break;
    case '%': put(out, '%'); break;
    default:
        if (!spec.conversion || !strchr("fFeEgG", spec.conversion)) lmb_stop("snprintf: a conversion that there is not");
        put_double(out, spec, va_arg(*arguments, double));
    }
}

int vsnprintf(char *restrict text, size_t room, const char *restrict format, va_list arguments) {
    Out out = {text, room, 0};
    const char *at;
    va_list rest;
    va_copy(rest, arguments);
    for (at = format; *at; at++) {
        if (*at != '%') {
            put(&out, *at);
            continue;
        }
        at++;
        convert(&out, read_spec(&at, &rest), &rest);
    }
    va_end(rest);
    if (room) text[out.len < room ? out.len : room - 1] = 0;
    return (int)out.len;
}

int snprintf(char *restrict text, size_t room, const char *restrict format, ...) {
    va_list arguments;
    int len;
    va_start(arguments, format);
    len = vsnprintf(text, room, format, arguments);
    va_end(arguments);
    return len;
}
