#!/usr/bin/env bash
# After jest.resetModules(), proper-lockfile does not know the lock that its process holds.
#
# A test takes a lock, empties the registry of modules, and gives the lock back by the file's name.
set -euo pipefail
JEST=30.5.2
VERSION=4.1.2
EXPECTED='released'
SEEN='ENOTACQUIRED'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "jest@$JEST" "proper-lockfile@$VERSION"
cat > "$folder/lock.test.js" <<'TEST'
test('lock', async () => {
  await require('proper-lockfile').lock(__filename)
  jest.resetModules()
  const result = await require('proper-lockfile').unlock(__filename).then(() => 'released', error => error.code)
  process.stdout.write(`seen: ${result}\n`)
})
TEST
seen=$(cd "$folder" && echo '{}' > package.json && node_modules/.bin/jest 2> /dev/null | sed -n 's/^seen: //p')
printf '%s\n' "proper-lockfile $VERSION in Jest $JEST on Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
