'use strict'
// nodes: >=16 (older ones lack what the engines need)
// subjects: none

// Memory that processes share, at its limits: other namespaces, full drives, other versions, an earlier boot, no more
// mappings, a process that stands still.

const assert = require('assert')
const { execFileSync, spawnSync } = require('child_process')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { runForJSON, runNode } = require('../fixtures/run-node')
const { memoryFolder, unavailable } = require('../fixtures/shared-memory')
const { startProcess, startProcesses, until } = require('../fixtures/shared-memory-process')
const size = require('../fixtures/size')
const api = require('../..')
const { memory, processLocks, sharedMemory } = require('../../processes')

const PROCESSES = JSON.stringify(path.join(__dirname, '..', '..', 'processes'))
const LENGTH = 4096
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

const isAble = (...command) => spawnSync(command[0], command.slice(1)).status === 0
const OTHER_PIDS = ['unshare', '--user', '--pid', '--map-root-user', '--fork', '--kill-child', '--mount-proc']
const OTHER_MOUNTS = ['unshare', '--user', '--mount', '--map-root-user']

const lock = async ({ api, memory, kept }) => { kept.token = await new api.AsyncLock(memory).lockAsync() }

test('processes of other PID namespaces exclude one another, see deaths, and have no pid', {
  skip: unavailable || (!isAble(...OTHER_PIDS, 'true') && 'it takes user namespaces')
}, async t => {
  const { file, memory, words } = await startProcesses(t, LENGTH, 0)
  const [one, other] = await Promise.all([1, 2].map(() => startProcess(t, file, LENGTH, OTHER_PIDS)))
  const mine = new api.AsyncLock(memory)
  const count = async ({ api, memory, words }, times) => {
    const lock = new api.AsyncLock(memory)
    for (let n = 0; n < times; n++) {
      const token = await lock.lockAsync()
      const value = words[16]
      for (let n = 0; n < 1000; n++);
      words[16] = value + 1
      token.unlock()
    }
  }
  await Promise.all([one.run(count, 2000), other.run(count, 2000), count({ api, memory, words }, 2000)])
  assert.strictEqual(words[16], 6000)
  const token = mine.tryLock()
  assert.deepStrictEqual(await one.run(({ api, memory }) => new api.AsyncLock(memory).owner),
    { pid: null, threadId: null })
  token.unlock()
  await one.run(lock)
  assert.deepStrictEqual(mine.owner, { pid: null, threadId: null })
  await assert.rejects(mine.lockAsync({ timeout: 5 }), ({ owner, message }) =>
    owner.pid === null && message.endsWith('held by another process'))
  const claim = mine.lockAsync()
  await one.kill()
  assert.strictEqual((await claim).ownerDied, true)
  const heir = other.run(({ api, memory }) => new api.AsyncLock(memory).lockAsync().then(token => token.ownerDied))
  ;(await claim).unlock()
  assert.strictEqual(await heir, false)
})

test('on a full drive there is an error with a code, no file, and no signal', {
  skip: unavailable || (!isAble(...OTHER_MOUNTS, 'mount', '-t', 'tmpfs', 'none', '/mnt') && 'it takes user namespaces')
}, async t => {
  const folder = memoryFolder(t)
  const program = `
    const fs = require('fs')
    const { memory, processLocks, sharedMemory } = require(${PROCESSES})
    const code = work => { try { return work() } catch (error) { return error.code } }
    const folder = ${JSON.stringify(folder)}
    const codes = [code(() => sharedMemory(folder + '/large', 1 << 20))]
    const files = fs.readdirSync(folder)
    const words = new Int32Array(sharedMemory(folder + '/small', 4))
    codes.push(code(() => { for (;;) fs.appendFileSync(folder + '/rest', Buffer.alloc(4096)) }))
    words[0]++
    codes.push(code(() => sharedMemory(folder + '/none', 4)))
    console.log(JSON.stringify({ codes, files, left: fs.readdirSync(folder).sort(), value: words[0] }))`
  const said = execFileSync(OTHER_MOUNTS[0], [...OTHER_MOUNTS.slice(1), 'sh', '-c',
    'mount -t tmpfs -o size=512k none "$1" && exec "$2" -e "$3"', 'sh', folder, process.execPath, program])
  assert.deepStrictEqual(JSON.parse(said), {
    codes: ['ENOSPC', 'ENOSPC', 'ENOSPC'], files: [], left: ['rest', 'small'], value: 1
  })
})

/** Where the header has what is compared: the mark, the number of the layout, and the kind. */
const HEADER = { mark: 3, layout: 16, kind: 20 }
const BOOT = 40

