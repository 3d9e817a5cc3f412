#!/usr/bin/env bash
# Trains wide residual networks of many widths and seeds on CIFAR-10, in the standard and in the
# maximal update parametrisation (µP). All seeds and learning rates of a width are members of one
# run, which trains them together. Writes OUT/finite_width.md and plots: means and fluctuations of
# losses, predictions and feature kernels over the seeds, their slopes against 1/width, and the loss
# of every learning rate at every width.
#
#     jobs/experiments/finite_width.sh [--quick] CONVOY OUT [DATA.h5]
#
# DATA.h5: CIFAR-10 with raw pixels (convoy data convert --encode raw). --quick: two widths and few
# steps on synthetic images, in less than a minute on a CPU; without DATA.h5.
# Variables: BACKEND, cpu or cuda (cuda if nvidia-smi lists a GPU). PRECISION on a GPU (bf16). DEPTH
# of the networks (10). WIDTHS ("1 2 4 8"). SEEDS, their number (16). RATE, the learning rate
# of all seeds (0.1). RATES, more rates, each for two seeds. STEPS (400). BATCH (128). IMAGES, test
# images for the feature kernels (16). PYTHON, an interpreter with numpy, h5py and, for the
# plots, matplotlib (/usr/bin/python3).
# Papers: Yang, Hu et al., "Tensor Programs V", 2022 (arXiv 2203.03466); Bordelon and Pehlevan,
# "Dynamics of Finite Width Kernel and Prediction Fluctuations in Mean Field Neural Networks", 2023
# (arXiv 2304.03408), whose theory predicts that the variances fall as 1/width.
set -euo pipefail
case "${1:---help}" in -h | --help) sed -n '2,19p' "$0" | cut -c3-; exit 0 ;; esac
fail() { echo "finite_width.sh: $2" >&2; exit "$1"; }
quick=no
if [ "$1" = --quick ]; then quick=yes; shift; fi
case "${1:-}" in -*) fail 2 "unknown flag '$1'; see --help" ;; esac
if [ "$quick" = yes ]; then
  [ $# -eq 2 ] || fail 2 "expected --quick, CONVOY and OUT; see --help"
else
  [ $# -eq 3 ] || fail 2 "expected CONVOY, OUT and DATA.h5; see --help"
fi
convoy=$1 out=$2 data=${3:-}
[ -x "$convoy" ] || fail 1 "$convoy: no such program"
[ "$quick" = yes ] || [ -f "$data" ] || fail 1 "$data: no such file"
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import numpy, h5py' 2>/dev/null || fail 1 "$python: numpy or h5py is missing: apt-get install python3-numpy python3-h5py"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"

if [ "$quick" = yes ]; then
  backend=${BACKEND:-cpu}
  depth=${DEPTH:-10} widths=${WIDTHS:-1 2} seeds=${SEEDS:-3} rates=${RATES:-0.05 0.2} rate=${RATE:-0.1}
  steps=${STEPS:-4} batch=${BATCH:-16} images=${IMAGES:-4}
  data=$out/figures.h5
  "$convoy" data synth "$data" --size 16 --train 64 --test 32 --seed 1 >/dev/null
else
  if nvidia-smi --list-gpus 2>/dev/null | grep '^GPU ' >/dev/null; then backend=${BACKEND:-cuda}; else backend=${BACKEND:-cpu}; fi
  depth=${DEPTH:-10} widths=${WIDTHS:-1 2 4 8} seeds=${SEEDS:-16} rate=${RATE:-0.1}
  rates=${RATES:-0.0125 0.025 0.05 0.1 0.2 0.4 0.8 1.6}
  steps=${STEPS:-400} batch=${BATCH:-128} images=${IMAGES:-16}
fi
flags=(--data "$data" --global-batch "$batch" --steps "$steps" --momentum 0.9 --schedule cosine --backend "$backend"
       --eval-every 0 --checkpoint-every-epochs 0 --keep-checkpoints 1 --log-every "$((steps < 10 ? 1 : 10))")
[ "$backend" = cpu ] || flags+=(--data-on-device --precision "${PRECISION:-bf16}")

# Write the members (trainings that one run computes together): one for each seed at the learning
# rate $rate, and two seeds at each other learning rate.
{
  for ((seed = 1; seed <= seeds; ++seed)); do printf '[[member]]\nseed = %d\nlearning-rate = %s\n' "$seed" "$rate"; done
  for other in $rates; do
    [ "$other" != "$rate" ] || continue
    for seed in 1 2; do printf '[[member]]\nseed = %d\nlearning-rate = %s\n' "$seed" "$other"; done
  done
} >"$out/members.toml"

for parametrisation in standard mup; do
  for width in $widths; do
    run=$out/$parametrisation/$width
    "$convoy" train --model "wrn${depth}_$width" --parametrisation "$parametrisation" --members "$out/members.toml" \
      "${flags[@]}" --out "$run" --overwrite >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
    # Export the weights of the first $seeds members, which train at $rate. The members after them
    # train at other learning rates, and only their losses are needed.
    for ((seed = 1; seed <= seeds; ++seed)); do
      member=$run/members/$seed
      [ ! -f "$member/summary.json" ] || "$convoy" export --checkpoint "$member" --out "$member/weights.safetensors" >/dev/null
    done
    echo "$parametrisation, width $width: $(grep -c ,finished, "$run/members.csv" || true) members finished"
  done
done
"$convoy" predict --checkpoint "$out/mup/${widths%% *}/members/1" --data "$data" --top 1 --out "$out/predicted.csv" >/dev/null
# The networks are evaluated in parallel processes, so each gets one thread.
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "$python" "$here/finite_width.py" "$out" --data "$data" --rate "$rate" --images "$images" --depth "$depth"
