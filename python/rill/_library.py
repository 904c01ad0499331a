"""librill, loaded with ctypes."""
import ctypes
import os

CODES = {1: "Cancelled", 2: "Unknown", 3: "InvalidArgument", 4: "DeadlineExceeded", 5: "NotFound", 6: "AlreadyExists", 7: "PermissionDenied",
         8: "ResourceExhausted", 9: "FailedPrecondition", 10: "Aborted", 11: "OutOfRange", 12: "Unimplemented", 13: "Internal", 14: "Unavailable"}


class RillError(Exception):
    """What the library said; `code` is TensorFlow's number."""

    def __init__(self, code, message):
        super().__init__("%s: %s" % (CODES.get(code, code), message))
        self.code = code
        self.message = message


def library_path():
    """$RILL_LIBRARY, else the library inside the package, in the build folder of a checkout, or installed beside the program."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("RILL_LIBRARY"), os.path.join(here, "librill.so"), os.path.join(here, "..", "..", "build", "release", "librill.so"),
              os.path.join(here, "..", "..", "..", "lib", "librill.so.0")]
    for place in places:
        if place and os.path.exists(place):
            return os.path.abspath(place)
    return "librill.so.0"


def _load():
    # Symbols stay to ourselves: TensorFlow's own library may be in the same process, with the same names.
    library = ctypes.CDLL(library_path(), mode=os.RTLD_LOCAL | os.RTLD_NOW)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    signatures = {
        "TF_NewStatus": (pointer, []), "TF_DeleteStatus": (None, [pointer]), "TF_GetCode": (number, [pointer]), "TF_Message": (text, [pointer]),
        "TF_Version": (text, []), "rill_server_start": (pointer, [text, text, number, pointer]), "rill_server_target": (text, [pointer]),
        "rill_server_wait": (ctypes.c_bool, [pointer, ctypes.c_int64]), "rill_server_done": (None, [pointer]), "rill_server_stop": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_loaded = None


def library():
    global _loaded
    if _loaded is None:
        _loaded = _load()
    return _loaded


def checked(call, *arguments):
    """Calls a function whose last argument is a TF_Status; raises RillError."""
    lib = library()
    status = lib.TF_NewStatus()
    try:
        result = getattr(lib, call)(*arguments, status)
        if lib.TF_GetCode(status):
            raise RillError(lib.TF_GetCode(status), lib.TF_Message(status).decode())
        return result
    finally:
        lib.TF_DeleteStatus(status)


def version():
    """The version of TensorFlow whose interfaces the library has."""
    return library().TF_Version().decode()
