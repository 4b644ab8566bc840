export default function Page () {
  return 'a page'
}
