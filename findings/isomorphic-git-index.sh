#!/usr/bin/env bash
# isomorphic-git writes an index that git has locked.
#
# git makes .git/index.lock while it works, and refuses to begin where that is. isomorphic-git locks among its own calls only.
set -euo pipefail
VERSION=1.44.19
EXPECTED='git: refused; isomorphic-git: refused'
SEEN='git: refused; isomorphic-git: added'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-audit --no-fund --silent "isomorphic-git@$VERSION"
cat > "$folder/program.js" <<'PROGRAM'
const fs = require('fs')
const git = require('isomorphic-git')

async function main () {
  const theirs = require('child_process').spawnSync('git', ['add', 'file'], { cwd: 'work' })
  await git.add({ fs, dir: 'work', filepath: 'file' }).catch(() => {})
  const isAdded = (await git.listFiles({ fs, dir: 'work' })).includes('file')
  console.log(`git: ${theirs.status === 0 ? 'added' : 'refused'}; isomorphic-git: ${isAdded ? 'added' : 'refused'}`)
}

main()
PROGRAM
seen=$(cd "$folder" && git init --quiet work && touch work/file work/.git/index.lock && node program.js)
printf '%s\n' "isomorphic-git $VERSION, $(git --version), Node $(node -p process.versions.node)" "expected: $EXPECTED" "seen:     $seen"
[ "$seen" = "$SEEN" ]
