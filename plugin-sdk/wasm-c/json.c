/* The two JSON texts that the table of functions has and the component does not: the subscription, which is read, and
 * the answer to it, which is written. */
#include "door.h"

/* -- reading ------------------------------------------------------------------------------------- */

typedef struct Reader {
    const char *at, *end;
    /* What is wrong first. */
    const char *wrong;
} Reader;

/* Values in a value that is read over, as deep as the host reads. */
enum { DEPTH = 128 };

static int fail(Reader *reader, const char *wrong) {
    if (!reader->wrong) reader->wrong = wrong;
    return 0;
}

static int next_is(Reader *reader, char wanted) {
    reader->at = lmb_json_blanks(reader->at, reader->end);
    return reader->at < reader->end && *reader->at == wanted;
}

static int take(Reader *reader, char wanted) {
    if (!next_is(reader, wanted)) return 0;
    reader->at++;
    return 1;
}

static int hex(Reader *reader, uint32_t *code) {
    int digit;
    *code = 0;
    for (digit = 0; digit < 4; digit++) {
        char c = reader->at < reader->end ? *reader->at++ : 0;
        uint32_t value = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (value == 16) return fail(reader, "a wrong escape in a text");
        *code = *code << 4 | value;
    }
    return 1;
}

static uint8_t *put_code(uint8_t *out, uint32_t code) {
    if (code < 0x80) {
        *out++ = (uint8_t)code;
    } else if (code < 0x800) {
        *out++ = (uint8_t)(0xc0 | code >> 6);
    } else if (code < 0x10000) {
        *out++ = (uint8_t)(0xe0 | code >> 12);
        *out++ = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    } else {
        *out++ = (uint8_t)(0xf0 | code >> 18);
        *out++ = (uint8_t)(0x80 | (code >> 12 & 0x3f));
        *out++ = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    }
    if (code >= 0x80) *out++ = (uint8_t)(0x80 | (code & 0x3f));
    return out;
}

/* A \u escape, of which \u stands behind the reader; two where the first is half of a character. */
static uint8_t *unicode(Reader *reader, uint8_t *out) {
    uint32_t code, low;
    if (!hex(reader, &code)) return NULL;
    if (code >= 0xd800 && code < 0xe000) {
        int pair = code < 0xdc00 && reader->end - reader->at >= 6 && reader->at[0] == '\\' && reader->at[1] == 'u';
        reader->at += pair ? 2 : 0;
        if (!pair || !hex(reader, &low) || low < 0xdc00 || low > 0xdfff) {
            fail(reader, "half a character in a text");
            return NULL;
        }
        code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
    }
    return put_code(out, code);
}

static int text(Reader *reader, LmbBytes *found) {
    static const char names[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    uint8_t *out;
    if (!take(reader, '"')) return fail(reader, "a text is expected");
    /* A text is never longer than its JSON. */
    found->ptr = out = lmb_call_alloc((size_t)(reader->end - reader->at) + 1, 1);
    while (reader->at < reader->end && *reader->at != '"') {
        char c = *reader->at++;
        const char *name;
        if ((uint8_t)c < 0x20) return fail(reader, "a control character in a text");
        if (c != '\\') {
            *out++ = (uint8_t)c;
        } else if (reader->at < reader->end && *reader->at == 'u') {
            reader->at++;
            if ((out = unicode(reader, out)) == NULL) return 0;
        } else {
            name = reader->at < reader->end && *reader->at ? strchr(names, *reader->at) : NULL;
            if (!name) return fail(reader, "a wrong escape in a text");
            *out++ = (uint8_t)codes[name - names];
            reader->at++;
        }
    }
    if (reader->at == reader->end) return fail(reader, "a text does not end");
    reader->at++;
    found->len = (size_t)(out - found->ptr);
    return 1;
}

static int number(Reader *reader, uint32_t *found) {
    uint64_t value = 0;
    const char *start;
    reader->at = start = lmb_json_blanks(reader->at, reader->end);
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9') {
        value = value * 10 + (uint64_t)(*reader->at++ - '0');
        if (value > UINT32_MAX) return fail(reader, "a number is too large");
    }
    if (reader->at == start || (*start == '0' && reader->at > start + 1)) {
        return fail(reader, "a whole number from 0 is expected");
    }
    if (reader->at < reader->end && strchr(".eE", *reader->at)) return fail(reader, "a whole number from 0 is expected");
    *found = (uint32_t)value;
    return 1;
}

