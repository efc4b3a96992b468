#!/bin/sh
# Builds the container image from a binary that this machine builds, without pulling anything.
#
#   deploy/build-image.sh [TAG]        default: strait:latest
#
# ARCHITECTURE (amd64, arm64) and PROFILE are as in build-static.sh. Debug symbols stay in target/image.
# OPTIMIZED=1 builds with build-optimized.sh, which takes longer: less CPU time per request, less memory.
set -eu
cd "$(dirname "$0")/.."
tag=${1:-strait:latest}
revision=${STRAIT_REVISION:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}
export STRAIT_REVISION="$revision"
if [ -n "${OPTIMIZED:-}" ]; then
  if [ -n "${ARCHITECTURE:-}" ]; then
    echo "build-image.sh: OPTIMIZED builds for the architecture of this machine; leave ARCHITECTURE out" >&2
    exit 2
  fi
  deploy/build-optimized.sh target/image
else
  deploy/build-static.sh "${ARCHITECTURE:-}" target/image
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
context=$(mktemp -d)
trap 'rm -r "$context"' EXIT
cp target/image/strait "$context/strait"
# the classic builder, which needs no plugin and stops at the wanted stage
DOCKER_BUILDKIT=0 docker build --quiet --target prebuilt --file Dockerfile --tag "$tag" \
  --build-arg "VERSION=$version" --build-arg "REVISION=$revision" "$context"
docker image inspect --format '{{.RepoTags}}: {{.Size}} bytes' "$tag"
