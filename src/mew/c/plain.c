/* Envelopes that nothing follows from, several at once. */

#include "mew.h"

#define OPCODE_TEXT 1
#define NAME_BYTES 128 /* as `mew.gateway.pages` has it */
#define GATEWAY_ID_PREFIX "gw-"

/* What `plain_run` is told. */
typedef struct {
    PyObject *free, *recent, *connections, *at, *record;
    double now_s;
    Py_ssize_t bytes_max;
    int addressed;
} Terms;

/* Whose turn it is; `guest` is NULL until `meet` has found that what it says may be plain. */
typedef struct {
    PyObject *guest;           /* borrowed of what was heard */
    PyObject *known_by;        /* owned */
    PyObject *who, *bucket;    /* borrowed of that */
    PyObject *kinds;           /* borrowed of the terms */
    PyObject *kind;            /* owned: the last one that it may send */
    Part name;
} Speaker;

static void
forget_speaker(Speaker *speaker)
{
    Py_CLEAR(speaker->known_by);
    Py_CLEAR(speaker->kind);
    memset(speaker, 0, sizeof *speaker);
}

static int
has_flag(PyObject *guest, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(guest, name);
    int is_set = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return is_set;
}

/* Get to know a guest: 1, 0 where what it says is not plain, -1 where that failed. */
static int
meet(State *state, Terms *terms, PyObject *guest, Speaker *speaker)
{
    forget_speaker(speaker);
    speaker->known_by = PyObject_GetAttr(guest, state->known_by);
    if (speaker->known_by == NULL || speaker->known_by == Py_None) {
        return speaker->known_by == NULL ? -1 : 0;
    }
    if (!PyTuple_Check(speaker->known_by) || PyTuple_GET_SIZE(speaker->known_by) != 3) {
        PyErr_SetString(PyExc_TypeError, "a guest is known by a connection, a name and a bucket");
        return -1;
    }
    speaker->who = PyTuple_GET_ITEM(speaker->known_by, 1);
    speaker->bucket = PyTuple_GET_ITEM(speaker->known_by, 2);
    PyObject *connected = PyDict_GetItemWithError(terms->connections, PyTuple_GET_ITEM(speaker->known_by, 0));
    if (connected == NULL || !PyUnicode_Check(speaker->who) || !Py_IS_TYPE(speaker->bucket, state->bucket)) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int is_here = connected == speaker->who ? 1 : PyObject_RichCompareBool(connected, speaker->who, Py_EQ);
    if (is_here <= 0) {
        return is_here;
    }
    speaker->name.at = (Bytes)PyUnicode_AsUTF8AndSize(speaker->who, &speaker->name.size);
    speaker->kinds = PyDict_GetItemWithError(terms->free, speaker->who);
    if (speaker->name.at == NULL || speaker->kinds == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    speaker->guest = guest;
    return 1;
}

/* Whether the speaker may send this kind without a second look: 1, 0, -1 where that failed. */
static int
may_send(Speaker *speaker, Part kind)
{
    if (speaker->kind != NULL) {
        Part before;
        before.at = (Bytes)PyUnicode_AsUTF8AndSize(speaker->kind, &before.size);
        if (before.at == NULL) {
            return -1;
        }
        if (is_same(before, kind)) {
            return 1;
        }
        Py_CLEAR(speaker->kind);
    }
    PyObject *name = PyUnicode_DecodeUTF8((const char *)kind.at, kind.size, NULL);
    int may = name == NULL ? -1 : PySet_Contains(speaker->kinds, name);
    if (may == 1) {
        speaker->kind = name;
    }
    else {
        Py_XDECREF(name);
    }
    return may;
}

static PyObject *
names_of(const Part *parts, int count, PyObject *last)
{
    PyObject *names = PyTuple_New(count + (last != NULL));
    for (int at = 0; names != NULL && at < count; at++) {
        PyObject *name = PyUnicode_DecodeUTF8((const char *)parts[at].at, parts[at].size, NULL);
        if (name == NULL) {
            Py_CLEAR(names);
        }
        else {
            PyTuple_SET_ITEM(names, at, name);
        }
    }
    if (names != NULL && last != NULL) {
        PyTuple_SET_ITEM(names, count, Py_NewRef(last));
    }
    return names;
}

/* Who is shown it where only those are whom it is for: each once, its sender last unless addressed too. */
static PyObject *
receivers(const Header *header, Speaker *speaker)
{
    Part once[NAMES_MAX];
    int count = 0, is_for_sender = 0;
    for (int at = 0; at < header->to_count; at++) {
        int is_known = 0;
        for (int before = 0; before < count; before++) {
            is_known |= is_same(once[before], header->to[at]);
        }
        if (!is_known) {
            is_for_sender |= is_same(header->to[at], speaker->name);
            once[count++] = header->to[at];
        }
    }
    return names_of(once, count, is_for_sender ? NULL : speaker->who);
}

static PyObject *
record_of(Terms *terms, const Header *header, Speaker *speaker, PyObject *id, PyObject *data, Py_ssize_t seq)
{
    Py_ssize_t bytes = PyBytes_GET_SIZE(data) + NAME_BYTES * (header->to_count + header->about_count);
    PyObject *weight = PyLong_FromSsize_t(bytes), *place = PyLong_FromSsize_t(seq);
    PyObject *about = names_of(header->about, header->about_count, NULL);
    PyObject *only = terms->addressed && header->to_count ? receivers(header, speaker) : Py_NewRef(Py_None);
    PyObject *record = NULL;
    if (weight != NULL && place != NULL && about != NULL && only != NULL) {
        PyObject *fields[] = {terms->at, id, speaker->who, speaker->kind, weight, about, data, only, place};
        record = PyObject_Vectorcall(terms->record, fields, sizeof fields / sizeof *fields, NULL);
    }
    Py_XDECREF(weight);
    Py_XDECREF(place);
    Py_XDECREF(about);
    Py_XDECREF(only);
    return record;
}

/* Take one message, if it is plain: 1, 0, -1 where that failed. */
static int
take_message(Terms *terms, Speaker *speaker, PyObject *data, PyObject *said, PyObject *records, Py_ssize_t seq)
{
    Bytes text = (Bytes)PyBytes_AS_STRING(data);
    Py_ssize_t size = PyBytes_GET_SIZE(data);
    Header header;
    if (size > terms->bytes_max || !read_header(text, size, &header) || !is_utf8(text, size) ||
        !is_same(header.from, speaker->name) ||
        (header.id.size >= (Py_ssize_t)strlen(GATEWAY_ID_PREFIX) &&
         memcmp(header.id.at, GATEWAY_ID_PREFIX, strlen(GATEWAY_ID_PREFIX)) == 0)) {
        return 0;
    }
    int is_so = may_send(speaker, header.kind);
    if (is_so <= 0) {
        return is_so;
    }
    PyObject *id = PyUnicode_DecodeUTF8((const char *)header.id.at, header.id.size, NULL);
    if (id == NULL) {
        return -1;
    }
    int is_known = PyDict_Contains(terms->recent, id);
    is_known = is_known ? is_known : PyDict_Contains(said, id);
    if (is_known || take_token((Bucket *)speaker->bucket, terms->now_s) != 0) {
        Py_DECREF(id);
        return is_known < 0 ? -1 : 0;
    }
    PyObject *record = record_of(terms, &header, speaker, id, data, seq);
    int failed = record == NULL || PyDict_SetItem(said, id, speaker->who) || PyList_Append(records, record);
    Py_XDECREF(record);
    Py_DECREF(id);
    return failed ? -1 : 1;
}

static int
read_terms(PyObject *const *args, Terms *terms, Py_ssize_t *seq)
{
    PyObject *standing = args[2];
    if (!PyTuple_Check(standing) || PyTuple_GET_SIZE(standing) != 4) {
        return 0;
    }
    terms->free = PyTuple_GET_ITEM(standing, 0);
    terms->recent = PyTuple_GET_ITEM(standing, 1);
    terms->connections = PyTuple_GET_ITEM(standing, 2);
    terms->addressed = PyTuple_GET_ITEM(standing, 3) == Py_True;
    terms->record = args[3];
    *seq = PyNumber_AsSsize_t(args[4], NULL);
    terms->at = args[5];
    terms->now_s = PyFloat_AsDouble(args[6]);
    terms->bytes_max = PyNumber_AsSsize_t(args[7], NULL);
    return PyDict_Check(terms->free) && PyDict_Check(terms->recent) && PyDict_Check(terms->connections);
}

/* Whether that is the opcode of a text frame; `went` becomes -1 where it cannot be told. */
static int
is_text_frame(PyObject *opcode, int *went)
{
    long number = PyLong_AsLong(opcode);
    if (number == -1 && PyErr_Occurred()) {
        *went = -1;
    }
    return number == OPCODE_TEXT;
}

/* One of what was heard: who says it, what its frame was, its bytes. */
static int
is_heard(PyObject *one)
{
    return PyTuple_Check(one) && PyTuple_GET_SIZE(one) == 3 && PyLong_Check(PyTuple_GET_ITEM(one, 1)) &&
           PyBytes_Check(PyTuple_GET_ITEM(one, 2));
}

PyObject *
plain_run(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Terms terms;
    Py_ssize_t seq = 0, at = count == 8 ? PyNumber_AsSsize_t(args[1], NULL) : 0;
    if (count != 8 || !PyList_Check(args[0]) || at < 0 || !read_terms(args, &terms, &seq) || PyErr_Occurred()) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "plain_run takes what mew.gateway.plain says");
        }
        return NULL;
    }
    State *state = PyModule_GetState(module);
    Speaker speaker;
    memset(&speaker, 0, sizeof speaker);
    PyObject *records = PyList_New(0), *said = PyDict_New();
    int went = records == NULL || said == NULL ? -1 : 1;
    for (; went > 0 && at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *one = Py_NewRef(PyList_GET_ITEM(args[0], at));
        went = is_heard(one) ? has_flag(PyTuple_GET_ITEM(one, 0), state->closed) : -1;
        if (went) { /* nobody listens to it any more */
            went = went < 0 ? -1 : 2;
        }
        else if (is_text_frame(PyTuple_GET_ITEM(one, 1), &went)) {
            PyObject *guest = PyTuple_GET_ITEM(one, 0);
            went = guest == speaker.guest ? 1 : meet(state, &terms, guest, &speaker);
            if (went > 0) {
                went = take_message(&terms, &speaker, PyTuple_GET_ITEM(one, 2), said, records, seq);
                seq++;
            }
        }
        Py_DECREF(one);
        if (went <= 0) {
            break;
        }
    }
    forget_speaker(&speaker);
    if (went < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "what was heard is a list of guests, opcodes and bytes");
        }
        Py_XDECREF(records);
        Py_XDECREF(said);
        return NULL;
    }
    return Py_BuildValue("(NNn)", records, said, at);
}
