/* master_service.h: MasterService on the wire. */
#pragma once
#include "net/transport.h"

/* Rows for the server's method table; the handlers get a Services as arg and may wait. */
extern const Method master_methods[];
extern const int master_method_count;
