'use strict'

// An empty module: what loading any costs.
