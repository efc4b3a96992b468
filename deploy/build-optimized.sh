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

# What ran, most often first, then what is not counted (the standard library, C), lies together: a process maps, and the
# kernel reads, little of the rest. Names that are counted but never ran are left to the linker.
"$merge" show --all-functions --counts "$work/profile" | awk '
  /^  [^ ].*:$/ { name = $1; sub(/:$/, "", name); sub(/^.*;/, "", name) }
  /Block counts: / {
    most = 0
    gsub(/[^0-9 ]/, " ")
    for (i = 1; i <= NF; i++) if ($i > most) most = $i
    print most, name
  }' >"$work/functions"
{
  sort --numeric-sort --reverse "$work/functions" | awk '$1 > 0 { print $2 }'
  nm "$work/counting/strait.debug" | awk 'NR == FNR { known[$2]; next } $2 ~ /^[tTwW]$/ && !($3 in known) && $3 !~ /aws_lc/ { print $3 }' \
    "$work/functions" -
} >"$work/order"

work=$(cd "$work" && pwd)
flags="-C profile-use=$work/profile"
# only for x86-64 does rustc link with LLD, whose option it is
if [ "$(uname -m)" = x86_64 ]; then
  flags="$flags -C link-arg=-Wl,--symbol-ordering-file=$work/order -C link-arg=-Wl,--no-warn-symbol-ordering"
fi
STRAIT_RUSTFLAGS=$flags deploy/build-static.sh "" "$out"
