/* Where every byte of an envelope is looked at, and what is done for each of many alike, compiled.

All of it says yes to what is usual and leaves the rest to Python, which knows every rule and every message: `whole_frames`
goes before `Reader._read` of `mew.gateway.websocket`, `is_plain` spares `mew.protocol.codec` its closer look, `plain_run`
is that of `mew.gateway.plain`, `text_frames` and `hand_out` those of `mew.gateway.deliveries`, `Bucket` that of
`mew.gateway.rate`. Tests hold each to the answers that Python alone gives. But for the tokens in a bucket nothing is kept between two calls. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define WHOLE_TEXT 0x81
#define WHOLE_BINARY 0x82
#define MASKED 0x80
#define MASK_BYTES 4
#define FIELDS_MAX 32 /* of an envelope; one with more is left to Python */
#define NAMES_MAX 8   /* it addresses or refers to; likewise */
#define NAME_BYTES_MAX 256
#define CONTEXT_BYTES_MAX 4096
#define OPCODE_TEXT 1
#define PROTOCOL "mew/v0.4"
#define GATEWAY_ID_PREFIX "gw-"

typedef const unsigned char *Bytes;

/* How many of these bytes are ASCII, from the first on. */
static Py_ssize_t
ascii_prefix(Bytes text, Py_ssize_t size)
{
    Py_ssize_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t eight;
        memcpy(&eight, text + at, 8);
        if (eight & UINT64_C(0x8080808080808080)) {
            break;
        }
    }
    while (at < size && text[at] < 0x80) {
        at++;
    }
    return at;
}

/* The bytes of the character that begins here, as RFC 3629 has it; 0 where none does. */
static int
utf8_length(Bytes text, Py_ssize_t left)
{
    unsigned char first = text[0], low = 0x80, high = 0xBF;
    int length;
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
    }
    else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        low = first == 0xE0 ? 0xA0 : 0x80;  /* no longer than needed */
        high = first == 0xED ? 0x9F : 0xBF; /* no surrogates */
    }
    else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        low = first == 0xF0 ? 0x90 : 0x80;
        high = first == 0xF4 ? 0x8F : 0xBF; /* no more than U+10FFFF */
    }
    else {
        return 0;
    }
    if (left < length || text[1] < low || text[1] > high) {
        return 0;
    }
    for (int at = 2; at < length; at++) {
        if ((text[at] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return length;
}

static int
is_utf8(Bytes text, Py_ssize_t size)
{
    Py_ssize_t at = 0;
    for (;;) {
        at += ascii_prefix(text + at, size - at);
        if (at == size) {
            return 1;
        }
        int length = utf8_length(text + at, size - at);
        if (!length) {
            return 0;
        }
        at += length;
    }
}

static void
unmask(unsigned char *to, Bytes from, Py_ssize_t size, Bytes mask)
{
    Py_ssize_t at = 0;
    uint64_t twice;
    memcpy(&twice, mask, MASK_BYTES);
    memcpy((char *)&twice + MASK_BYTES, mask, MASK_BYTES);
    for (; at + 8 <= size; at += 8) {
        uint64_t eight;
        memcpy(&eight, from + at, 8);
        eight ^= twice;
        memcpy(to + at, &eight, 8);
    }
    for (; at < size; at++) {
        to[at] = from[at] ^ mask[at % MASK_BYTES];
    }
}

/* The head of a frame that is whole, masked, and of no more than bytes_max; 0 where there is none. */
static Py_ssize_t
usual_head(Bytes frame, Py_ssize_t left, Py_ssize_t bytes_max, Py_ssize_t *size)
{
    if (left < 2 || (frame[0] != WHOLE_TEXT && frame[0] != WHOLE_BINARY) || frame[1] < MASKED) {
        return 0;
    }
    Py_ssize_t head = 2;
    uint64_t length = frame[1] & 0x7F;
    if (length > 125) {
        Py_ssize_t wide = length == 126 ? 2 : 8;
        head += wide;
        if (left < head) {
            return 0;
        }
        length = 0;
        for (Py_ssize_t at = 2; at < head; at++) {
            length = length << 8 | frame[at];
        }
    }
    head += MASK_BYTES;
    if (length > (uint64_t)bytes_max || left < head || length > (uint64_t)(left - head)) {
        return 0;
    }
    *size = (Py_ssize_t)length;
    return head;
}

PyDoc_STRVAR(whole_frames_doc,
"whole_frames(data, bytes_max, /)\n--\n\n"
"The messages in the usual frames that `data` begins with, and where the first other one begins.");

static PyObject *
whole_frames(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "whole_frames takes bytes and a number");
        return NULL;
    }
    Bytes data = (Bytes)PyBytes_AS_STRING(args[0]);
    Py_ssize_t end = PyBytes_GET_SIZE(args[0]), at = 0, size = 0, head;
    Py_ssize_t bytes_max = PyNumber_AsSsize_t(args[1], NULL);
    if (bytes_max == -1 && PyErr_Occurred()) {
        return NULL;
    }
    PyObject *messages = PyList_New(0);
    if (messages == NULL) {
        return NULL;
    }
    while ((head = usual_head(data + at, end - at, bytes_max, &size)) != 0) {
        PyObject *payload = PyBytes_FromStringAndSize(NULL, size);
        if (payload == NULL) {
            goto failed;
        }
        unsigned char *plain = (unsigned char *)PyBytes_AS_STRING(payload);
        unmask(plain, data + at + head, size, data + at + head - MASK_BYTES);
        if (data[at] == WHOLE_TEXT && !is_utf8(plain, size)) {
            Py_DECREF(payload);
            break;
        }
        PyObject *message = Py_BuildValue("(iN)", data[at] & 0x0F, payload);
        if (message == NULL || PyList_Append(messages, message) < 0) {
            Py_XDECREF(message);
            goto failed;
        }
        Py_DECREF(message);
        at += head + size;
    }
    return Py_BuildValue("(Nn)", messages, at);
failed:
    Py_DECREF(messages);
    return NULL;
}

