/* log.c: "2026-01-31 12:00:00.123 I text", one write a record so that records of several threads never mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static _Atomic LogLevel lowest_level = LOG_INFO;
typedef void Listener(const char *line);
static Listener *_Atomic listener;

void log_set_level(LogLevel lowest) {
    atomic_store(&lowest_level, lowest);
}

void log_set_listener(Listener *fn) {
    atomic_store(&listener, fn);
}

void log_write(LogLevel level, const char *fmt, ...) {
    if (level < atomic_load_explicit(&lowest_level, memory_order_relaxed)) return;
    char line[2048];
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &parts);
    int len = (int)strftime(line, sizeof line, "%F %T", &parts);
    len += snprintf(line + len, sizeof line - (size_t)len, ".%03ld %c ", now.tv_nsec / 1000000, "DIWE"[level]);
    va_list args;
    va_start(args, fmt);
    int more = vsnprintf(line + len, sizeof line - (size_t)len - 1, fmt, args);
    va_end(args);
    len += more;
    if (len > (int)sizeof line - 2) len = (int)sizeof line - 2;
    line[len++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, (size_t)len);
    (void)written;
    Listener *fn = atomic_load(&listener);
    if (fn) {
        line[len - 1] = '\0';
        fn(line);
    }
}
