'use strict'

const { Piscina } = require('piscina')

async function main () {
  const pool = new Piscina({ filename: require.resolve('./double'), maxThreads: 2 })
  console.log(await Promise.all([1, 2, 3].map(n => pool.run(n))))
  await pool.destroy()
}

main()