/* The header of an envelope, as parts of its bytes. */

typedef struct {
    Bytes at;
    Py_ssize_t size;
} Part;

typedef struct {
    Part protocol, id, from, kind;
    Part to[NAMES_MAX], about[NAMES_MAX];
    int to_count, about_count;
} Header;

static int
is_same(Part one, Part other)
{
    return one.size == other.size && memcmp(one.at, other.at, one.size) == 0;
}

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

static Bytes
skip_space(Bytes at, Bytes end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) {
        at++;
    }
    return at;
}

/* Where in a string something else comes than what stands for itself: a quote, a backslash, or what is below a space. */
static Bytes
skip_usual(Bytes at, Bytes end)
{
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    for (; end - at >= 8; at += 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\';
        uint64_t found = ((eight - ones * ' ') & ~eight) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash);
        if (found & tops) {
            return at + __builtin_ctzll(found & tops) / 8; /* a borrow may mark one more, never one before */
        }
    }
#endif
    while (at < end && *at != '"' && *at != '\\' && *at >= ' ') {
        at++;
    }
    return at;
}

/* What follows a `\` in a string; NULL where that is half of a character, or nothing. */
static Bytes
skip_escape(Bytes at, Bytes end)
{
    if (at == end) {
        return NULL;
    }
    if (*at != 'u') {
        return strchr("\"\\/bfnrt", *at) != NULL && *at != 0 ? at + 1 : NULL;
    }
    if (end - at < 5) {
        return NULL;
    }
    for (int digit = 1; digit < 5; digit++) {
        unsigned char one = at[digit] | 0x20;
        if (!is_digit(at[digit]) && (one < 'a' || one > 'f')) {
            return NULL;
        }
    }
    int is_surrogate = (at[1] | 0x20) == 'd' && !(at[2] >= '0' && at[2] <= '7');
    return is_surrogate ? NULL : at + 5;
}

