/* Frames received, as RFC 6455 has them: complete, masked, unfragmented text. All others are left to Python. */

#include "mew.h"

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

/* The head of a complete, masked, unfragmented text frame of at most bytes_max; 0 if there is none. */
static Py_ssize_t
text_head(Bytes frame, Py_ssize_t left, Py_ssize_t bytes_max, Py_ssize_t *size)
{
    if (left < 2 || frame[0] != FINAL_TEXT || frame[1] < MASKED) {
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

/* The message in the frame at the start, unmasked; `used` is what the frame takes. NULL without an exception: it is
   left to Python. */
static PyObject *
text_message(Bytes frame, Py_ssize_t left, Py_ssize_t bytes_max, Py_ssize_t *used)
{
    Py_ssize_t size = 0, head = text_head(frame, left, bytes_max, &size);
    PyObject *message = head ? PyBytes_FromStringAndSize(NULL, size) : NULL;
    if (message == NULL) {
        return NULL;
    }
    unsigned char *text = (unsigned char *)PyBytes_AsString(message);
    unmask(text, frame + head, size, frame + head - MASK_BYTES);
    if (!is_utf8(text, size)) {
        Py_DECREF(message);
        return NULL;
    }
    *used = head + size;
    return message;
}

PyObject *
parse_frames(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyBytes_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "parse_frames takes bytes and three numbers");
        return NULL;
    }
    Py_ssize_t at = PyNumber_AsSsize_t(args[1], NULL), end = PyBytes_Size(args[0]), used = 0;
    Py_ssize_t bytes_max = PyNumber_AsSsize_t(args[2], NULL), most = PyNumber_AsSsize_t(args[3], NULL);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (at < 0) {
        PyErr_SetString(PyExc_ValueError, "start is not negative");
        return NULL;
    }
    Bytes data = (Bytes)PyBytes_AsString(args[0]);
    PyObject *messages = PyList_New(0), *message;
    while (messages != NULL && most-- > 0 && at < end &&
           (message = text_message(data + at, end - at, bytes_max, &used)) != NULL) {
        if (PyList_Append(messages, message)) {
            Py_CLEAR(messages);
        }
        Py_DECREF(message);
        at += used;
    }
    if (messages == NULL || PyErr_Occurred()) {
        Py_XDECREF(messages);
        return NULL;
    }
    return Py_BuildValue("(Nn)", messages, at);
}
