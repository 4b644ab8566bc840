#!/usr/bin/env bash
# A lock of os-lock is lost when its own process reads the file.
#
# The lock is one of fcntl(2), which a process loses when it closes any descriptor of the file; readFileSync opens one and closes it.
set -euo pipefail
VERSION=2.0.0
EXPECTED='another process is refused; after a read it is refused'
SEEN='another process is refused; after a read it is granted'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "os-lock@$VERSION"
cat > "$folder/program.js" <<'PROGRAM'
const { execFileSync } = require('child_process')
const { openSync, readFileSync } = require('fs')
const { lock } = require('os-lock')

const take = () => lock(openSync('file', 'r+'), { exclusive: true, immediate: true })
const another = () => execFileSync('node', ['program.js', 'other'])

async function main () {
  await take()
  const before = another()
  readFileSync('file')
  console.log(`another process is ${before}; after a read it is ${another()}`)
}

if (process.argv[2] === 'other') take().then(() => 'granted', () => 'refused').then(text => process.stdout.write(text))
else main()
PROGRAM
seen=$(cd "$folder" && touch file && node program.js)
printf '%s\n' "os-lock $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
