#!/usr/bin/env bash
# All that needs a CUDA device: the tests that are marked so, and the corpus rewritten for CUDA, both ways.
#
#   corpus/on_gpu.sh [JOBS]      from the repository, with a Python that has torch with CUDA and the tests' packages
set -u
cd "$(dirname "$0")/.."
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
jobs=${1:-4}
cases=$(mktemp -d)
trap 'rm -rf "$cases"' EXIT
failed=0
python -c 'import torch; print(torch.__version__, torch.cuda.get_device_name(0))' || exit 1
python -m pytest -q -m cuda tests/test_devices.py tests/agent/test_devices.py || failed=1
for style in method device; do
    python corpus/for_cuda.py --style "$style" "$cases/$style" || failed=1
    echo "== corpus/cases for CUDA, style: $style"
    python corpus/score.py --jobs "$jobs" --tool "python -m autodetach fix" "$cases/$style" || failed=1
done
exit $failed