/* Each of these steps over one thing of JSON (RFC 8259) and returns what is behind it, or NULL where it is not there. */
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

/* Whether this is a moment in the commonest of the forms of RFC 3339: 2026-01-31T23:59:59.123Z */
static int
is_moment(Part text)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    Bytes at = text.at;
    if (text.size < 20 || text.size > 27 || at[4] != '-' || at[7] != '-' || at[10] != 'T' || at[13] != ':' ||
        at[16] != ':' || at[text.size - 1] != 'Z') {
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
    return text.size == 20 || (at[19] == '.' && text.size > 21 && number(at + 20, (int)text.size - 21) >= 0);
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
        return read_names(at, end, header->about, &header->about_count);
    }
    if (is_text(name, "context")) {
        return read_text(at, end, CONTEXT_BYTES_MAX, &text);
    }
    return skip_value(at, end, depth_left);
}

/* The header of an envelope that is well-formed and can be read in one way only; 0 also where that takes a closer look. */
static int
read_header(Bytes at, Py_ssize_t size, Py_ssize_t depth_max, Header *header)
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
        for (int before = 0; before < known; before++) {
            if (is_same(names[before], *name)) {
                return 0;
            }
        }
        if (at == NULL || (at = skip_colon(at, end)) == NULL ||
            (at = read_field(at, end, *name, depth_max - 1, header)) == NULL || (at = skip_space(at, end)) == end) {
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

PyDoc_STRVAR(is_plain_doc,
"is_plain(received, nesting_max, /)\n--\n\n"
"Whether this is an envelope that can be read in one way only; False also where that takes a closer look.");

static PyObject *
is_plain(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "is_plain takes bytes and a number");
        return NULL;
    }
    Bytes text = (Bytes)PyBytes_AS_STRING(args[0]);
    Py_ssize_t size = PyBytes_GET_SIZE(args[0]), depth_max = PyNumber_AsSsize_t(args[1], NULL);
    if (depth_max == -1 && PyErr_Occurred()) {
        return NULL;
    }
    Header header;
    return PyBool_FromLong(is_utf8(text, size) && read_header(text, size, depth_max, &header));
}

/* How fast somebody may send. */

typedef struct {
    PyObject_HEAD
    double per_second, burst, tokens, at_s;
} Bucket;

PyDoc_STRVAR(bucket_doc,
"Bucket(per_second, burst)\n--\n\n"
"Holds up to `burst` tokens and gains `per_second` of them; `now_s` is any clock that only goes forward.");

static int
bucket_init(Bucket *self, PyObject *args, PyObject *names)
{
    static char *known[] = {"per_second", "burst", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, names, "dd", known, &self->per_second, &self->burst)) {
        return -1;
    }
    self->tokens = self->burst;
    self->at_s = -Py_HUGE_VAL;
    return 0;
}

static void
bucket_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Take one token; 0 if there was one, else how many seconds until there is. */
static double
take_token(Bucket *bucket, double now_s)
{
    double tokens = bucket->tokens + (now_s - bucket->at_s) * bucket->per_second;
    if (tokens > bucket->burst) {
        tokens = bucket->burst;
    }
    bucket->at_s = now_s;
    bucket->tokens = tokens >= 1 ? tokens - 1 : tokens;
    return tokens >= 1 ? 0 : (1 - tokens) / bucket->per_second;
}

PyDoc_STRVAR(take_doc, "take(now_s, /)\n--\n\nTake one token; 0 if there was one, else how many seconds until there is.");

