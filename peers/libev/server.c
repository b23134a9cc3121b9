// Replies with the time. libev has no HTTP server: picohttpparser parses heads, and this program supports
// requests without a body, pipelining with one write for all replies, HTTP/1.0, and HEAD.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ev.h>
#include <netinet/tcp.h>
#include <picohttpparser.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_HEAD = 8192, MAX_FIELDS = 100, MAX_REPLY = 256, MAX_ANSWERS = 65536 };

struct connection {
    ev_io io; // first, so that a watcher is its connection
    bool last; // close when everything is sent
    size_t used; // bytes in `in`
    size_t unsent; // bytes in `pending`
    char *pending; // bytes that did not fit the socket's buffer
    char in[MAX_HEAD];
};

static ev_io listener;
static ev_timer pause_end;

struct request {
    const char *method, *path;
    size_t method_length, path_length, count;
    int minor;
    struct phr_header fields[MAX_FIELDS];
};

static bool is(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && !strncasecmp(text, word, length);
}

// Returns whether a list, such as the value of Connection, contains `word`.
static bool has_word(const struct phr_header *field, const char *word)
{
    const char *end = field->value + field->value_len;
    for (const char *at = field->value; at < end;) {
        const char *comma = memchr(at, ',', end - at), *stop = comma ? comma : end;
        while (at < stop && (*at == ' ' || *at == '\t'))
            at++;
        const char *last = stop;
        while (last > at && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        if (is(at, last - at, word))
            return true;
        at = stop + 1;
    }
    return false;
}

// Writes a reply to `out` and returns its length. `connection` is a Connection field, or empty.
static size_t reply(char *out, time_t now, const char *status, const char *connection,
                    const char *body, bool with_body)
{
    static time_t second;
    static char date[32];
    if (now != second) {
        second = now;
        strftime(date, sizeof date, "%a, %d %b %Y %T GMT", gmtime(&now));
    }
    return snprintf(out, MAX_REPLY,
                    "HTTP/1.1 %s\r\nDate: %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                    "%s\r\n%s",
                    status, date, strlen(body), connection, with_body ? body : "");
}

static const char closes[] = "Connection: close\r\n";

// Answers one request. Returns the number of bytes written to `out`.
static size_t answer(char *out, const struct request *r, time_t now, bool *keep)
{
    bool has_body = false, asks_close = false, asks_keep = false;
    for (size_t i = 0; i < r->count; i++) {
        const struct phr_header *field = &r->fields[i];
        if (is(field->name, field->name_len, "Connection")) {
            asks_close |= has_word(field, "close");
            asks_keep |= has_word(field, "keep-alive");
        } else if (is(field->name, field->name_len, "Content-Length")) {
            has_body |= strtoull(field->value, NULL, 10) != 0;
        } else if (is(field->name, field->name_len, "Transfer-Encoding")) {
            has_body = true;
        }
    }
    *keep = false;
    if (has_body)
        return reply(out, now, "413 Content Too Large", closes, "No body, please", true);
    *keep = r->minor ? !asks_close : asks_keep;
    // HTTP/1.1 keeps a connection by default.
    const char *connection = !*keep ? closes : r->minor ? "" : "Connection: keep-alive\r\n";
    bool is_head = is(r->method, r->method_length, "HEAD");
    if (r->path[0] != '/' || (r->path_length > 1 && r->path[1] != '?'))
        return reply(out, now, "404 Not Found", connection, "Not found", !is_head);
    if (!is_head && !is(r->method, r->method_length, "GET"))
        return reply(out, now, "405 Method Not Allowed", connection, "GET, please", true);
    char body[64];
    snprintf(body, sizeof body, "Hello. The time is %lld", (long long)now);
    return reply(out, now, "200 OK", connection, body, !is_head);
}

// Answers the received requests that fit into `out`. Returns the number of bytes written to it.
static size_t answer_all(struct connection *c, char *out, time_t now)
{
    size_t written = 0, start = 0;
    bool keep = true;
    while (keep && start < c->used && written + MAX_REPLY <= MAX_ANSWERS) {
        struct request r; // not cleared, because `fields` is large
        r.count = MAX_FIELDS;
        int length = phr_parse_request(c->in + start, c->used - start, &r.method, &r.method_length,
                                       &r.path, &r.path_length, &r.minor, r.fields, &r.count, 0);
        if (length == -2) // incomplete
            break;
        if (length < 0) {
            written += reply(out + written, now, "400 Bad Request", closes, "Not HTTP/1.1", true);
            keep = false;
            break;
        }
        written += answer(out + written, &r, now, &keep);
        start += length;
    }
    c->used -= start;
    memmove(c->in, c->in + start, c->used);
    if (keep && !written && c->used == MAX_HEAD) {
        written = reply(out, now, "431 Request Header Fields Too Large", closes, "Too large", true);
        keep = false;
    }
    c->last = !keep;
    return written;
}

static void hang_up(EV_P_ struct connection *c)
{
    ev_io_stop(EV_A_ &c->io);
    close(c->io.fd);
    free(c->pending);
    free(c);
}

static void wait_for(EV_P_ struct connection *c, int events)
{
    if (c->io.events == events)
        return;
    ev_io_stop(EV_A_ &c->io);
    ev_io_modify(&c->io, events);
    ev_io_start(EV_A_ &c->io);
}

// Sends bytes and keeps those that do not fit the socket's buffer. Returns whether the connection stays open.
static bool send_some(EV_P_ struct connection *c, const char *bytes, size_t count)
{
    ssize_t sent = send(c->io.fd, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return false;
    size_t done = sent < 0 ? 0 : sent;
    c->unsent = count - done;
    char *rest = c->unsent ? malloc(c->unsent) : NULL;
    if (rest)
        memcpy(rest, bytes + done, c->unsent);
    free(c->pending); // `bytes` may point into it
    c->pending = rest;
    wait_for(EV_A_ c, rest ? EV_WRITE : EV_READ);
    return rest || (!c->unsent && !c->last);
}

static void on_event(EV_P_ ev_io *io, int events)
{
    static char out[MAX_ANSWERS];
    struct connection *c = (struct connection *)io;
    if (events & EV_READ) {
        ssize_t got = recv(io->fd, c->in + c->used, MAX_HEAD - c->used, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            hang_up(EV_A_ c);
            return;
        }
        c->used += got;
    } else if (!send_some(EV_A_ c, c->pending, c->unsent)) {
        hang_up(EV_A_ c);
        return;
    }
    size_t count;
    while (!c->unsent && (count = answer_all(c, out, (time_t)ev_now(EV_A))))
        if (!send_some(EV_A_ c, out, count)) {
            hang_up(EV_A_ c);
            return;
        }
}

static void on_connection(EV_P_ ev_io *io, int events)
{
    (void)events;
    for (int fd; (fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        struct connection *c = malloc(sizeof *c);
        if (!c) {
            close(fd);
            continue;
        }
        c->last = false;
        c->used = c->unsent = 0;
        c->pending = NULL;
        ev_io_init(&c->io, on_event, fd, EV_READ);
        ev_io_start(EV_A_ &c->io);
    }
    if (errno == EMFILE || errno == ENFILE) { // some will be closed soon
        ev_io_stop(EV_A_ io);
        ev_timer_set(&pause_end, 0.01, 0.);
        ev_timer_start(EV_A_ &pause_end);
    }
}

static void accept_again(EV_P_ ev_timer *timer, int events)
{
    (void)timer, (void)events;
    ev_io_start(EV_A_ &listener);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s PORT\n", argv[0]);
        return 2;
    }
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(atoi(argv[1])),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); // inherited by connections
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4096)) {
        perror("listen");
        return 1;
    }
    struct ev_loop *loop = EV_DEFAULT;
    ev_timer_init(&pause_end, accept_again, 0., 0.);
    ev_io_init(&listener, on_connection, fd, EV_READ);
    ev_io_start(loop, &listener);
    ev_run(loop, 0);
}
