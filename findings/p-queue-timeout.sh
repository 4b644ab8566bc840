#!/usr/bin/env bash
# A timeout of p-queue lets more tasks run at once than its concurrency.
#
# Three tasks of 200 ms are added to a queue with a concurrency of 1 and a timeout of 50 ms.
set -euo pipefail
VERSION=10.0.0
EXPECTED='1 task at most at once, 3 rejected'
SEEN='3 tasks at most at once, 3 rejected'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "p-queue@$VERSION"
cat > "$folder/program.mjs" <<'PROGRAM'
import { setTimeout as sleep } from 'node:timers/promises'
import PQueue from 'p-queue'

const queue = new PQueue({ concurrency: 1, timeout: 50 })
let [running, most] = [0, 0]
async function task () {
  most = Math.max(most, ++running)
  await sleep(200)
  running--
}
const results = await Promise.allSettled([queue.add(task), queue.add(task), queue.add(task)])
const rejected = results.filter(each => each.status === 'rejected').length
console.log(`${most} task${most > 1 ? 's' : ''} at most at once, ${rejected} rejected`)
PROGRAM
seen=$(node "$folder/program.mjs")
printf '%s\n' "p-queue $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
