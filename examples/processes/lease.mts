/**
 * A lease, renewed three times as often as it needs to be. `lost` aborts when the server says that it is over,
 * or when it may be: its milliseconds have passed since the last renewal that succeeded was sent.
 */
export class Lease {
  readonly #milliseconds: number
  readonly #renew: () => Promise<boolean>
  readonly #lost = new AbortController()
  #until = 0
  #isResting = false
  #end: NodeJS.Timeout | undefined
  #beat: NodeJS.Timeout | undefined

  /** `sent`: when the first request was sent, by `performance.now()`. `renew` gives false if the lease is over. */
  constructor (milliseconds: number, sent: number, renew: () => Promise<boolean>) {
    this.#milliseconds = milliseconds
    this.#renew = renew
    this.#extend(sent)
    this.#wait()
  }

  get lost () { return this.#lost.signal }

  /** Renews it no more, since it is being given back. It can still be over meanwhile. */
  rest () {
    this.#isResting = true
    clearTimeout(this.#beat)
  }

  stop () {
    this.rest()
    clearTimeout(this.#end)
  }

  #extend (sent: number) {
    this.#until = sent + this.#milliseconds
    clearTimeout(this.#end)
    this.#end = setTimeout(() => this.lose(), Math.max(0, this.#until - performance.now()))
  }

  #wait () {
    this.#beat = setTimeout(() => this.#renewOnce(), this.#milliseconds / 3)
  }

  async #renewOnce () {
    const sent = performance.now()
    // A process that stood still may be late.
    if (sent >= this.#until) return this.lose()
    // If the server does not answer, it may do so before the lease is over.
    const isOurs = await this.#renew().catch(() => undefined)
    if (this.#isResting) return
    if (isOurs === false) return this.lose()
    if (isOurs) this.#extend(sent)
    this.#wait()
  }

  lose (reason = new Error('The lease is over')) {
    this.stop()
    this.#lost.abort(reason)
  }
}
