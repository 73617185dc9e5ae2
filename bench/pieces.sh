#!/usr/bin/env bash
# Most runs behind docs/paper, docs/what-makes-mvp-work.md and docs/vaes.md, in pieces of about 25 minutes
# of one NVIDIA H200 with 16 cores. An interrupted piece continues where it stopped.
#
#     bench/pieces.sh PIECE OUT      records of STUDY in OUT/STUDY/records.jsonl; data in VEDUTE_DATA
#
#     tables     the studies of tables: about 5000 small fits, fourteen in parallel; then those of spread.py
#     leaders    the three best methods on images, seed 42; leaders-44, leaders-46: the other seeds
#     shared     how much of a latent is shared, and how given views are decoded
#     published  MVP's published settings on images, 300 epochs; its latents in a training of 100
#     polymnist, shapes    the comparison of seven methods, about two hours of training each, three in parallel
#
# Studies of tables may also run on the CPU cores beside a piece of images:
#
#     CUDA_VISIBLE_DEVICES= vedute bench trimmings -o OUT/trimmings/records.jsonl --jobs 10
#
# Beside two trainings on images, 750 fits of trimmings, priors and anchor took 211 minutes of Xeon cores
# altogether: 21 minutes of ten.
set -euo pipefail
piece=${1:-} out=${2:-}
case $piece in
tables | leaders | leaders-44 | leaders-46 | shared | published | polymnist | shapes) ;;
*) out= ;;
esac
if [ -z "$out" ]; then
    grep '^#' "$0" | tail -n +2 >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$here/../src:$here/src OMP_NUM_THREADS=1 TORCHINDUCTOR_COMPILE_THREADS=2
CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d)
export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY
nvidia-cuda-mps-control -d
trap 'echo quit | nvidia-cuda-mps-control' EXIT

bench() {
    local study=$1
    shift
    mkdir -p "$out/$study"
    python -m vedute bench "$study" -o "$out/$study/records.jsonl" "$@" >>"$out/$study.log" 2>&1
}

images() { # two studies at once, two trainings of the first and one of the second
    [ -e "${VEDUTE_DATA:?set it to the folder of the data}"/shapes-0-v1.npz ] || python -m vedute_bench.shapes.make_shapes
    bench "$1-polymnist" --gpu-jobs 2 "${@:2}" &
    bench "$1-shapes" --gpu-jobs 1 "${@:2}" &
    wait
}

mkdir -p "$out"
case $piece in
tables)
    for study in mvp-clustering trimmings anchor priors paper-ablation paper-beta paper-dims paper-curves \
        paper-convergence paper-prior warmup; do
        bench "$study" --gpu-jobs 14
    done
    bench ingredients --rates .1,.5,.7 --gpu-jobs 14
    bench ingredients-paper --rates .1,.5,.7 --gpu-jobs 14
    python -m vedute_bench.experiments.spread --out "$out/spread/records.jsonl"
    ;;
leaders) images leaders --seeds 42 ;;
leaders-44) images leaders --seeds 44 ;;
leaders-46) images leaders --seeds 46 ;;
shared) images paper-kd --retry ;;
published)
    python -m vedute_bench.experiments.dynamics polymnist --epochs 100 --warmup 20 --out "$out/paper-dynamics" \
        >"$out/dynamics.log" 2>&1 &
    bench polymnist --methods "mvp (paper)" --retry &
    bench shapes --rates .5 --methods "mvp (paper)" --retry &
    wait
    ;;
polymnist | shapes) bench "$piece" --gpu-jobs 3 ;;
esac
