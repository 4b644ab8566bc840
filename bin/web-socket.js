'use strict'

/** A WebSocket for Node 18 and 20, which have none: as much of one as the inspector needs, which fragments nothing. */

const { once } = require('events')
const http = require('http')

const [TEXT, KEY] = [0x81, Buffer.alloc(16).toString('base64')]

module.exports = function WebSocket (url) {
  const headers = { Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Version': 13, 'Sec-WebSocket-Key': KEY }
  const request = http.get(url.replace('ws:', 'http:'), { headers }).once('error', () => this.onclose())
  request.once('upgrade', (_, socket, head) => {
    socket.on('error', () => {}).once('close', () => this.onclose()).unshift(head)
    this.close = () => socket.destroy()
    this.send = (text) => {
      // Of less than 64 kilobytes. The mask is 0, since no proxy is in between.
      const length = Buffer.byteLength(text)
      const size = length < 126 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 255]
      socket.write(Buffer.concat([Buffer.from([TEXT, ...size, 0, 0, 0, 0]), Buffer.from(text)]))
    }
    this.onopen()
    receive(this, socket).catch(this.close)
  })
}

async function receive (webSocket, socket) {
  const take = async (length) => {
    let bytes = ''
    while (length > 0 && !(bytes = socket.read(length))) await once(socket, 'readable')
    return bytes
  }
  for (;;) {
    const [kind, length] = await take(2)
    const size = length < 126 ? Buffer.from([length]) : await take(length === 126 ? 2 : 8)
    const data = await take(Number('0x' + size.toString('hex')))
    if (kind !== TEXT) return webSocket.close()
    webSocket.onmessage({ data: data.toString() })
  }
}
