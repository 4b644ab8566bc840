/**
 * Metrics of locks for OpenTelemetry, from the messages on Node's diagnostics_channel. Each thread publishes its own,
 * so each calls `observeLocks`. The waiters are counted for the whole process: `observeWaiters` is called in one
 * thread.
 *
 * A metric has a series for each name. If a program requests names without end, as one for each user, leave `lock.name`
 * out for those.
 */

import diagnostics from 'node:diagnostics_channel'
import { snapshot } from 'atomics-waitasync'

const SECONDS = { unit: 's', advice: { explicitBucketBoundaries: [0.0001, 0.001, 0.01, 0.1, 1, 10] } }

/**
 * Returns the attributes of a series. Undefined values are left out.
 * @param {{ kind?: string, mode?: string, name?: string }} entry a message of a channel, or of a snapshot
 */
const attributesOf = ({ kind, mode, name }) => ({ 'lock.kind': kind, 'lock.mode': mode, 'lock.name': name })

/** Counts and measures the waits, holds and deaths of this thread. Returns a function that ends that. */
function observeLocks (meter) {
  const waited = meter.createHistogram('lock.wait.duration', {
    description: 'How long threads and promises waited', ...SECONDS
  })
  const held = meter.createHistogram('lock.hold.duration', { description: 'How long locks were held', ...SECONDS })
  const timeouts = meter.createCounter('lock.wait.timeouts', { description: 'Waits whose time was over' })
  const aborts = meter.createCounter('lock.wait.aborts', { description: 'Waits that a signal ended' })
  const deaths = meter.createCounter('lock.owner.deaths', {
    description: 'Locks that were taken over from a dead thread'
  })
  const listeners = {
    'atomics-waitasync:wait' (message) {
      const attributes = attributesOf(message)
      waited.record(message.milliseconds / 1000, { ...attributes, 'lock.outcome': message.outcome })
      if (message.outcome === 'timed-out') timeouts.add(1, attributes)
      if (message.outcome === 'aborted') aborts.add(1, attributes)
    },
    'atomics-waitasync:hold': message => held.record(message.milliseconds / 1000, attributesOf(message)),
    'atomics-waitasync:owner-died': message => deaths.add(1, attributesOf(message))
  }
  for (const [name, listener] of Object.entries(listeners)) diagnostics.subscribe(name, listener)
  return () => {
    for (const [name, listener] of Object.entries(listeners)) diagnostics.unsubscribe(name, listener)
  }
}

/**
 * Observes how many threads and promises of the process wait, and for how long the oldest has: whenever the metrics are
 * collected. Alert on the latter, since a wait that never ends is in no histogram.
 */
function observeWaiters (meter) {
  const waiters = meter.createObservableUpDownCounter('lock.waiters', {
    description: 'Threads and promises that wait now', unit: '{waiter}'
  })
  const oldest = meter.createObservableGauge('lock.wait.oldest', {
    description: 'For how long the oldest of them has waited', unit: 's'
  })
  // Those of earlier collections, too: a series goes to 0, and does not vanish.
  const all = new Map()
  meter.addBatchObservableCallback(result => {
    for (const series of all.values()) Object.assign(series, { count: 0, seconds: 0 })
    for (const entry of snapshot().waiting) {
      const attributes = attributesOf(entry)
      const key = JSON.stringify(attributes)
      const series = all.get(key) ?? { attributes, count: 0, seconds: 0 }
      all.set(key, series)
      series.count++
      // NaN for a promise of Atomics.waitAsync.
      series.seconds = Math.max(series.seconds, entry.milliseconds / 1000 || 0)
    }
    for (const { attributes, count, seconds } of all.values()) {
      result.observe(waiters, count, attributes)
      result.observe(oldest, seconds, attributes)
    }
  }, [waiters, oldest])
}

export { observeLocks, observeWaiters }
