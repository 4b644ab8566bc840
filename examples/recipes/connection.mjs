import { Semaphore } from 'atomics-waitasync'

const limit = Semaphore.create({ permits: 2 }) // post it to the workers: they count, too

class Connection {
  static async open () {
    const connection = new Connection()
    connection.permit = await limit.holdAsync(1, { timeout: 5000 })
    return connection
  }

  close () {
    this.permit.unlock() // a second call changes nothing
  }
}

const first = await Connection.open()
const second = await Connection.open()
const third = Connection.open()
console.log('connection:', limit.available, limit.waiters)
first.close()
first.close()
second.close()
const connection = await third
connection.close()
console.log('connection:', limit.available)
