// Replies with the time, with evhttp, libevent's own HTTP server.
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void hello(struct evhttp_request *request, void *unused)
{
    (void)unused;
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
    if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD) // evhttp would send the body
        evbuffer_add_printf(evhttp_request_get_output_buffer(request), "Hello. The time is %lld",
                            (long long)time(NULL));
    evhttp_send_reply(request, HTTP_OK, NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s PORT\n", argv[0]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); // a client may close before it is answered
    struct event_base *base = event_base_new();
    struct evhttp *http = evhttp_new(base);
    evhttp_set_cb(http, "/", hello, NULL);
    evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    evhttp_set_max_headers_size(http, 16384); // by default there is no limit
    evhttp_set_max_body_size(http, 65536);
    evhttp_set_timeout(http, 3600); // by default an idle connection is closed after 50 s

    // evhttp_bind_socket would use a backlog of 128.
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(atoi(argv[1])),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct evconnlistener *listener = evconnlistener_new_bind(
        base, NULL, NULL, LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE, 4096,
        (struct sockaddr *)&address, sizeof address);
    if (!listener) {
        perror("listen");
        return 1;
    }
    // Inherited by its connections. Needed because pipelined replies are written one by one.
    setsockopt(evconnlistener_get_fd(listener), IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    evhttp_bind_listener(http, listener);
    return event_base_dispatch(base);
}