static PyObject *
bucket_take(Bucket *self, PyObject *now)
{
    double now_s = PyFloat_AsDouble(now);
    if (now_s == -1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyFloat_FromDouble(take_token(self, now_s));
}

static PyMethodDef bucket_methods[] = {
    {"take", (PyCFunction)bucket_take, METH_O, take_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot bucket_slots[] = {
    {Py_tp_doc, (void *)bucket_doc},
    {Py_tp_init, bucket_init},
    {Py_tp_dealloc, bucket_free},
    {Py_tp_methods, bucket_methods},
    {0, NULL},
};

static PyType_Spec bucket_spec = {
    .name = "mew._compiled.Bucket",
    .basicsize = sizeof(Bucket),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = bucket_slots,
};

/* Envelopes that are plain, several at once. */

typedef struct {
    PyTypeObject *bucket;
    PyObject *id, *who, *bucket_name, *closed, *lenient, *raw, *only;
} State;

/* What `plain_run` is told. */
typedef struct {
    PyObject *free, *recent, *connections, *at, *record;
    double now_s;
    Py_ssize_t bytes_max, depth_max;
    int addressed;
} Terms;

/* Whose turn it is. All but `guest` are None or as `is_heard` found them. */
typedef struct {
    PyObject *guest;               /* borrowed: what was heard holds it */
    PyObject *who, *bucket, *kind; /* owned; `kind` is the last one that it may send */
    PyObject *kinds;               /* borrowed of the terms */
    Part name;
} Speaker;

static void
forget_speaker(Speaker *speaker)
{
    Py_CLEAR(speaker->who);
    Py_CLEAR(speaker->bucket);
    Py_CLEAR(speaker->kind);
    speaker->guest = NULL;
}

static int
has_flag(PyObject *guest, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(guest, name);
    int is_set = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return is_set;
}

/* Get to know a guest: 1, 0 where what it says is not plain, -1 where that failed. */
static int
meet(State *state, Terms *terms, PyObject *guest, Speaker *speaker)
{
    forget_speaker(speaker);
    int is_lenient = has_flag(guest, state->lenient);
    if (is_lenient) {
        return is_lenient < 0 ? -1 : 0;
    }
    speaker->who = PyObject_GetAttr(guest, state->who);
    speaker->bucket = PyObject_GetAttr(guest, state->bucket_name);
    PyObject *id = PyObject_GetAttr(guest, state->id);
    if (speaker->who == NULL || speaker->bucket == NULL || id == NULL) {
        Py_XDECREF(id);
        return -1;
    }
    PyObject *connected = PyDict_GetItemWithError(terms->connections, id);
    Py_DECREF(id);
    if (connected == NULL || !PyUnicode_Check(speaker->who) || !Py_IS_TYPE(speaker->bucket, state->bucket)) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int is_here = PyObject_RichCompareBool(connected, speaker->who, Py_EQ);
    speaker->name.at = (Bytes)PyUnicode_AsUTF8AndSize(speaker->who, &speaker->name.size);
    speaker->kinds = PyDict_GetItemWithError(terms->free, speaker->who);
    if (is_here <= 0 || speaker->name.at == NULL || speaker->kinds == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    speaker->guest = guest;
    return 1;
}

/* Whether the speaker may send this kind without a second look: 1, 0, -1 where that failed. */
static int
may_send(Speaker *speaker, Part kind)
{
    if (speaker->kind != NULL) {
        Part before;
        before.at = (Bytes)PyUnicode_AsUTF8AndSize(speaker->kind, &before.size);
        if (before.at == NULL) {
            return -1;
        }
        if (is_same(before, kind)) {
            return 1;
        }
        Py_CLEAR(speaker->kind);
    }
    PyObject *name = PyUnicode_DecodeUTF8((const char *)kind.at, kind.size, NULL);
    int may = name == NULL ? -1 : PySet_Contains(speaker->kinds, name);
    if (may == 1) {
        speaker->kind = name;
    }
    else {
        Py_XDECREF(name);
    }
    return may;
}

static PyObject *
names_of(const Part *parts, int count, PyObject *last)
{
    PyObject *names = PyTuple_New(count + (last != NULL));
    for (int at = 0; names != NULL && at < count; at++) {
        PyObject *name = PyUnicode_DecodeUTF8((const char *)parts[at].at, parts[at].size, NULL);
        if (name == NULL) {
            Py_CLEAR(names);
        }
        else {
            PyTuple_SET_ITEM(names, at, name);
        }
    }
    if (names != NULL && last != NULL) {
        PyTuple_SET_ITEM(names, count, Py_NewRef(last));
    }
    return names;
}

/* Who is shown it where only those are whom it is for: each once, its sender last unless addressed too. */
static PyObject *
receivers(const Header *header, Speaker *speaker)
{
    Part once[NAMES_MAX];
    int count = 0, is_for_sender = 0;
    for (int at = 0; at < header->to_count; at++) {
        int is_known = 0;
        for (int before = 0; before < count; before++) {
            is_known |= is_same(once[before], header->to[at]);
        }
        if (!is_known) {
            is_for_sender |= is_same(header->to[at], speaker->name);
            once[count++] = header->to[at];
        }
    }
    return names_of(once, count, is_for_sender ? NULL : speaker->who);
}

static PyObject *
record_of(Terms *terms, const Header *header, Speaker *speaker, PyObject *id, PyObject *data, Py_ssize_t seq)
{
    PyObject *names = PyLong_FromLong(header->to_count + header->about_count), *place = PyLong_FromSsize_t(seq);
    PyObject *about = names_of(header->about, header->about_count, NULL);
    PyObject *only = terms->addressed && header->to_count ? receivers(header, speaker) : Py_NewRef(Py_None);
    PyObject *record = NULL;
    if (names != NULL && place != NULL && about != NULL && only != NULL) {
        PyObject *fields[] = {terms->at, id, speaker->who, speaker->kind, names, about, data, only, place};
        record = PyObject_Vectorcall(terms->record, fields, sizeof fields / sizeof *fields, NULL);
    }
    Py_XDECREF(names);
    Py_XDECREF(place);
    Py_XDECREF(about);
    Py_XDECREF(only);
    return record;
}

/* Take one message, if it is plain: 1, 0, -1 where that failed. */
static int
take_message(Terms *terms, Speaker *speaker, PyObject *data, PyObject *said, PyObject *records, Py_ssize_t seq)
{
    Bytes text = (Bytes)PyBytes_AS_STRING(data);
    Py_ssize_t size = PyBytes_GET_SIZE(data);
    Header header;
    if (size > terms->bytes_max || !is_utf8(text, size) || !read_header(text, size, terms->depth_max, &header) ||
        !is_same(header.from, speaker->name) ||
        (header.id.size >= (Py_ssize_t)strlen(GATEWAY_ID_PREFIX) &&
         memcmp(header.id.at, GATEWAY_ID_PREFIX, strlen(GATEWAY_ID_PREFIX)) == 0)) {
        return 0;
    }
    int is_so = may_send(speaker, header.kind);
    if (is_so <= 0) {
        return is_so;
    }
    PyObject *id = PyUnicode_DecodeUTF8((const char *)header.id.at, header.id.size, NULL);
    if (id == NULL) {
        return -1;
    }
    int is_known = PyDict_Contains(terms->recent, id);
    is_known = is_known ? is_known : PyDict_Contains(said, id);
    if (is_known || take_token((Bucket *)speaker->bucket, terms->now_s) > 0) {
        Py_DECREF(id);
        return is_known < 0 ? -1 : 0;
    }
    PyObject *record = record_of(terms, &header, speaker, id, data, seq);
    int ended = record == NULL || PyDict_SetItem(said, id, speaker->who) < 0 || PyList_Append(records, record) < 0 ? -1 : 1;
    Py_XDECREF(record);
    Py_DECREF(id);
    return ended;
}

static int
read_terms(PyObject *const *args, Terms *terms, Py_ssize_t *seq)
{
    PyObject *standing = args[2];
    if (!PyTuple_Check(standing) || PyTuple_GET_SIZE(standing) != 4) {
        return 0;
    }
    terms->free = PyTuple_GET_ITEM(standing, 0);
    terms->recent = PyTuple_GET_ITEM(standing, 1);
    terms->connections = PyTuple_GET_ITEM(standing, 2);
    terms->addressed = PyTuple_GET_ITEM(standing, 3) == Py_True;
    terms->record = args[3];
    *seq = PyNumber_AsSsize_t(args[4], NULL);
    terms->at = args[5];
    terms->now_s = PyFloat_AsDouble(args[6]);
    terms->bytes_max = PyNumber_AsSsize_t(args[7], NULL);
    terms->depth_max = PyNumber_AsSsize_t(args[8], NULL);
    return PyDict_Check(terms->free) && PyDict_Check(terms->recent) && PyDict_Check(terms->connections);
}

/* One of what was heard: who says it, what its frame was, its bytes. */
static int
is_heard(PyObject *one)
{
    return PyTuple_Check(one) && PyTuple_GET_SIZE(one) == 3 && PyLong_Check(PyTuple_GET_ITEM(one, 1)) &&
           PyBytes_Check(PyTuple_GET_ITEM(one, 2));
}

PyDoc_STRVAR(plain_run_doc,
"plain_run(heard, start, standing, record, seq, at, now_s, bytes_max, nesting_max, /)\n--\n\n"
"See `mew.gateway.plain.plain_run`.");

static PyObject *
plain_run(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Terms terms;
    Py_ssize_t seq = 0, at = count == 9 ? PyNumber_AsSsize_t(args[1], NULL) : 0;
    if (count != 9 || !PyList_Check(args[0]) || at < 0 || !read_terms(args, &terms, &seq) || PyErr_Occurred()) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "plain_run takes what mew.gateway.plain says");
        }
        return NULL;
    }
    State *state = PyModule_GetState(module);
    Speaker speaker = {NULL, NULL, NULL, NULL, NULL, {NULL, 0}};
    PyObject *records = PyList_New(0), *said = PyDict_New();
    int went = records == NULL || said == NULL ? -1 : 1;
    for (; went > 0 && at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *one = Py_NewRef(PyList_GET_ITEM(args[0], at));
        went = is_heard(one) ? has_flag(PyTuple_GET_ITEM(one, 0), state->closed) : -1;
        if (went) { /* nobody listens to it any more */
            went = went < 0 ? -1 : 2;
        }
        else if (PyLong_AsLong(PyTuple_GET_ITEM(one, 1)) == OPCODE_TEXT) {
            PyObject *guest = PyTuple_GET_ITEM(one, 0);
            went = guest == speaker.guest ? 1 : meet(state, &terms, guest, &speaker);
            if (went > 0) {
                went = take_message(&terms, &speaker, PyTuple_GET_ITEM(one, 2), said, records, seq);
                seq++;
            }
        }
        Py_DECREF(one);
        if (went <= 0) {
            break;
        }
    }
    forget_speaker(&speaker);
    if (went < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "what was heard is a list of guests, opcodes and bytes");
        }
        Py_XDECREF(records);
        Py_XDECREF(said);
        return NULL;
    }
    return Py_BuildValue("(NNn)", records, said, at);
}

