/* The header of an envelope, where it is as most are; anything else is left to Python, and nothing is said of why. */

#include "mew.h"

#define FIELDS_MAX 32 /* of an envelope; one with more is left to Python */
#define NAME_BYTES_MAX 256
#define CONTEXT_BYTES_MAX 4096
#define NESTING_MAX 64
#define PROTOCOL "mew/v0.4"

static int
is_text(Part part, const char *text)
{
    return part.size == (Py_ssize_t)strlen(text) && memcmp(part.at, text, part.size) == 0;
}

static int
is_digit(unsigned char one)
{
    return one >= '0' && one <= '9';
}

/* Each that skips steps over one thing of JSON (RFC 8259) and returns what is behind it; NULL where there is none. */

static Bytes
skip_space(Bytes at, Bytes end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) {
        at++;
    }
    return at;
}

/* Where in a string something comes that does not stand for itself: a quote, a backslash, or what is below a space. */
static Bytes
skip_usual(Bytes at, Bytes end)
{
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    for (; end - at >= 8; at += 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\';
        uint64_t low = (eight - ones * ' ') & ~eight;
        uint64_t found = (low | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) & tops;
        if (found) {
            return at + __builtin_ctzll(found) / 8; /* a borrow may mark one more, never one before */
        }
    }
#endif
    while (at < end && *at != '"' && *at != '\\' && *at >= ' ') {
        at++;
    }
    return at;
}

/* The code unit that `u0041` stands for; -1 where that is not what is here. */
static int
code_unit(Bytes at, Bytes end)
{
    int unit = 0;
    if (end - at < 5 || *at != 'u') {
        return -1;
    }
    for (int digit = 1; digit < 5; digit++) {
        unsigned char lower = at[digit] | 0x20;
        if (is_digit(at[digit])) {
            unit = unit << 4 | (at[digit] - '0');
        }
        else if (lower >= 'a' && lower <= 'f') {
            unit = unit << 4 | (lower - 'a' + 10);
        }
        else {
            return -1;
        }
    }
    return unit;
}

/* What follows a `\` in a string; NULL where that is half of a character, or nothing. */
static Bytes
skip_escape(Bytes at, Bytes end)
{
    if (at == end) {
        return NULL;
    }
    if (*at != 'u') {
        return memchr("\"\\/bfnrt", *at, 8) != NULL ? at + 1 : NULL;
    }
    int unit = code_unit(at, end);
    if (unit < 0 || (unit & 0xFC00) == 0xDC00) {
        return NULL;
    }
    if ((unit & 0xFC00) != 0xD800) {
        return at + 5;
    }
    int is_whole = end - at > 5 && at[5] == '\\' && (code_unit(at + 6, end) & ~0x3FF) == 0xDC00;
    return is_whole ? at + 11 : NULL;
}

static Bytes
skip_string(Bytes at, Bytes end, int *escapes)
{
    if (at == end || *at != '"') {
        return NULL;
    }
    for (at = skip_usual(at + 1, end); at < end && *at == '\\'; at = skip_usual(at, end)) {
        *escapes = 1;
        if ((at = skip_escape(at + 1, end)) == NULL) {
            return NULL;
        }
    }
    return at < end && *at == '"' ? at + 1 : NULL;
}

static Bytes
skip_digits(Bytes at, Bytes end)
{
    Bytes first = at;
    while (at < end && is_digit(*at)) {
        at++;
    }
    return at > first ? at : NULL;
}

static Bytes
skip_number(Bytes at, Bytes end)
{
    if (at < end && *at == '-') {
        at++;
    }
    at = at < end && *at == '0' ? at + 1 : skip_digits(at, end);
    if (at != NULL && at < end && *at == '.') {
        at = skip_digits(at + 1, end);
    }
    if (at != NULL && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-')) {
            at++;
        }
        at = skip_digits(at, end);
    }
    return at;
}

static Bytes
skip_word(Bytes at, Bytes end, const char *word)
{
    Py_ssize_t size = (Py_ssize_t)strlen(word);
    return end - at >= size && memcmp(at, word, size) == 0 ? at + size : NULL;
}

static Bytes skip_members(Bytes at, Bytes end, int is_object, Py_ssize_t depth_left);

static Bytes
skip_value(Bytes at, Bytes end, Py_ssize_t depth_left)
{
    int escapes;
    if (at == end) {
        return NULL;
    }
    switch (*at) {
    case '"':
        return skip_string(at, end, &escapes);
    case '{':
    case '[':
        return depth_left > 0 ? skip_members(at + 1, end, *at == '{', depth_left - 1) : NULL;
    case 't':
        return skip_word(at, end, "true");
    case 'f':
        return skip_word(at, end, "false");
    case 'n':
        return skip_word(at, end, "null");
    default:
        return skip_number(at, end);
    }
}

static Bytes
skip_colon(Bytes at, Bytes end)
{
    at = skip_space(at, end);
    return at < end && *at == ':' ? skip_space(at + 1, end) : NULL;
}

/* The inside of an object or an array, and its end. */
static Bytes
skip_members(Bytes at, Bytes end, int is_object, Py_ssize_t depth_left)
{
    unsigned char last = is_object ? '}' : ']';
    int escapes;
    at = skip_space(at, end);
    if (at < end && *at == last) {
        return at + 1;
    }
    for (;;) {
        if (is_object &&
            ((at = skip_string(at, end, &escapes)) == NULL || (at = skip_colon(at, end)) == NULL)) {
            return NULL;
        }
        if ((at = skip_value(at, end, depth_left)) == NULL || (at = skip_space(at, end)) == end) {
            return NULL;
        }
        if (*at == last) {
            return at + 1;
        }
        if (*at != ',') {
            return NULL;
        }
        at = skip_space(at + 1, end);
    }
}

