/* A load generator that costs next to nothing: the same request over and over on CONNECTIONS keep-alive connections.
 *
 *   load PORT CONNECTIONS SECONDS PATH < BODY
 *
 * Prints one JSON object: requests, those of them that ended in time (the rest within the next 10 s), errors (a status
 * other than 200, or a broken connection), and latencies in milliseconds of whole requests and of their first byte. One thread, epoll, Linux. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define MAX_EVENTS 256
#define KEEP 32 /* bytes of the end of an answer that are looked at */

struct conn {
    int fd;
    size_t sent;      /* of the request */
    char head[8192];  /* of the answer, until its headers are complete */
    size_t head_used;
    int in_body, chunked;
    size_t body_left; /* with content-length */
    char tail[KEEP];  /* of a chunked body */
    double started, first;
};

static char *request;
static size_t request_size;
static struct sockaddr_in address;
static int poller;
static double *latencies, *firsts;
static size_t done, in_time, errors, capacity, active;
static double deadline;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void push(struct conn *c)
{
    while (c->sent < request_size) {
        ssize_t n = send(c->fd, request + c->sent, request_size - c->sent, MSG_NOSIGNAL);
        if (n <= 0) return; /* epoll tells when to go on, or that it is broken */
        c->sent += n;
    }
}

static void begin(struct conn *c)
{
    if (now() >= deadline) { /* what runs is let end, so that its cost is counted whole */
        active--;
        return;
    }
    c->sent = c->head_used = c->in_body = 0;
    c->first = 0;
    c->started = now();
    push(c);
}

static void dial(struct conn *c)
{
    int one = 1;
    if (c->fd > 0) close(c->fd);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) { perror("load: connect"); exit(1); }
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
    begin(c);
}

static void finish(struct conn *c)
{
    if (done == capacity) {
        capacity = capacity ? capacity * 2 : 65536;
        latencies = realloc(latencies, capacity * sizeof *latencies);
        firsts = realloc(firsts, capacity * sizeof *firsts);
    }
    double end = now();
    latencies[done] = (end - c->started) * 1000;
    firsts[done++] = (c->first - c->started) * 1000;
    in_time += end < deadline;
    begin(c);
}

static void fail(struct conn *c)
{
    errors++;
    dial(c);
}

/* The next bytes of a body; whether it is complete. */
static int body(struct conn *c, const char *data, size_t size)
{
    if (!c->chunked) {
        c->body_left -= size < c->body_left ? size : c->body_left;
        return c->body_left == 0;
    }
    if (size >= KEEP) memcpy(c->tail, data + size - KEEP, KEEP);
    else {
        memmove(c->tail, c->tail + size, KEEP - size);
        memcpy(c->tail + KEEP - size, data, size);
    }
    return !memcmp(c->tail + KEEP - 7, "\r\n0\r\n\r\n", 7);
}

static void take(struct conn *c)
{
    static char data[1 << 18];
    for (;;) {
        ssize_t n = recv(c->fd, data, sizeof data, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) { fail(c); return; }
        if (!c->first) c->first = now();
        const char *rest = data;
        size_t size = n;
        if (!c->in_body) {
            if (c->head_used + size >= sizeof c->head) { fail(c); return; }
            memcpy(c->head + c->head_used, data, size);
            size_t before = c->head_used;
            c->head_used += size;
            c->head[c->head_used] = 0;
            char *end = strstr(c->head, "\r\n\r\n");
            if (!end) continue;
            if (strncmp(c->head, "HTTP/1.1 200", 12)) { fail(c); return; }
            end[2] = 0;
            char *length = strcasestr(c->head, "\r\ncontent-length:");
            c->chunked = !length;
            c->body_left = length ? strtoul(length + 17, NULL, 10) : 0;
            c->in_body = 1;
            memset(c->tail, 0, KEEP);
            size_t head = end + 4 - c->head;
            rest = data + (head - before);
            size = c->head_used - head;
        }
        if (body(c, rest, size)) { finish(c); return; }
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double share(double *values, double part)
{
    return done ? values[(size_t)(part * (done - 1))] : -1;
}

int main(int argc, char **argv)
{
    if (argc != 5) { fprintf(stderr, "usage: load PORT CONNECTIONS SECONDS PATH < BODY\n"); return 2; }
    int connections = atoi(argv[2]);
    double seconds = atof(argv[3]);
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t size = 0, room = 1 << 22;
    char *content = malloc(room);
    for (size_t n; (n = fread(content + size, 1, room - size, stdin)) > 0;) size += n;
    request = malloc(size + 1024);
    request_size = sprintf(request, "POST %s HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
                                    "content-length: %zu\r\n\r\n", argv[4], size);
    memcpy(request + request_size, content, size);
    request_size += size;
    poller = epoll_create1(0);
    struct conn *all = calloc(connections, sizeof *all);
    double start = now();
    deadline = start + seconds;
    active = connections;
    for (int i = 0; i < connections; i++) dial(&all[i]);
    struct epoll_event ready[MAX_EVENTS];
    while (active && now() < deadline + 10) {
        int count = epoll_wait(poller, ready, MAX_EVENTS, 50);
        for (int i = 0; i < count; i++) {
            struct conn *c = ready[i].data.ptr;
            if (c->sent < request_size) push(c);
            take(c);
        }
    }
    qsort(latencies, done, sizeof *latencies, ascending);
    qsort(firsts, done, sizeof *firsts, ascending);
    printf("{\"requests\":%zu,\"in_time\":%zu,\"errors\":%zu,\"seconds\":%.3f,\"p50\":%.3f,\"p95\":%.3f,\"p99\":%.3f,\"first_p50\":%.3f}\n",
           done, in_time, errors, seconds, share(latencies, .5), share(latencies, .95), share(latencies, .99), share(firsts, .5));
    return 0;
}
