"""The gRPC of src/net against grpcio, in both directions."""
import os
import pathlib
import subprocess
import threading
from concurrent import futures

import pytest

grpc = pytest.importorskip("grpc")

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("RILL_ECHO", str(ROOT / "build" / os.environ.get("MODE", "release") / "tests/net/echo_server_test"))
NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
DERIVED = b"type.googleapis.com/tensorflow.DerivedStatus"
RESTARTED = b"type.googleapis.com/tensorflow.distributed_runtime.WorkerPossiblyRestarted"

pytestmark = pytest.mark.skipif(not os.path.exists(PROGRAM), reason=f"{PROGRAM} is not built")


# ---- grpcio as the client ----


class Server:
    def __init__(self):
        self.process = subprocess.Popen([PROGRAM, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def line(self):
        return self.process.stdout.readline().strip()

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0


@pytest.fixture
def server():
    s = Server()
    yield s
    s.close()


def method(channel, name):
    return channel.unary_unary(f"/test.Echo/{name}")


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.address, options=NO_LIMIT) as c:
        yield c


@pytest.mark.parametrize("name", ["Echo", "EchoInline"])
@pytest.mark.parametrize("size", [0, 1, 5, 16384, 65536, 1_000_003, 50_000_000])
def test_messages_of_all_sizes_come_back(channel, name, size):
    data = os.urandom(min(size, 100_000))
    data = (data * (size // max(len(data), 1) + 1))[:size]
    assert method(channel, name)(data) == data


def test_many_streams_at_once(channel):
    echo = method(channel, "Echo")
    calls = [echo.future(b"%d" % i * (i % 100)) for i in range(2000)]
    for i, call in enumerate(calls):
        assert call.result() == b"%d" % i * (i % 100)


def test_large_and_small_calls_share_a_connection(channel):
    echo = method(channel, "Echo")
    large = [echo.future(b"L" * 20_000_000) for _ in range(4)]
    for i in range(100):
        assert echo(b"s") == b"s"
    for call in large:
        assert len(call.result()) == 20_000_000


def test_the_server_sees_a_cancel(server, channel):
    call = method(channel, "Park").future(b"")
    assert server.line() == "parked"
    call.cancel()
    assert server.line() == "cancelled"


def test_the_deadline_passes(server, channel):
    with pytest.raises(grpc.RpcError) as e:
        method(channel, "Park")(b"", timeout=2)  # long enough to get there
    assert e.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert server.line() == "parked"
    assert server.line() == "cancelled"


def test_a_thousand_parked_calls_do_not_block(server, channel):
    calls = [method(channel, "Park").future(b"") for _ in range(1000)]
    for _ in calls:
        assert server.line() == "parked"
    assert method(channel, "Echo")(b"x") == b"x"
    for call in calls:
        call.cancel()
    for _ in calls:
        assert server.line() == "cancelled"
    assert method(channel, "Echo")(b"x") == b"x"


def test_errors_have_code_text_and_payloads(channel):
    with pytest.raises(grpc.RpcError) as e:
        method(channel, "Lose")(b"")
    assert e.value.code() == grpc.StatusCode.ABORTED
    assert e.value.details() == "lost: 100% \u00e4\n"
    details = dict(e.value.trailing_metadata())["grpc-status-details-bin"]
    assert DERIVED in details and RESTARTED in details


def test_unknown_methods_are_unimplemented(channel):
    with pytest.raises(grpc.RpcError) as e:
        method(channel, "Nothing")(b"x" * 10_000_000)
    assert e.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert method(channel, "Echo")(b"x") == b"x"


def test_too_large_requests_name_the_limit(channel):
    with pytest.raises(grpc.RpcError) as e:
        method(channel, "Echo")(bytes(100 * 2**20 + 1))
    assert e.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "104857601" in e.value.details() and "104857600" in e.value.details()
    assert method(channel, "Echo")(b"x") == b"x"


def test_compressed_requests_are_unimplemented(server):
    with grpc.insecure_channel(server.address, compression=grpc.Compression.Gzip) as c:
        with pytest.raises(grpc.RpcError) as e:
            method(c, "Echo")(b"a" * 10000)
        assert e.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_stopped_server_is_unavailable():
    server = Server()
    with grpc.insecure_channel(server.address) as c:
        call = method(c, "Park").future(b"")
        assert server.line() == "parked"
        server.close()
        with pytest.raises(grpc.RpcError) as e:
            call.result()
        assert e.value.code() == grpc.StatusCode.UNAVAILABLE


def test_metadata_is_accepted(channel):
    metadata = [("tf-rpc", "17"), ("x-bin", bytes(range(256))), ("long", "v" * 8000)]
    assert method(channel, "Echo")(b"x", metadata=metadata) == b"x"


# ---- grpcio as the server ----


class Python(grpc.GenericRpcHandler):
    """Echoes, parks, fails."""

    def __init__(self):
        self.parked = threading.Event()
        self.cancelled = threading.Event()

    def service(self, details):
        handler = getattr(self, details.method.rsplit("/", 1)[1].lower(), None)
        return handler and grpc.unary_unary_rpc_method_handler(handler)

    def echo(self, request, context):
        return request

    def park(self, request, context):
        context.add_callback(self.cancelled.set)
        self.parked.set()
        self.cancelled.wait(30)
        return b""

    def lose(self, request, context):
        payload = b"".join(b"\x0a" + bytes([len(k) + 4]) + b"\x0a" + bytes([len(k)]) + k + b"\x12\x00" for k in (DERIVED, RESTARTED))
        context.set_trailing_metadata([("grpc-status-details-bin", payload)])
        context.abort(grpc.StatusCode.ABORTED, "lost: 100% \u00e4")

    def large(self, request, context):
        return bytes(50_000_000)


@pytest.fixture
def peer():
    handler = Python()
    s = grpc.server(futures.ThreadPoolExecutor(16), handlers=[handler], options=NO_LIMIT)
    port = s.add_insecure_port("localhost:0")
    s.start()
    yield f"localhost:{port}", handler
    s.stop(0).wait()


def call(address, name, size=1, count=1, timeout_ms=60000):
    arguments = [PROGRAM, "call", address, f"/test.Echo/{name}", str(size), str(count), str(timeout_ms)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=True).stdout.strip()


@pytest.mark.parametrize("size", [0, 1, 5, 16384, 65536, 1_000_003, 50_000_000])
def test_our_client_gets_its_bytes_back(peer, size):
    assert call(peer[0], "Echo", size) == "ok"


def test_our_client_makes_many_calls_at_once(peer):
    assert call(peer[0], "Echo", 100, 900) == "ok"  # a grpcio server sheds calls when 1000 wait


def test_our_client_makes_large_calls_at_once(peer):
    assert call(peer[0], "Echo", 10_000_000, 8) == "ok"


def test_our_client_reads_errors(peer):
    assert call(peer[0], "Lose") == "ABORTED derived restarted: lost: 100% \u00e4"
    assert call(peer[0], "Nothing").startswith("UNIMPLEMENTED")
    assert call(peer[0], "Large") == "INTERNAL: 50000000 bytes came back"


def test_our_deadline_reaches_the_peer(peer):
    assert call(peer[0], "Park", timeout_ms=2000) == "DEADLINE_EXCEEDED: Deadline Exceeded"
    assert peer[1].cancelled.wait(60)


def test_our_cancel_reaches_the_peer(peer):
    process = subprocess.Popen([PROGRAM, "cancel", peer[0], "/test.Echo/Park"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert peer[1].parked.wait(60)
    output, _ = process.communicate(timeout=60)
    assert output.strip() == "CANCELLED: CANCELLED"
    assert peer[1].cancelled.wait(60)


def test_nobody_is_there():
    assert "UNAVAILABLE: failed to connect to all addresses; last error: ipv4:127.0.0.1:1: Connection refused" == call("127.0.0.1:1", "Echo")
    assert call("no.such.host.invalid:1", "Echo").startswith("UNAVAILABLE: DNS resolution failed for no.such.host.invalid:1")
