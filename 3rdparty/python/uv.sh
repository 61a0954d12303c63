# For ./pants: uv, which installs Pants' environment in a third of pip's time, and a Python 3.9 where there is none.
#
# Variables that tell pip of an index, a folder of wheels, a proxy or certificates count for uv, too; uv's own
# (UV_PYTHON_INSTALL_MIRROR, UV_HTTP_TIMEOUT, …) do as well. Needs pip.sh.

# Sets uv to the program: the pinned wheel in folder $1, which interpreter $2 installs once; it has pip or ensurepip.
find_uv() {
  local folder="$1/uv-$(sha256sum "$uv_requirements" | cut -c1-16)" pip="$2" tmp
  uv="$folder/bin/uv"
  [[ ! -x "$uv" ]] || return 0
  tmp="$(mktemp -d "$folder.XXXXXX")"
  if ! "$pip" -m pip --version >/dev/null 2>&1; then
    "$pip" -m venv "$tmp/venv"
    pip="$tmp/venv/bin/python"
  fi
  pip_install "$pip" "$uv_requirements" --target "$tmp/uv" || { rm -rf "$tmp"; return 1; }
  # The first process to finish wins.
  mv -T "$tmp/uv" "$folder" 2>/dev/null || [[ -x "$uv" ]]
  rm -rf "$tmp"
}

# Runs uv as requirements files say, not as its configuration on this machine does.
run_uv() {
  env -u UV_CONSTRAINT -u UV_OVERRIDE -u UV_NO_INDEX -u UV_OFFLINE -u UV_TARGET -u UV_PREFIX -u UV_SYSTEM_PYTHON \
    -u UV_REQUIRE_VIRTUALENV -u UV_EXCLUDE_NEWER -u UV_NO_BINARY -u UV_NO_BUILD \
    ${certificates:+SSL_CERT_FILE="$certificates"} ${PIP_PROXY:+HTTPS_PROXY="$PIP_PROXY"} \
    ${PIP_INDEX_URL:+UV_DEFAULT_INDEX="$PIP_INDEX_URL"} ${PIP_EXTRA_INDEX_URL:+UV_INDEX="$PIP_EXTRA_INDEX_URL"} \
    ${PIP_FIND_LINKS:+UV_FIND_LINKS="${PIP_FIND_LINKS// /,}"} ${PIP_TRUSTED_HOST:+UV_INSECURE_HOST="$PIP_TRUSTED_HOST"} \
    ${PIP_DEFAULT_TIMEOUT:+UV_HTTP_TIMEOUT="$PIP_DEFAULT_TIMEOUT"} \
    "$uv" "$@" --no-config --no-progress --no-cache
}

# Makes an environment of interpreter $1 in folder $2 with the hash-pinned requirements of file $3.
uv_environment() {
  # Hashes say what is installed, so that any index may have it.
  run_uv venv -q --python "$1" "$2" &&
    run_uv pip install -q --python "$2/bin/python" --no-deps --require-hashes --index-strategy unsafe-best-match -r "$3" || {
    echo "cannot install $3 from ${PIP_INDEX_URL:-the Python package index};" \
      "set PIP_INDEX_URL, HTTPS_PROXY or PIP_CERT to reach an index." >&2
    return 1
  }
}
