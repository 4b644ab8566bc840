'use strict'

const { parentPort } = require('worker_threads')
const comlink = require('comlink')
const endpoint = require('comlink/dist/umd/node-adapter.js')

comlink.expose({ double: n => n * 2, each: (list, callback) => Promise.all(list.map(callback)) }, endpoint(parentPort))
