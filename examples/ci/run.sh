#!/usr/bin/env bash
# The step of the action: runs gyrus, and hands the answer on.
set -euo pipefail

given=(--approve "$APPROVE" --on-ask deny)
if [ -n "${ANSWER_SCHEMA:-}" ]; then given+=(--answer-schema "$ANSWER_SCHEMA"); fi
if [ -n "${MODEL:-}" ]; then given+=(--model "$MODEL"); fi

code=0
answer=$(printf '%s' "$GOAL" | gyrus run - "${given[@]}") || code=$?
# The answer is a model's text. A mark that it cannot know keeps it from setting other outputs.
mark="end-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
{
    printf 'answer<<%s\n%s\n%s\n' "$mark" "$answer" "$mark"
    printf 'run=%s\n' "$(gyrus runs list --json --limit 1 | sed -n '1s/.*"run": *"\([0-9a-f-]*\)".*/\1/p')"
} >> "$GITHUB_OUTPUT"
exit "$code"
