#!/usr/bin/env bash
# flock(1) and fs-native-extensions do not exclude each other.
#
# A process holds an exclusive lock of a file by the one, and another asks for it by the other. Locks of flock(2) (flock(1), Python's
# fcntl.flock, Rust's File::lock, Deno) and of fcntl(2) (fs-native-extensions, os-lock, Python's fcntl.lockf) are apart on Linux.
set -euo pipefail
VERSION=1.5.1
EXPECTED='refused, refused'
SEEN='granted, refused'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "fs-native-extensions@$VERSION"
cat > "$folder/try.js" <<'PROGRAM'
const { openSync } = require('fs')
const { tryLock } = require('fs-native-extensions')
process.stdout.write(tryLock(openSync('file', 'r+')) ? 'granted' : 'refused')
PROGRAM
cat > "$folder/twice.js" <<'PROGRAM'
const { openSync } = require('fs')
const { tryLock } = require('fs-native-extensions')
tryLock(openSync('file', 'r+'))
process.stdout.write(require('child_process').execFileSync('node', ['try.js']))
PROGRAM
seen=$(cd "$folder" && touch file && flock file node try.js && printf ', ' && node twice.js)
printf '%s\n' "fs-native-extensions $VERSION, $(flock --version), Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
