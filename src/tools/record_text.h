/* record_text.h: what is in a record, for people and programs: tf.train.Example, SequenceExample, or bytes. */
#pragma once
#include <cjson/cJSON.h>

#include "base/str.h"

void record_print(Str record);             /* some lines, indented, on standard output */
void record_report(cJSON *to, Str record); /* as member "example", "sequence_example" or "data" */

/* What the records of a file have in common. */
typedef struct RecordSchema RecordSchema;
RecordSchema *record_schema_new(void);
void record_schema_free(RecordSchema *s);
void record_schema_add(RecordSchema *s, Str record);
void record_schema_print(const RecordSchema *s);
void record_schema_report(const RecordSchema *s, cJSON *to);
