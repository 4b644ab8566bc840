'use strict'

const { workerData: { memory, first, count } } = require('worker_threads')
const BoundedQueue = require('./queue')

const queue = new BoundedQueue(memory)
for (let n = 0; n < count; n++) queue.put(first + n)
