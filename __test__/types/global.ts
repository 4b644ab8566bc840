// Every library: importing the package gives Atomics its waitAsync.

import 'atomics-waitasync'
import './atomics'
