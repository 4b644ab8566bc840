'use strict'

/**
 * Calls of an etcd cluster by its JSON gateway. They do without `fetch`, which Node 16 lacks.
 *
 * A member that does not answer may have done what was asked: the next one is asked the same. So calls are idempotent,
 * or their caller heeds `isRepeated` of the answer.
 */

const http = require('http')
const https = require('https')
const { clearTimeout, setTimeout } = require('../../util/timers')
const { onAbort } = require('../built-in-engine')

const LARGEST = 2 ** 24 // characters of an answer, which others may have filled
// Codes of gRPC.
const DEADLINE = 4
const UNAVAILABLE = 14
const UNAUTHENTICATED = 16
/** What `POST /v3/auth/authenticate` and expired tokens get, besides. */
const BAD_TOKEN = /invalid auth token|auth: user name is empty|auth: revision/

class Cluster {
  /**
   * @param {URL[]} endpoints
   * @param {{ tls?: object, auth?: { username: string, password: string }, milliseconds: number }} options
   *   `milliseconds`: a member whose answer is later is passed over
   */
  constructor (endpoints, { tls, auth, milliseconds }) {
    Object.assign(this, { endpoints, auth, milliseconds })
    this.current = 0
    this.token = undefined
    this.agents = {
      'http:': new http.Agent({ keepAlive: true }),
      'https:': new https.Agent({ keepAlive: true, ...tls })
    }
  }

  /**
   * Asks one member after the other, and the first one again. That is the one that has answered last; it may only have
   * closed a connection that was idle. If it was silent, it is asked once. With `isOpen` the answer is a stream: the
   * first message for which that function gives true, or none if the milliseconds are over.
   */
  async call (path, body, { signal, isOpen } = {}) {
    let failure
    let most = this.endpoints.length
    for (let tries = 0; tries <= most; tries++) {
      const index = this.current
      try {
        const answer = await this.authorized(this.endpoints[index], path, body, { signal, isOpen })
        return Object.assign(answer, { isRepeated: tries > 0 })
      } catch (error) {
        if (!error.isOfMember || (signal !== undefined && signal.aborted)) throw error
        failure = error
        if (tries === 0 && error.isSilence) most--
        if (this.current === index) this.current = (index + 1) % this.endpoints.length
      }
    }
    throw failure
  }

  async authorized (endpoint, path, body, options) {
    if (this.auth === undefined) return this.send(endpoint, path, body, options)
    if (this.token === undefined) await this.authenticate(endpoint)
    const { token } = this
    try {
      return await this.send(endpoint, path, body, { ...options, token })
    } catch (error) {
      if (error.code !== UNAUTHENTICATED && !BAD_TOKEN.test(error.message)) throw error
      if (this.token === token) await this.authenticate(endpoint)
      return this.send(endpoint, path, body, { ...options, token: this.token })
    }
  }

  async authenticate (endpoint) {
    const { username: name, password } = this.auth
    this.token = (await this.send(endpoint, 'auth/authenticate', { name, password }, {})).token
  }

  send (endpoint, path, body, { signal, isOpen, token }) {
    const { protocol } = endpoint
    const what = `etcd, ${path} of ${endpoint.host}`
    return new Promise((resolve, reject) => {
      const text = JSON.stringify(body)
      const request = (protocol === 'https:' ? https : http).request(new URL(`/v3/${path}`, endpoint), {
        method: 'POST',
        agent: this.agents[protocol],
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
          ...(token && { authorization: token })
        }
      })
      const end = (settle, value) => {
        clearTimeout(timer)
        ignore()
        settle(value)
        if (isOpen !== undefined) request.destroy()
      }
      const fail = error => end(reject, error)
      const timer = setTimeout(() => {
        if (isOpen !== undefined) return end(resolve, {})
        const silence = new Error(`${what}: no answer for ${this.milliseconds} ms`)
        fail(ofMember(Object.assign(silence, { isSilence: true })))
        request.destroy()
      }, this.milliseconds)
      const ignore = signal === undefined ? () => {} : onAbort(signal, () => {
        fail(new Error(`${what}: aborted`))
        request.destroy()
      })
      request.on('error', error => {
        fail(ofMember(Object.assign(new Error(`${what}: ${error.message || error.code}`), { cause: error })))
      })
      request.on('response', response => {
        let rest = ''
        const read = text => {
          try {
            const answer = answerOf(text, response, what)
            if (isOpen === undefined || isOpen(answer)) end(resolve, answer)
          } catch (error) {
            fail(error)
          }
        }
        response.setEncoding('utf8')
        response.on('error', error => fail(ofMember(error)))
        response.on('data', chunk => {
          rest += chunk
          if (rest.length > LARGEST) {
            fail(new Error(`${what}: the answer has more than ${LARGEST} characters`))
            return request.destroy()
          }
          if (isOpen === undefined) return
          const lines = rest.split('\n')
          rest = lines.pop()
          lines.forEach(read)
        })
        response.on('end', () => isOpen === undefined ? read(rest) : end(resolve, {}))
        response.on('aborted', () => fail(ofMember(new Error(`${what}: the connection has ended`))))
      })
      request.end(text)
    })
  }

  close () {
    for (const agent of Object.values(this.agents)) agent.destroy()
  }
}

const ofMember = error => Object.assign(error, { isOfMember: true })

/** Reads an answer. In that of a stream all is below `result`. */
function answerOf (text, { statusCode }, what) {
  const isFine = statusCode >= 200 && statusCode < 300
  let answer
  try {
    answer = JSON.parse(text)
  } catch (_) {
    throw ofMember(new Error(`${what}: status ${statusCode}, ${JSON.stringify(text.slice(0, 100))}`))
  }
  if (isFine && answer.error === undefined) return answer.result || answer
  const { message, error, code, grpc_code: streamed } = typeof answer.error === 'object' ? answer.error : answer
  const failure = Object.assign(new Error(`${what}: ${message || error || statusCode}`), { code: code || streamed })
  throw [DEADLINE, UNAVAILABLE].includes(failure.code) || statusCode >= 502 ? ofMember(failure) : failure
}

module.exports = { Cluster }
