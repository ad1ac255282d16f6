# docker build -t layerwise .                      onnxruntime on the CPU
# docker build -t layerwise:cuda --target cuda .   onnxruntime-gpu on NVIDIA's image: docker run --gpus all
# docker run -it --rm -v "$PWD:/work" layerwise model.onnx
ARG PYTHON=3.13
ARG CUDA=13.0.2-cudnn-runtime-ubuntu24.04

FROM python:${PYTHON}-slim AS wheel
COPY . /src
RUN python3 -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src/packaging/core

# The image has CUDA and cuDNN: onnxruntime-gpu for its CUDA is installed without the extras that bring them.
FROM nvidia/cuda:${CUDA} AS cuda
ARG ENGINE=onnxruntime-gpu>=1.27,<2
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN --mount=from=wheel,source=/wheels,target=/wheels python3 -m venv /opt/layerwise \
 && /opt/layerwise/bin/python -m pip install --no-cache-dir /wheels/*.whl "${ENGINE}" \
 && /opt/layerwise/bin/python -m pip check
ENV PATH=/opt/layerwise/bin:$PATH LAYERWISE_HOME=/var/lib/layerwise LANG=C.UTF-8
RUN useradd --create-home layerwise && install -d -m 700 -o layerwise /var/lib/layerwise
USER layerwise
WORKDIR /work
ENTRYPOINT ["layerwise"]

FROM python:${PYTHON}-slim AS cpu
ARG ENGINE=onnxruntime>=1.21,<2
RUN --mount=from=wheel,source=/wheels,target=/wheels python3 -m venv /opt/layerwise \
 && /opt/layerwise/bin/python -m pip install --no-cache-dir /wheels/*.whl "${ENGINE}" \
 && /opt/layerwise/bin/python -m pip check
ENV PATH=/opt/layerwise/bin:$PATH LAYERWISE_HOME=/var/lib/layerwise LANG=C.UTF-8
RUN useradd --create-home layerwise && install -d -m 700 -o layerwise /var/lib/layerwise
USER layerwise
WORKDIR /work
ENTRYPOINT ["layerwise"]
