'use strict'

module.exports = (n) => n * 2
