/* A session of hiredis. Argument: the port. When it writes `restart`, the server is to be started anew; a line of
 * input says that it has been. */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

static const struct timeval PATIENCE = {30, 0};

static redisContext *open_at(int port) {
    redisContext *context = redisConnectWithTimeout("127.0.0.1", port, PATIENCE);
    CHECK(context != NULL && context->err == 0);
    CHECK(redisSetTimeout(context, PATIENCE) == REDIS_OK);
    return context;
}

/* The next reply to what has been appended. */
static redisReply *next(redisContext *context) {
    void *reply = NULL;
    CHECK(redisGetReply(context, &reply) == REDIS_OK);
    return reply;
}

static redisReply *run(redisContext *context, const char *format, ...) {
    va_list args;
    va_start(args, format);
    CHECK(redisvAppendCommand(context, format, args) == REDIS_OK);
    va_end(args);
    return next(context);
}

static int is_text(redisReply *reply, const char *text) {
    int is_it = (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS) && !strcmp(reply->str, text);
    freeReplyObject(reply);
    return is_it;
}

static int is_integer(redisReply *reply, long long integer) {
    int is_it = reply->type == REDIS_REPLY_INTEGER && reply->integer == integer;
    freeReplyObject(reply);
    return is_it;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int port = atoi(argv[1]);
    redisContext *client = open_at(port), *listener = open_at(port);
    CHECK(is_text(run(client, "SET a %b EX 100", "1\0 2", (size_t)4), "OK"));
    redisReply *reply = run(client, "GET a");
    CHECK(reply->len == 4 && !memcmp(reply->str, "1\0 2", 4));
    freeReplyObject(reply);

    for (int key = 0; key < 1000; key++) {
        redisAppendCommand(client, "SET key:%d %d", key, key);
        redisAppendCommand(client, "INCR key:%d", key);
    }
    for (int key = 0; key < 1000; key++) {
        CHECK(is_text(next(client), "OK"));
        CHECK(is_integer(next(client), key + 1));
    }

    CHECK(is_text(run(client, "MULTI"), "OK"));
    CHECK(is_text(run(client, "SET t 1"), "QUEUED"));
    CHECK(is_text(run(client, "INCR t"), "QUEUED"));
    reply = run(client, "EXEC");
    CHECK(reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[1]->integer == 2);
    freeReplyObject(reply);

    CHECK(is_text(run(client, "CONFIG SET notify-keyspace-events Ex"), "OK"));
    freeReplyObject(run(listener, "PSUBSCRIBE %s", "__keyevent@*__:expired"));
    CHECK(is_text(run(client, "SET short v PX 20"), "OK"));
    reply = next(listener);
    CHECK(reply->elements == 4 && !strcmp(reply->element[0]->str, "pmessage"));
    CHECK(!strcmp(reply->element[2]->str, "__keyevent@0__:expired") && !strcmp(reply->element[3]->str, "short"));
    freeReplyObject(reply);

    printf("restart\n");
    fflush(stdout);
    CHECK(getchar() != EOF);
    CHECK(redisCommand(client, "GET a") == NULL && client->err != 0);
    CHECK(redisReconnect(client) == REDIS_OK);
    CHECK(is_text(run(client, "SET a new"), "OK"));
    CHECK(is_text(run(client, "GET a"), "new"));
    redisFree(client);
    redisFree(listener);
    printf("all is well\n");
    return 0;
}
