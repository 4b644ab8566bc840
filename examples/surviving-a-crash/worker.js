'use strict'

const { workerData: { sab, amount, crash } } = require('worker_threads')
const { AsyncLock } = require('../..')
const accounts = require('./accounts')

const lock = new AsyncLock(sab)
const bank = accounts(sab, AsyncLock.byteLength)

const token = lock.lock()
if (token.ownerDied) bank.repair()
bank.begin(amount)
if (crash) throw new Error('out of luck')
bank.finish()
token.unlock()
