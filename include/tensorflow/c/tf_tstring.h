/* tf_tstring.h: TF_TString, an element of a TF_STRING tensor: 24 bytes.

   The two low bits of the first byte say which form it has; the size stands in the bits above them:
     small   up to 22 bytes inside the struct, followed by a 0
     large   a malloced copy with its capacity, followed by a 0
     offset  bytes at a distance from the struct itself (in files that are mapped into memory)
     view    bytes that belong to someone else */
#ifndef TENSORFLOW_C_TF_TSTRING_H_
#define TENSORFLOW_C_TF_TSTRING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum TF_TString_Type {
    TF_TSTR_SMALL = 0,
    TF_TSTR_LARGE = 1,
    TF_TSTR_OFFSET = 2,
    TF_TSTR_VIEW = 3,
    TF_TSTR_TYPE_MASK = 3,
} TF_TString_Type;

/* Who keeps the bytes of a view alive; (optional). */
typedef struct TStringOwnerCApi {
    void (*ref)(struct TStringOwnerCApi *self);
    bool (*unref)(struct TStringOwnerCApi *self);
    void *obj;
} TStringOwnerCApi;

typedef struct TF_TString_Large {
    size_t size; /* shifted by two, with the form */
    size_t cap;
    char *ptr;
} TF_TString_Large;

typedef struct TF_TString_Offset {
    uint32_t size, offset, count;
} TF_TString_Offset;

typedef struct TF_TString_View {
    size_t size;
    const char *ptr;
    TStringOwnerCApi *owner_ref;
} TF_TString_View;

typedef struct TF_TString_Raw {
    uint8_t raw[24];
} TF_TString_Raw;

enum { TF_TString_SmallCapacity = 22 };

typedef struct TF_TString_Small {
    uint8_t size;
    char str[TF_TString_SmallCapacity + 1];
} TF_TString_Small;

typedef struct TF_TString {
    union {
        TF_TString_Small smll;
        TF_TString_Large large;
        TF_TString_Offset offset;
        TF_TString_View view;
        TF_TString_Raw raw;
    } u;
} TF_TString;

TF_CAPI_EXPORT extern void TF_StringInit(TF_TString *t); /* the empty string; before any other use */
TF_CAPI_EXPORT extern void TF_StringCopy(TF_TString *dst, const char *src, size_t size);
TF_CAPI_EXPORT extern void TF_StringAssignView(TF_TString *dst, const char *src, size_t size); /* src must live on */
TF_CAPI_EXPORT extern const char *TF_StringGetDataPointer(const TF_TString *tstr);
TF_CAPI_EXPORT extern TF_TString_Type TF_StringGetType(const TF_TString *str);
TF_CAPI_EXPORT extern size_t TF_StringGetSize(const TF_TString *tstr);
TF_CAPI_EXPORT extern size_t TF_StringGetCapacity(const TF_TString *str);
TF_CAPI_EXPORT extern void TF_StringDealloc(TF_TString *tstr); /* gives the memory back; then it is the empty string */

/* ---- The same inline, for programs that handle many strings ---- */

static inline TF_TString_Type TF_TString_GetType(const TF_TString *s) {
    return (TF_TString_Type)(s->u.raw.raw[0] & TF_TSTR_TYPE_MASK);
}

static inline void TF_TString_Init(TF_TString *s) {
    memset(s, 0, sizeof *s);
}

static inline size_t TF_TString_GetSize(const TF_TString *s) {
    switch (TF_TString_GetType(s)) {
        case TF_TSTR_SMALL: return s->u.smll.size >> 2;
        case TF_TSTR_OFFSET: return s->u.offset.size >> 2;
        default: return s->u.large.size >> 2; /* a view has it in the same place */
    }
}

static inline size_t TF_TString_GetCapacity(const TF_TString *s) {
    switch (TF_TString_GetType(s)) {
        case TF_TSTR_SMALL: return TF_TString_SmallCapacity;
        case TF_TSTR_LARGE: return s->u.large.cap;
        default: return 0;
    }
}

static inline const char *TF_TString_GetDataPointer(const TF_TString *s) {
    switch (TF_TString_GetType(s)) {
        case TF_TSTR_SMALL: return s->u.smll.str;
        case TF_TSTR_LARGE: return s->u.large.ptr;
        case TF_TSTR_OFFSET: return (const char *)s + s->u.offset.offset;
        default: return s->u.view.ptr;
    }
}

static inline void TF_TString_Dealloc(TF_TString *s) {
    if (TF_TString_GetType(s) == TF_TSTR_LARGE) free(s->u.large.ptr);
    if (TF_TString_GetType(s) == TF_TSTR_VIEW && s->u.view.owner_ref) s->u.view.owner_ref->unref(s->u.view.owner_ref);
    TF_TString_Init(s);
}

