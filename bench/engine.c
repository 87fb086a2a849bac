/* The load's hot part: reads and counts, keeps windows full, with epoll. Python joins the members and judges.
 *
 * What members.py does, at a fraction of its cost: so that the load is not what is measured. Every frame that is
 * sent is its sender's template with another number in it; every delivery has the same length, so bytes are enough.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES (256 * 1024)
#define EVENTS 512
#define DIGITS 8
#define PAUSES 32 /* between two looks: about half a microsecond, as processors go */

enum { DONE = 0, STALLED = 1, LOST = 2 };

typedef struct {
    int socket;
    unsigned char *template; /* none for those who only listen */
    uint64_t received, sent, quota, number;
    unsigned char *unsent; /* what the socket did not take */
    size_t unsent_start, unsent_end, unsent_room;
    unsigned char *kept;
    size_t kept_bytes;
} Member;

typedef struct {
    int poll_fd;
    size_t count, room, keep_max, frame_bytes, number_at;
    Member *members;
    unsigned char mask[4];
    uint64_t window, echo_bytes;
    int64_t left;
    double idle_s;
    unsigned char incoming[READ_BYTES];
} Engine;

Engine *engine_new(size_t room, size_t frame_bytes, size_t number_at, const unsigned char *mask, uint64_t window,
                   uint64_t echo_bytes) {
    Engine *engine = calloc(1, sizeof *engine);
    if (!engine || !(engine->members = calloc(room, sizeof *engine->members))) abort();
    engine->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    engine->room = room;
    engine->frame_bytes = frame_bytes;
    engine->number_at = number_at;
    memcpy(engine->mask, mask, 4);
    engine->window = window;
    engine->echo_bytes = echo_bytes;
    return engine;
}

/* The members must be told in the order in which they are asked about. */
void engine_add(Engine *engine, int socket, const unsigned char *template) {
    if (engine->count == engine->room) abort();
    Member *member = &engine->members[engine->count++];
    member->socket = socket;
    if (template) {
        if (!(member->template = malloc(engine->frame_bytes))) abort();
        memcpy(member->template, template, engine->frame_bytes);
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = member};
    if (epoll_ctl(engine->poll_fd, EPOLL_CTL_ADD, socket, &event)) abort();
}

uint64_t engine_received(Engine *engine, size_t which) { return engine->members[which].received; }
int64_t engine_left(Engine *engine) { return engine->left; }
double engine_idle_s(Engine *engine) { return engine->idle_s; }

/* From now on keep what each gets, up to so many bytes; none with 0. */
void engine_keep(Engine *engine, size_t bytes) {
    engine->keep_max = bytes;
    for (size_t i = 0; i < engine->count; i++) {
        free(engine->members[i].kept);
        engine->members[i].kept = bytes ? calloc(1, bytes) : NULL;
        engine->members[i].kept_bytes = 0;
    }
}

size_t engine_kept(Engine *engine, size_t which, unsigned char *into) {
    Member *member = &engine->members[which];
    memcpy(into, member->kept, member->kept_bytes);
    return member->kept_bytes;
}

static void listen_for(Engine *engine, Member *member, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = member};
    epoll_ctl(engine->poll_fd, EPOLL_CTL_MOD, member->socket, &event);
}

static int write_unsent(Engine *engine, Member *member) {
    size_t length = member->unsent_end - member->unsent_start;
    ssize_t taken = send(member->socket, member->unsent + member->unsent_start, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken < 0 && errno != EAGAIN) return LOST;
    member->unsent_start += taken > 0 ? (size_t)taken : 0;
    if (member->unsent_start < member->unsent_end) {
        listen_for(engine, member, EPOLLIN | EPOLLOUT);
    } else if (member->unsent_end) {
        member->unsent_start = member->unsent_end = 0;
    }
    return DONE;
}

static int send_frames(Engine *engine, Member *member, uint64_t frames) {
    size_t waiting = member->unsent_end - member->unsent_start, more = frames * engine->frame_bytes;
    if (member->unsent_start) memmove(member->unsent, member->unsent + member->unsent_start, waiting);
    member->unsent_start = 0;
    member->unsent_end = waiting + more;
    if (member->unsent_end > member->unsent_room) {
        member->unsent_room = member->unsent_end * 2;
        if (!(member->unsent = realloc(member->unsent, member->unsent_room))) abort();
    }
    unsigned char *to = member->unsent + waiting;
    for (uint64_t i = 0; i < frames; i++, to += engine->frame_bytes) {
        memcpy(to, member->template, engine->frame_bytes);
        uint64_t number = member->number++;
        for (int digit = DIGITS - 1; digit >= 0; digit--, number /= 10)
            to[engine->number_at + digit] = (unsigned char)('0' + number % 10) ^ engine->mask[digit & 3];
    }
    member->sent += frames;
    return waiting ? DONE : write_unsent(engine, member);
}