/* A string that stands for itself: without escapes, and of one byte at least. */
static Bytes
read_text(Bytes at, Bytes end, Py_ssize_t bytes_max, Part *found)
{
    int escapes = 0;
    Bytes behind = skip_string(at, end, &escapes);
    if (behind == NULL || escapes || behind - at < 3 || behind - at - 2 > bytes_max) {
        return NULL;
    }
    found->at = at + 1;
    found->size = behind - at - 2;
    return behind;
}

static Bytes
read_names(Bytes at, Bytes end, Part *names, int *count)
{
    if (at == end || *at != '[') {
        return NULL;
    }
    at = skip_space(at + 1, end);
    if (at < end && *at == ']') {
        return at + 1;
    }
    for (;;) {
        if (*count == NAMES_MAX || (at = read_text(at, end, NAME_BYTES_MAX, &names[*count])) == NULL) {
            return NULL;
        }
        ++*count;
        if ((at = skip_space(at, end)) == end || (*at != ',' && *at != ']')) {
            return NULL;
        }
        if (*at == ']') {
            return at + 1;
        }
        at = skip_space(at + 1, end);
    }
}

static int
number(Bytes digits, int count)
{
    int found = 0;
    for (int at = 0; at < count; at++) {
        if (!is_digit(digits[at])) {
            return -1;
        }
        found = 10 * found + digits[at] - '0';
    }
    return found;
}

/* Whether this is a moment in UTC as most write it (RFC 3339): 2026-01-31T23:59:59.123Z, or +00:00 instead of the Z. */
static int
is_moment(Part text)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    Bytes at = text.at;
    Py_ssize_t size = text.size;
    if (size > 6 && memcmp(at + size - 6, "+00:00", 6) == 0) {
        size -= 6;
    }
    else if (size > 1 && at[size - 1] == 'Z') {
        size -= 1;
    }
    else {
        return 0;
    }
    if (size < 19 || size > 26 || at[4] != '-' || at[7] != '-' || at[10] != 'T' || at[13] != ':' || at[16] != ':') {
        return 0;
    }
    int year = number(at, 4), month = number(at + 5, 2), day = number(at + 8, 2);
    int hour = number(at + 11, 2), minute = number(at + 14, 2), second = number(at + 17, 2);
    if (year < 1 || month < 1 || month > 12 || day < 1 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
        second < 0 || second > 59) {
        return 0;
    }
    int is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day > days[month - 1] + (month == 2 && is_leap)) {
        return 0;
    }
    return size == 19 || (at[19] == '.' && size > 20 && number(at + 20, (int)size - 20) >= 0);
}

/* The value of a field of the envelope. */
static Bytes
read_field(Bytes at, Bytes end, Part name, Py_ssize_t depth_left, Header *header)
{
    Part text;
    if (is_text(name, "payload")) {
        return at < end && *at == '{' ? skip_value(at, end, depth_left) : NULL;
    }
    if (is_text(name, "id")) {
        return read_text(at, end, NAME_BYTES_MAX, &header->id);
    }
    if (is_text(name, "from")) {
        return read_text(at, end, NAME_BYTES_MAX, &header->from);
    }
    if (is_text(name, "kind")) {
        return read_text(at, end, NAME_BYTES_MAX, &header->kind);
    }
    if (is_text(name, "protocol")) {
        return read_text(at, end, NAME_BYTES_MAX, &header->protocol);
    }
    if (is_text(name, "ts")) {
        at = read_text(at, end, NAME_BYTES_MAX, &text);
        return at != NULL && is_moment(text) ? at : NULL;
    }
    if (is_text(name, "to")) {
        return read_names(at, end, header->to, &header->to_count);
    }
    if (is_text(name, "correlation_id")) {
        return read_names(at, end, header->correlation, &header->correlation_count);
    }
    if (is_text(name, "context")) {
        return read_text(at, end, CONTEXT_BYTES_MAX, &text);
    }
    return skip_value(at, end, depth_left);
}

/* The header of an envelope that is well-formed and can be read in one way only; 0 also where one must look closer. */
int
read_header(Bytes at, Py_ssize_t size, Header *header)
{
    Bytes end = at + size;
    Part names[FIELDS_MAX];
    memset(header, 0, sizeof *header);
    at = skip_space(at, end);
    if (at == end || *at != '{') {
        return 0;
    }
    for (int known = 0; known < FIELDS_MAX; known++) {
        Part *name = &names[known];
        at = read_text(skip_space(at + 1, end), end, NAME_BYTES_MAX, name);
        if (at == NULL) {
            return 0;
        }
        for (int before = 0; before < known; before++) {
            if (is_same(names[before], *name)) {
                return 0;
            }
        }
        if ((at = skip_colon(at, end)) == NULL ||
            (at = read_field(at, end, *name, NESTING_MAX - 1, header)) == NULL || (at = skip_space(at, end)) == end) {
            return 0;
        }
        if (*at == '}') {
            return skip_space(at + 1, end) == end && is_text(header->protocol, PROTOCOL) && header->id.size &&
                   header->from.size && header->kind.size;
        }
        if (*at != ',') {
            return 0;
        }
    }
    return 0;
}

PyObject *
is_plain(PyObject *Py_UNUSED(module), PyObject *received)
{
    if (!PyBytes_Check(received)) {
        PyErr_SetString(PyExc_TypeError, "is_plain takes bytes");
        return NULL;
    }
    Bytes text = (Bytes)PyBytes_AsString(received);
    Header header;
    return PyBool_FromLong(read_header(text, PyBytes_Size(received), &header) &&
                           is_utf8(text, PyBytes_Size(received)));
}