/* Changes the size; what was there stays, bytes beyond it are not set. Returns the bytes, to be written to. */
static inline char *TF_TString_ResizeUninitialized(TF_TString *s, size_t size) {
    size_t old = TF_TString_GetSize(s), keep = old < size ? old : size;
    if (size <= TF_TString_SmallCapacity) {
        TF_TString made;
        TF_TString_Init(&made);
        made.u.smll.size = (uint8_t)(size << 2);
        if (keep) memcpy(made.u.smll.str, TF_TString_GetDataPointer(s), keep);
        TF_TString_Dealloc(s);
        *s = made;
        return s->u.smll.str;
    }
    if (TF_TString_GetCapacity(s) < size || TF_TString_GetType(s) != TF_TSTR_LARGE) {
        size_t cap = ((size + 16) & ~(size_t)15) - 1;
        char *bytes = (char *)malloc(cap + 1);
        if (!bytes) abort();
        if (keep) memcpy(bytes, TF_TString_GetDataPointer(s), keep);
        TF_TString_Dealloc(s);
        s->u.large.cap = cap;
        s->u.large.ptr = bytes;
    }
    s->u.large.size = size << 2 | TF_TSTR_LARGE;
    s->u.large.ptr[size] = '\0';
    return s->u.large.ptr;
}

static inline char *TF_TString_Resize(TF_TString *s, size_t size, char c) {
    size_t old = TF_TString_GetSize(s);
    char *bytes = TF_TString_ResizeUninitialized(s, size);
    if (size > old) memset(bytes + old, c, size - old);
    return bytes;
}

/* The bytes, to be written to: a view becomes a copy. */
static inline char *TF_TString_GetMutableDataPointer(TF_TString *s) {
    if (TF_TString_GetType(s) == TF_TSTR_SMALL) return s->u.smll.str;
    if (TF_TString_GetType(s) == TF_TSTR_LARGE) return s->u.large.ptr;
    return TF_TString_ResizeUninitialized(s, TF_TString_GetSize(s));
}

static inline void TF_TString_Reserve(TF_TString *s, size_t cap) {
    size_t size = TF_TString_GetSize(s);
    if (cap <= TF_TString_SmallCapacity || cap <= TF_TString_GetCapacity(s)) return;
    TF_TString_ResizeUninitialized(s, cap > size ? cap : size);
    s->u.large.size = size << 2 | TF_TSTR_LARGE;
    s->u.large.ptr[size] = '\0';
}

static inline void TF_TString_ReserveAmortized(TF_TString *s, size_t cap) {
    size_t have = TF_TString_GetCapacity(s);
    if (cap > have) TF_TString_Reserve(s, cap > 2 * have ? cap : 2 * have);
}

static inline void TF_TString_AssignViewWithOwner(TF_TString *dst, const char *src, size_t size, TStringOwnerCApi *owner) {
    if (owner) owner->ref(owner);
    TF_TString_Dealloc(dst);
    dst->u.view.size = size << 2 | TF_TSTR_VIEW;
    dst->u.view.ptr = src;
    dst->u.view.owner_ref = owner;
}

static inline void TF_TString_AssignView(TF_TString *dst, const char *src, size_t size) {
    TF_TString_AssignViewWithOwner(dst, src, size, NULL);
}

static inline void TF_TString_Copy(TF_TString *dst, const char *src, size_t size) {
    char *bytes = TF_TString_ResizeUninitialized(dst, size);
    if (size) memcpy(bytes, src, size);
}

static inline void TF_TString_AppendN(TF_TString *dst, const char *src, size_t size) {
    size_t old = TF_TString_GetSize(dst);
    if (!size) return;
    TF_TString_ReserveAmortized(dst, old + size);
    memcpy(TF_TString_ResizeUninitialized(dst, old + size) + old, src, size);
}

static inline void TF_TString_Append(TF_TString *dst, const TF_TString *src) {
    TF_TString_AppendN(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
}

/* A copy; of a view another view. */
static inline void TF_TString_Assign(TF_TString *dst, const TF_TString *src) {
    if (dst == src) return;
    if (TF_TString_GetType(src) == TF_TSTR_VIEW)
        TF_TString_AssignViewWithOwner(dst, src->u.view.ptr, TF_TString_GetSize(src), src->u.view.owner_ref);
    else if (TF_TString_GetType(src) == TF_TSTR_OFFSET)
        TF_TString_AssignView(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
    else
        TF_TString_Copy(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
}

/* src is the empty string afterwards, or as it was when it is of the offset form. */
static inline void TF_TString_Move(TF_TString *dst, TF_TString *src) {
    if (dst == src) return;
    if (TF_TString_GetType(src) == TF_TSTR_OFFSET) {
        TF_TString_AssignView(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
        return;
    }
    TF_TString_Dealloc(dst);
    *dst = *src;
    TF_TString_Init(src);
}

#ifdef __cplusplus
}
#endif

#endif
