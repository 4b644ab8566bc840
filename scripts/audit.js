'use strict'

// `npm run audit`: whether the dependencies have known holes, licences that are not allowed, or other sources than the registry: what
// `cargo deny check` says of the crates, and `npm audit` of the development dependencies (the package has no others).
//
// What cannot be asked, for want of the tool or of the network, is skipped. The last line is `N passed, N failed, N skipped`.

const path = require('path')
const { command } = require('./lib/arguments')
const { cargo, environment, find } = require('./lib/cargo')
const { run } = require('./lib/child')
const { npm } = require('./lib/npm')
const { Results } = require('./lib/results')

const root = path.join(__dirname, '..')
const TIMEOUT = 300000

const deny = what => async () => {
  if (find('cargo-deny') === null) return { skipped: 'cargo-deny is not installed' }
  const ended = await run(cargo(), ['deny', '--all-features', 'check', what], { cwd: root, env: environment(), timeout: TIMEOUT })
  if (/failed to fetch advisory database/.test(ended.output)) return { skipped: 'the advisories could not be fetched' }
  return { problem: ended.code === 0 ? undefined : ended.output }
}

async function audit () {
  const ended = await npm(['audit', '--audit-level=high', '--package-lock-only'], { cwd: root, timeout: TIMEOUT })
  if (/audit endpoint returned an error|ENOTFOUND|EAI_AGAIN/.test(ended.output)) return { skipped: 'the registry does not say' }
  return { problem: ended.code === 0 ? undefined : ended.output }
}

const checks = {
  'licences of the crates': deny('licenses'),
  'versions of the crates': deny('bans'),
  'sources of the crates': deny('sources'),
  'advisories on the crates': deny('advisories'),
  'advisories on the development dependencies': audit
}

async function main () {
  const results = new Results()
  for (const [what, check] of Object.entries(checks)) {
    const { skipped, problem } = await check()
    if (skipped) results.skip(what, skipped)
    else await results.of(what, () => { if (problem) throw new Error(problem) })
  }
  results.close()
}

command(main)