/* Frames that go out. */

/* The head of a frame that is not masked, written to `to` unless that is NULL; how long it is. */
static Py_ssize_t
write_head(unsigned char *to, Py_ssize_t size)
{
    Py_ssize_t wide = size < 126 ? 0 : size < 65536 ? 2 : 8;
    if (to != NULL) {
        to[0] = WHOLE_TEXT;
        to[1] = (unsigned char)(wide == 0 ? size : wide == 2 ? 126 : 127);
        for (Py_ssize_t at = 0; at < wide; at++) {
            to[2 + at] = (unsigned char)((uint64_t)size >> 8 * (wide - 1 - at));
        }
    }
    return 2 + wide;
}

PyDoc_STRVAR(text_frames_doc,
"text_frames(records, /)\n--\n\n"
"See `mew.gateway.deliveries.text_frames`.");

static PyObject *
text_frames(PyObject *module, PyObject *records)
{
    State *state = PyModule_GetState(module);
    Py_ssize_t count = PyList_Check(records) ? PyList_GET_SIZE(records) : -1, size = 0;
    PyObject *messages = count < 0 ? NULL : PyTuple_New(count), *frames = NULL;
    for (Py_ssize_t at = 0; messages != NULL && at < count; at++) {
        PyObject *message = PyObject_GetAttr(PyList_GET_ITEM(records, at), state->raw);
        if (message == NULL || !PyBytes_Check(message)) {
            Py_XDECREF(message);
            Py_CLEAR(messages);
            break;
        }
        PyTuple_SET_ITEM(messages, at, message);
        size += write_head(NULL, PyBytes_GET_SIZE(message)) + PyBytes_GET_SIZE(message);
    }
    if (messages != NULL && (frames = PyBytes_FromStringAndSize(NULL, size)) != NULL) {
        unsigned char *to = (unsigned char *)PyBytes_AS_STRING(frames);
        for (Py_ssize_t at = 0; at < count; at++) {
            PyObject *message = PyTuple_GET_ITEM(messages, at);
            to += write_head(to, PyBytes_GET_SIZE(message));
            memcpy(to, PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message));
            to += PyBytes_GET_SIZE(message);
        }
    }
    else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "text_frames takes a list of records");
    }
    Py_XDECREF(messages);
    return frames;
}

