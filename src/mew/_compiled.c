/* The two places where every byte of an envelope is looked at, compiled: reading frames and checking form.

Both say yes to what is usual and leave the rest to Python, which knows every rule and every message: `whole_frames` goes
before `Reader._read` of `mew.gateway.websocket`, `is_plain` spares `mew.protocol.codec` its closer look. Tests hold both to
the answers that Python alone gives. Nothing here is kept between two calls. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define WHOLE_TEXT 0x81
#define WHOLE_BINARY 0x82
#define MASKED 0x80
#define MASK_BYTES 4
#define FIELDS_MAX 32 /* of an envelope; one with more is left to Python */

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

/* Where a string ends, the closing quote included; -1 where it does not. */
static Py_ssize_t
string_end(Bytes text, Py_ssize_t at, Py_ssize_t size, int *escapes)
{
    at++;
    Bytes quote = memchr(text + at, '"', size - at);
    if (quote == NULL) {
        return -1;
    }
    if (memchr(text + at, '\\', quote - (text + at)) == NULL) {
        return quote - text + 1;
    }
    *escapes = 1;
    for (; at < size; at++) {
        if (text[at] == '"') {
            return at + 1;
        }
        if (text[at] == '\\') {
            at++;
        }
    }
    return -1;
}

static Py_ssize_t
space_end(Bytes text, Py_ssize_t at, Py_ssize_t size)
{
    while (at < size && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r')) {
        at++;
    }
    return at;
}

static int
is_named(Bytes key, Py_ssize_t size, const char *name)
{
    return size == (Py_ssize_t)strlen(name) && memcmp(key, name, size) == 0;
}

typedef struct {
    Bytes key;
    Py_ssize_t size;
} Field;

/* What a field of the envelope must look like for Python not to look at it again. */
static int
is_usual_field(Bytes text, Py_ssize_t size, Field field, Py_ssize_t value)
{
    if (value >= size) {
        return 0;
    }
    if (is_named(field.key, field.size, "payload")) {
        return text[value] == '{';
    }
    if (is_named(field.key, field.size, "ts")) {
        int escapes = 0;
        Py_ssize_t end = text[value] == '"' ? string_end(text, value, size, &escapes) : -1;
        return end > value + 2 && !escapes && (text[end - 2] == 'Z' || text[end - 2] == 'z');
    }
    return 1;
}

/* Whether the string here is a key, by the colon behind it, and one that may be: 1, 0 where it is no key, -1 where it may not. */
static int
take_key(Bytes text, Py_ssize_t start, Py_ssize_t end, Py_ssize_t size, int escapes, Field *fields, int *known)
{
    Py_ssize_t colon = space_end(text, end, size);
    if (colon >= size || text[colon] != ':') {
        return 0;
    }
    Field field = {text + start + 1, end - start - 2};
    if (escapes || *known == FIELDS_MAX) {
        return -1;
    }
    for (int at = 0; at < *known; at++) {
        if (fields[at].size == field.size && memcmp(fields[at].key, field.key, field.size) == 0) {
            return -1;
        }
    }
    fields[(*known)++] = field;
    return is_usual_field(text, size, field, space_end(text, colon + 1, size)) ? 1 : -1;
}

PyDoc_STRVAR(is_plain_doc,
"is_plain(received, nesting_max, /)\n--\n\n"
"Whether this, if it is JSON, can be read in one way only; False also where that takes a closer look.");

static PyObject *
is_plain(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "is_plain takes bytes and a number");
        return NULL;
    }
    Bytes text = (Bytes)PyBytes_AS_STRING(args[0]);
    Py_ssize_t size = PyBytes_GET_SIZE(args[0]), depth = 0;
    Py_ssize_t depth_max = PyNumber_AsSsize_t(args[1], NULL);
    if (depth_max == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!is_utf8(text, size)) {
        Py_RETURN_FALSE;
    }
    Field fields[FIELDS_MAX];
    int known = 0;
    for (Py_ssize_t at = 0; at < size;) {
        if (text[at] == '"') {
            int escapes = 0;
            Py_ssize_t end = string_end(text, at, size, &escapes);
            if (end < 0 || (depth == 1 && take_key(text, at, end, size, escapes, fields, &known) < 0)) {
                Py_RETURN_FALSE;
            }
            at = end;
            continue;
        }
        if (text[at] == '{' || text[at] == '[') {
            if (++depth > depth_max) {
                Py_RETURN_FALSE;
            }
        }
        else if (text[at] == '}' || text[at] == ']') {
            depth--;
        }
        at++;
    }
    Py_RETURN_TRUE;
}

static PyMethodDef functions[] = {
    {"whole_frames", (PyCFunction)(void (*)(void))whole_frames, METH_FASTCALL, whole_frames_doc},
    {"is_plain", (PyCFunction)(void (*)(void))is_plain, METH_FASTCALL, is_plain_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
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
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__compiled(void)
{
    return PyModuleDef_Init(&module);
}
