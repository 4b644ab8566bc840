import { Semaphore } from 'atomics-waitasync'

const limit = Semaphore.create({ permits: 2 }) // post it to the workers: they count, too

class Connection {
  static async open (connect) {
    const permit = await limit.holdAsync(1, { timeout: 5000 })
    try {
      return new Connection(permit, await connect())
    } catch (error) {
      permit.unlock() // otherwise nobody could open one in its place
      throw error
    }
  }

  constructor (permit, socket) {
    this.permit = permit
    this.socket = socket
  }

  close () {
    this.permit.unlock() // a second call changes nothing
  }
}

const connect = async () => 'a socket'
const refuse = async () => { throw new Error('refused') }
await Connection.open(refuse).catch(error => console.log('connection:', error.message))
const first = await Connection.open(connect)
const second = await Connection.open(connect)
const third = Connection.open(connect)
console.log('connection:', limit.available, limit.waiters)
first.close()
first.close()
second.close()
const connection = await third
connection.close()
console.log('connection:', limit.available)
