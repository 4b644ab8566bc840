'use strict'

/** Compares versions, of which one may have fewer parts: 16.0.0 is not below 16. */
exports.compareVersions = (a, b) => a.localeCompare(b, 'en', { numeric: true })
