# For ./pants and .ci/lint: pip as the requirements file says it, not as the machine's pip configuration does.
#
# Variables that name an index (PIP_INDEX_URL), a proxy (HTTPS_PROXY) or certificates (PIP_CERT, SSL_CERT_FILE) count.

# pip trusts a list of authorities of its own; the machine's list also has the authority of a company's proxy.
certificates="${PIP_CERT:-${SSL_CERT_FILE:-}}"
for candidate in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem; do
  [[ -n "$certificates" || ! -f "$candidate" ]] || certificates="$candidate"
done

# Runs a command whose pip sees no configuration of the machine.
without_pip_configuration() {
  env -u PIP_REQUIRE_VIRTUALENV -u PIP_CONSTRAINT -u PIP_NO_INDEX -u PIP_TARGET -u PIP_USER -u PIP_PREFIX \
    PIP_CONFIG_FILE=/dev/null ${certificates:+PIP_CERT="$certificates"} "$@"
}

# Installs the hash-pinned requirements of file $2 into the environment of interpreter $1; the rest is for pip.
pip_install() {
  without_pip_configuration "$1" -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r "$2" "${@:3}" || {
    echo "cannot install $2 from ${PIP_INDEX_URL:-the Python package index};" \
      "set PIP_INDEX_URL, HTTPS_PROXY or PIP_CERT to reach an index." >&2
    return 1
  }
}