static int is(LmbBytes text, const char *word) {
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

/* Whether there is one more item before `close`; call it with 1 before the first item, with 0 later. */
static int more(Reader *reader, char close, int first) {
    if (take(reader, close)) return 0;
    if (!first && !take(reader, ',')) return fail(reader, "a comma, or an end of what was begun, is expected");
    return 1;
}

static int skip(Reader *reader, int depth) {
    LmbBytes ignored;
    char close;
    int first = 1;
    if (depth == 0) return fail(reader, "it is too deep");
    if (next_is(reader, '"')) return text(reader, &ignored);
    close = take(reader, '{') ? '}' : take(reader, '[') ? ']' : 0;
    if (close) {
        for (; more(reader, close, first); first = 0) {
            if (close == '}' && (!text(reader, &ignored) || !take(reader, ':'))) return fail(reader, "a key is expected");
            if (!skip(reader, depth - 1)) return 0;
        }
        return !reader->wrong;
    }
    for (first = 1; reader->at < reader->end && *reader->at && strchr("+-.0123456789aeEflnrstu", *reader->at); first = 0) {
        reader->at++;
    }
    return first ? fail(reader, "a value is expected") : 1;
}

/* Takes the next key of an object; 0 at its end and where something is wrong. */
static int key(Reader *reader, int first, LmbBytes *found) {
    if (!more(reader, '}', first) || !text(reader, found)) return 0;
    return take(reader, ':') ? 1 : fail(reader, "a colon is expected");
}

/* Room for one more item in a growing list. */
static void *grown(void *items, size_t len, size_t size) {
    /* Full at 0, 4, 8, 16, … */
    size_t room = len ? 2 * len : 4;
    void *larger;
    if (len && (len < 4 || (len & (len - 1)))) return items;
    larger = lmb_call_alloc(room * size, 8);
    return len ? memcpy(larger, items, len * size) : larger;
}

static int texts(Reader *reader, Texts *found) {
    int first = 1;
    if (!take(reader, '[')) return fail(reader, "a list of texts is expected");
    for (; more(reader, ']', first); first = 0) {
        found->items = grown(found->items, found->len, sizeof *found->items);
        if (!text(reader, &found->items[found->len])) return 0;
        found->len++;
    }
    return !reader->wrong;
}

static int sampling(Reader *reader, Want *want) {
    LmbBytes word;
    if (next_is(reader, '"')) {
        want->sampling = 0;
        return text(reader, &word) && (is(word, "all") || fail(reader, "a sampling is \"all\" or {\"every-nth\": n}"));
    }
    want->sampling = 1;
    return take(reader, '{') && text(reader, &word) && is(word, "every-nth") && take(reader, ':') &&
                   number(reader, &want->nth) && take(reader, '}')
               ? 1
               : fail(reader, "a sampling is \"all\" or {\"every-nth\": n}");
}

static int want(Reader *reader, Want *found) {
    LmbBytes name;
    int first = 1, kind = 0, columns = 0;
    memset(found, 0, sizeof *found);
    if (!take(reader, '{')) return fail(reader, "an object for each kind is expected");
    for (; key(reader, first, &name); first = 0) {
        if (is(name, "kind")) kind = text(reader, &found->kind);
        else if (is(name, "columns")) columns = texts(reader, &found->columns);
        else if (is(name, "optional")) texts(reader, &found->optional);
        else if (is(name, "sampling")) sampling(reader, found);
        else skip(reader, DEPTH);
        if (reader->wrong) return 0;
    }
    if (!kind) return fail(reader, "missing field `kind`");
    return columns ? !reader->wrong : fail(reader, "missing field `columns`");
}

static int wants(Reader *reader, Subscription *subscription) {
    int first = 1;
    if (!take(reader, '[')) return fail(reader, "a list of kinds is expected");
    for (; more(reader, ']', first); first = 0) {
        subscription->wants = grown(subscription->wants, subscription->wants_len, sizeof *subscription->wants);
        if (!want(reader, &subscription->wants[subscription->wants_len])) return 0;
        subscription->wants_len++;
    }
    return !reader->wrong;
}

const char *lmb_read_subscription(LmbBytes json, Subscription *subscription) {
    const char *start = (const char *)json.ptr;
    Reader reader = {start, start + json.len, NULL};
    LmbBytes name;
    int first = 1, has_wants = 0, has_rows = 0;
    memset(subscription, 0, sizeof *subscription);
    if (!take(&reader, '{')) return "it is no JSON object";
    for (; key(&reader, first, &name); first = 0) {
        if (is(name, "wants")) has_wants = wants(&reader, subscription);
        else if (is(name, "max_rows")) has_rows = number(&reader, &subscription->max_rows);
        else skip(&reader, DEPTH);
        if (reader.wrong) break;
    }
    if (!reader.wrong && !has_wants) fail(&reader, "missing field `wants`");
    if (!reader.wrong && !has_rows) fail(&reader, "missing field `max_rows`");
    if (!reader.wrong && lmb_json_blanks(reader.at, reader.end) != reader.end) fail(&reader, "something follows its end");
    if (reader.wrong) {
        char *told = lmb_call_alloc(128, 1);
        snprintf(told, 128, "%s at byte %d", reader.wrong, (int)(reader.at - start));
        return told;
    }
    return NULL;
}

/* -- writing ------------------------------------------------------------------------------------- */

/* Counts first, with `out` null, then writes. */
typedef struct Writer {
    char *out;
    size_t len;
} Writer;

static void put(Writer *writer, const char *bytes, size_t len) {
    if (writer->out) memcpy(writer->out + writer->len, bytes, len);
    writer->len += len;
}

static void puts_literal(Writer *writer, const char *literal) { put(writer, literal, strlen(literal)); }

static void put_text(Writer *writer, const char *before, LmbBytes text) {
    size_t at;
    puts_literal(writer, before);
    puts_literal(writer, "\"");
    for (at = 0; at < text.len; at++) {
        char c = (char)text.ptr[at], escape[8];
        if (c == '"' || c == '\\') {
            puts_literal(writer, "\\");
            put(writer, &c, 1);
        } else if ((uint8_t)c < 0x20) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
            puts_literal(writer, escape);
        } else {
            put(writer, &c, 1);
        }
    }
    puts_literal(writer, "\"");
}

