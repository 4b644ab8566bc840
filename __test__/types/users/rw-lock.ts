import { isMainThread, Worker, workerData } from 'worker_threads'
import { RwLock } from 'atomics-waitasync'

class Table {
  private readonly rw: RwLock

  constructor(private readonly memory: { rw: RwLock, cells: SharedArrayBuffer }) {
    this.rw = new RwLock(memory.rw)
  }

  async read(index: number): Promise<number> {
    return this.rw.executeShared(() => new Int32Array(this.memory.cells)[index])
  }

  readSync(index: number) {
    return this.rw.executeSharedSync(token => token.locked ? new Int32Array(this.memory.cells)[index] : undefined)
  }

  async write(index: number, value: number): Promise<void> {
    await this.rw.executeLocked(async token => {
      new Int32Array(this.memory.cells)[index] = value
      const reader = token.downgrade()
      await this.log(index)
      reader.unlock()
    }, { repair: () => { new Int32Array(this.memory.cells).fill(0) } })
  }

  private async log(index: number) {
    console.log(index)
  }
}

if (isMainThread) {
  const memory = { rw: new RwLock(), cells: new SharedArrayBuffer(64) }
  new Worker(__filename, { workerData: memory })
  new Table(memory).write(3, 4).catch(error => { console.log(error) })
} else {
  console.log(new Table(workerData).readSync(3))
}
