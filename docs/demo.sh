#!/usr/bin/env bash
# Repairs a copy of the failing program in folder $1 and shows it failing before and training after.
# BIN is the folder of the environment's commands.
set -euo pipefail
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R "$1/." "$copy"
cd "$copy"

step() { printf '\n\033[1m$ %s\033[0m\n' "$1"; }

step 'python train.py'
"$BIN/python" train.py 2>&1 | tail -n 1 | fold -s -w 100 || true

step 'autodetach fix --apply train.py'
"$BIN/autodetach" fix --apply train.py

step 'python train.py'
"$BIN/python" train.py
