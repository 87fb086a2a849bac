/* Frames that go out: of many records at once, for everyone or each for those it is for. */

#include "mew.h"

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

PyObject *
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

PyObject *
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
