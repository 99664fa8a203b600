#!/bin/sh
# What drafting gains on this machine: the shipped CPU profiles against the same model without speculation.
set -eu
cd "$(dirname "$0")/.."
for suite in coding agent; do
    python -m agent bench embedded embedded-draft --against-plain --suite "$suite" --runs 3 --rounds 3 \
        --json "benchmarks/results/drafting-$suite.json" "$@"
done
