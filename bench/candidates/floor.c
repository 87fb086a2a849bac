/* The floor in C: what floor.py does, with epoll. No JSON, no rules, no pings.
 *
 * In each turn, every connection that can be read is read once; its frames are unmasked and joined to what is due
 * to its space; then each connection of a space with something due gets one write. What a socket does not take
 * waits in a backlog. Frames are unfragmented and shorter than 64 KiB. Run as: floor PORT
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES (256 * 1024)
#define EVENTS 512
#define NAME_BYTES 64

typedef struct {
    unsigned char *bytes;
    size_t start, length, room;
} Buffer;

typedef struct Connection Connection;

typedef struct Space {
    char name[NAME_BYTES];
    Connection **members;
    size_t count, room;
    Buffer due;
    int dirty;
    struct Space *next;
} Space;

struct Connection {
    int socket;
    size_t seat;    /* its place among the members of the space */
    Space *space;   /* none before the handshake */
    Buffer rest;    /* what came of a frame that is not whole yet */
    Buffer backlog; /* what the socket did not take */
};

static int poll_fd;
static Space *spaces[1024];
static Space **dirty;
static size_t dirty_count, dirty_room;
static unsigned char incoming[READ_BYTES];

static void *grown(void *old, size_t *room, size_t needed, size_t each) {
    if (needed <= *room) return old;
    while (*room < needed) *room = *room ? *room * 2 : 16;
    void *new = realloc(old, *room * each);
    if (!new) abort();
    return new;
}

static unsigned char *reserve(Buffer *buffer, size_t more) {
    if (buffer->start && buffer->start + buffer->length + more > buffer->room) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->length);
        buffer->start = 0;
    }
    buffer->bytes = grown(buffer->bytes, &buffer->room, buffer->start + buffer->length + more, 1);
    return buffer->bytes + buffer->start + buffer->length;
}

static void append(Buffer *buffer, const unsigned char *bytes, size_t length) {
    memcpy(reserve(buffer, length), bytes, length);
    buffer->length += length;
}

/* The handshake: SHA-1 and base64 of the key, as RFC 6455 asks. */

static uint32_t rolled(uint32_t word, int by) { return word << by | word >> (32 - by); }

