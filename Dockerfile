# The proxy and the launcher, without an engine: engines run in vLLM's own image.
#   docker build -t duet-serve:0.1.0 .
# What is installed is pinned with hashes in requirements.lock (scripts/lock renews it).
ARG BASE=python:3.12-slim-bookworm

FROM ${BASE} AS build
RUN python3 -m venv /opt/duet
COPY requirements.lock /src/
RUN /opt/duet/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /src/requirements.lock
COPY pyproject.toml README.md LICENSE /src/
COPY launcher /src/launcher
COPY proxy /src/proxy
COPY profiles /src/profiles
COPY helm /src/helm
RUN /opt/duet/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps /src \
    && /opt/duet/bin/pip uninstall --yes --quiet pip setuptools

FROM ${BASE} AS runtime
COPY --from=build /opt/duet /opt/duet
ENV PATH=/opt/duet/bin:$PATH PYTHONUNBUFFERED=1
USER 2000:2000
EXPOSE 8000
CMD ["python", "-P", "-m", "proxy", "--config", "/etc/duet/proxy.json"]

# For tests on a cluster that can only run images: scripted engines besides.
FROM runtime AS test
COPY tests/__init__.py tests/ports.py /opt/tests/tests/
COPY tests/fakes /opt/tests/tests/fakes
ENV PYTHONPATH=/opt/tests

FROM runtime
