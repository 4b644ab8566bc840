/** What measure.mts writes down. `front`: with the named lock in front of the engine. */
export interface Figures {
  node: string
  system: string
  cores: number
  /** Milliseconds. */
  lease: number
  date: string
  /** Locks a second; milliseconds to the next after a kill, and for a free lock. */
  engines: Record<string, Record<'front' | 'alone', { grants: number, next: number, free: number }>>
}

const WIDTH = 860
const [LEFT, RIGHT, BAR] = [110, 90, 16] // the names, the numbers, the height of a bar
const DARK = '#1a202c'
const GREY = '#4a5568'
const COLOURS = { front: '#2b6cb0', alone: '#a0aec0' }

const PANELS = [
  {
    value: 'grants', note: 'more is better',
    title: 'Exclusive locks a second: two processes of two threads, eight requests each'
  },
  { value: 'next', title: 'Milliseconds from kill -9 of the holder to the next process', note: 'less is better' }
] as const

const text = (x: number, y: number, fill: string, content: string, more = '') =>
  `<text x="${x}" y="${y}"${more} fill="${fill}">${content}</text>`
const AT_END = ' text-anchor="end"'
const digits = (value: number) =>
  (value < 100 ? String(value) : Math.round(value).toLocaleString('en')).replace(/,/g, ' ')

/** On a scale by powers of ten, for they are far apart. */
function width (value: number, most: number) {
  return Math.max(2, (Math.log10(value) + 1) / (Math.log10(most) + 1) * (WIDTH - LEFT - RIGHT))
}

/** Returns the figure as SVG: two bars for each engine. */
export function draw ({ node, system, cores, lease, date, engines }: Figures): string {
  const parts: string[] = []
  let y = 76
  for (const { value, title, note } of PANELS) {
    const most = Math.max(...Object.values(engines).flatMap(({ front, alone }) => [front[value], alone[value]]))
    y += 32
    parts.push(text(16, y - 10, DARK, title, ' font-weight="600"'), text(WIDTH - 16, y - 10, GREY, note, AT_END))
    for (const [name, engine] of Object.entries(engines)) {
      parts.push(text(LEFT - 10, y + BAR + 3, DARK, name, AT_END))
      for (const way of ['front', 'alone'] as const) {
        const long = width(engine[way][value], most)
        parts.push(
          `<rect x="${LEFT}" y="${y + 1}" width="${long.toFixed(1)}" height="${BAR - 3}" fill="${COLOURS[way]}"/>`,
          text(Math.round(LEFT + long + 8), y + BAR - 4, DARK, digits(engine[way][value]))
        )
        y += BAR
      }
      y += 6
    }
  }
  const height = y + 12
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" ` +
      'font-family="system-ui, sans-serif" font-size="12" role="img">',
    '<title>Locks of several processes, by engine, with and without the named lock in front</title>',
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    text(16, 26, DARK, 'Locks of several processes, by engine', ' font-size="15" font-weight="600"'),
    text(16, 46, GREY, `Node ${node}, ${system}, ${cores} cores; servers on the same machine; ` +
      `leases of ${lease / 1000} s; medians; bars by powers of ten; ${date}`),
    `<rect x="16" y="56" width="10" height="10" fill="${COLOURS.front}"/>`,
    text(32, 65, DARK, 'with the named lock in front'),
    `<rect x="216" y="56" width="10" height="10" fill="${COLOURS.alone}"/>`,
    text(232, 65, DARK, 'without it'),
    ...parts,
    '</svg>\n'
  ].join('\n')
}
