#!/bin/sh
# Builds the static binary of the container image with profile-guided optimization: one build counts what runs, under the
# load of the benches; a second one puts code that runs often together and makes it fast, and the rest small.
#
#   deploy/build-optimized.sh [DIRECTORY]
#
# DIRECTORY (default: target/image) gets what deploy/build-static.sh leaves there. For the architecture of this machine only,
# since the first build has to run. Takes about three times as long as one build, two cores, and:
#
#   apt-get install wrk nghttp2-client util-linux
#   rustup component add llvm-tools      or llvm-profdata of the same LLVM version as rustc (rustc -vV), as Debian has it
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/image}
work=${CARGO_TARGET_DIR:-target}/optimized
version=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
tools=$(rustc --print target-libdir)/../bin
for merge in "$tools/llvm-profdata" "llvm-profdata-$version" ""; do
  if [ -n "$merge" ] && command -v "$merge" >/dev/null; then break; fi
done
if [ -z "$merge" ]; then
  echo "build-optimized.sh: no llvm-profdata; rustup component add llvm-tools, or apt-get install llvm-$version" >&2
  exit 1
fi
for tool in wrk h2load taskset; do
  command -v "$tool" >/dev/null || {
    echo "build-optimized.sh: no $tool; apt-get install wrk nghttp2-client util-linux" >&2
    exit 1
  }
done
rm -rf "$work/counts" "$work/profile"
mkdir -p "$work/counts"
counts=$(cd "$work/counts" && pwd)

# the same flags twice, so that functions have the same names in both builds
STRAIT_RUSTFLAGS="-C profile-generate=$counts" deploy/build-static.sh "" "$work/counting"
set --
for scenario in small routes features h2c large https tls-full tls-resumed h2 grpc tcp; do
  set -- "$@" --scenario "$scenario"
done
cargo run --locked --release --package benches --bin compare -- \
  "$@" --proxy strait --rounds 1 --seconds 2 --strait "$work/counting/strait" >"$work/training.md"
"$merge" merge -o "$work/profile" "$counts"
profile=$(cd "$work" && pwd)/profile
STRAIT_RUSTFLAGS="-C profile-use=$profile -C link-arg=-Wl,-z,keep-text-section-prefix" deploy/build-static.sh "" "$out"
