#!/bin/sh
# What `make demo` shows: a failing test, the agent at work, its change, the passing test, and what it took.
# Needs `agent` and `python3` on PATH. Works in a fresh copy of first-fix in .demo, which may be deleted.
set -eu

examples=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mkdir -p .demo
folder=$(mktemp -d .demo/first-fix-XXXXXX)
cp -R "$examples/first-fix/." "$folder"
program=$(command -v agent || echo agent)
cd "$folder"

title() {
    printf '\n== %s\n' "$1"
}

commit_everything() {
    git init -q .
    git add .
    git -c user.name=Demo -c user.email=demo@localhost -c commit.gpgsign=false commit -q -m "Room bookings"
}

title "A repository with a bug: $folder"
commit_everything
cat task.md

title "python3 -m unittest -q"
if python3 -m unittest -q 2>&1; then
    echo "demo: the test passes already, so there is nothing to show" >&2
    exit 1
fi

# Progress, which is on stderr, joins the rest, so that a pipe or a log has it too; the figures are kept for the end.
title "agent run task.md"
echo "(the server starts and the model reads the task: on two cores that takes a minute or two the first time)"
result=$(mktemp)
trap 'rm -f "$result"' EXIT
status=0
agent run task.md --output json 2>&1 >"$result" || status=$?

title "git diff"
git --no-pager diff

title "python3 -m unittest -q"
python3 -m unittest -q 2>&1 || true

title "What it took"
if [ -s "$result" ]; then
    python3 "$examples/show_result.py" "$result"
fi
case "$status" in
0) ;;
1 | 3) echo "not solved this time (exit code $status); try again, a small model does not always find it" ;;
*) echo "the run failed (exit code $status), the reason is above" ;;
esac

title "Next"
echo "The model server goes on running; \`.venv/bin/agent server stop\` ends it."
echo "What the agent changed is taken back by \`cd $folder && $program undo\`."
echo "To try it on your own code, type \`$program\` in your repository."
exit "$status"
