#!/bin/sh
# Builds the static binary of the container image.
#
#   deploy/build-static.sh [ARCHITECTURE] [DIRECTORY]
#
# ARCHITECTURE: amd64 or arm64; default: that of this machine. Another one is cross-compiled, which needs the compiler
# that is named below. DIRECTORY (default: target/image) gets `strait` without symbols, and `strait.debug` with them.
# PROFILE=dev builds without optimization, for tests. STRAIT_RUSTFLAGS are more flags of rustc; build-optimized.sh sets them.
#
# Why glibc, and not musl: one C library for all builds, the one that the tests run with. Nothing here needs the shared libraries
# that a static glibc loads at run time: names are looked up by the resolver of Strait.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
case $(uname -m) in
  x86_64) machine=amd64 ;;
  aarch64) machine=arm64 ;;
  *) machine=$(uname -m) ;;
esac
architecture=${1:-$machine}
out=${2:-target/image}
profile=${PROFILE:-container}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"

case $architecture in
  amd64) target=x86_64-unknown-linux-gnu tools=x86_64-linux-gnu ;;
  arm64) target=aarch64-unknown-linux-gnu tools=aarch64-linux-gnu ;;
  *) echo "build-static.sh: amd64 or arm64, not $architecture" >&2; exit 2 ;;
esac
prefix=
if [ "$architecture" != "$machine" ]; then
  prefix=$tools-
  if ! command -v "${prefix}gcc" >/dev/null; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
      echo "build-static.sh: no ${prefix}gcc; on Debian: apt-get install gcc-$tools libc6-dev-$architecture-cross" >&2
      exit 1
    fi
    apt-get update && apt-get install --yes --no-install-recommends "gcc-$tools" "libc6-dev-$architecture-cross"
  fi
  rustup target add "$target"
  name=$(echo "$target" | tr 'a-z-' 'A-Z_')
  export "CARGO_TARGET_${name}_LINKER=${prefix}gcc"
fi

# Kernels for arm64 have pages of 4, 16 or 64 KiB. The allocator is built for the largest, which fits all of them.
[ "$architecture" != arm64 ] || export JEMALLOC_SYS_WITH_LG_PAGE=16

# Relative relocations, packed: 0.8 MB less. Needs glibc 2.36 on the machine that builds.
RUSTFLAGS="-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs ${STRAIT_RUSTFLAGS:-}" \
  cargo build --locked --profile "$profile" --target "$target" --package proxy --bin strait
folder=$profile
[ "$profile" != dev ] || folder=debug
built=${CARGO_TARGET_DIR:-target}/$target/$folder/strait
"${prefix}objcopy" --only-keep-debug "$built" "$out/strait.debug"
"${prefix}strip" -o "$out/strait.part" "$built"
# where a debugger finds the symbols
"${prefix}objcopy" --add-gnu-debuglink="$out/strait.debug" "$out/strait.part"
mv "$out/strait.part" "$out/strait"
ls -l "$out/strait" "$out/strait.debug"
