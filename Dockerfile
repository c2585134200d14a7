# pebench on a CPU. Build it and train the quickstart, which prints its tables:
#   docker build -t pebench . && docker run --rm pebench
# Any other command of pebench follows the image's name:
#   docker run --rm pebench list encodings
# Runs stay in the container unless a volume keeps them:
#   docker run --rm -v pebench-runs:/home/pebench/runs pebench
FROM python:3.12-slim

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

# Before the rest: the layer is kept while only pebench changes. PyPI's builds for Linux bring several gigabytes of CUDA;
# for builds without it, pass the address of PyTorch's index for CPUs: --build-arg PIP_EXTRA_INDEX_URL=...
ARG PIP_EXTRA_INDEX_URL=""
RUN pip install 'torch>=2.6' 'torchvision>=0.21'

WORKDIR /opt/pebench
COPY pyproject.toml README.md LICENSE CITATION.cff ./
COPY benchmarks benchmarks
COPY src src
RUN pip install .

# The folder of runs is made here, so that a volume mounted on it belongs to the user.
# It is named by number, because some hosts refuse an image whose user may be root.
RUN useradd --uid 1000 --create-home pebench && install -d -o pebench -g pebench /home/pebench/runs
USER 1000
WORKDIR /home/pebench

ENTRYPOINT ["pebench"]
CMD ["run", "--suite", "quickstart"]
