#!/usr/bin/env bash
# A sweep of this CPU (x86_64_v4) through the tile engine: GEMM in fp32 and bf16, convolution and attention in fp32.
#
#   benchmarks/cpu/sweep/run.sh build FOLDER TREES.json   # compiles the kernels into FOLDER; the machine may be busy
#   benchmarks/cpu/sweep/run.sh measure FOLDER            # about ten minutes; keep the machine quiet
#   benchmarks/cpu/sweep/run.sh judge FOLDER RESULT.json  # what the selectors reach; needs LightGBM, trains for GEMM
#
# Each step goes on where an earlier run of it was stopped. PYTHON names the interpreter (NumPy, Click, Pydantic, Jinja2);
# KERNELWRIGHT_LIBRARY names a dispatcher that is built already. Models and tables of tuning problems are in FOLDER/tuning,
# of held-out ones in FOLDER/held_out.
set -euo pipefail
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

# Problems of a sweep's part, bounded so that a launch takes milliseconds.
problems() {
  case $1 in
    gemm_*) select_problems "gemm-$2-${1#gemm_}" 1e9 1 ;;
    conv_*) for way in forward backward_data backward_weight; do select_problems "conv-$2-$way-2d-fp32" 5e8 4; done ;;
    attention_*)
      select_problems "attention-$2-prefill-fp32" 4e9 1
      select_problems "attention-$2-decode-fp32" 1e9 1
      select_problems "attention-$2-backward-fp32" 4e9 1
      ;;
  esac
}

select_problems() {
  "${engine[@]}" problems "$1" --most-operations "$2" --every "$3" --json >"$folder/$part/$1.json"
  "${engine[@]}" bench --library "$folder/library/$sweep" --problems "$folder/$part/$1.json" --resume \
    --output "$folder/$part/$1.csv" --duration 0.05 --rounds 5 --warmup 1 --kernel-timeout 60 --tags sweep=cpu
  echo "$1 $(cut -d' ' -f1-3 /proc/loadavg)" >>"$folder/load.txt"
}

measure() {
  for part in held-out tuning; do
    mkdir -p "$folder/$part"
    for sweep in "${sweeps[@]}"; do problems "$sweep" "$part"; done
  done
}

case $step in
  build) build "${3:?a JSON file of tree folders}" ;;
  measure) measure ;;
  judge) exec "$python" "$here/judge.py" "$folder" --out "${3:?where the result goes}" ;;
  *) echo "error: the step is $step; allowed: build, measure, judge" >&2 && exit 2 ;;
esac