static void sha1_block(uint32_t state[5], const unsigned char *block) {
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = rolled(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f, k;
        if (i < 20) f = (b & c) | (~b & d), k = 0x5A827999;
        else if (i < 40) f = b ^ c ^ d, k = 0x6ED9EBA1;
        else if (i < 60) f = (b & c) | (b & d) | (c & d), k = 0x8F1BBCDC;
        else f = b ^ c ^ d, k = 0xCA62C1D6;
        uint32_t next = rolled(a, 5) + f + e + k + w[i];
        e = d, d = c, c = rolled(b, 30), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

static void accept_key(const char *key, size_t length, char out[29]) {
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char text[128] = {0}, digest[21] = {0};
    uint32_t state[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
    size_t total = length + sizeof guid - 1, padded = total + 9 > 64 ? 128 : 64;
    memcpy(text, key, length);
    memcpy(text + length, guid, sizeof guid - 1);
    text[total] = 0x80;
    text[padded - 2] = (unsigned char)(total * 8 >> 8);
    text[padded - 1] = (unsigned char)(total * 8);
    for (size_t at = 0; at < padded; at += 64) sha1_block(state, text + at);
    for (int i = 0; i < 20; i++) digest[i] = (unsigned char)(state[i / 4] >> (24 - 8 * (i % 4)));
    for (int i = 0; i < 7; i++) {
        uint32_t three = digest[3 * i] << 16 | digest[3 * i + 1] << 8 | digest[3 * i + 2];
        for (int j = 0; j < 4; j++) out[4 * i + j] = digits[three >> (18 - 6 * j) & 63];
    }
    out[27] = '=';
    out[28] = 0;
}

static Space *space_named(const char *name, size_t length) {
    uint32_t hash = 5381;
    for (size_t i = 0; i < length; i++) hash = hash * 33 + (unsigned char)name[i];
    Space **first = &spaces[hash % 1024];
    for (Space *space = *first; space; space = space->next)
        if (strlen(space->name) == length && !memcmp(space->name, name, length)) return space;
    Space *space = calloc(1, sizeof *space);
    if (!space) abort();
    memcpy(space->name, name, length);
    space->next = *first;
    return *first = space;
}

static void leave(Connection *connection) {
    Space *space = connection->space;
    if (space) {
        Connection *last = space->members[--space->count];
        space->members[connection->seat] = last;
        last->seat = connection->seat;
    }
    close(connection->socket);
    free(connection->rest.bytes);
    free(connection->backlog.bytes);
    free(connection);
}

/* False where the socket is broken: its end is then read in a later turn. */
static int write_some(Connection *connection, const unsigned char *bytes, size_t length, size_t *taken) {
    ssize_t sent = send(connection->socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    *taken = sent > 0 ? (size_t)sent : 0;
    return sent >= 0 || errno == EAGAIN;
}

static void listen_for(Connection *connection, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    epoll_ctl(poll_fd, EPOLL_CTL_MOD, connection->socket, &event);
}

static void deliver(Connection *connection, const unsigned char *bytes, size_t length) {
    size_t taken = 0;
    if (!connection->backlog.length && !write_some(connection, bytes, length, &taken)) return;
    if (taken == length) return;
    if (!connection->backlog.length) listen_for(connection, EPOLLIN | EPOLLOUT);
    append(&connection->backlog, bytes + taken, length - taken);
}

static void write_backlog(Connection *connection) {
    Buffer *backlog = &connection->backlog;
    size_t taken;
    if (!write_some(connection, backlog->bytes + backlog->start, backlog->length, &taken)) taken = backlog->length;
    backlog->start += taken;
    backlog->length -= taken;
    if (!backlog->length) {
        backlog->start = 0;
        listen_for(connection, EPOLLIN);
    }
}

/* What is left after the head, or -1 where it is no request for a space. */
static ssize_t shake_hands(Connection *connection, unsigned char *bytes, size_t length) {
    unsigned char *end = memmem(bytes, length, "\r\n\r\n", 4);
    if (!end) return (ssize_t)length;
    *end = 0;
    char *key = strcasestr((char *)bytes, "\nsec-websocket-key:"), *name = strstr((char *)bytes, "space=");
    if (!key || !name) return -1;
    key += strlen("\nsec-websocket-key:");
    key += strspn(key, " ");
    name += strlen("space=");
    size_t key_length = strcspn(key, " \r\n"), name_length = strcspn(name, "& \r\n");
    if (key_length > 64 || name_length >= NAME_BYTES) return -1;
    char accepted[29], answer[160];
    accept_key(key, key_length, accepted);
    int answer_length = snprintf(answer, sizeof answer,
                                 "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                 "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accepted);
    deliver(connection, (unsigned char *)answer, (size_t)answer_length);
    Space *space = connection->space = space_named(name, name_length);
    space->members = grown(space->members, &space->room, space->count + 1, sizeof *space->members);
    connection->seat = space->count++;
    space->members[connection->seat] = connection;
    return (ssize_t)length - (end + 4 - bytes);
}

static void unmask(unsigned char *to, const unsigned char *from, size_t length, const unsigned char mask[4]) {
    uint32_t four;
    memcpy(&four, mask, 4);
    uint64_t eight = (uint64_t)four << 32 | four, word;
    size_t at = 0;
    for (; at + 8 <= length; at += 8) {
        memcpy(&word, from + at, 8);
        word ^= eight;
        memcpy(to + at, &word, 8);
    }
    for (; at < length; at++) to[at] = from[at] ^ mask[at & 3];
}

/* What is left of the last frame, or -1 where the connection is to end. */
static ssize_t take_frames(Space *space, const unsigned char *bytes, size_t length) {
    size_t at = 0;
    while (length - at >= 6) {
        const unsigned char *frame = bytes + at;
        size_t payload = frame[1] & 127, head = 2;
        if ((frame[0] & 15) == 8 || payload == 127) return -1;
        if (payload == 126) {
            payload = (size_t)frame[2] << 8 | frame[3];
            head = 4;
        }
        if (length - at < head + 4 + payload) break;
        unsigned char *out = reserve(&space->due, head + payload);
        memcpy(out, frame, head);
        out[1] &= 127;
        unmask(out + head, frame + head + 4, payload, frame + head);
        space->due.length += head + payload;
        at += head + 4 + payload;
    }
    if (space->due.length && !space->dirty) {
        space->dirty = 1;
        dirty = grown(dirty, &dirty_room, dirty_count + 1, sizeof *dirty);
        dirty[dirty_count++] = space;
    }
    return (ssize_t)(length - at);
}

static void take(Connection *connection) {
    ssize_t got = recv(connection->socket, incoming, sizeof incoming, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return leave(connection);
    unsigned char *bytes = incoming;
    size_t length = (size_t)got;
    Buffer *rest = &connection->rest;
    if (rest->length) {
        append(rest, incoming, length);
        bytes = rest->bytes + rest->start;
        length = rest->length;
    }
    ssize_t left = connection->space ? take_frames(connection->space, bytes, length)
                                     : shake_hands(connection, bytes, length);
    if (left < 0) return leave(connection);
    if (bytes == incoming) {
        if (left) append(rest, incoming + length - left, (size_t)left);
        return;
    }
    rest->start += length - (size_t)left;
    rest->length = (size_t)left;
    if (!left) rest->start = 0;
}

static void flush(void) {
    for (size_t i = 0; i < dirty_count; i++) {
        Space *space = dirty[i];
        for (size_t member = 0; member < space->count; member++)
            deliver(space->members[member], space->due.bytes, space->due.length);
        space->due.length = 0;
        space->dirty = 0;
    }
    dirty_count = 0;
}

static void welcome(int listening) {
    int one = 1, socket = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Connection *connection = calloc(1, sizeof *connection);
    if (!connection) abort();
    connection->socket = socket;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, socket, &event);
}

int main(int count, char **words) {
    int one = 1, listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(count > 1 ? words[1] : "0"))};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listening, (struct sockaddr *)&here, sizeof here) || listen(listening, 1024)) {
        perror("floor");
        return 1;
    }
    poll_fd = epoll_create1(0);
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, listening, &event);
    for (;;) {
        int ready = epoll_wait(poll_fd, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            Connection *connection = events[i].data.ptr;
            if (!connection) {
                welcome(listening);
                continue;
            }
            if (events[i].events & EPOLLOUT) write_backlog(connection);
            if (events[i].events & ~(uint32_t)EPOLLOUT) take(connection);
        }
        flush();
    }
}
