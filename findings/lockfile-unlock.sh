#!/usr/bin/env bash
# unlock() of lockfile removes the lock of another process.
#
# A process holds a lock file. Another one fails to take it, unlocks in its `finally`, and tries again.
set -euo pipefail
VERSION=1.0.4
EXPECTED='EEXIST, EEXIST'
SEEN='EEXIST, granted'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "lockfile@$VERSION"
cat > "$folder/other.js" <<'PROGRAM'
const { lockSync, unlockSync } = require('lockfile')

function use () {
  try {
    lockSync('file.lock')
    return 'granted'
  } catch (error) {
    return error.code
  } finally {
    unlockSync('file.lock')
  }
}

console.log(`${use()}, ${use()}`)
PROGRAM
cat > "$folder/program.js" <<'PROGRAM'
require('lockfile').lockSync('file.lock')
process.stdout.write(require('child_process').execFileSync('node', ['other.js']))
PROGRAM
seen=$(cd "$folder" && node program.js)
printf '%s\n' "lockfile $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
