/* Frames that come in, as RFC 6455 has them: whole, masked, text or binary. All others are left to Python. */

#include "mew.h"

#define WHOLE_BINARY 0x82
#define MASKED 0x80
#define MASK_BYTES 4

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

/* The bytes of something, as they are read. */
typedef struct {
    Bytes data;
    Py_ssize_t at, end, bytes_max;
} Reading;

/* The message in the next frame, if that is a usual one, and its opcode; NULL also where that failed. */
static PyObject *
next_message(Reading *reading, int *opcode)
{
    Bytes frame = reading->data + reading->at;
    Py_ssize_t size = 0, head = usual_head(frame, reading->end - reading->at, reading->bytes_max, &size);
    PyObject *message = head ? PyBytes_FromStringAndSize(NULL, size) : NULL;
    if (message == NULL) {
        return NULL;
    }
    unsigned char *plain = (unsigned char *)PyBytes_AS_STRING(message);
    unmask(plain, frame + head, size, frame + head - MASK_BYTES);
    if (frame[0] == WHOLE_TEXT && !is_utf8(plain, size)) {
        Py_DECREF(message);
        return NULL;
    }
    *opcode = frame[0] & 0x0F;
    reading->at += head + size;
    return message;
}

static int
begin_reading(PyObject *data, PyObject *bytes_max, Reading *reading)
{
    if (!PyBytes_Check(data)) {
        PyErr_SetString(PyExc_TypeError, "frames are read from bytes");
        return -1;
    }
    reading->data = (Bytes)PyBytes_AS_STRING(data);
    reading->at = 0;
    reading->end = PyBytes_GET_SIZE(data);
    reading->bytes_max = PyNumber_AsSsize_t(bytes_max, NULL);
    return reading->bytes_max == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Append a tuple to a list; takes over the reference to it, and may be given none. */
static int
put(PyObject *list, PyObject *tuple)
{
    int failed = tuple == NULL ? -1 : PyList_Append(list, tuple);
    Py_XDECREF(tuple);
    return failed;
}

PyObject *
whole_frames(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Reading reading;
    int opcode;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "whole_frames takes bytes and a number");
        return NULL;
    }
    PyObject *messages = begin_reading(args[0], args[1], &reading) ? NULL : PyList_New(0), *message;
    while (messages != NULL && (message = next_message(&reading, &opcode)) != NULL) {
        if (put(messages, Py_BuildValue("(iN)", opcode, message))) {
            Py_CLEAR(messages);
        }
    }
    if (messages == NULL || PyErr_Occurred()) {
        Py_XDECREF(messages);
        return NULL;
    }
    return Py_BuildValue("(Nn)", messages, reading.at);
}

PyObject *
hear_frames(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Reading reading;
    int opcode;
    if (count != 5 || !PyList_Check(args[4])) {
        PyErr_SetString(PyExc_TypeError, "hear_frames takes what mew.gateway.inbox says");
        return NULL;
    }
    Py_ssize_t most = PyNumber_AsSsize_t(args[2], NULL);
    if ((most == -1 && PyErr_Occurred()) || begin_reading(args[0], args[1], &reading)) {
        return NULL;
    }
    PyObject *message;
    while (most-- > 0 && (message = next_message(&reading, &opcode)) != NULL) {
        if (put(args[4], Py_BuildValue("(OiN)", args[3], opcode, message))) {
            return NULL;
        }
    }
    return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(reading.at);
}
