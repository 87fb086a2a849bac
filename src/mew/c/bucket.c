/* How fast somebody may send: a bucket that fills by itself. */

#include "mew.h"

PyDoc_STRVAR(bucket_doc,
"Bucket(per_second, burst)\n--\n\n"
"Holds up to `burst` tokens and gains `per_second` of them; `now_s` is any clock that only goes forward.");

static int
bucket_init(Bucket *self, PyObject *args, PyObject *names)
{
    static char *known[] = {"per_second", "burst", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, names, "dd", known, &self->per_second, &self->burst)) {
        return -1;
    }
    self->tokens = self->burst;
    self->at_s = -Py_HUGE_VAL;
    return 0;
}

static void
bucket_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Take one token; 0 if there was one, else how many seconds until there is. */
double
take_token(Bucket *bucket, double now_s)
{
    double tokens = bucket->tokens + (now_s - bucket->at_s) * bucket->per_second;
    if (tokens > bucket->burst) {
        tokens = bucket->burst;
    }
    bucket->at_s = now_s;
    bucket->tokens = tokens >= 1 ? tokens - 1 : tokens;
    return tokens >= 1 ? 0 : (1 - tokens) / bucket->per_second;
}

PyDoc_STRVAR(take_doc,
"take(now_s, /)\n--\n\n"
"Take one token; 0 if there was one, else how many seconds until there is.");

static PyObject *
bucket_take(Bucket *self, PyObject *now)
{
    double now_s = PyFloat_AsDouble(now);
    if (now_s == -1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyFloat_FromDouble(take_token(self, now_s));
}

static PyMethodDef bucket_methods[] = {
    {"take", (PyCFunction)bucket_take, METH_O, take_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot bucket_slots[] = {
    {Py_tp_doc, (void *)bucket_doc},
    {Py_tp_init, bucket_init},
    {Py_tp_dealloc, bucket_free},
    {Py_tp_methods, bucket_methods},
    {0, NULL},
};

PyType_Spec bucket_spec = {
    .name = "mew._compiled.Bucket",
    .basicsize = sizeof(Bucket),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = bucket_slots,
};
