# Two images. `docker build .` makes the one of the last stage, which holds one file more than its base image. `docker build
# --target helm .` makes the same with helm, for Helm charts; the chart takes it by its tag, which ends in -helm.
#
# All of it is of Debian 12, so that the binary meets the C library it was linked against.
FROM rust:1.95.0-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
COPY crates ./crates
COPY src ./src
# The repository of the demo, which is in the program.
COPY examples/shop ./examples/shop
# Not compiled; but Cargo.toml names the benchmarks, and cargo looks for what it names.
COPY benches ./benches
RUN cargo build --profile dist --locked --bin moorline

# From its source, of one version: what is fetched is checked against Go's own list of checksums.
FROM golang:1.26-bookworm AS helm-program
RUN CGO_ENABLED=0 GOBIN=/out go install -trimpath \
    -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=v4.1.4" helm.sh/helm/v4/cmd/helm@v4.1.4

# The variant with helm. What it starts helm behind is in the binary.
FROM gcr.io/distroless/cc-debian12:nonroot AS helm
COPY --from=build /src/target/dist/moorline /moorline
COPY --from=helm-program /out/helm /usr/bin/helm
# Threads that render do so in few arenas: memory that one of them gave back is there for the next.
ENV MALLOC_ARENA_MAX=2
USER 65532:65532
ENTRYPOINT ["/moorline"]

# glibc, libgcc and nothing to log in with. The public certificate authorities are in the binary; SSL_CERT_FILE names others.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/dist/moorline /moorline
# Threads that render do so in few arenas: memory that one of them gave back is there for the next.
ENV MALLOC_ARENA_MAX=2
# Numbers, so that a cluster can see that this is not root (runAsNonRoot). Nothing is written into the image's
# own file system: it may be mounted read-only.
USER 65532:65532
ENTRYPOINT ["/moorline"]
