// Every library: importing this entry point gives Atomics its waitAsync.
// needs: alone

import 'atomics-waitasync/keep-alive'
import './atomics'
