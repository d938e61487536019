#!/bin/sh
# Installs the peers into $GYRUS_PEERS, by default ~/.cache/gyrus-peers (about 500 MB).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
peers=${GYRUS_PEERS:-$HOME/.cache/gyrus-peers}
mkdir -p "$peers/npm"
python3 -m venv "$peers/venv"
"$peers/venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
npm install --prefix "$peers/npm" --no-audit --no-fund @openai/codex@0.169.0
