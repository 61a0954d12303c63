#!/bin/sh
# Runs the GPU tests and benchmarks on a machine with a Hopper GPU, torch and pytest: the one command of a full pass.
#
# usage: sh tests/gpu/on_device.sh [PART …]     all parts unless some are named
#   build       kernels (if .gpu/ has none; attention where $KERNELWRIGHT_FLASHINFER names the unpacked flashinfer wheel), dispatcher and, for `tests` and `two`, sampled members, by the machine's nvcc,
#               gcc and g++; only where $KERNELWRIGHT_CUTLASS names the folder of the unpacked nvidia-cutlass wheel
#   tests       every test of tests/gpu; those that a library compiled by clang can, too, if one is in .gpu/clang/sm_90a
#   sanitizers  memcheck, racecheck, initcheck and synccheck of compute-sanitizer on the smallest shapes of each template
#               and on every convolution kernel, if .gpu/conv has a library
#   conv        convolutions against cuDNN, if .gpu/conv has a library
#   attention   the benchmarks of attention, if .gpu/attention has its library
#   gemm speed  the benchmarks; speed measures the shipped library too, if $KERNELWRIGHT_SHIPPED (.gpu/shipped/sm_90a unless
#               set) names the folder of its libgemm.so, which `./pants package kernels/gemm` makes
#   two         two GPUs in one process: every test with ordinal 1 while 0 is current and the other way round, both at
#               once for $KERNELWRIGHT_GPU_SECONDS (60), operands, workspaces and streams of the other device; results in
#               two_gpus_DATE.json; not part of a full pass
#   sweep       the times that selection is fitted to; not part of a full pass
#   wide        the kernels of benchmarks/gpu/wide.json, by the machine's nvcc, into .gpu/wide; not part of a full pass
#   collect     times of every plain bf16 and fp8 kernel (of .gpu/wide if it is there, else of .gpu/sm_90a) on the tile engine's
#               problems, tuning and held-out, in $KERNELWRIGHT_GPU_SECONDS (300); benchmarks/gpu/collect.py says more. Continues
#               the tables in $KERNELWRIGHT_COLLECTED; writes collect.tgz; not part of a full pass
# Without `build` it needs the output of tests/gpu/run in .gpu/. Results go to $OUT, or to .gpu/results. Every part has a
# time limit, so that one hang costs only itself. Exit status 0: everything passed.
set -u
cd "$(dirname "$0")/../.."
out=${OUT:-.gpu/results}
mkdir -p "$out" .gpu
parts=" ${*:-build tests sanitizers gemm speed conv attention} "
failed=""
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
here=$PWD
export KERNELWRIGHT_GPU_LIBRARY="$here/.gpu/sm_90a/libgemm.so" KERNELWRIGHT_LIBRARY="$here/.gpu/libkernelwright.so"
export KERNELWRIGHT_GPU_CONV="$here/.gpu/conv/sm_90a"
export KERNELWRIGHT_GPU_ATTENTION="$here/.gpu/attention/libattention.so"
export PYTHONPATH="$here/bindings:$here/arch:$here/codegen:$here/jit:$here/tile_engine:$here/tests:$here/tests/gpu${PYTHONPATH:+:$PYTHONPATH}"
date=$(date +%Y%m%d)