static PyObject *
text_frame(PyObject *record, State *state)
{
    PyObject *message = PyObject_GetAttr(record, state->raw), *frame = NULL;
    if (message != NULL && !PyBytes_Check(message)) {
        PyErr_SetString(PyExc_TypeError, "what a record holds is bytes");
    }
    else if (message != NULL) {
        Py_ssize_t size = PyBytes_GET_SIZE(message), head = write_head(NULL, size);
        if ((frame = PyBytes_FromStringAndSize(NULL, head + size)) != NULL) {
            write_head((unsigned char *)PyBytes_AS_STRING(frame), size);
            memcpy(PyBytes_AS_STRING(frame) + head, PyBytes_AS_STRING(message), size);
        }
    }
    Py_XDECREF(message);
    return frame;
}

/* What is gathered in a turn; see `Outboxes` in `mew.gateway.outbox`. All borrowed. */
typedef struct {
    PyObject *boxes, *shared, *apart;
} Due;

static int
give_to_all(Due *due, PyObject *frame)
{
    PyObject *connection, *own;
    Py_ssize_t at = 0;
    int failed = PyList_Append(due->shared, frame);
    while (!failed && PyDict_Next(due->apart, &at, &connection, &own)) {
        failed = PyList_Append(own, frame);
    }
    return failed;
}

