(module
  (import "env" "memory" (memory 1 1 shared))

  ;; Blocks until the i32 at address 4 is no longer 0.
  (func (export "awaitStart")
    (block $started
      (loop $again
        (br_if $started (i32.atomic.load (i32.const 4)))
        (drop (memory.atomic.wait32 (i32.const 4) (i32.const 0) (i64.const -1)))
        (br $again))))

  ;; Adds the numbers from $from up to and including $to to the i64 at address 8, takes 1 from the i32 at address 0, and
  ;; notifies all waiters there.
  (func (export "add") (param $from i32) (param $to i32)
    (local $sum i64)
    (loop $next
      (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (local.get $from))))
      (local.set $from (i32.add (local.get $from) (i32.const 1)))
      (br_if $next (i32.le_u (local.get $from) (local.get $to))))
    (drop (i64.atomic.rmw.add (i32.const 8) (local.get $sum)))
    (drop (i32.atomic.rmw.sub (i32.const 0) (i32.const 1)))
    (drop (memory.atomic.notify (i32.const 0) (i32.const -1)))))
