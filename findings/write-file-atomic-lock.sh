#!/usr/bin/env bash
# A lock by fs-native-extensions excludes nobody once its holder has written the file by write-file-atomic.
#
# The lock belongs to the file that was opened, and write-file-atomic puts another file in its place.
set -euo pipefail
VERSION=1.5.1
WRITE=7.0.1
EXPECTED='before: refused; after: refused'
SEEN='before: refused; after: granted'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "fs-native-extensions@$VERSION" "write-file-atomic@$WRITE"
cat > "$folder/program.js" <<'PROGRAM'
const { execFileSync } = require('child_process')
const { openSync } = require('fs')
const { tryLock } = require('fs-native-extensions')
const writeFileAtomic = require('write-file-atomic')

const attempt = () => tryLock(openSync('settings.json', 'r+'))
const inAnotherProcess = () => execFileSync(process.execPath, [__filename, 'attempt'])
if (process.argv[2] === 'attempt') {
  process.stdout.write(attempt() ? 'granted' : 'refused')
} else {
  attempt()
  const before = inAnotherProcess()
  writeFileAtomic.sync('settings.json', '{}')
  console.log(`before: ${before}; after: ${inAnotherProcess()}`)
}
PROGRAM
seen=$(cd "$folder" && touch settings.json && node program.js)
printf '%s\n' "fs-native-extensions $VERSION, write-file-atomic $WRITE, Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
