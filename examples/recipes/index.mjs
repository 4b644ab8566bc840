// The recipes of docs/recipes.md, one after the other.
//
//   node examples/recipes/index.mjs        (Node 16 or newer)

for (const name of [
  'layout', 'several-locks', 'by-key', 'once', 'event', 'cancel', 'connection', 'changing-limit', 'admission',
  'shutdown', 'hanging-holder', 'leader'
]) {
  await import(`./${name}.mjs`)
}
