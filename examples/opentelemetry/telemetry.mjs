/** OpenTelemetry's SDK in one thread of this program. */

import { threadId } from 'node:worker_threads'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader
} from '@opentelemetry/sdk-metrics'

/**
 * Starts it. Returns the meter, and a function that collects the measurements so far, as rows.
 *
 * The exporter keeps the metrics in memory. A service has that of its back end here, such as OTLPMetricExporter, and no
 * `collect`: the reader exports now and then, and `provider.shutdown()` does so before the thread ends.
 */
function startTelemetry () {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const resource = resourceFromAttributes({ 'service.name': 'orders', 'thread.id': threadId })
  const readers = [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 60000 })]
  const provider = new MeterProvider({ resource, readers })
  return {
    meter: provider.getMeter('atomics-waitasync'),
    async collect () {
      exporter.reset()
      await provider.forceFlush()
      return exporter.getMetrics().flatMap(rowsOf)
    },
    shutdown: () => provider.shutdown()
  }
}

/** Returns a row for each series: `value` is a count or the value of a gauge, `seconds` the sum of a histogram. */
function rowsOf ({ scopeMetrics }) {
  const all = scopeMetrics.flatMap(({ metrics }) => metrics)
  return all.flatMap(({ descriptor, dataPoints }) => dataPoints.map(({ attributes, value }) => ({
    metric: descriptor.name,
    lock: `${attributes['lock.kind']} ${attributes['lock.name']}`,
    outcome: attributes['lock.outcome'],
    ...typeof value === 'number' ? { value } : { value: value.count, seconds: value.sum }
  })))
}

/** Adds the rows of several threads up. */
function sumOf (rows) {
  const sums = new Map()
  for (const { value, seconds, ...series } of rows) {
    const key = JSON.stringify(series)
    const sum = sums.get(key) ?? { ...series, value: 0, seconds: seconds && 0 }
    sum.value += value
    if (seconds !== undefined) sum.seconds += seconds
    sums.set(key, sum)
  }
  return Array.from(sums.values()).sort((a, b) => a.metric < b.metric ? -1 : 1)
}

export { startTelemetry, sumOf }
