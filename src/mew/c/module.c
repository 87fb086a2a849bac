/* What Python sees of it. */

#include "mew.h"

PyDoc_STRVAR(parse_frames_doc,
"parse_frames(data, start, bytes_max, messages_max, /)\n--\n\n"
"See `mew.gateway.websocket.frames.parse_frames`.");

PyDoc_STRVAR(is_plain_doc,
"is_plain(received, /)\n--\n\n"
"See `mew.protocol.codec.is_plain`.");

PyDoc_STRVAR(read_headers_doc,
"read_headers(messages, start, bytes_max, /)\n--\n\n"
"See `mew.protocol.envelopes.read_headers`.");

PyDoc_STRVAR(join_frames_doc,
"join_frames(messages, /)\n--\n\n"
"See `mew.gateway.websocket.frames.join_frames`.");

static PyMethodDef functions[] = {
    {"parse_frames", (PyCFunction)(void (*)(void))parse_frames, METH_FASTCALL, parse_frames_doc},
    {"is_plain", is_plain, METH_O, is_plain_doc},
    {"read_headers", (PyCFunction)(void (*)(void))read_headers, METH_FASTCALL, read_headers_doc},
    {"join_frames", join_frames, METH_O, join_frames_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mew._speedups",
    .m_doc = "Functions of mew in C, each with a twin in Python; `MEW_PURE=1` does without.",
    .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__speedups(void)
{
    return PyModuleDef_Init(&module);
}
