import './force.test.mjs'
