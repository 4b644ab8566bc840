import { fileURLToPath } from 'node:url'
import { Tinypool } from 'tinypool'

for (const runtime of ['worker_threads', 'child_process']) {
  const pool = new Tinypool({ filename: fileURLToPath(new URL('double.js', import.meta.url)), runtime, maxThreads: 2 })
  console.log(runtime, await Promise.all([1, 2, 3].map(n => pool.run(n))))
  await pool.destroy()
}
