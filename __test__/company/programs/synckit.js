'use strict'

const { createSyncFn } = require('synckit')

const double = createSyncFn(require.resolve('./synckit-worker'))
console.log(double(5), double(6))