for (const [what, skip, codes, make, open] of [
  ['sharedMemory', unavailable, ['ERR_SHARED_MEMORY_INVALID'], async file => sharedMemory(file, 8),
    file => sharedMemory(file, 8)],
  ['memory', process.platform !== 'linux' && 'only Linux has it', ['ERR_LOCK_UNAVAILABLE', 'ERR_SHARED_MEMORY_INVALID'],
    async file => processLocks(memory(path.dirname(file))).request('a', () => {}),
    file => processLocks(memory(path.dirname(file))).request('a', () => 'held')]
]) {
  /** Makes a file in another process, so that this one has not mapped it. */
  const makeFile = async t => {
    const folder = memoryFolder(t)
    const file = path.join(folder, 'memory')
    await runNode(t, ['-e', `
      const path = require('path')
      const { memory, processLocks, sharedMemory } = require(${PROCESSES})
      ;(${make})(${JSON.stringify(file)})`])
    const [name] = fs.readdirSync(folder).filter(name => fs.statSync(path.join(folder, name)).size > LENGTH)
    return path.join(folder, name)
  }
  const patch = (file, at, bytes) => {
    const opened = fs.openSync(file, 'r+')
    fs.writeSync(opened, bytes, 0, bytes.length, at)
    fs.closeSync(opened)
  }

  for (const [part, at] of Object.entries(HEADER)) {
    test(`${what}: a file with another ${part} is refused, and stays as it was`, { skip }, async t => {
      const file = await makeFile(t)
      patch(file, at, Buffer.from([99]))
      const before = fs.readFileSync(file)
      await assert.rejects(async () => open(file), ({ code, message }) => {
        return codes.includes(code) && /not made by/.test(message)
      })
      assert.ok(fs.readFileSync(file).equals(before))
    })
  }

  if (what === 'memory') {
    test('a table of names is no shared memory', { skip: unavailable }, async t => {
      const file = await makeFile(t)
      assert.throws(() => sharedMemory(file, 8), { code: 'ERR_SHARED_MEMORY_INVALID', message: /something else/ })
    })
  }

  test(`${what}: what is there from an earlier boot is discarded, in a new file`, { skip }, async t => {
    const file = await makeFile(t)
    const { ino } = fs.statSync(file)
    const last = fs.statSync(file).size - 4096
    patch(file, last, Buffer.from([7, 7, 7, 7]))
    patch(file, BOOT, Buffer.alloc(16, 5))
    const opened = await open(file)
    assert.notStrictEqual(fs.statSync(file).ino, ino)
    if (what === 'memory') return assert.strictEqual(opened, 'held')
    assert.deepStrictEqual([...new Uint8Array(opened)], Array(8).fill(0))
    assert.deepStrictEqual(fs.readdirSync(path.dirname(file)), ['memory'])
  })
}

test('a file that is opened again and again is mapped once, and costs no descriptors', {
  skip: unavailable
}, async t => {
  const folder = memoryFolder(t)
  const file = path.join(folder, 'memory')
  const first = new Int32Array(sharedMemory(file, 8))
  const descriptors = fs.readdirSync('/proc/self/fd').length
  const times = size(1e5, 1e4)
  for (let n = 0; n < times; n++) new Int32Array(sharedMemory(file, 8))[0]++
  assert.strictEqual(first[0], times)
  assert.ok(fs.readdirSync('/proc/self/fd').length <= descriptors + 2)
  const mappings = fs.readFileSync('/proc/self/maps', 'utf8').split('\n').filter(line => line.includes(folder))
  assert.strictEqual(mappings.length, 1)
})

for (const [what, limit, code] of [
  ['descriptors', "'--nofile=' + (fs.readdirSync('/proc/self/fd').length + 20)", 'EMFILE'],
  ['address space', "'--as=' + (1024 * (20000 + Number(/VmSize:\\s+(\\d+)/.exec(status)[1])))", 'ENOMEM']
]) {
  test(`without ${what} another file is an error with a code, and what there is goes on`, {
    skip: unavailable || (!isAble('prlimit', '--version') && 'it takes prlimit')
  }, async t => {
    const { codes, values, large } = await runForJSON(t, ['-e', `
      const fs = require('fs')
      const { execFileSync } = require('child_process')
      const { AsyncLock } = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
      const { sharedMemory } = require(${PROCESSES})
      const folder = ${JSON.stringify(memoryFolder(t))}
      const words = [new Int32Array(sharedMemory(folder + '/first', 8))]
      const lock = new AsyncLock(words[0].buffer)
      const status = fs.readFileSync('/proc/self/status', 'latin1')
      execFileSync('prlimit', ['--pid', String(process.pid), ${limit}])
      const codes = []
      for (let n = 0; n < 1000 && codes.length < 3; n++) {
        try {
          words.push(new Int32Array(sharedMemory(folder + '/' + n, ${what === 'descriptors' ? 8 : 1 << 20})))
        } catch (error) {
          codes.push(error.code)
        }
      }
      for (const each of words) each[1] = words.length
      lock.executeLocked(() => console.log(JSON.stringify({
        codes, values: words.map(each => each[1]), large: words.length
      })))`])
    assert.deepStrictEqual(codes, [code, code, code])
    assert.deepStrictEqual(values, Array(large).fill(large))
    assert.ok(large > 1)
  })
}

