/* log.h: levels, one line a record, on standard error. */
#pragma once

typedef enum LogLevel { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR } LogLevel;

void log_set_level(LogLevel lowest); /* default LOG_INFO */
/* Also gives every line, without its end, to fn; NULL: to nobody. fn may run on any thread. */
void log_set_listener(void (*fn)(const char *line));
void log_write(LogLevel level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)
