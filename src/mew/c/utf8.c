/* What is UTF-8, as RFC 3629 has it. */

#include "mew.h"

/* How many of these bytes are ASCII, from the first on. */
static Py_ssize_t
ascii_prefix(Bytes text, Py_ssize_t size)
{
    Py_ssize_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t eight;
        memcpy(&eight, text + at, 8);
        if (eight & UINT64_C(0x8080808080808080)) {
            break;
        }
    }
    while (at < size && text[at] < 0x80) {
        at++;
    }
    return at;
}

/* The bytes of the character that begins here, as RFC 3629 has it; 0 where none does. */
static int
utf8_length(Bytes text, Py_ssize_t left)
{
    unsigned char first = text[0], low = 0x80, high = 0xBF;
    int length;
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
    }
    else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        low = first == 0xE0 ? 0xA0 : 0x80;  /* no longer than needed */
        high = first == 0xED ? 0x9F : 0xBF; /* no surrogates */
    }
    else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        low = first == 0xF0 ? 0x90 : 0x80;
        high = first == 0xF4 ? 0x8F : 0xBF; /* no more than U+10FFFF */
    }
    else {
        return 0;
    }
    if (left < length || text[1] < low || text[1] > high) {
        return 0;
    }
    for (int at = 2; at < length; at++) {
        if ((text[at] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return length;
}

int
is_utf8(Bytes text, Py_ssize_t size)
{
    Py_ssize_t at = 0;
    for (;;) {
        at += ascii_prefix(text + at, size - at);
        if (at == size) {
            return 1;
        }
        int length = utf8_length(text + at, size - at);
        if (!length) {
            return 0;
        }
        at += length;
    }
}
