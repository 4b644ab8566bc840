import { locks } from 'atomics-waitasync'

/** Changes one account at a time, in all threads that give the same name. */
class Accounts {
  constructor (name) {
    this.prefix = `my-app:${name}:`
  }

  change (mail, callback) {
    return locks.request(this.prefix + mail.toLowerCase(), { timeout: 5000 }, callback)
  }
}

const inUse = ({ held }) => held.filter(({ name }) => name.startsWith('my-app:')).map(({ name }) => name)

const [shop, club] = [new Accounts('shop'), new Accounts('club')]
const order = []
let later
await shop.change('Ann@example.com', async () => {
  later = shop.change('ann@example.com', () => { order.push('Ann again') })
  await shop.change('bob@example.com', () => { order.push('Bob') })
  await club.change('ann@example.com', () => { order.push('the club') })
  order.push('Ann')
})
await later
console.log('by key:', order.join(', '), '·', inUse(await locks.query()).length)
