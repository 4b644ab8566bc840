#!/usr/bin/env bash
# Jest's fake timers move neither timers/promises nor AbortSignal.timeout.
#
# Three timeouts of one second begin under fake timers, and their time is advanced by two.
set -euo pipefail
VERSION=30.5.2
EXPECTED='setTimeout: true, timers/promises: true, AbortSignal.timeout: true'
SEEN='setTimeout: true, timers/promises: false, AbortSignal.timeout: false'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "jest@$VERSION"
cat > "$folder/timers.test.js" <<'TEST'
test('timers', async () => {
  jest.useFakeTimers()
  const timers = require('timers/promises')
  const over = { setTimeout: false, 'timers/promises': false }
  setTimeout(() => { over.setTimeout = true }, 1000)
  timers.setTimeout(1000, undefined, { ref: false }).then(() => { over['timers/promises'] = true })
  const signal = AbortSignal.timeout(1000)
  await jest.advanceTimersByTimeAsync(2000)
  over['AbortSignal.timeout'] = signal.aborted
  process.stdout.write(`seen: ${Object.keys(over).map(name => `${name}: ${over[name]}`).join(', ')}\n`)
})
TEST
seen=$(cd "$folder" && echo '{}' > package.json && node_modules/.bin/jest 2> /dev/null | sed -n 's/^seen: //p')
printf '%s\n' "Jest $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
