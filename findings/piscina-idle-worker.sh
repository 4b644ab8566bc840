#!/usr/bin/env bash
# An idle worker of Piscina runs no timers of a task that has ended.
#
# A task starts a timer of 50 ms, awaits nothing, and returns. Its thread stays alive, idle, and is given another task 2 s later.
set -euo pipefail
VERSION=5.3.2
EXPECTED='the timer has fired: true after 2 s, true after the next task'
SEEN='the timer has fired: false after 2 s, false after the next task'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "piscina@$VERSION"
cat > "$folder/task.mjs" <<'TASK'
export default word => { setTimeout(() => { Atomics.store(word, 0, 1) }, 50) }
TASK
cat > "$folder/program.mjs" <<'PROGRAM'
import { setTimeout as sleep } from 'node:timers/promises'
import { Piscina } from 'piscina'

const pool = new Piscina({ filename: new URL('task.mjs', import.meta.url).href, maxThreads: 1, idleTimeout: 60000 })
const [word, other] = [1, 2].map(() => new Int32Array(new SharedArrayBuffer(4)))
const fired = () => Atomics.load(word, 0) === 1
await pool.run(word)
await sleep(2000)
const idle = fired()
await pool.run(other)
console.log(`the timer has fired: ${idle} after 2 s, ${fired()} after the next task`)
await pool.destroy()
PROGRAM
seen=$(node "$folder/program.mjs")
printf '%s\n' "Piscina $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
