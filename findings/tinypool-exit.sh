#!/usr/bin/env bash
# A task of Tinypool whose thread exits stays pending, and so does the next one.
#
# The only thread of a pool calls process.exit() in a task. Another task is given to the pool. Piscina, whose fork it is, rejects the first.
set -euo pipefail
VERSION=2.2.0
EXPECTED='the task: rejected; the next: done'
SEEN='the task: pending after 2 s; the next: pending after 2 s'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "tinypool@$VERSION"
cat > "$folder/task.mjs" <<'TASK'
export default ({ exits }) => exits ? process.exit() : 'done'
TASK
cat > "$folder/program.mjs" <<'PROGRAM'
import { setTimeout as sleep } from 'node:timers/promises'
import { Tinypool } from 'tinypool'

const pool = new Tinypool({ filename: new URL('task.mjs', import.meta.url).href, minThreads: 1, maxThreads: 1 })
const outcome = task => Promise.race([pool.run(task).catch(() => 'rejected'), sleep(2000, 'pending after 2 s')])
const first = await outcome({ exits: true })
console.log(`the task: ${first}; the next: ${await outcome({ exits: false })}`)
process.exit()
PROGRAM
seen=$(node "$folder/program.mjs")
printf '%s\n' "Tinypool $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
