/* The module `mew._compiled`: where every byte of an envelope is looked at, and what is done for each of many alike.

All of it says yes to what is usual and leaves the rest to Python, which knows every rule and every message. Tests hold
each to the answers that Python alone gives. But for the tokens in a bucket nothing is kept between two calls.

- `frames_in.c`   `whole_frames`: goes before `Reader._read` of `mew.gateway.websocket`; `hear_frames`:
                  before `Wire._read` of `mew.gateway.wire`
- `header.c`      `is_plain`: spares `mew.protocol.codec` its closer look
- `bucket.c`      `Bucket` of `mew.gateway.rate`
- `plain.c`       `plain_run`: what `mew.gateway.plain` does one by one
- `frames_out.c`  `text_frames` and `hand_out` of `mew.gateway.deliveries`
- `utf8.c`        what RFC 3629 allows
- `module.c`      what Python sees of it */

#ifndef MEW_H
#define MEW_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define WHOLE_TEXT 0x81
#define NAMES_MAX 8 /* that an envelope addresses or refers to; one with more is left to Python */

typedef const unsigned char *Bytes;

/* Some of the bytes of something else. */
typedef struct {
    Bytes at;
    Py_ssize_t size;
} Part;

/* The header of an envelope. */
typedef struct {
    Part protocol, id, from, kind;
    Part to[NAMES_MAX], about[NAMES_MAX];
    int to_count, about_count;
} Header;

/* How fast somebody may send. */
typedef struct {
    PyObject_HEAD
    double per_second, burst, tokens, at_s;
} Bucket;

/* What a module keeps: its type, and the names of attributes. */
typedef struct {
    PyTypeObject *bucket;
    PyObject *closed, *known_by, *raw, *only;
} State;

static inline int
is_same(Part one, Part other)
{
    return one.size == other.size && memcmp(one.at, other.at, one.size) == 0;
}

int is_utf8(Bytes text, Py_ssize_t size);
int read_header(Bytes at, Py_ssize_t size, Header *header);
double take_token(Bucket *bucket, double now_s);

extern PyType_Spec bucket_spec;
PyObject *whole_frames(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *hear_frames(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *is_plain(PyObject *module, PyObject *received);
PyObject *plain_run(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *text_frames(PyObject *module, PyObject *records);
PyObject *hand_out(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
