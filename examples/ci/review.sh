#!/bin/sh
# Has gyrus review what is about to be committed. Ends with 1 if it finds something, so that git
# does not commit. A hook of pre-commit, or of git itself: .git/hooks/pre-commit.
#
# GYRUS_REVIEW says what matters, in words. A model is set up by `gyrus setup` or GYRUS_MODEL.
set -eu

schema='{"type": "object", "properties": {"findings": {"type": "array", "items": {"type": "string"}}},
"required": ["findings"], "additionalProperties": false}'
what=${GYRUS_REVIEW:-"mistakes that would break the program, and secrets"}

if git diff --cached --quiet; then
    exit 0
fi
# The patch is data that nobody vouches for; read-only, it can change nothing and nobody is asked.
if ! answer=$(git diff --cached | gyrus run \
    "Review the patch that comes with this. Look for $what. List what you find; an empty list if there is nothing." \
    --file - --approve read-only --on-ask deny --answer-schema "$schema" --max-steps 20 2>/dev/null); then
    # A review that did not happen holds nobody up, but is not silent.
    echo "gyrus could not review this; see: gyrus runs list" >&2
    exit 0
fi
if [ "$answer" = '{"findings":[]}' ]; then
    exit 0
fi
echo "gyrus found something; to commit all the same: git commit --no-verify" >&2
printf '%s\n' "$answer" >&2
exit 1