test('with as many mappings as the kernel allows another file is an error, and leaves nothing behind', {
  skip: unavailable, timeout: 120000
}, async t => {
  const program = `
    const fs = require('fs')
    const { execSync } = require('child_process')
    const { AsyncLock } = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
    const { memory, processLocks, sharedMemory } = require(${PROCESSES})
    const folder = ${JSON.stringify(memoryFolder(t))}
    const descriptors = () => fs.readdirSync('/proc/self/fd').length
    const open = name => {
      try { return void sharedMemory(folder + '/' + name, 8) } catch (error) { return error.code }
    }
    const first = new Int32Array(sharedMemory(folder + '/first', 8))
    const lock = new AsyncLock(first.buffer)
    open('none/none')
    const most = Number(fs.readFileSync('/proc/sys/vm/max_map_count'))
    const free = () => most - Number(execSync('wc -l < /proc/' + process.pid + '/maps'))
    const filling = []
    // Each has two: what it uses, and what it may.
    const fill = n => { for (; n > 1; n -= 2) filling.push(new ArrayBuffer(1, { maxByteLength: 8192 })) }
    fill(free() - 2000)
    gc()
    fill(free() - 60)
    const before = descriptors()
    const codes = []
    for (let n = 0; n < 200 && codes.filter(Boolean).length < 4; n++) codes.push(open(n))
    const made = codes.filter(code => code === undefined).length
    const more = descriptors() - before - made
    for (let n = 0; n < 200; n++) filling.pop().transferToFixedLength(0)
    const files = fs.readdirSync(folder).length - 1 - made
    lock.executeLocked(() => { first[1] = 5 })
      .then(() => processLocks(memory(folder)).request('a', ({ name }) => name))
      .then(name => console.log(JSON.stringify({
        codes: codes.filter(Boolean), more, files, value: first[1], name, again: open('again')
      })))`
  let result
  for (let tries = 1; result === undefined; tries++) {
    try {
      // The engine, too, needs mappings: the fewer threads it has, and the less garbage, the fewer.
      result = await runForJSON(t, ['--expose-gc', '--single-threaded', '--jitless', '-e', program])
    } catch (error) {
      if (!/SIGABRT[^]*v8::|(heap|process) out of memory|bad_alloc/.test(error.message)) throw error
      if (tries === 5) return t.skip('the engine is the first to have no mapping')
    }
  }
  const { codes, ...rest } = result
  assert.deepStrictEqual(codes, Array(4).fill('ENOMEM'))
  assert.deepStrictEqual(rest, { more: 0, files: 0, value: 5, name: 'a' })
})

test('a holder that is stopped for seconds keeps its lock, and a waiter that is stopped holds up nobody', {
  skip: unavailable
}, async t => {
  const { memory, words, processes: [one, other] } = await startProcesses(t, LENGTH, 2)
  const mine = new api.AsyncLock(memory)
  await one.run(lock)
  one.stop()
  await assert.rejects(mine.lockAsync({ timeout: 2500 }), { name: 'TimeoutError' })
  assert.deepStrictEqual(mine.owner, { pid: one.pid, threadId: null })
  process.kill(one.pid, 'SIGCONT')
  await one.run(({ kept }) => kept.token.unlock())
  const token = await mine.lockAsync()
  assert.strictEqual(token.ownerDied, false)
  const late = other.run(({ api, memory }) => new api.AsyncLock(memory).lockAsync().then(token => token.unlock()))
  await until(() => mine.owner !== null && words[0] === 1)
  await sleep(20)
  other.stop()
  token.unlock()
  ;(await one.run(({ api, memory }) => new api.AsyncLock(memory).lockAsync().then(token => token.unlock())))
  ;(await mine.lockAsync()).unlock()
  process.kill(other.pid, 'SIGCONT')
  await late
})

test('the slot of a dead process serves the next one, which is told from it', {
  skip: unavailable, timeout: 120000
}, async t => {
  const { file, memory } = await startProcesses(t, LENGTH, 0)
  const mine = new api.AsyncLock(memory)
  for (let n = 0; n < size(50, 5); n++) {
    const victim = await startProcess(t, file, LENGTH)
    await victim.run(lock)
    const claim = mine.lockAsync()
    await victim.kill()
    const next = await startProcess(t, file, LENGTH)
    const token = await claim
    assert.deepStrictEqual([token.ownerDied, mine.owner.pid], [true, process.pid])
    token.unlock()
    await next.run(lock)
    assert.strictEqual(mine.owner.pid, next.pid)
    await next.run(({ kept }) => kept.token.unlock())
    await next.kill()
  }
})