static int
give_to(Due *due, PyObject *connection, PyObject *frame)
{
    PyObject *own = PyDict_GetItemWithError(due->apart, connection);
    if (own != NULL) {
        return PyList_Append(own, frame);
    }
    int is_there = PyErr_Occurred() ? -1 : PyDict_Contains(due->boxes, connection);
    if (is_there <= 0) {
        return is_there;
    }
    own = PyList_GetSlice(due->shared, 0, PyList_GET_SIZE(due->shared));
    int failed = own == NULL || PyList_Append(own, frame) || PyDict_SetItem(due->apart, connection, own) ? -1 : 0;
    Py_XDECREF(own);
    return failed;
}

/* To all connections of those it is for; how many these are, -1 where that failed. */
static Py_ssize_t
give_to_each(Due *due, PyObject *only, PyObject *connected, PyObject *frame)
{
    Py_ssize_t count = 0;
    if (!PyTuple_Check(only)) {
        PyErr_SetString(PyExc_TypeError, "those it is for are a tuple");
        return -1;
    }
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(only); at++) {
        PyObject *theirs = PyDict_GetItemWithError(connected, PyTuple_GET_ITEM(only, at));
        if (theirs == NULL && PyErr_Occurred()) {
            return -1;
        }
        for (Py_ssize_t one = 0; theirs != NULL && PyTuple_Check(theirs) && one < PyTuple_GET_SIZE(theirs); one++) {
            if (give_to(due, PyTuple_GET_ITEM(theirs, one), frame)) {
                return -1;
            }
            count++;
        }
    }
    return count;
}

