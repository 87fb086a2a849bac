/* The headers of several envelopes, column by column. */

#include "mew.h"

enum { IDS, SENDERS, KINDS, TO, CORRELATION_IDS, COLUMNS };

/* A name as text, and the bytes it was made from: senders and kinds repeat from one envelope to the next. */
typedef struct {
    PyObject *text;
    Part part;
} Name;

static PyObject *
text_of(Part part)
{
    return PyUnicode_DecodeUTF8((const char *)part.at, part.size, NULL);
}

/* A new reference; the same object for the same bytes in a row. */
static PyObject *
repeated(Name *before, Part part)
{
    if (before->text == NULL || !is_same(before->part, part)) {
        Py_XDECREF(before->text);
        before->text = text_of(part);
        before->part = part;
    }
    return Py_XNewRef(before->text);
}

static PyObject *
texts_of(const Part *parts, int count)
{
    PyObject *texts = PyTuple_New(count);
    for (int at = 0; texts != NULL && at < count; at++) {
        PyObject *text = text_of(parts[at]);
        if (text == NULL) {
            Py_CLEAR(texts);
        }
        else {
            PyTuple_SetItem(texts, at, text);
        }
    }
    return texts;
}

/* Put a row into the columns at a place; -1 if a value could not be made. Takes over the references. */
static int
put_row(PyObject **columns, Py_ssize_t place, PyObject **row)
{
    int failed = 0;
    for (int at = 0; at < COLUMNS; at++) {
        failed = failed || row[at] == NULL;
        PyTuple_SetItem(columns[at], place, row[at]);
    }
    return failed ? -1 : 0;
}

/* Make the columns as long as what was read; -1 if that failed. */
static int
trim(PyObject **columns, Py_ssize_t size)
{
    for (int at = 0; at < COLUMNS; at++) {
        if (PyTuple_Size(columns[at]) != size) {
            PyObject *whole = columns[at];
            columns[at] = PyTuple_GetSlice(whole, 0, size);
            Py_DECREF(whole);
            if (columns[at] == NULL) {
                return -1;
            }
        }
    }
    return 0;
}

PyObject *
read_headers(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyTuple_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "read_headers takes a tuple of bytes and two numbers");
        return NULL;
    }
    Py_ssize_t start = PyNumber_AsSsize_t(args[1], NULL), bytes_max = PyNumber_AsSsize_t(args[2], NULL);
    Py_ssize_t most = PyTuple_Size(args[0]) - start, size = 0;
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (start < 0 || most < 0) {
        PyErr_SetString(PyExc_ValueError, "start is beyond the messages");
        return NULL;
    }
    PyObject *columns[COLUMNS] = {NULL};
    int failed = 0;
    for (int column = 0; column < COLUMNS; column++) {
        failed = failed || (columns[column] = PyTuple_New(most)) == NULL;
    }
    Name sender = {NULL}, kind = {NULL};
    Header header;
    for (; !failed && size < most; size++) {
        PyObject *message = PyTuple_GetItem(args[0], start + size);
        if (!PyBytes_Check(message)) {
            PyErr_SetString(PyExc_TypeError, "read_headers takes a tuple of bytes");
            failed = 1;
            break;
        }
        Bytes text = (Bytes)PyBytes_AsString(message);
        Py_ssize_t bytes = PyBytes_Size(message);
        if (bytes > bytes_max || !read_header(text, bytes, &header) || !is_utf8(text, bytes)) {
            break;
        }
        PyObject *row[COLUMNS] = {
            text_of(header.id),
            repeated(&sender, header.from),
            repeated(&kind, header.kind),
            texts_of(header.to, header.to_count),
            texts_of(header.correlation, header.correlation_count),
        };
        failed = put_row(columns, size, row);
    }
    Py_XDECREF(sender.text);
    Py_XDECREF(kind.text);
    failed = failed || trim(columns, size);
    PyObject *read = failed ? NULL : PyTuple_Pack(COLUMNS, columns[IDS], columns[SENDERS], columns[KINDS],
                                                  columns[TO], columns[CORRELATION_IDS]);
    for (int column = 0; column < COLUMNS; column++) {
        Py_XDECREF(columns[column]);
    }
    return read;
}
