/* services.c: the few lines every handler begins and ends with. */
#include "cluster/services.h"

#include "cluster/codec.h"

void *service_request(ServerCall *call, const ProtobufCMessageDescriptor *type) {
    ProtobufCMessage *m = NULL;
    Error *err = codec_unpack(type, server_call_request(call), &m);
    if (err) server_call_fail(call, err);
    return m;
}

void service_free(void *request) {
    if (request) protobuf_c_message_free_unpacked(request, NULL);
}

void service_reply(ServerCall *call, const ProtobufCMessage *reply) {
    Message m = {0};
    codec_pack(reply, &m);
    server_call_reply(call, &m);
}

void service_reply_empty(ServerCall *call) {
    Message m = {0};
    server_call_reply(call, &m);
}

void service_finish(ServerCall *call, Error *err) {
    if (err)
        server_call_fail(call, err);
    else
        service_reply_empty(call);
}
