export default 'not hooked'