wanted() { case $parts in *" $1 "*) true ;; *) false ;; esac }
# run NAME SECONDS COMMAND …: its output goes to a log, its end to the screen
run() {
  name=$1 limit=$2
  shift 2
  if timeout "$limit" "$@" >"$out/$name.log" 2>&1; then state=passed; else state="FAILED (exit code $?)" failed="$failed $name"; fi
  tail -n "${lines:-3}" "$out/$name.log"
  echo "== $name: $state"
}
pytest="python3 -m pytest -q -p no:cacheprovider --import-mode=importlib -o addopts= --tb=short"

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
if wanted build && [ -n "${KERNELWRIGHT_CUTLASS:-}" ]; then
  run dispatcher 120 g++ -std=c++17 -O2 -Wall -fPIC -shared -fvisibility=hidden -fno-exceptions -fno-rtti \
    -I dispatcher_cpp/include $(find dispatcher_cpp/src dispatcher_cpp/compat -name '*.cpp') -o .gpu/libkernelwright.so -ldl -pthread
  [ -f "$KERNELWRIGHT_GPU_LIBRARY" ] || run build 1200 python3 tests/gpu/build_here.py --cutlass "$KERNELWRIGHT_CUTLASS"
  [ -f "$KERNELWRIGHT_GPU_ATTENTION" ] || [ -z "${KERNELWRIGHT_FLASHINFER:-}" ] ||
    run attention_build 1200 python3 tests/gpu/build_here.py --cutlass "$KERNELWRIGHT_CUTLASS" --flashinfer "$KERNELWRIGHT_FLASHINFER"
  [ -d .gpu/members ] || { ! wanted tests && ! wanted two; } ||
    run members 1200 python3 tests/gpu/build_here.py --cutlass "$KERNELWRIGHT_CUTLASS" --members "${KERNELWRIGHT_GPU_SAMPLE:-60}"
fi
if wanted tests; then
  lines=25 run tests 400 $pytest tests/gpu -rs --junitxml="$out/gpu_tests_$date.xml"
  if [ -d .gpu/clang/sm_90a ]; then
    lines=8 run clang 200 env KERNELWRIGHT_GPU_LIBRARY="$here/.gpu/clang/sm_90a/libgemm.so" \
      $pytest tests/gpu/gemm_gpu_test.py tests/gpu/random_gpu_test.py tests/gpu/no_device_test.py \
      -k "not every_layout_and_dtype"
  fi
fi
if wanted two; then
  # Three processes at the same time: the tests in both directions, and those of two devices in one process.
  for pair in "1 0" "0 1"; do
    (
      set -- $pair
      timeout 400 env KERNELWRIGHT_GPU_ORDINAL=$1 KERNELWRIGHT_GPU_CURRENT=$2 $pytest tests/gpu -rs \
        --ignore=tests/gpu/two_gpu_test.py --junitxml="$out/two_gpus_$1_while_$2_$date.xml" >"$out/suite_$1_while_$2.log" 2>&1
      echo "exit code $?" >"$out/suite_$1_while_$2.end"
    ) &
  done
  lines=60 run two 400 $pytest tests/gpu/two_gpu_test.py -rsP --junitxml="$out/two_gpus_$date.xml"
  wait
  for end in "$out"/suite_*.end; do
    name=$(basename "$end" .end)
    tail -n 25 "$out/$name.log"
    echo "== $name: $(cat "$end")"
    grep -q "exit code 0" "$end" || failed="$failed $name"
    rm "$end"
  done
  run two_results 60 python3 benchmarks/gpu/two_gpus.py "$out"/two_gpus_*"$date.xml" --out "$out/two_gpus_$date.json"
