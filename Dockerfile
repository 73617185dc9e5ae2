# vedute on the CPU: docker run --rm --user "$(id -u)" -v "$PWD:/data" vedute fit cohort -o run
FROM python:3.11-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY constraints.txt /tmp/
# torch from its own index: the wheel for the CPU has no CUDA libraries.
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
    -c /tmp/constraints.txt "$(echo /wheels/*.whl)[plots,parquet,images]"
RUN useradd vedute && install -d -o vedute /data
USER vedute
WORKDIR /data
# Caches of libraries: any user may write there, also one named by --user.
ENV HOME=/tmp
ENTRYPOINT ["vedute"]
CMD ["--help"]
