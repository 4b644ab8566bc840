//! A word that two processes hand over by bare futexes: the floor of `npm run bench -- --only words`.
//!
//! Prints the microseconds of a hand-over, of as many round trips as its argument says. Linux only.

#![allow(unsafe_code, reason = "futexes are system calls")]

#[cfg(target_os = "linux")]
fn hand_over(trips: u32) -> f64 {
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::time::Instant;

    const WARM_UP: u32 = 100;
    let (readable, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, which this process and its child have until they end: full of zeros, and aligned to a page. The
    // child of a process with one thread may do what its parent may.
    let (word, child) = unsafe {
        let memory = libc::mmap(null_mut(), size_of::<AtomicU32>(), readable, shared, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        (&*memory.cast::<AtomicU32>(), libc::fork())
    };
    assert!(child >= 0);
    let me = u32::from(child == 0);
    // SAFETY: the word is there until the process ends.
    let futex = |operation: i32, value: u32| unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, null_mut::<libc::timespec>());
    };
    let mut begin = Instant::now();
    for trip in 0..WARM_UP + trips {
        if trip == WARM_UP {
            begin = Instant::now();
        }
        while word.load(SeqCst) != me {
            futex(libc::FUTEX_WAIT, 1 - me);
        }
        word.store(1 - me, SeqCst);
        futex(libc::FUTEX_WAKE, 1);
    }
    let took = begin.elapsed();
    if me == 1 {
        std::process::exit(0);
    }
    took.as_secs_f64() * 1e6 / f64::from(2 * trips)
}

fn main() {
    #[cfg(target_os = "linux")]
    {
        let trips = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1000);
        println!("{}", hand_over(trips));
    }
}
