#!/usr/bin/env bash
# Installs what the clients need: a virtual environment in clients/python/.venv and the packages in
# clients/node/node_modules. Run it again at any time: what is up to date is left alone.
set -euo pipefail
cd "$(dirname "$0")"

venv=python/.venv
wanted=python/requirements.txt
if ! cmp -s "$wanted" "$venv/installed.txt"; then
  # python -m venv needs Debian's python3-venv; virtualenv serves as well.
  python3 -m venv --clear "$venv" || python3 -m virtualenv --clear "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$venv/installed.txt"
fi

lock=node/package-lock.json
if ! cmp -s "$lock" node/node_modules/installed.json; then
  (cd node && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
  cp "$lock" node/node_modules/installed.json
fi

echo "the clients are set up"
