/* Frames to send: unmasked, unfragmented text, several joined. */

#include "mew.h"

static Py_ssize_t
frame_bytes(Py_ssize_t size)
{
    return size + (size < 126 ? 2 : size < 65536 ? 4 : 10);
}

/* Write one frame; return where the next begins. */
static unsigned char *
write_frame(unsigned char *to, PyObject *message)
{
    Py_ssize_t size = PyBytes_Size(message), wide = frame_bytes(size) - size - 2;
    *to++ = FINAL_TEXT;
    *to++ = (unsigned char)(wide == 0 ? size : wide == 2 ? 126 : 127);
    while (wide > 0) {
        *to++ = (unsigned char)((uint64_t)size >> 8 * --wide);
    }
    memcpy(to, PyBytes_AsString(message), size);
    return to + size;
}

PyObject *
join_frames(PyObject *Py_UNUSED(module), PyObject *messages)
{
    if (!PyTuple_Check(messages)) {
        PyErr_SetString(PyExc_TypeError, "join_frames takes a tuple of bytes");
        return NULL;
    }
    Py_ssize_t count = PyTuple_Size(messages), size = 0;
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *message = PyTuple_GetItem(messages, at);
        if (!PyBytes_Check(message)) {
            PyErr_SetString(PyExc_TypeError, "join_frames takes a tuple of bytes");
            return NULL;
        }
        size += frame_bytes(PyBytes_Size(message));
    }
    PyObject *frames = PyBytes_FromStringAndSize(NULL, size);
    if (frames != NULL) {
        unsigned char *to = (unsigned char *)PyBytes_AsString(frames);
        for (Py_ssize_t at = 0; at < count; at++) {
            to = write_frame(to, PyTuple_GetItem(messages, at));
        }
    }
    return frames;
}
