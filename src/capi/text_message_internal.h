/* text_message_internal.h: reads protobuf's text form by tables of fields. */
#pragma once
#include "base/error.h"
#include "base/str.h"

typedef enum TextKind { TEXT_STRING, TEXT_INT, TEXT_FLOAT, TEXT_BOOL, TEXT_ENUM, TEXT_MESSAGE } TextKind;

typedef struct TextEnum {
    const char *name;
    int number;
} TextEnum;

/* Tables end with a row without a name. */
typedef struct TextField {
    const char *name;
    uint32_t number;
    TextKind kind;
    const struct TextField *fields; /* of a message */
    const TextEnum *values;         /* of an enum */
} TextField;

/* Adds the message, serialised. A string may also be given as <<END, lines, END. InvalidArgument names the line. */
Error *text_message_parse(Str text, const TextField *fields, StrBuf *out) MUST_CHECK;
