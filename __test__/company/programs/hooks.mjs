export async function load (url, context, next) {
  const loaded = await next(url, context)
  return url.endsWith('hooked.mjs') ? { ...loaded, source: 'export default "hooked"' } : loaded
}
