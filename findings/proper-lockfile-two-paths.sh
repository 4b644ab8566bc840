#!/usr/bin/env bash
# Of two locks of proper-lockfile with different lockfilePaths of one file, the second is never released.
#
# Two locks with lock files of their own are taken for one folder, and released in that order.
set -euo pipefail
VERSION=4.1.2
EXPECTED='released, released; left: none'
SEEN='released, ERELEASED; left: b.lock'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "proper-lockfile@$VERSION"
cat > "$folder/program.js" <<'PROGRAM'
const fs = require('fs')
const { lock } = require('proper-lockfile')

const end = release => release().then(() => 'released', error => error.code)

async function main () {
  const [a, b] = [await lock('data', { lockfilePath: 'data/a.lock' }), await lock('data', { lockfilePath: 'data/b.lock' })]
  console.log(`${await end(a)}, ${await end(b)}; left: ${fs.readdirSync('data').join() || 'none'}`)
}

main()
PROGRAM
seen=$(cd "$folder" && mkdir data && node program.js)
printf '%s\n' "proper-lockfile $VERSION on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
