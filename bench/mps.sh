#!/usr/bin/env bash
# Many small fits at once on one NVIDIA GPU. Without its multi-process service (MPS) processes take
# turns; with it they share: 8 fits of Handwritten take 8 seconds together instead of 22 (one H200).
#
#     bench/mps.sh vedute bench mvp-clustering -o records.jsonl --gpu-jobs 14
set -euo pipefail
here=$(mktemp -d)
export CUDA_MPS_PIPE_DIRECTORY=$here CUDA_MPS_LOG_DIRECTORY=$here OMP_NUM_THREADS=1
nvidia-cuda-mps-control -d
trap 'echo quit | nvidia-cuda-mps-control; rm -rf "$here"' EXIT
"$@"
