'use strict'

module.exports = function Page () {
  return 'a page'
}
