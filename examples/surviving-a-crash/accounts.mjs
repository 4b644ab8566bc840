/**
 * Makes two accounts in shared memory. A transfer between them takes two steps. The first also records the amount, so
 * that an unfinished transfer can be undone.
 */
function accounts (sab, byteOffset) {
  const words = new Int32Array(sab, byteOffset, 3)
  const FROM = 0
  const TO = 1
  const UNDER_WAY = 2

  return {
    open (from, to) {
      words[FROM] = from
      words[TO] = to
    },
    begin (amount) {
      words[UNDER_WAY] = amount
      words[FROM] -= amount
    },
    finish () {
      words[TO] += words[UNDER_WAY]
      words[UNDER_WAY] = 0
    },
    repair () {
      words[FROM] += words[UNDER_WAY]
      words[UNDER_WAY] = 0
    },
    toString: () => `${words[FROM]} + ${words[TO]} = ${words[FROM] + words[TO]}`
  }
}

accounts.byteLength = 12

export default accounts
