//! Tests with several processes, which are this program run again.

use std::fs::remove_dir_all;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Client, Kind, Mapping, OpenError, watch};
use waitasync_core::mapped::{MOST_PROCESSES, ProcessId};
use waitasync_core::sync::lock;

/// By the address of the data.
static SWEPT: Mutex<Vec<(usize, ProcessId)>> = Mutex::new(Vec::new());
/// Whether another thread might take over what one sweeps.
static TAKEN_OVER: AtomicBool = AtomicBool::new(false);

struct Recorder(&'static Mapping);

impl Client for Recorder {
    fn rung(&'static self) {}

    fn sweep(&self, dead: ProcessId) {
        lock(&SWEPT).push((address(self.0), dead));
        // While this process joins, it has no other threads there.
        let has_joined = Mapping::all().any(|known| std::ptr::eq(known, self.0));
        TAKEN_OVER.fetch_or(has_joined && self.0.is_gone(dead), Ordering::SeqCst);
    }
}

fn open(path: &Path) -> Result<&'static Mapping, OpenError> {
    Mapping::open(watch()?, path, Kind::Memory, 100, 8, |mapping| Box::new(Recorder(mapping)))
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(what: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/mapped-{}-{what}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("memory")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove_dir_all(&self.0).unwrap();
    }
}

/// Another process that has the file.
struct Other {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn new(file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "mapped::tests::another_process", "--nocapture", "--test-threads=1"])
            .env("MAPPED_FILE", file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Reads, once, which process of the file it is. The line begins with `> `.
    fn process(&mut self) -> ProcessId {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the other process has ended");
            if let Some((_, packed)) = line.split_once("> ") {
                return ProcessId::from_packed(packed.trim().parse().unwrap()).unwrap();
            }
        }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a child that was not waited for.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    /// Suspends it. All its threads stand still then.
    fn suspend(&self) {
        self.signal(libc::SIGSTOP);
        // SAFETY: a child that was not waited for, and stays so: its end is not asked for.
        let told = unsafe { libc::waitpid(self.child.id().cast_signed(), std::ptr::null_mut(), libc::WUNTRACED) };
        assert_eq!(told, self.child.id().cast_signed());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the other process does: it stays until it is killed, or its parent ends.
#[test]
fn another_process() {
    let Some(file) = std::env::var_os("MAPPED_FILE") else { return };
    println!("> {}", open(file.as_ref()).unwrap().me().packed());
    assert_eq!(std::io::stdin().lines().count(), 0);
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        sleep(Duration::from_millis(1));
    }
}

fn address(mapping: &Mapping) -> usize {
    mapping.data().as_ptr() as usize
}

fn is_swept(mapping: &Mapping, process: ProcessId) -> bool {
    lock(&SWEPT).contains(&(address(mapping), process))
}

#[test]
fn a_mapping_is_found_by_its_data_and_by_nothing_else() {
    let scratch = Scratch::new("found");
    let mapping = open(&scratch.file()).unwrap();
    let data = address(mapping);
    assert!([0, 7].iter().all(|byte| Mapping::at(data + byte).is_some_and(|found| std::ptr::eq(found, mapping))));
    assert!(Mapping::at(data - 1).is_none() && Mapping::at(data + 8).is_none());
}

#[test]
fn who_dies_alone_is_swept_by_the_next_that_comes_and_by_who_is_told() {
    let scratch = Scratch::new("alone");
    // One after the other: the first has the first slot.
    let mut first = Other::new(&scratch.file());
    let first_process = first.process();
    let mut second = Other::new(&scratch.file());
    let processes = [first_process, second.process()];
    // So neither sweeps the other.
    second.suspend();
    first.signal(libc::SIGKILL);
    first.child.wait().unwrap();
    second.signal(libc::SIGKILL);
    second.child.wait().unwrap();
    let mapping = open(&scratch.file()).unwrap();
    assert!(is_swept(mapping, processes[0]), "its slot is taken");
    mapping.sweep();
    assert!(is_swept(mapping, processes[1]));
    assert!(mapping.is_gone(processes[1]) && mapping.pid_of(processes[1]).is_none());
    assert_eq!(lock(&SWEPT).iter().filter(|(at, _)| *at == address(mapping)).count(), 2, "each is swept once");
    assert!(!TAKEN_OVER.load(Ordering::SeqCst));
}

#[test]
fn there_is_room_for_so_many_processes() {
    let scratch = Scratch::new("full");
    let mut others: Vec<_> = (0..MOST_PROCESSES).map(|_| Other::new(&scratch.file())).collect();
    for other in &mut others {
        other.process();
    }
    assert!(matches!(open(&scratch.file()), Err(OpenError::Full)));
    others.pop();
    until("a slot becomes free", || open(&scratch.file()).is_ok());
}
