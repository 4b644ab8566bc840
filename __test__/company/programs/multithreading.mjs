import { Mutex, SharedJsonBuffer, move, shutdown, spawn } from 'multithreading'

const counter = new Mutex(new SharedJsonBuffer({ n: 0 }))
const handles = [1, 2, 3].map(() => spawn(move(counter), async counter => {
  for (let i = 0; i < 50; i++) {
    const guard = await counter.lock()
    guard.value.n++
    guard[Symbol.dispose]()
  }
}))
for (const handle of handles) console.log((await handle.join()).ok)
const guard = await counter.lock()
console.log(guard.value.n)
shutdown()
