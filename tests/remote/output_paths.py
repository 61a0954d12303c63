"""Runs buildbox-run for clients that name outputs as REAPI 2.0 did: it knows ``output_paths`` of REAPI 2.1 only.

``python output_paths.py <buildbox-run> <its arguments>``, in an environment that has gRPC and the messages of REAPI, as
BuildGrid's has. The worker's result is filed under the client's own action, as the server knows it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
from pathlib import Path

import grpc
from buildgrid._protos.build.bazel.remote.execution.v2 import remote_execution_pb2 as messages
from buildgrid._protos.build.bazel.remote.execution.v2.remote_execution_pb2_grpc import ContentAddressableStorageStub


def main(program: str, arguments: list[str]) -> None:
    """Replace this process by ``program``; the action it is given is rewritten first where that is needed."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for option in ("--action", "--remote", "--instance"):
        parser.add_argument(option, default="")
    known, _ = parser.parse_known_args(arguments)
    if known.action:
        storage = _Storage(known.remote, known.instance)
        path = Path(known.action)
        action = messages.Action.FromString(path.read_bytes())
        if storage.name_output_paths(action):
            with tempfile.NamedTemporaryFile(delete=False) as file:
                file.write(action.SerializeToString())
            arguments = [f"--action={file.name}" if word == f"--action={path}" else word for word in arguments]
    os.execv(program, [program, *arguments])


class _Storage:
    """The server's blobs."""

    def __init__(self, remote: str, instance: str) -> None:
        address = remote.replace("http://", "").replace("grpc://", "")
        self._stub = ContentAddressableStorageStub(grpc.insecure_channel(address))
        self._instance = instance

    def name_output_paths(self, action: messages.Action) -> bool:
        """Let the action's command list all outputs as ``output_paths``; False if it does already."""
        request = messages.BatchReadBlobsRequest(instance_name=self._instance, digests=[action.command_digest])
        command = messages.Command.FromString(self._stub.BatchReadBlobs(request).responses[0].data)
        outputs = sorted([*command.output_files, *command.output_directories])
        if command.output_paths or not outputs:
            return False
        command.output_paths.extend(outputs)
        command.ClearField("output_files")
        command.ClearField("output_directories")
        data = command.SerializeToString()
        action.command_digest.hash = hashlib.sha256(data).hexdigest()
        action.command_digest.size_bytes = len(data)
        upload = messages.BatchUpdateBlobsRequest(instance_name=self._instance)
        upload.requests.add(digest=action.command_digest, data=data)
        self._stub.BatchUpdateBlobs(upload)
        return True


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
