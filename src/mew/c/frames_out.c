/* Frames that go out: of many records at once, for everyone or each for those it is for. */

#include "mew.h"

static Py_ssize_t
frame_bytes(Py_ssize_t size)
{
    return size + (size < 126 ? 2 : size < 65536 ? 4 : 10);
}

/* One frame, not masked; where the next begins. */
static unsigned char *
write_frame(unsigned char *to, PyObject *message)
{
    Py_ssize_t size = PyBytes_GET_SIZE(message), wide = frame_bytes(size) - size - 2;
    *to++ = WHOLE_TEXT;
    *to++ = (unsigned char)(wide == 0 ? size : wide == 2 ? 126 : 127);
    while (wide > 0) {
        *to++ = (unsigned char)((uint64_t)size >> 8 * --wide);
    }
    memcpy(to, PyBytes_AS_STRING(message), size);
    return to + size;
}

/* The bytes that a record holds; a new reference. */
static PyObject *
message_of(State *state, PyObject *record)
{
    PyObject *message = PyObject_GetAttr(record, state->raw);
    if (message != NULL && !PyBytes_Check(message)) {
        PyErr_SetString(PyExc_TypeError, "what a record holds is bytes");
        Py_CLEAR(message);
    }
    return message;
}

PyObject *
text_frames(PyObject *module, PyObject *records)
{
    if (!PyList_Check(records)) {
        PyErr_SetString(PyExc_TypeError, "text_frames takes a list of records");
        return NULL;
    }
    PyObject *held = PyList_AsTuple(records), *messages = held == NULL ? NULL : PyTuple_New(PyTuple_GET_SIZE(held));
    Py_ssize_t count = messages == NULL ? 0 : PyTuple_GET_SIZE(held), size = 0;
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *message = message_of(PyModule_GetState(module), PyTuple_GET_ITEM(held, at));
        if (message == NULL) {
            Py_CLEAR(messages);
            break;
        }
        PyTuple_SET_ITEM(messages, at, message);
        size += frame_bytes(PyBytes_GET_SIZE(message));
    }
    PyObject *frames = messages == NULL ? NULL : PyBytes_FromStringAndSize(NULL, size);
    if (frames != NULL) {
        unsigned char *to = (unsigned char *)PyBytes_AS_STRING(frames);
        for (Py_ssize_t at = 0; at < count; at++) {
            to = write_frame(to, PyTuple_GET_ITEM(messages, at));
        }
    }
    Py_XDECREF(held);
    Py_XDECREF(messages);
    return frames;
}

static PyObject *
text_frame(State *state, PyObject *record)
{
    PyObject *message = message_of(state, record), *frame = NULL;
    if (message != NULL) {
        frame = PyBytes_FromStringAndSize(NULL, frame_bytes(PyBytes_GET_SIZE(message)));
    }
    if (frame != NULL) {
        write_frame((unsigned char *)PyBytes_AS_STRING(frame), message);
    }
    Py_XDECREF(message);
    return frame;
}

/* What is gathered in a turn; see `Outboxes` in `mew.gateway.outbox`. All borrowed. */
typedef struct {
    PyObject *boxes, *shared, *apart;
} Due;

/* To all that are here; how many these are, -1 where that failed. */
static Py_ssize_t
give_to_all(Due *due, PyObject *frame)
{
    PyObject *connection, *own;
    Py_ssize_t at = 0;
    int failed = PyList_Append(due->shared, frame);
    while (!failed && PyDict_Next(due->apart, &at, &connection, &own)) {
        failed = PyList_Append(own, frame);
    }
    return failed ? -1 : PyDict_GET_SIZE(due->boxes);
}

/* To one, if it is here: 1, 0 where it is not, -1 where that failed. */
static int
give_to(Due *due, PyObject *connection, PyObject *frame)
{
    PyObject *own = PyDict_GetItemWithError(due->apart, connection);
    if (own != NULL) {
        return PyList_Append(own, frame) ? -1 : 1;
    }
    int is_here = PyErr_Occurred() ? -1 : PyDict_Contains(due->boxes, connection);
    if (is_here <= 0) {
        return is_here;
    }
    own = PyList_GetSlice(due->shared, 0, PyList_GET_SIZE(due->shared));
    int failed = own == NULL || PyList_Append(own, frame) || PyDict_SetItem(due->apart, connection, own);
    Py_XDECREF(own);
    return failed ? -1 : 1;
}

/* To all connections of those it is for; to how many, -1 where that failed. */
static Py_ssize_t
give_to_each(Due *due, PyObject *only, PyObject *connected, PyObject *frame)
{
    Py_ssize_t given = 0;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(only); at++) {
        PyObject *theirs = PyDict_GetItemWithError(connected, PyTuple_GET_ITEM(only, at));
        if (theirs == NULL && !PyErr_Occurred()) {
            continue;
        }
        if (theirs == NULL || !PyTuple_Check(theirs)) {
            if (theirs != NULL) {
                PyErr_SetString(PyExc_TypeError, "the connections of somebody are a tuple");
            }
            return -1;
        }
        for (Py_ssize_t one = 0; one < PyTuple_GET_SIZE(theirs); one++) {
            int more = give_to(due, PyTuple_GET_ITEM(theirs, one), frame);
            if (more < 0) {
                return -1;
            }
            given += more;
        }
    }
    return given;
}

static Py_ssize_t
give(State *state, Due *due, PyObject *connected, PyObject *record)
{
    PyObject *only = PyObject_GetAttr(record, state->only), *frame = only == NULL ? NULL : text_frame(state, record);
    Py_ssize_t given = -1;
    if (frame != NULL && only == Py_None) {
        given = give_to_all(due, frame);
    }
    else if (frame != NULL && PyTuple_Check(only)) {
        given = give_to_each(due, only, connected, frame);
    }
    else if (frame != NULL) {
        PyErr_SetString(PyExc_TypeError, "those it is for are a tuple");
    }
    Py_XDECREF(only);
    Py_XDECREF(frame);
    return given;
}

PyObject *
hand_out(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 5 || !PyList_Check(args[0]) || !PyDict_Check(args[1]) || !PyDict_Check(args[2]) ||
        !PyList_Check(args[3]) || !PyDict_Check(args[4])) {
        PyErr_SetString(PyExc_TypeError, "hand_out takes what mew.gateway.deliveries says");
        return NULL;
    }
    Due due = {args[2], args[3], args[4]};
    Py_ssize_t given = 0;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *record = Py_NewRef(PyList_GET_ITEM(args[0], at));
        Py_ssize_t more = give(PyModule_GetState(module), &due, args[1], record);
        Py_DECREF(record);
        if (more < 0) {
            return NULL;
        }
        given += more;
    }
    return PyLong_FromSsize_t(given);
}