static int refill(Engine *engine, Member *member) {
    uint64_t allowed = member->received / engine->echo_bytes + engine->window;
    if (allowed > member->quota) allowed = member->quota;
    return allowed > member->sent ? send_frames(engine, member, allowed - member->sent) : DONE;
}

/* Read once, and count. */
static int take(Engine *engine, Member *member) {
    ssize_t got = recv(member->socket, engine->incoming, READ_BYTES, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return DONE;
    if (got <= 0) return LOST;
    member->received += (uint64_t)got;
    engine->left -= got;
    if (engine->keep_max) {
        size_t room = engine->keep_max - member->kept_bytes, kept = (size_t)got < room ? (size_t)got : room;
        memcpy(member->kept + member->kept_bytes, engine->incoming, kept);
        member->kept_bytes += kept;
    }
    return DONE;
}

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void rest(void) {
    for (int i = 0; i < PAUSES; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb");
#endif
    }
}

/* What has come, as epoll_wait tells it, but without sleep: to wake the load would be the server's work, and the more
 * of it the more often the load has nothing to do. The time of looking in vain is kept apart. */
static int look(Engine *engine, struct epoll_event *events, int timeout_ms) {
    int happened = epoll_wait(engine->poll_fd, events, EVENTS, 0);
    if (happened) return happened;
    double idle_since = seconds(CLOCK_THREAD_CPUTIME_ID), until = seconds(CLOCK_MONOTONIC) + timeout_ms * 1e-3;
    do {
        rest();
        happened = epoll_wait(engine->poll_fd, events, EVENTS, 0);
    } while (!happened && seconds(CLOCK_MONOTONIC) < until);
    double idle_until = seconds(CLOCK_THREAD_CPUTIME_ID), looked = seconds(CLOCK_THREAD_CPUTIME_ID);
    engine->idle_s += idle_until - idle_since + 2 * (looked - idle_until); /* to look at the clock is no work either */
    return happened;
}

static int turn(Engine *engine, int timeout_ms, int *happened) {
    struct epoll_event events[EVENTS];
    *happened = look(engine, events, timeout_ms);
    if (*happened < 0 && errno != EINTR) return LOST;
    for (int i = 0; i < *happened; i++) {
        Member *member = events[i].data.ptr;
        if (events[i].events & EPOLLOUT) {
            listen_for(engine, member, EPOLLIN);
            if (write_unsent(engine, member)) return LOST;
        }
        if (events[i].events & ~(uint32_t)EPOLLOUT) {
            if (take(engine, member)) return LOST;
            if (member->template && refill(engine, member)) return LOST;
        }
    }
    return DONE;
}

/* Read whatever comes, until nothing has come for so long. */
int engine_quiet(Engine *engine, int quiet_ms) {
    int happened = 1, ended = DONE;
    for (size_t i = 0; i < engine->count; i++) engine->members[i].quota = engine->members[i].sent;
    while (happened && !ended) ended = turn(engine, quiet_ms, &happened);
    return ended;
}

static int run(Engine *engine, int64_t due, int stall_ms) {
    int happened;
    engine->left += due;
    while (engine->left > 0) {
        if (turn(engine, stall_ms, &happened)) return LOST;
        if (!happened) return STALLED;
    }
    return DONE;
}

static void begin(Engine *engine) {
    engine->left = 0;
    for (size_t i = 0; i < engine->count; i++) {
        Member *member = &engine->members[i];
        member->received = member->sent = member->quota = 0;
    }
}

/* So many envelopes from each sender; return when so many bytes have come in all. */
int engine_run(Engine *engine, uint64_t envelopes, int64_t due, int stall_ms) {
    begin(engine);
    for (size_t i = 0; i < engine->count; i++) {
        Member *member = &engine->members[i];
        if (!member->template) continue;
        member->quota = envelopes;
        if (refill(engine, member)) return LOST;
    }
    return run(engine, due, stall_ms);
}

/* One envelope at a time from the first sender: each leaves when so many bytes have come for the one before. */
int engine_turns(Engine *engine, uint64_t envelopes, int64_t due_each, int stall_ms, double *latencies_s) {
    begin(engine);
    Member *sender = engine->members;
    while (!sender->template) sender++;
    for (uint64_t i = 0; i < envelopes; i++) {
        double began = seconds(CLOCK_MONOTONIC);
        sender->quota = i + 1;
        if (send_frames(engine, sender, 1)) return LOST;
        int ended = run(engine, due_each, stall_ms);
        if (ended) return ended;
        latencies_s[i] = seconds(CLOCK_MONOTONIC) - began;
    }
    return DONE;
}
