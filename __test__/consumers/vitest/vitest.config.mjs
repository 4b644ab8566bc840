export default { test: { globals: false, watch: false } }
