"""A remote cache in memory (REAPI v2: action cache, CAS, byte streams) that fails in every way one asks of it."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc

from faults import wire

_REAPI = "build.bazel.remote.execution.v2"
_CHUNK = 1 << 16
_OK, _NOT_FOUND = 0, 5


@dataclass
class Faults:
    """What goes wrong from now on.

    ``blob`` and ``result`` change what is read: None is "not found". ``status`` ends every call of a method (by its
    last name, ``*`` for all) with a gRPC code. ``delay_s`` holds up every answer. ``after`` is called with the number
    of calls so far.
    """

    blob: Callable[[bytes], bytes | None] = lambda data: data
    result: Callable[[str, bytes], bytes | None] = lambda key, data: data
    status: dict[str, grpc.StatusCode] = field(default_factory=dict)
    delay_s: float = 0
    cut_streams: bool = False
    token: str | None = None
    after: Callable[[int], None] = lambda calls: None


class CacheServer:
    """Listens at ``address`` as soon as it exists."""

    def __init__(self, port: int = 0) -> None:
        self.faults = Faults()
        self.blobs: dict[str, bytes] = {}
        self.results: dict[str, bytes] = {}
        self.calls: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((_Handler(self),))
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    @property
    def address(self) -> str:
        """As Pants' remote_store_address wants it."""
        return f"grpc://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """Drop every connection and listen no more."""
        self._server.stop(grace=None).wait()

    def begin(self, method: str, context: grpc.ServicerContext) -> None:
        """Count the call and let it fail if it shall."""
        with self._lock:
            self.calls[method] += 1
            calls = self.calls.total()
        self.faults.after(calls)
        if self.faults.delay_s:
            time.sleep(self.faults.delay_s)
        status = self.faults.status.get(method, self.faults.status.get("*"))
        if status is not None:
            context.abort(status, f"this server was told to answer {method} so")
        given = dict(context.invocation_metadata()).get("authorization", "")
        if self.faults.token is not None and given != f"Bearer {self.faults.token}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token has expired")

    # Capabilities, action cache

    def get_capabilities(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        updates = wire.encode([(1, 1)])
        caching = wire.encode([(1, 1), (2, updates), (4, 4 << 20)])
        version = wire.encode([(1, 2)])
        return wire.encode([(1, caching), (4, version), (5, version)])

    def get_action_result(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        key = _key(wire.blob(wire.decode(request), 2))
        stored = self.results.get(key)
        answer = None if stored is None else self.faults.result(key, stored)
        if answer is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such result")
        return answer or b""

    def update_action_result(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        message = wire.decode(request)
        self.results[_key(wire.blob(message, 2))] = wire.blob(message, 3)
        return wire.blob(message, 3)

    # Content

    def find_missing_blobs(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        asked = [item for item in wire.decode(request).get(2, []) if isinstance(item, bytes)]
        return wire.encode([(2, item) for item in asked if self._find(_key(item)) is None])

    def batch_update_blobs(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        answers = []
        for item in wire.decode(request).get(2, []):
            assert isinstance(item, bytes)
            message = wire.decode(item)
            self._store(_key(wire.blob(message, 1)), wire.blob(message, 2), context)
            answers.append((1, wire.encode([(1, wire.blob(message, 1)), (2, wire.encode([(1, _OK)]))])))
        return wire.encode(answers)

    def batch_read_blobs(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        answers = []
        for item in wire.decode(request).get(2, []):
            assert isinstance(item, bytes)
            data = self._find(_key(item))
            status = wire.encode([(1, _OK if data is not None else _NOT_FOUND)])
            answers.append((1, wire.encode([(1, item), (2, data or b""), (3, status)])))
        return wire.encode(answers)

    def read(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        data = self._find(wire.text(wire.decode(request), 1).split("/")[-2])
        if data is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such blob")
        data = data or b""
        if self.faults.cut_streams:
            yield wire.encode([(10, data[: len(data) // 2])])
            context.abort(grpc.StatusCode.UNAVAILABLE, "connection lost")
        for start in range(0, len(data), _CHUNK):
            yield wire.encode([(10, data[start : start + _CHUNK])])

    def write(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        key, data = "", bytearray()
        for request in requests:
            message = wire.decode(request)
            key = key or wire.text(message, 1).split("/")[-2]
            data += wire.blob(message, 10)
        self._store(key, bytes(data), context)
        return wire.encode([(1, len(data))])

    def _find(self, key: str) -> bytes | None:
        data = self.blobs.get(key)
        return None if data is None else self.faults.blob(data)

    def _store(self, key: str, data: bytes, context: grpc.ServicerContext) -> None:
        if hashlib.sha256(data).hexdigest() != key:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the data has another digest")
        self.blobs[key] = data


class _Handler(grpc.GenericRpcHandler):
    """Raw bytes in and out; methods are found by name."""

    def __init__(self, server: CacheServer) -> None:
        unary, streams = (
            grpc.unary_unary_rpc_method_handler,
            (
                grpc.unary_stream_rpc_method_handler,
                grpc.stream_unary_rpc_method_handler,
            ),
        )
        self._methods = {}
        for path, function, kind in (
            (f"/{_REAPI}.Capabilities/GetCapabilities", server.get_capabilities, unary),
            (f"/{_REAPI}.ActionCache/GetActionResult", server.get_action_result, unary),
            (f"/{_REAPI}.ActionCache/UpdateActionResult", server.update_action_result, unary),
            (f"/{_REAPI}.ContentAddressableStorage/FindMissingBlobs", server.find_missing_blobs, unary),
            (f"/{_REAPI}.ContentAddressableStorage/BatchUpdateBlobs", server.batch_update_blobs, unary),
            (f"/{_REAPI}.ContentAddressableStorage/BatchReadBlobs", server.batch_read_blobs, unary),
            ("/google.bytestream.ByteStream/Read", server.read, streams[0]),
            ("/google.bytestream.ByteStream/Write", server.write, streams[1]),
        ):
            self._methods[path] = kind(self._guarded(server, path.rpartition("/")[2], function, kind is streams[0]))

    @staticmethod
    def _guarded(server: CacheServer, name: str, function: Callable, streaming: bool) -> Callable:  # type: ignore[type-arg]
        def call(request: object, context: grpc.ServicerContext) -> object:
            server.begin(name, context)
            return function(request, context)

        def stream(request: object, context: grpc.ServicerContext) -> Iterator[bytes]:
            server.begin(name, context)
            yield from function(request, context)

        return stream if streaming else call

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        return self._methods.get(details.method)


def _key(digest: bytes) -> str:
    return wire.text(wire.decode(digest), 1)
