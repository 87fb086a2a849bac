/* What Python sees of it. */

#include "mew.h"

static int
prepare(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->closed = PyUnicode_InternFromString("closed");
    state->known_by = PyUnicode_InternFromString("known_by");
    state->raw = PyUnicode_InternFromString("raw");
    state->only = PyUnicode_InternFromString("only");
    state->bucket = (PyTypeObject *)PyType_FromModuleAndSpec(module, &bucket_spec, NULL);
    if (!state->closed || !state->known_by || !state->raw || !state->only || !state->bucket) {
        return -1;
    }
    return PyModule_AddType(module, state->bucket);
}

static int
visit(PyObject *module, visitproc visit, void *arg)
{
    Py_VISIT(((State *)PyModule_GetState(module))->bucket);
    return 0;
}

static int
clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->closed);
    Py_CLEAR(state->known_by);
    Py_CLEAR(state->raw);
    Py_CLEAR(state->only);
    Py_CLEAR(state->bucket);
    return 0;
}

static void
end(void *module)
{
    clear(module);
}

PyDoc_STRVAR(whole_frames_doc,
"whole_frames(data, bytes_max, /)\n--\n\n"
"The messages in the usual frames that `data` begins with, and where the first other one begins.");

PyDoc_STRVAR(hear_frames_doc,
"hear_frames(data, bytes_max, most, guest, heard, /)\n--\n\n"
"Put the messages in the usual frames that `data` begins with, so many at most, behind what was `heard`, each with\n"
"`guest` and its opcode; where the next frame begins.");

PyDoc_STRVAR(is_plain_doc,
"is_plain(received, /)\n--\n\n"
"Whether this is an envelope that can be read in one way only; False also where that takes a closer look.");

PyDoc_STRVAR(plain_run_doc,
"plain_run(heard, start, standing, record, seq, at, now_s, bytes_max, /)\n--\n\n"
"The envelopes from `start` on up to one that is not plain, as records of which the first is the entry `seq`; their\n"
"ids with who sent each; and where that one is. Each costs its sender a token.");

PyDoc_STRVAR(text_frames_doc,
"text_frames(records, /)\n--\n\n"
"See `mew.gateway.deliveries.text_frames`.");

PyDoc_STRVAR(hand_out_doc,
"hand_out(records, connected, boxes, shared, apart, /)\n--\n\n"
"See `mew.gateway.deliveries.hand_out`.");

static PyMethodDef functions[] = {
    {"whole_frames", (PyCFunction)(void (*)(void))whole_frames, METH_FASTCALL, whole_frames_doc},
    {"hear_frames", (PyCFunction)(void (*)(void))hear_frames, METH_FASTCALL, hear_frames_doc},
    {"is_plain", is_plain, METH_O, is_plain_doc},
    {"plain_run", (PyCFunction)(void (*)(void))plain_run, METH_FASTCALL, plain_run_doc},
    {"text_frames", text_frames, METH_O, text_frames_doc},
    {"hand_out", (PyCFunction)(void (*)(void))hand_out, METH_FASTCALL, hand_out_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, prepare},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mew._compiled",
    .m_doc = "What mew does in C where it can; `MEW_PURE=1` does without.",
    .m_size = sizeof(State),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = visit,
    .m_clear = clear,
    .m_free = end,
};

PyMODINIT_FUNC
PyInit__compiled(void)
{
    return PyModuleDef_Init(&module);
}
