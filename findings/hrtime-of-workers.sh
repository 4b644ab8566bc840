#!/usr/bin/env bash
# In Bun and Deno, process.hrtime() begins anew in each worker.
#
# A worker posts its time, and main compares it with an earlier one of its own. In Node the worker's is later.
set -euo pipefail
BUN=1.4.5 DENO=2.9.6
EXPECTED='Bun: later, Deno: later'
SEEN='Bun: earlier, Deno: earlier'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "bun@$BUN" "deno@$DENO"
cat > "$folder/program.mjs" <<'PROGRAM'
import process from 'node:process'
import { Worker, isMainThread, parentPort } from 'node:worker_threads'

if (isMainThread) {
  await new Promise(resolve => setTimeout(resolve, 1000))
  const before = process.hrtime.bigint()
  new Worker(new URL(import.meta.url)).on('message', now => {
    process.stdout.write(now > before ? 'later' : 'earlier')
    process.exit()
  })
} else {
  parentPort.postMessage(process.hrtime.bigint())
}
PROGRAM
seen=$(cd "$folder/node_modules/.bin" && echo "Bun: $(./bun ../../program.mjs), Deno: $(./deno run -A ../../program.mjs)")
printf '%s\n' "Bun $BUN, Deno $DENO" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
