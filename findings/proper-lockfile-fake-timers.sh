#!/usr/bin/env bash
# Under fake timers, a lock of proper-lockfile is lost to another process.
#
# A process takes a lock that is stale after two seconds. Its timers, by which it would renew the lock, are fake. Another process asks
# at once, and after three seconds.
set -euo pipefail
VERSION=4.1.2
FAKE=15.5.0
EXPECTED='ELOCKED, ELOCKED'
SEEN='ELOCKED, granted'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "proper-lockfile@$VERSION" "@sinonjs/fake-timers@$FAKE"
cat > "$folder/other.js" <<'PROGRAM'
require('proper-lockfile').lock('file', { stale: 2000 }).then(() => 'granted', error => error.code).then(text => process.stdout.write(text))
PROGRAM
cat > "$folder/program.js" <<'PROGRAM'
const { execFileSync } = require('child_process')
const { install } = require('@sinonjs/fake-timers')
const { lock } = require('proper-lockfile')

const realTimeout = setTimeout
const other = () => execFileSync(process.execPath, ['other.js']).toString()

async function main () {
  install({ toFake: ['setTimeout', 'clearTimeout'] })
  await lock('file', { stale: 2000, onCompromised () {} })
  const first = other()
  await new Promise(resolve => realTimeout(resolve, 3000))
  console.log(`${first}, ${other()}`)
}

main()
PROGRAM
seen=$(cd "$folder" && touch file && node program.js)
printf '%s\n' "proper-lockfile $VERSION, @sinonjs/fake-timers $FAKE, Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
