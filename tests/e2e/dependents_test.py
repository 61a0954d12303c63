"""A kernel library as a dependency of what other backends of Pants make: shell commands and container images."""

from __future__ import annotations

from pathlib import Path

from e2e.workspace import Workspace

BUILD = """
shell_command(
    name="symbols",
    command="ls lib/x86_64_v3 > listed && head -c 4 lib/x86_64_v3/liblib.so > magic",
    tools=["ls", "head"],
    execution_dependencies=["t:lib"],
    output_files=["listed", "magic"],
    workdir="/t",
)
docker_image(name="image", dependencies=["t:lib"], instructions=["FROM scratch", "COPY t/lib /opt/kernels"])
"""
# Stands in for docker: says what an image would be built from.
DOCKER = """\
#!/bin/sh
/usr/bin/find . -type f > {listed}
echo "Successfully built 0123456789ab"
"""


def test_shell_commands_and_images_find_the_library(workspace: Workspace, tmp_path: Path) -> None:
    workspace.write("d/BUILD", BUILD)
    docker = tmp_path / "docker"
    docker.write_text(DOCKER.format(listed=tmp_path / "context"))
    docker.chmod(0o755)
    run = workspace.pants(
        "--no-pantsd",
        "--backend-packages=+['pants.backend.shell','pants.backend.docker']",
        f"--docker-executable-search-paths=['{tmp_path}']",
        *("export-codegen", "package", "d:symbols", "d:image"),
    )
    (workspace.root / "d/BUILD").unlink()  # which other runs, without these backends, could not read
    assert run.exit_code == 0, run.stderr
    made = workspace.root / "dist/codegen/t"
    assert (made / "listed").read_text().split() == ["liblib.so", "manifest.json", "provenance.json"]
    assert (made / "magic").read_bytes() == b"\x7fELF"
    context = (tmp_path / "context").read_text().split()
    assert {"./t/lib/x86_64_v3/liblib.so", "./t/lib/x86_64_v3/manifest.json"} <= set(context)