fi
if wanted sanitizers; then
  for tool in memcheck racecheck initcheck synccheck; do
    for library in sm_90a clang/sm_90a; do
      [ -f ".gpu/$library/libgemm.so" ] || continue
      name=${tool}_${library%/sm_90a}
      (
        timeout 400 compute-sanitizer --tool $tool --error-exitcode 9 \
          python3 tests/gpu/smallest.py ".gpu/$library/libgemm.so" >"$out/$name.log" 2>&1
        echo "== $name: exit code $?, $(grep -c '^gemm' "$out/$name.log") kernels, $(grep SUMMARY "$out/$name.log")" >"$out/$name.end"
      ) &
    done
  done
  if [ -f "$KERNELWRIGHT_GPU_ATTENTION" ]; then
    for tool in memcheck racecheck initcheck synccheck; do
      # racecheck does not see what mbarriers order, which the other families use: docs/benchmarks.md.
      of=""
      [ $tool = racecheck ] && of="splitkv appendkv"
      run attention_$tool 400 compute-sanitizer --tool $tool --error-exitcode 9 \
        python3 tests/gpu/attention_smallest.py "$KERNELWRIGHT_GPU_ATTENTION" $of
    done
  fi
  wait
  cat "$out"/*.end
  for end in "$out"/*.end; do
    grep -q "exit code 0, [1-9]" "$end" || failed="$failed $(basename "$end" .end)"
    rm "$end"
  done
fi
if wanted sanitizers && [ -d "$KERNELWRIGHT_GPU_CONV" ]; then
  for tool in memcheck racecheck initcheck synccheck; do
    run ${tool}_conv 200 compute-sanitizer --tool $tool --error-exitcode 9 \
      python3 tests/gpu/smallest_conv.py "$KERNELWRIGHT_GPU_CONV"
  done
fi
if wanted conv && [ -d "$KERNELWRIGHT_GPU_CONV" ]; then
  lines=60 run conv 240 python3 benchmarks/gpu/conv.py --library "$KERNELWRIGHT_GPU_CONV" --out "$out/h200_conv_$date.json"
fi
if wanted gemm; then
  lines=40 run gemm 240 python3 benchmarks/gpu/gemm.py --library "$KERNELWRIGHT_GPU_LIBRARY" --out "$out/h200_gemm_bf16_$date.json"
fi
if wanted speed; then
  lines=40 run speed 420 python3 benchmarks/gpu/speed.py --library .gpu/sm_90a --out "$out/h200_gemm_speed_$date.json"
  shipped=${KERNELWRIGHT_SHIPPED:-.gpu/shipped/sm_90a}
  if [ -f "$shipped/libgemm.so" ]; then
    lines=40 run speed_shipped 300 python3 benchmarks/gpu/speed.py --library "$shipped" --only bf16,fp16,fp8 \
      --out "$out/h200_gemm_speed_shipped_$date.json"
  fi
fi
if wanted attention && [ -f "$KERNELWRIGHT_GPU_ATTENTION" ]; then
  for what in attention attention_cache; do
    lines=40 run $what 300 python3 benchmarks/gpu/$what.py --library "$(dirname "$KERNELWRIGHT_GPU_ATTENTION")" \
      --out "$out/h200_${what}_$date.json"
  done
  lines=40 run attention_backward 300 python3 benchmarks/gpu/attention_backward.py --library "$KERNELWRIGHT_GPU_ATTENTION" \
    --out "$out/h200_attention_backward_$date.json"
fi
if wanted sweep; then
  lines=80 run sweep 400 python3 benchmarks/gpu/sweep.py --library .gpu/sm_90a --out "$out/h200_sweep_$date.json" \
    --dtypes "${KERNELWRIGHT_GPU_DTYPES:-bf16,fp8,int8}"
fi
if wanted wide; then
  run wide 400 python3 tests/gpu/build_here.py --cutlass "${KERNELWRIGHT_CUTLASS:?names the folder of the unpacked nvidia-cutlass wheel}" \
    --specs benchmarks/gpu/wide.json
fi
if wanted collect; then
  seconds=${KERNELWRIGHT_GPU_SECONDS:-300} library=.gpu/sm_90a shipped=${KERNELWRIGHT_SHIPPED:-.gpu/shipped/sm_90a}
  [ -f .gpu/wide/libgemm.so ] && library=.gpu/wide
  mkdir -p "$out/collect"
  cp "$library/manifest.json" "$out/collect" # the specs of the measured kernels
  [ -d "${KERNELWRIGHT_COLLECTED:-}" ] && cp "$KERNELWRIGHT_COLLECTED"/*.csv "$KERNELWRIGHT_COLLECTED/lost" "$out/collect"
  set -- --library "$library" --out "$out/collect" --seconds "$seconds"
  [ -f "$shipped/libgemm.so" ] && set -- "$@" --shipped "$shipped"
  lines=60 run collect $((seconds + 60)) python3 benchmarks/gpu/collect.py "$@"
  rm -f "$out/collect/current"
  tar -czf "$out/collect.tgz" -C "$out" collect && rm -r "$out/collect"
fi
echo "failed:${failed:- nothing}"
[ -z "$failed" ]
