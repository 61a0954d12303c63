#!/bin/sh
# Runs the GPU tests and benchmarks on a machine with a Hopper GPU, torch and pytest. Needs tests/gpu/run's output in
# .gpu/. Results go to $OUT, or to .gpu/results. Every part has a time limit, so that one hang costs only itself.
set -u
cd "$(dirname "$0")/../.."
out=${OUT:-.gpu/results}
mkdir -p "$out"
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export TILEWRIGHT_GPU_LIBRARY="$PWD/.gpu/sm_90a/libgemm.so"
export PYTHONPATH="$PWD/bindings:$PWD/tests:$PWD/tests/gpu:$PWD/benchmarks/gpu"
[ -f .gpu/libtilewright.so ] && export TILEWRIGHT_LIBRARY="$PWD/.gpu/libtilewright.so"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date=$(date +%Y%m%d)
timeout 400 python3 -m pytest tests/gpu -q -p no:cacheprovider --import-mode=importlib -o addopts= --tb=short \
  --junitxml="$out/gpu_tests_$date.xml" >"$out/gpu_tests.log" 2>&1
tests=$?
tail -40 "$out/gpu_tests.log"
timeout 240 python3 benchmarks/gpu/gemm.py --library "$TILEWRIGHT_GPU_LIBRARY" \
  --out "$out/h200_gemm_bf16_$date.json" 2>&1 | tee "$out/benchmark.log"
timeout 240 python3 benchmarks/gpu/speed.py --library "$PWD/.gpu/sm_90a" --out "$out/h200_gemm_speed_$date.json" \
  2>&1 | tee "$out/speed.log"
for tool in memcheck racecheck initcheck synccheck; do
  timeout 120 compute-sanitizer --tool $tool --error-exitcode 9 python3 tests/gpu/smallest.py "$TILEWRIGHT_GPU_LIBRARY" \
    >"$out/$tool.log" 2>&1 || tests=1
  echo "$tool: $(grep -c '^gemm' "$out/$tool.log") kernels, $(grep SUMMARY "$out/$tool.log")"
done
echo "tests: exit code $tests"
exit $tests
