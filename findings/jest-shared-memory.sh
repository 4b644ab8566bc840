#!/usr/bin/env bash
# In Jest, memory that another thread has posted is no SharedArrayBuffer to `instanceof`.
#
# A test gets shared memory by a MessagePort. Jest gives tests globals of their own, but Node makes what arrives by its own.
set -euo pipefail
VERSION=30.5.2
EXPECTED='instanceof SharedArrayBuffer: true; its length: 8'
SEEN='instanceof SharedArrayBuffer: false; its length: 8'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "jest@$VERSION"
cat > "$folder/memory.test.js" <<'TEST'
const { MessageChannel, receiveMessageOnPort } = require('worker_threads')

test('memory', () => {
  const { port1, port2 } = new MessageChannel()
  port1.postMessage(new SharedArrayBuffer(8))
  const { message } = receiveMessageOnPort(port2)
  port1.close()
  const is = message instanceof SharedArrayBuffer
  process.stdout.write(`seen: instanceof SharedArrayBuffer: ${is}; its length: ${message.byteLength}\n`)
})
TEST
seen=$(cd "$folder" && echo '{}' > package.json && node_modules/.bin/jest --forceExit 2> /dev/null | sed -n 's/^seen: //p')
printf '%s\n' "Jest $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
