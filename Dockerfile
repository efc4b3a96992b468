# The container image: one static binary, and nothing else.
#
#   docker build -t strait .                                                 from source
#   docker buildx build --platform linux/amd64,linux/arm64 -t strait .       for both architectures
#   deploy/build-image.sh                                                    from a binary that is built on this machine

# What both images below have in common.
FROM scratch AS base
LABEL org.opencontainers.image.title="Strait" \
      org.opencontainers.image.description="An L7 proxy that routes live traffic by mesh resources" \
      org.opencontainers.image.source="https://github.com/strait-proxy/strait" \
      org.opencontainers.image.licenses="Apache-2.0"
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# A number, so that Kubernetes can check `runAsNonRoot`.
USER 65532:65532
# Everything else has a default or comes from STRAIT_* variables; the access log goes to standard output.
ENV STRAIT_CONFIG=/etc/strait
EXPOSE 8080 15021
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s CMD ["/strait", "health"]
ENTRYPOINT ["/strait"]
CMD ["run"]

# A binary that is there already, as the only file of the build context.
FROM base AS prebuilt
COPY strait /strait

FROM --platform=$BUILDPLATFORM rust:1.95.0-bookworm AS build
ARG TARGETARCH
ARG BUILDARCH
ARG REVISION=unknown
WORKDIR /src
COPY . .
# crates and objects stay between builds
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    STRAIT_REVISION="$REVISION" deploy/build-static.sh "${TARGETARCH:-$BUILDARCH}" /out

# Debug symbols: docker build --target symbols --output type=local,dest=. .
FROM scratch AS symbols
COPY --from=build /out/strait.debug /strait.debug

FROM base AS image
COPY --from=build /out/strait /strait
