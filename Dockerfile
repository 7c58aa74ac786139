# Both base images are arguments, so that an operator can pin or mirror them.
ARG BUILD_IMAGE=rust:1.95-bookworm
ARG RUN_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
COPY proto ./proto
COPY src ./src
COPY benches ./benches
RUN cargo build --release --locked

FROM ${RUN_IMAGE}
COPY --from=build /src/target/release/jungle-referee /usr/local/bin/jungle-referee
# Where a data file may lie: a volume takes over its owner. Nothing else of the image is ever written.
RUN install --directory --owner=65532 --group=65532 --mode=0700 /var/lib/jungle
VOLUME /var/lib/jungle
# A number, so that a runtime can check that it is not root.
USER 65532:65532
EXPOSE 50051
ENV JUNGLE_LISTEN=0.0.0.0:50051
HEALTHCHECK --interval=10s --timeout=4s --start-period=5s --retries=3 \
    CMD ["jungle-referee", "healthcheck"]
STOPSIGNAL SIGTERM
# Beyond loopback the server wants JUNGLE_CREATOR_KEY_FILE, or JUNGLE_OPEN=true to let anybody create games.
ENTRYPOINT ["jungle-referee"]
CMD ["serve"]
