#!/usr/bin/env bash
# Two clients of pglite-socket get one advisory lock at once.
#
# All its connections share one session of PostgreSQL, and a session gets its own lock again.
set -euo pipefail
VERSION=0.2.17
PGLITE=0.5.14
PG=8.23.1
EXPECTED='true, false'
SEEN='true, true'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent \
  "@electric-sql/pglite-socket@$VERSION" "@electric-sql/pglite@$PGLITE" "pg@$PG"
cat > "$folder/program.mjs" <<'PROGRAM'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import pg from 'pg'

const free = createServer().listen(0, '127.0.0.1')
await once(free, 'listening')
const { port } = free.address()
await new Promise(resolve => free.close(resolve))
const server = new PGLiteSocketServer({ db: await PGlite.create(), host: '127.0.0.1', port, maxConnections: 2 })
await server.start()
const answers = []
for (let n = 0; n < 2; n++) {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
  await client.connect()
  const { rows: [{ granted }] } = await client.query('SELECT pg_try_advisory_lock(1) AS granted')
  answers.push(granted)
}
console.log(answers.join(', '))
process.exit()
PROGRAM
seen=$(cd "$folder" && node program.mjs)
printf '%s\n' "pglite-socket $VERSION, pglite $PGLITE, pg $PG, Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
