#!/usr/bin/env bash
# A sweep of this CPU (x86_64_v4): every kernel that ships and those of the configurations here, on the engine's problems.
#
#   benchmarks/cpu/sweep/run.sh build FOLDER TREES.json            # compiles the kernels; the machine may be busy
#   benchmarks/cpu/sweep/run.sh measure FOLDER SECONDS CORES…      # e.g. 600 0-3 4-7: two workers of four threads
#   benchmarks/cpu/sweep/run.sh evaluate FOLDER THREADS RESULT.json   # what the dispatcher's choices reach
#
# Each step goes on where an earlier run of it was stopped. PYTHON names the interpreter (NumPy, Click, Pydantic, Jinja2);
# KERNELWRIGHT_LIBRARY names a dispatcher that is built already. Keep the machine quiet while it measures.
set -euo pipefail
trap 'exit 130' INT TERM
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/benchmarks/cpu/sweep
step=${1:?build, measure or evaluate}
folder=$(mkdir -p "${2:?a folder}" && cd "$2" && pwd)
python=${PYTHON:-python3}
export PYTHONPATH=$root/arch:$root/codegen:$root/bindings:$root/jit:$root/tile_engine:$root/benchmarks${PYTHONPATH:+:$PYTHONPATH}
export OPENBLAS_NUM_THREADS=1  # its threads spin after a product, on the cores of the kernels
operations=(gemm convolution attention)

# compile NAME OPTION…: a library
compile() {
  local name=$1
  shift
  "$python" -m kernelwright.codegen build "$@" --arch x86_64_v4 --name "${name##*/}" --trees "$trees" \
    --cache "$folder/cache" --out "$folder/$name"
}

build() {
  trees=$1
  local set
  for op in gemm convolution attention; do compile "ships/$op" --set "$op:essential"; done
  "$python" "$here/wide.py" --set gemm:essential --out "$folder/gemm.json" \
    --keep 'c.layout == "rcr" and c.dtype_a != "fp16" and c.num_d == 0 and not (c.preshuffle or c.grouped or c.batched)' \
    --config "$here/gemm_fp32.json" --config "$here/gemm_bf16.json" --config "$here/gemm_int8.json"
  "$python" "$here/wide.py" --set convolution:essential --out "$folder/convolution.json" --keep 'c.dtype != "fp16" and not c.bias' \
    --config "$here/conv_fp32.json" --config "$here/conv_bf16.json" --config "$here/conv_bf16_weight.json"
  for name in gemm convolution; do compile "$name" --spec "$folder/$name.json"; done
  for name in "${operations[@]}"; do ln -sfn "$([[ $name == attention ]] && echo ships/attention || echo "$name")/x86_64_v4" "$folder/lib-$name"; done
}

measure() {
  local seconds=$1 workers=()
  shift
  for cores in "$@"; do workers+=(--cores "$cores"); done
  cd "$folder"
  "$python" "$here/collect.py" --jobs "$here/jobs.json" --out "$folder/tables" --seconds "$seconds" "${workers[@]}"
}

evaluate() {
  local given=()
  for name in "${operations[@]}"; do given+=(--library "$name=$folder/lib-$name"); done
  given+=(--shipped "gemm=$folder/ships/gemm/x86_64_v4" --shipped "convolution=$folder/ships/convolution/x86_64_v4")
  given+=(--shipped "attention=$folder/ships/attention/x86_64_v4")
  "$python" "$here/evaluate.py" "$folder/tables" --units "$1" "${given[@]}" --out "$2"
}

case $step in
  build) build "${3:?a JSON file of tree folders}" ;;
  measure) measure "${3:?seconds}" "${@:4}" ;;
  evaluate) evaluate "${3:?threads of a worker}" "${4:?where the result goes}" ;;
  *) echo "error: the step is $step; allowed: build, measure, evaluate" >&2 && exit 2 ;;
esac
