//! Tests with several processes, which are this program run again.

use std::fs::remove_dir_all;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Client, Kind, Mapping, OpenError};
use waitasync_core::mapped::{MOST_PROCESSES, ProcessId};
use waitasync_core::sync::lock;

static RINGS: AtomicU32 = AtomicU32::new(0);
/// By the address of the data.
static SWEPT: Mutex<Vec<(usize, ProcessId)>> = Mutex::new(Vec::new());
/// Whether another thread might take over what one sweeps.
static TAKEN_OVER: AtomicBool = AtomicBool::new(false);

struct Recorder(&'static Mapping);

impl Client for Recorder {
    fn rung(&self) {
        RINGS.fetch_add(1, Ordering::SeqCst);
    }

    fn sweep(&self, dead: ProcessId) {
        lock(&SWEPT).push((address(self.0), dead));
        // While this process joins, it has no other threads there.
        let has_joined = Mapping::all().iter().any(|known| std::ptr::eq(*known, self.0));
        TAKEN_OVER.fetch_or(has_joined && self.0.is_gone(dead), Ordering::SeqCst);
    }

    fn waits(&self) -> bool {
        false
    }
}

fn open(path: &Path) -> Result<&'static Mapping, OpenError> {
    super::open(path, Kind::Memory, 100, 8, |mapping| Box::new(Recorder(mapping)))
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
    answers: BufReader<std::process::ChildStdout>,
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
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    /// Sends a line; the answer begins with `> `.
    fn ask(&mut self, line: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        loop {
            let mut answer = String::new();
            assert_ne!(self.answers.read_line(&mut answer).unwrap(), 0, "the other process has ended");
            if let Some((_, said)) = answer.split_once("> ") {
                return said.trim().to_owned();
            }
        }
    }

    fn process(&mut self) -> ProcessId {
        let packed = self.ask("me").parse().unwrap();
        ProcessId::from_packed(packed).unwrap()
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

/// What the other process does.
#[test]
fn another_process() {
    let Some(file) = std::env::var_os("MAPPED_FILE") else { return };
    let opened = open(file.as_ref());
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let answer = match (line.as_str(), &opened) {
            ("error", Err(error)) => format!("{error:?}"),
            (_, Err(error)) => panic!("{error:?}"),
            ("me", Ok(mapping)) => mapping.me().packed().to_string(),
            ("rings", _) => RINGS.load(Ordering::SeqCst).to_string(),
            ("swept", _) => lock(&SWEPT).len().to_string(),
            (ring, Ok(mapping)) => {
                mapping.ring(ring.parse().unwrap());
                String::new()
            }
        };
        println!("> {answer}");
    }
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
fn a_file_is_mapped_once_and_its_processes_ring_one_another() {
    let scratch = Scratch::new("once");
    let mapping = open(&scratch.file()).unwrap();
    assert!(std::ptr::eq(open(&scratch.file()).unwrap(), mapping), "one mapping");
    let data = mapping.data().as_ptr() as usize;
    assert!([0, 7].iter().all(|byte| Mapping::at(data + byte).is_some_and(|found| std::ptr::eq(found, mapping))));
    assert!(Mapping::at(data - 1).is_none() && Mapping::at(data + 8).is_none(), "the data only");
    let mut other = Other::new(&scratch.file());
    let process = other.process();
    assert_ne!(process.index(), mapping.me().index());
    assert_eq!(mapping.pid_of(process), Some(other.child.id()));
    let rings = RINGS.load(Ordering::SeqCst);
    other.ask(&mapping.me().index().to_string());
    until("this process is not rung", || RINGS.load(Ordering::SeqCst) > rings);
    let rings: u32 = other.ask("rings").parse().unwrap();
    mapping.ring(process.index());
    let begin = Instant::now();
    while other.ask("rings").parse::<u32>().unwrap() == rings {
        assert!(begin.elapsed() < Duration::from_secs(20), "the other process is not rung");
    }
}

#[test]
fn a_process_that_is_killed_is_swept_at_once_and_its_slot_is_used_again() {
    let scratch = Scratch::new("killed");
    let mapping = open(&scratch.file()).unwrap();
    let mut generations = Vec::new();
    for _ in 0..5 {
        let mut other = Other::new(&scratch.file());
        let process = other.process();
        assert!(!mapping.is_gone(process) && !is_swept(mapping, process));
        other.signal(libc::SIGKILL);
        until("it is not swept", || is_swept(mapping, process));
        assert!(mapping.is_gone(process) && mapping.pid_of(process).is_none());
        assert_eq!(lock(&SWEPT).iter().filter(|&&swept| swept == (address(mapping), process)).count(), 1, "swept once");
        assert!(!TAKEN_OVER.load(Ordering::SeqCst));
        generations.push((process.index(), process.generation()));
    }
    let index = generations[0].0;
    let expected: Vec<_> = (0..5).map(|n| (index, generations[0].1 + n)).collect();
    assert_eq!(generations, expected, "the slot comes again, in its next generation");
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
