/* c_api_macros.h: marks what librill exports, and small definitions the other headers share. */
#ifndef TENSORFLOW_C_C_API_MACROS_H_
#define TENSORFLOW_C_C_API_MACROS_H_

#ifdef TF_CAPI_WEAK
#define TF_CAPI_EXPORT __attribute__((visibility("default"), weak))
#else
#define TF_CAPI_EXPORT __attribute__((visibility("default")))
#endif

#ifndef TF_Bool
#define TF_Bool unsigned char /* a truth value in structs; TF_BOOL is the type of a tensor's elements */
#endif

/* The size of a struct up to and with MEMBER: how versions of a struct are told apart. */
#ifndef TF_OFFSET_OF_END
#define TF_OFFSET_OF_END(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE *)0)->MEMBER))
#endif

#endif
