/* The module `mew._speedups`: pure functions over bytes and plain containers, each with a twin in Python.

None knows a rule of the protocol or an object of the gateway, and none keeps anything between two calls. They take what
is usual and stop at the rest, which Python reads; tests hold each to the answers of its twin.

- `frames_in.c`   `parse_frames`: the text messages at the start of what a socket received
- `header.c`      `is_plain`: whether an envelope can be read in one way only
- `headers.c`     `read_headers`: the headers of several envelopes, column by column
- `frames_out.c`  `join_frames`: one WebSocket frame for each message
- `utf8.c`        UTF-8 as RFC 3629 has it
- `module.c`      what Python sees of it */

#ifndef MEW_H
#define MEW_H

#define Py_LIMITED_API 0x030B0000 /* one build runs on Python 3.11 and everything newer (abi3) */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define FINAL_TEXT 0x81 /* the first byte of an unfragmented text frame */
#define NAMES_MAX 8     /* addressees or correlation ids of an envelope; one with more is left to Python */

typedef const unsigned char *Bytes;

/* Some of the bytes of something else. */
typedef struct {
    Bytes at;
    Py_ssize_t size;
} Part;

/* The header of an envelope. */
typedef struct {
    Part protocol, id, from, kind;
    Part to[NAMES_MAX], correlation[NAMES_MAX];
    int to_count, correlation_count;
} Header;

static inline int
is_same(Part one, Part other)
{
    return one.size == other.size && memcmp(one.at, other.at, one.size) == 0;
}

int is_utf8(Bytes text, Py_ssize_t size);
int read_header(Bytes at, Py_ssize_t size, Header *header);

PyObject *parse_frames(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *is_plain(PyObject *module, PyObject *received);
PyObject *read_headers(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *join_frames(PyObject *module, PyObject *messages);

#endif
