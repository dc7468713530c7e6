/* A stub engine that costs next to nothing: answers as vLLM does to prefill and decode legs, JSON and SSE.
 *
 *   stub PORT INTERVAL_MS
 *
 * A body with "do_remote_decode":true gets KV parameters back; "stream":true gets max_tokens events, all at once when
 * INTERVAL_MS is 0, else one in each interval; any other body gets a JSON answer; a GET gets an empty JSON object.
 * One thread, epoll, Linux. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MAX_FDS 65536
#define MAX_EVENTS 256

struct conn {
    char *in;
    size_t used, size;
    int events_left; /* of a paced stream; 0 when none runs */
    int next_paced, prev_paced; /* the list of connections with a paced stream; -1 ends it */
};

static struct conn conns[MAX_FDS];
static int first_paced = -1;
static int interval_ms;

static const char EVENT[] =
    "data: {\"id\":\"chatcmpl-stub\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"stub\",\"choices\":"
    "[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
static const char DONE[] = "data: [DONE]\n\n";
static const char PREFILL[] =
    "{\"id\":\"chatcmpl-stub\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"stub\",\"choices\":[{\"index\":0,"
    "\"message\":{\"role\":\"assistant\",\"content\":\" word\"},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":"
    "200,\"total_tokens\":201,\"completion_tokens\":1},\"kv_transfer_params\":{\"do_remote_prefill\":true,"
    "\"do_remote_decode\":false,\"remote_block_ids\":[[1,2]],\"remote_engine_id\":\"stub\",\"remote_request_id\":"
    "\"chatcmpl-stub-1\",\"remote_host\":\"localhost\",\"remote_port\":5600,\"tp_size\":1}}";
static const char ANSWER[] =
    "{\"id\":\"chatcmpl-stub\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"stub\",\"choices\":[{\"index\":0,"
    "\"message\":{\"role\":\"assistant\",\"content\":\" word word word\"},\"finish_reason\":\"stop\"}],\"usage\":"
    "{\"prompt_tokens\":200,\"total_tokens\":203,\"completion_tokens\":3}}";

static void drop(int fd)
{
    struct conn *c = &conns[fd];
    if (c->events_left) {
        if (c->prev_paced >= 0) conns[c->prev_paced].next_paced = c->next_paced;
        else first_paced = c->next_paced;
        if (c->next_paced >= 0) conns[c->next_paced].prev_paced = c->prev_paced;
    }
    free(c->in);
    memset(c, 0, sizeof *c);
    close(fd);
}

static int put(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) { usleep(50); continue; }
        if (n <= 0) return -1;
        data += n;
        size -= n;
    }
    return 0;
}

static int put_json(int fd, const char *body, size_t size)
{
    char out[4096];
    int n = snprintf(out, sizeof out,
                     "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s", size, body);
    return put(fd, out, n);
}

static size_t chunk(char *out, const char *data, size_t size)
{
    int n = sprintf(out, "%zx\r\n", size);
    memcpy(out + n, data, size);
    memcpy(out + n + size, "\r\n", 2);
    return n + size + 2;
}

static int put_event(int fd)
{
    char out[512];
    return put(fd, out, chunk(out, EVENT, sizeof EVENT - 1));
}

static int end_stream(int fd)
{
    char out[64];
    size_t n = chunk(out, DONE, sizeof DONE - 1);
    memcpy(out + n, "0\r\n\r\n", 5);
    return put(fd, out, n + 5);
}

