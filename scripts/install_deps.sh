#!/usr/bin/env bash
# install_deps.sh build|test|bench: installs what the build, the tests or the benchmark need: Debian packages, for test the Python environment .venv,
# for bench also OpenMPI, and build/peers, another environment, with PyTorch (and its Gloo) and JAX.
# Does nothing, quickly, when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD="gcc make pkg-config protobuf-compiler protobuf-c-compiler libprotobuf-c-dev libnghttp2-dev libuv1-dev libdnnl-dev zlib1g-dev libsnappy-dev libcjson-dev libpng-dev libjpeg62-turbo-dev libgif-dev libicu-dev libsqlite3-dev libwebp-dev"
TEST="$BUILD clang-14 libclang-rt-14-dev llvm-14 libcmocka-dev valgrind iproute2 python3 python3-venv zsh"
PEER_PACKAGES="openmpi-bin libopenmpi-dev g++ python3-dev" # torch.compile calls a C++ compiler
REQUIREMENTS=scripts/test_requirements.txt
PEERS=scripts/bench_requirements.txt

die() {
    echo "install_deps.sh: $*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

missing_packages() {
    local package
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

# On a system without Debian's packages the libraries may still be there.
check_without_dpkg() {
    local what bad=""
    for what in gcc make pkg-config protoc protoc-c; do command -v "$what" >/dev/null || bad="$bad $what"; done
    for what in libnghttp2 libuv libprotobuf-c zlib libcjson libpng libjpeg icu-uc sqlite3 libwebp libwebpdemux; do pkg-config --exists "$what" 2>/dev/null || bad="$bad $what"; done
    [ -z "$bad" ] || die "missing:$bad. On Debian these come from: $*"
}

install_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        check_without_dpkg "$@"
        return
    fi
    local missing
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || die "packages are missing, and this is not root and has no sudo; as root, run: apt-get install" $missing
    echo "installing:" $missing
    # The lists may be old or absent: try, refresh them, try again.
    local install="apt-get -qq -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 --no-install-recommends install"
    as_root env DEBIAN_FRONTEND=noninteractive $install $missing >/dev/null 2>&1 && return
    as_root apt-get -qq -o DPkg::Lock::Timeout=300 update
    as_root env DEBIAN_FRONTEND=noninteractive $install $missing >/dev/null || die "apt-get could not install:" $missing
}

# TensorFlow 2.21 has wheels for Python 3.10 to 3.13. The system's Python comes first: its venv module is the package above.
find_python() {
    local python
    for python in /usr/bin/python3 python3 python3.13 python3.12 python3.11 python3.10; do
        command -v "$python" >/dev/null || continue
        "$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || continue
        echo "$python"
        return
    done
    die "no Python 3.10 to 3.13 with venv found; TensorFlow needs one"
}

install_venv() {
    local want python
    want=$(sha256sum <$REQUIREMENTS | cut -d' ' -f1)
    [ "$(cat .venv/rill-stamp 2>/dev/null)" != "$want" ] || return 0
    exec 9>.venv.lock
    flock 9
    [ "$(cat .venv/rill-stamp 2>/dev/null)" != "$want" ] || return 0
    python=$(find_python)
    echo "making .venv with $("$python" --version): $(tr '\n' ' ' <$REQUIREMENTS)"
    rm -rf .venv
    "$python" -m venv .venv
    .venv/bin/python -m pip -q --disable-pip-version-check --no-input install -r $REQUIREMENTS
    echo "$want" >.venv/rill-stamp
}

# What the benchmark measures besides TensorFlow. Rows of a peer that cannot be installed are left out.
install_peers() {
    local want
    (install_packages $PEER_PACKAGES) || echo "install_deps.sh: packages of peers could not be installed; the benchmark goes without them" >&2
    want=$(sha256sum <$PEERS | cut -d' ' -f1)
    [ "$(cat build/peers/rill-stamp 2>/dev/null)" != "$want" ] || return 0
    echo "making build/peers: $(tr '\n' ' ' <$PEERS)"
    mkdir -p build
    "$(find_python)" -m venv build/peers
    if build/peers/bin/python -m pip -q --disable-pip-version-check --no-input install -r $PEERS; then
        echo "$want" >build/peers/rill-stamp
    else
        echo "install_deps.sh: not all peers of the benchmark could be installed" >&2
    fi
}

case "${1:-}" in
    build) install_packages $BUILD ;;
    test)
        install_packages $TEST
        install_venv
        ;;
    bench)
        install_packages $TEST
        install_venv
        install_peers
        ;;
    *) die "usage: install_deps.sh build|test|bench" ;;
esac
