'use strict'

// The lines by which a process under test tells its results begin with this.
exports.PREFIX = 'wpt-result '