static int start_stream(int fd, int events)
{
    static const char HEAD[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
                               "transfer-encoding: chunked\r\n\r\n";
    if (put(fd, HEAD, sizeof HEAD - 1)) return -1;
    if (interval_ms && events) {
        struct conn *c = &conns[fd];
        c->events_left = events;
        c->prev_paced = -1;
        c->next_paced = first_paced;
        if (first_paced >= 0) conns[first_paced].prev_paced = fd;
        first_paced = fd;
        return 0;
    }
    char *out = malloc(events * 512 + 1), *end = out;
    for (int i = 0; i < events; i++) end += chunk(end, EVENT, sizeof EVENT - 1);
    int failed = put(fd, out, end - out);
    free(out);
    return failed ? -1 : end_stream(fd);
}

static int number_after(const char *body, const char *key, int otherwise)
{
    const char *at = strstr(body, key);
    return at ? atoi(at + strlen(key) + strspn(at + strlen(key), ": ")) : otherwise;
}

static int has_true(const char *body, const char *key)
{
    const char *at = strstr(body, key);
    return at && !strncmp(at + strlen(key) + strspn(at + strlen(key), ": "), "true", 4);
}

static int answer(int fd, const char *body)
{
    if (has_true(body, "\"do_remote_decode\"")) return put_json(fd, PREFILL, sizeof PREFILL - 1);
    if (has_true(body, "\"stream\"")) return start_stream(fd, number_after(body, "\"max_tokens\"", 20));
    return put_json(fd, ANSWER, sizeof ANSWER - 1);
}

/* Answer every complete request in the buffer; -1 when the connection is broken. */
static int serve(int fd)
{
    struct conn *c = &conns[fd];
    for (;;) {
        char *end = c->used ? strstr(c->in, "\r\n\r\n") : NULL;
        if (!end) return 0;
        size_t head = end + 4 - c->in, body = 0;
        *end = 0;
        char *length = strcasestr(c->in, "\r\ncontent-length:");
        if (length) body = strtoul(length + 17, NULL, 10);
        *end = '\r';
        if (c->used < head + body) return 0;
        char after = c->in[head + body];
        c->in[head + body] = 0;
        int failed = c->in[0] == 'G' ? put_json(fd, "{}", 2) : answer(fd, c->in + head);
        c->in[head + body] = after;
        if (failed) return -1;
        c->used -= head + body;
        memmove(c->in, c->in + head + body, c->used);
        c->in[c->used] = 0;
    }
}

static int receive(int fd)
{
    struct conn *c = &conns[fd];
    for (;;) {
        if (c->size < c->used + 65537) c->in = realloc(c->in, c->size = (c->used + 65537) * 2);
        ssize_t n = recv(fd, c->in + c->used, c->size - c->used - 1, 0);
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) return -1;
        c->used += n;
        c->in[c->used] = 0;
        if ((size_t)n < 65536) break;
    }
    return serve(fd);
}

static void tick(int timer)
{
    unsigned long long ticks;
    if (read(timer, &ticks, sizeof ticks) < 0) return;
    for (int fd = first_paced, next; fd >= 0; fd = next) {
        struct conn *c = &conns[fd];
        next = c->next_paced;
        if (put_event(fd)) { drop(fd); continue; }
        if (c->events_left > 1) { c->events_left--; continue; }
        if (c->prev_paced >= 0) conns[c->prev_paced].next_paced = next;
        else first_paced = next;
        if (next >= 0) conns[next].prev_paced = c->prev_paced;
        c->events_left = 0;
        if (end_stream(fd)) drop(fd);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) { fprintf(stderr, "usage: stub PORT INTERVAL_MS\n"); return 2; }
    interval_ms = atoi(argv[2]);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), poll = epoll_create1(0), timer = -1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) { perror("stub"); return 1; }
    struct epoll_event ready[MAX_EVENTS], event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    if (interval_ms) {
        struct timespec period = {.tv_sec = interval_ms / 1000, .tv_nsec = interval_ms % 1000 * 1000000L};
        struct itimerspec times = {.it_interval = period, .it_value = period};
        timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        timerfd_settime(timer, 0, &times, NULL);
        event.data.fd = timer;
        epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event);
    }
    for (;;) {
        int count = epoll_wait(poll, ready, MAX_EVENTS, -1);
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            if (fd == timer) tick(timer);
            else if (fd != listener) { if (receive(fd)) drop(fd); }
            else for (int peer; (peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
                if (peer >= MAX_FDS) { close(peer); continue; }
                setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                event.events = EPOLLIN;
                event.data.fd = peer;
                epoll_ctl(poll, EPOLL_CTL_ADD, peer, &event);
            }
        }
    }
}