static void put_column(Writer *writer, const ResolvedColumn *column) {
    static const char *const elements[] = {"u8", "u16", "u32", "u64", "i64", "f32", "f64", "sym"};
    put_text(writer, "{\"name\":", column->name);
    put_text(writer, ",\"type\":", lmb_text(column->element < 8 ? elements[column->element] : ""));
    puts_literal(writer, column->list ? ",\"list\":true" : ",\"list\":false");
    put_text(writer, ",\"unit\":", column->unit);
    puts_literal(writer, column->nonfinite ? ",\"nonfinite\":true}" : ",\"nonfinite\":false}");
}

static void put_kinds(Writer *writer, const ResolvedKind *kinds, size_t len) {
    size_t kind, column;
    char id[32];
    puts_literal(writer, "[");
    for (kind = 0; kind < len; kind++) {
        put_text(writer, kind ? ",{\"kind\":" : "{\"kind\":", kinds[kind].kind);
        snprintf(id, sizeof id, ",\"id\":%u,\"columns\":[", (unsigned)kinds[kind].id);
        puts_literal(writer, id);
        for (column = 0; column < kinds[kind].columns_len; column++) {
            if (column) puts_literal(writer, ",");
            put_column(writer, &kinds[kind].columns[column]);
        }
        puts_literal(writer, "]}");
    }
    puts_literal(writer, "]");
}

LmbBytes lmb_write_resolved(const ResolvedKind *kinds, size_t len) {
    Writer writer = {NULL, 0};
    LmbBytes json;
    put_kinds(&writer, kinds, len);
    json.len = writer.len;
    writer.out = lmb_call_alloc(json.len, 1);
    writer.len = 0;
    put_kinds(&writer, kinds, len);
    json.ptr = (const uint8_t *)writer.out;
    return json;
}
