// A declaration in place of @types/node, for a TypeScript that cannot read those.

declare module 'worker_threads' {
  export const isMainThread: boolean
  export const workerData: any
  export class Worker {
    constructor(file: string, options?: { workerData?: any })
    on(event: 'exit', listener: (code: number) => void): this
    terminate(): Promise<number>
  }
}

declare const __filename: string
