# Two stages: the first builds, the second holds one file more than its base image.
#
# Both are of Debian 12, so that the binary meets the C library it was linked against.
FROM rust:1.95.0-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src ./src
# Not compiled; but Cargo.toml names the benchmarks, and cargo looks for what it names.
COPY benches ./benches
RUN cargo build --release --locked --bin moorline

# glibc, libgcc and nothing to log in with. The public certificate authorities are in the binary; SSL_CERT_FILE names others.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/release/moorline /moorline
# Numbers, so that a cluster can see that this is not root (runAsNonRoot). Nothing is written into the image's
# own file system: it may be mounted read-only.
USER 65532:65532
ENTRYPOINT ["/moorline"]
