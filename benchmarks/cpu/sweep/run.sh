#!/usr/bin/env bash
# A sweep of this CPU (x86_64_v4) through the tile engine: GEMM in fp32 and bf16, convolution and attention in fp32.
#
#   benchmarks/cpu/sweep/run.sh build FOLDER TREES.json   # compiles the kernels into FOLDER; the machine may be busy
#   benchmarks/cpu/sweep/run.sh measure FOLDER            # about ten minutes; keep the machine quiet
#   benchmarks/cpu/sweep/run.sh judge FOLDER RESULT.json  # what the selectors reach; needs LightGBM, trains for GEMM
#
# Each step goes on where an earlier run of it was stopped. PYTHON names the interpreter (NumPy, Click, Pydantic, Jinja2);
# KERNELWRIGHT_LIBRARY names a dispatcher that is built already.
set -euo pipefail
trap 'exit 130' INT TERM
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/benchmarks/cpu/sweep
step=${1:?build, measure or judge}
folder=$(mkdir -p "${2:?a folder}" && cd "$2" && pwd)
python=${PYTHON:-python3}
export PYTHONPATH=$root/arch:$root/codegen:$root/bindings:$root/jit:$root/tile_engine:$root/benchmarks${PYTHONPATH:+:$PYTHONPATH}
engine=("$python" -m kernelwright.tile_engine.interface.cli)
sweeps=(gemm_fp32 gemm_bf16 conv_fp32 attention_fp32)

build() {
  for sweep in "${sweeps[@]}"; do
    source=(--config "$here/$sweep.json")
    [[ $sweep == attention* ]] && source=(--set fmha_essential --filter 'c.dtype == "fp32"')
    "$python" -m kernelwright.codegen build "${source[@]}" --arch x86_64_v4 --name "$sweep" --trees "$1" \
      --cache "$folder/cache" --out "$folder/library/$sweep"
  done
}

# One table: a sweep's library on the problems of KEY, those of few operations and bytes, each EVERY-th.
table() { # KEY OPERATIONS EVERY OPTION…
  local key=$1 most=$2 every=$3
  shift 3
  "${engine[@]}" problems "$key" --most-operations "$most" --most-bytes 1e8 --every "$every" --json >"$folder/$part/$key.json"
  local code=0
  "${engine[@]}" bench --library "$folder/library/$sweep" --problems "$folder/$part/$key.json" --resume "$@" \
    --output "$folder/$part/$key.csv" --duration 0.05 --rounds 5 --warmup 1 --kernel-timeout 60 --tags sweep=cpu || code=$?
  echo "$key $(cut -d' ' -f1-3 /proc/loadavg)" >>"$folder/load.txt"
  [[ $code != 2 ]] || exit 2  # wrong and failed kernels are rows of the table
}

# Held-out problems of everything, then tuning problems of GEMM, where models are trained.
measure() {
  mkdir -p "$folder/held-out" "$folder/tuning"
  part=held-out
  for sweep in gemm_fp32 gemm_bf16; do table "gemm-held-out-${sweep#gemm_}" 2e9 1; done
  sweep=conv_fp32
  for way in forward:forward backward_data:bwd_data backward_weight:bwd_weight; do
    table "conv-held-out-${way%:*}-2d-fp32" 1e9 4 --variant "${way#*:}"
  done
  sweep=attention_fp32
  table attention-held-out-prefill-fp32 4e9 1
  table attention-held-out-decode-fp32 1e9 1
  table attention-held-out-backward-fp32 4e9 1
  part=tuning
  for sweep in gemm_fp32 gemm_bf16; do table "gemm-tuning-${sweep#gemm_}" 2e9 1; done
}

case $step in
  build) build "${3:?a JSON file of tree folders}" ;;
  measure) measure ;;
  judge) exec "$python" "$here/judge.py" "$folder" --out "${3:?where the result goes}" ;;
  *) echo "error: the step is $step; allowed: build, measure, judge" >&2 && exit 2 ;;
esac
