#!/usr/bin/env bash
# A task of p-queue that had to wait runs in the AsyncLocalStorage of the one before it.
#
# Two requests, each with a store of its own, add a task to a queue whose concurrency is 1; each task tells what store it has.
set -euo pipefail
VERSION=9.3.5
EXPECTED='of anna: anna; of bert: bert'
SEEN='of anna: anna; of bert: anna'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "p-queue@$VERSION"
cat > "$folder/program.mjs" <<'PROGRAM'
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import PQueue from 'p-queue'

const user = new AsyncLocalStorage()
const queue = new PQueue({ concurrency: 1 })
const request = name => user.run(name, () => queue.add(async () => {
  await sleep(10)
  return `of ${name}: ${user.getStore()}`
}))
console.log((await Promise.all([request('anna'), request('bert')])).join('; '))
PROGRAM
seen=$(node "$folder/program.mjs")
printf '%s\n' "p-queue $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
