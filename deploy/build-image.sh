#!/bin/sh
# Builds the container image from a binary that this machine builds, without pulling anything.
#
#   deploy/build-image.sh [TAG]        default: strait:latest
#
# ARCHITECTURE (amd64, arm64) and PROFILE are as in build-static.sh. Debug symbols stay in target/image.
# PREBUILT=FILE takes this binary, as build-static.sh or build-optimized.sh left it, instead of building one.
set -eu
cd "$(dirname "$0")/.."
tag=${1:-strait:latest}
revision=${STRAIT_REVISION:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}
export STRAIT_REVISION="$revision"
prebuilt=${PREBUILT:-target/image/strait}
[ -n "${PREBUILT:-}" ] || deploy/build-static.sh "${ARCHITECTURE:-}" target/image
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
context=$(mktemp -d)
trap 'rm -r "$context"' EXIT
cp "$prebuilt" "$context/strait"
# the classic builder, which needs no plugin and stops at the wanted stage
DOCKER_BUILDKIT=0 docker build --quiet --target prebuilt --file Dockerfile --tag "$tag" \
  --build-arg "VERSION=$version" --build-arg "REVISION=$revision" "$context"
docker image inspect --format '{{.RepoTags}}: {{.Size}} bytes' "$tag"
