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

PyObject *
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