PyDoc_STRVAR(hand_out_doc,
"hand_out(records, connected, boxes, shared, apart, /)\n--\n\n"
"See `mew.gateway.deliveries.hand_out`.");

static PyObject *
hand_out(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 5 || !PyList_Check(args[0]) || !PyDict_Check(args[1]) || !PyDict_Check(args[2]) ||
        !PyList_Check(args[3]) || !PyDict_Check(args[4])) {
        PyErr_SetString(PyExc_TypeError, "hand_out takes what mew.gateway.deliveries says");
        return NULL;
    }
    State *state = PyModule_GetState(module);
    Due due = {args[2], args[3], args[4]};
    Py_ssize_t given = 0;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *record = PyList_GET_ITEM(args[0], at), *only = PyObject_GetAttr(record, state->only);
        PyObject *frame = only == NULL ? NULL : text_frame(record, state);
        Py_ssize_t more = -1;
        if (frame != NULL && only == Py_None) {
            more = give_to_all(&due, frame) ? -1 : PyDict_GET_SIZE(due.boxes);
        }
        else if (frame != NULL) {
            more = give_to_each(&due, only, args[1], frame);
        }
        Py_XDECREF(only);
        Py_XDECREF(frame);
        if (more < 0) {
            return NULL;
        }
        given += more;
    }
    return PyLong_FromSsize_t(given);
}

static int
prepare(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->id = PyUnicode_InternFromString("id");
    state->who = PyUnicode_InternFromString("who");
    state->bucket_name = PyUnicode_InternFromString("bucket");
    state->closed = PyUnicode_InternFromString("closed");
    state->lenient = PyUnicode_InternFromString("lenient");
    state->raw = PyUnicode_InternFromString("raw");
    state->only = PyUnicode_InternFromString("only");
    state->bucket = (PyTypeObject *)PyType_FromModuleAndSpec(module, &bucket_spec, NULL);
    if (!state->id || !state->who || !state->bucket_name || !state->closed || !state->lenient || !state->raw ||
        !state->only || !state->bucket) {
        return -1;
    }
    return PyModule_AddType(module, state->bucket);
}

static int
visit(PyObject *module, visitproc visit, void *arg)
{
    Py_VISIT(((State *)PyModule_GetState(module))->bucket);
    return 0;
}

static int
clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->id);
    Py_CLEAR(state->who);
    Py_CLEAR(state->bucket_name);
    Py_CLEAR(state->closed);
    Py_CLEAR(state->lenient);
    Py_CLEAR(state->raw);
    Py_CLEAR(state->only);
    Py_CLEAR(state->bucket);
    return 0;
}

static void
end(void *module)
{
    clear(module);
}

static PyMethodDef functions[] = {
    {"whole_frames", (PyCFunction)(void (*)(void))whole_frames, METH_FASTCALL, whole_frames_doc},
    {"is_plain", (PyCFunction)(void (*)(void))is_plain, METH_FASTCALL, is_plain_doc},
    {"plain_run", (PyCFunction)(void (*)(void))plain_run, METH_FASTCALL, plain_run_doc},
    {"text_frames", text_frames, METH_O, text_frames_doc},
    {"hand_out", (PyCFunction)(void (*)(void))hand_out, METH_FASTCALL, hand_out_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, prepare},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mew._compiled",
    .m_doc = "What mew does in C where it can; `MEW_PURE=1` does without.",
    .m_size = sizeof(State),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = visit,
    .m_clear = clear,
    .m_free = end,
};

PyMODINIT_FUNC
PyInit__compiled(void)
{
    return PyModuleDef_Init(&module);
}
