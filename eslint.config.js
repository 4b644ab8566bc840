'use strict'

// One linter, which is the formatter, too (`npm run lint -- --fix`): the style is that of https://standardjs.com.
// Shipped code and its tests use only syntax of Node 10.

const js = require('@eslint/js')
const stylistic = require('@stylistic/eslint-plugin')
const globals = require('globals')
const own = require('./scripts/lib/lint-rules')

const NEWER = ['Atomics', 'SharedArrayBuffer', 'BigInt', 'BigInt64Array', 'BigUint64Array']
const SHARED = Object.fromEntries(NEWER.map(name => [name, 'readonly']))
const OLD = { ecmaVersion: 2019, globals: { ...globals.es2018, ...globals.node, ...SHARED } }
const NEW = { ecmaVersion: 2022, globals: { ...globals.es2021, ...globals.node } }

/** The dangers of prototypes that other code may have polluted: see lib/util/intrinsics.js. */
const DESCRIPTOR =
  'a descriptor inherits fields from Object.prototype: use define or defineProperty of lib/util/intrinsics.js'
const INHERITING = [
  { selector: 'MemberExpression[property.name=/^defineProp/]', message: DESCRIPTOR },
  {
    selector: 'VariableDeclarator[init.name=/^(Object|Reflect)$/] Property[key.name=/^defineProp/]',
    message: DESCRIPTOR
  },
  { selector: 'MemberExpression[property.name=/^__define/]', message: DESCRIPTOR },
  {
    selector: 'CallExpression[callee.object.name="Object"][callee.property.name="create"][arguments.length>1]',
    message: DESCRIPTOR
  },
  {
    selector: 'NewExpression[callee.name="Proxy"]:not([arguments.1.properties.0.key.name="__proto__"])',
    message: 'a handler inherits traps from Object.prototype: let it be a literal that begins with __proto__: null'
  }
]

const TIME = [
  'Date', 'clearImmediate', 'clearInterval', 'clearTimeout', 'performance', 'queueMicrotask', 'setImmediate',
  'setInterval', 'setTimeout'
]
const FROM_LOAD = 'take it from lib/util/timers.js, or now() of lib/util/intrinsics.js'

const ENTRIES = [
  'index.js', 'force/index.js', 'keep-alive/index.js', 'processes/index.js', 'pure/index.js', 'web-locks/index.js'
]

module.exports = [
  { ignores: ['**/node_modules/', 'target/', 'dist/', '**/.*/', '__test__/types/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,
  stylistic.configs.customize({
    indent: 2, quotes: 'single', semi: false, commaDangle: 'never', braceStyle: '1tbs', jsx: false
  }),
  { files: ['**/*.js'], languageOptions: { sourceType: 'commonjs', ...OLD } },
  { files: ['**/*.mjs', '**/next-app/pages/**'], languageOptions: { sourceType: 'module', ...NEW } },
  {
    files: [
      '*.config.js', '{bin,scripts,benchmark}/**/*.js', '__test__/{engines,mutants,platforms,spec}/**/*.js',
      '__test__/{soak,conformance}/*.js'
    ],
    languageOptions: NEW
  },
  // They run on Node 16 and newer.
  { files: ['lib/processes/**/*.js', '__test__/processes/**/*.js'], languageOptions: NEW },
  // It runs on every Node.
  { files: ['__test__/soak/!(run).js'], languageOptions: OLD },
  {
    rules: {
      'array-callback-return': 'error',
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'new-cap': ['error', { capIsNew: false }],
      'no-array-constructor': 'error',
      'no-caller': 'error',
      'no-empty': ['error', { allowEmptyCatch: true }],
      'no-eval': 'error',
      'no-extend-native': 'error',
      'no-implied-eval': 'error',
      'no-lone-blocks': 'error',
      'no-new': 'error',
      'no-new-func': 'error',
      'no-new-wrappers': 'error',
      'no-return-assign': 'error',
      'no-self-compare': 'error',
      'no-sequences': 'error',
      'no-template-curly-in-string': 'error',
      'no-throw-literal': 'error',
      'no-undef-init': 'error',
      'no-unneeded-ternary': 'error',
      'no-unused-vars': [
        'error', { args: 'none', caughtErrors: 'none', varsIgnorePattern: '^_$', ignoreRestSiblings: true }
      ],
      'no-unused-expressions': 'error',
      'no-use-before-define': ['error', { functions: false, classes: false, variables: false }],
      'no-useless-call': 'error',
      'no-useless-computed-key': 'error',
      'no-useless-rename': 'error',
      'no-useless-return': 'error',
      'no-var': 'error',
      'object-shorthand': ['error', 'properties'],
      'prefer-const': ['error', { destructuring: 'all' }],
      'prefer-promise-reject-errors': 'error',
      // Old Node has no causes.
      'preserve-caught-error': 'off',
      strict: ['error', 'global'],
      yoda: ['error', 'never'],

      '@stylistic/arrow-parens': 'off',
      '@stylistic/generator-star-spacing': ['error', { before: true, after: true }],
      '@stylistic/max-len': ['error', { code: 120 }],
      '@stylistic/max-statements-per-line': 'off',
      '@stylistic/multiline-ternary': 'off',
      '@stylistic/operator-linebreak': [
        'error', 'after', { overrides: { '?': 'before', ':': 'before', '|>': 'before' } }
      ],
      '@stylistic/quote-props': 'off',
      '@stylistic/quotes': ['error', 'single', { avoidEscape: true, allowTemplateLiterals: 'avoidEscape' }],
      '@stylistic/space-before-function-paren': ['error', 'always'],
      '@stylistic/yield-star-spacing': ['error', 'both']
    }
  },
  {
    files: ['lib/**/*.js', ...ENTRIES, ...ENTRIES.map(name => name.replace(/js$/, 'mjs'))],
    rules: { 'no-restricted-syntax': ['error', ...INHERITING] }
  },
  { files: ['lib/**/*.js'], plugins: { own }, rules: { 'own/answer-at-once': 'error' } },
  {
    // A test may replace them, and what it then waits for would never come.
    files: ['lib/processes/**/*.js'],
    rules: { 'no-restricted-globals': ['error', ...TIME.map(name => ({ name, message: FROM_LOAD }))] }
  },
  {
    files: ['lib/{holding,locks,named,observe,queue,waiting}/**/*.js', 'lib/view.js'],
    rules: { 'own/one-door': 'error' }
  },
  { files: ['lib/util/quirks.js'], languageOptions: { globals: { globalThis: 'readonly' } } },
  // Programs in various styles, some for browsers.
  { files: ['__test__/fixtures/workers/**'], languageOptions: { globals: globals.worker }, rules: { strict: 'off' } },
  { files: ['**/*.cjs'], languageOptions: { sourceType: 'commonjs', ...OLD } }
]
