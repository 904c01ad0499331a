/* report.h: what file tools print: JSON objects with exact numbers, sizes, dtypes with shapes. */
#pragma once
#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/str.h"
#include "tensor/tensor.h"

/* Adders to an object, or to an array when the name is NULL. Text that is not UTF-8 is made so. */
void report_int(cJSON *to, const char *name, int64_t v);
void report_double(cJSON *to, const char *name, double v); /* NaN and infinities as strings */
void report_str(cJSON *to, const char *name, Str v);
void report_bytes(cJSON *to, const char *name, Str v); /* {"b64": ...} when it is not UTF-8 */
void report_shape(cJSON *to, const char *name,
                  const PartialShape *v);                         /* a list; -1 unknown; null when nothing is known */
void report_values(cJSON *to, const char *name, const Tensor *v); /* nested lists */
cJSON *report_object(cJSON *to, const char *name);                /* a new object in it */
cJSON *report_array(cJSON *to, const char *name);
void report_print(cJSON *take);      /* on standard output; frees it */
void report_print_line(cJSON *take); /* the same, on one line, at once */

char *report_size(uint64_t bytes);                            /* "1.5 MiB", malloced */
char *report_type(DataType dtype, const PartialShape *shape); /* "float[2,3]", malloced */
int64_t report_ends(const Tensor *t, bool all);               /* how much print_nested shows of it */
