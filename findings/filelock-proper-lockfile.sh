#!/usr/bin/env bash
# A file that Python's filelock has guarded once cannot be locked by proper-lockfile.
#
# Both guard FILE by FILE.lock. filelock leaves it as an empty file after it has unlocked; proper-lockfile makes a folder there, takes the
# file for a lock whose owner is alive, and later for a stale one, which it cannot remove.
set -euo pipefail
VERSION=4.1.2
FILELOCK=4.3.1
EXPECTED='granted, granted'
SEEN='ELOCKED, ENOTDIR'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "proper-lockfile@$VERSION"
python3 -m pip install --target "$folder/python" --quiet --disable-pip-version-check --root-user-action ignore "filelock==$FILELOCK"
touch "$folder/state.json"
PYTHONPATH="$folder/python" python3 - "$folder/state.json.lock" <<'PROGRAM'
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    pass
PROGRAM
cat > "$folder/program.js" <<'PROGRAM'
const { lock } = require('proper-lockfile')

const attempt = async () => {
  const release = await lock('state.json', { stale: 2000 })
  await release()
  return 'granted'
}
const outcome = () => attempt().catch(error => error.code)

async function main () {
  const first = await outcome()
  await new Promise(resolve => setTimeout(resolve, 3000))
  console.log(`${first}, ${await outcome()}`)
}

main()
PROGRAM
seen=$(cd "$folder" && node program.js)
printf '%s\n' "proper-lockfile $VERSION, filelock $FILELOCK, Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
