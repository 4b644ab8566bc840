//! A test with several processes, which are this program run again.

use std::fs::{create_dir_all, remove_dir_all};
use std::io::{BufRead, BufReader, Result};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Client, Kind, Mapping};
use waitasync_core::mapped::words::Peers;
use waitasync_core::mapped::{MOST_PROCESSES, ProcessId};
use waitasync_core::sync::lock;

static SWEPT: Mutex<Vec<ProcessId>> = Mutex::new(Vec::new());
/// Whether another thread might take over what one sweeps.
static TAKEN_OVER: AtomicBool = AtomicBool::new(false);

struct Recorder(&'static Mapping);

impl Client for Recorder {
    fn rung(&'static self) {}

    fn sweep(&self, dead: ProcessId) {
        lock(&SWEPT).push(dead);
        // While this process joins, it has no other threads there.
        let has_joined = Mapping::all().any(|known| std::ptr::eq(known, self.0));
        TAKEN_OVER.fetch_or(has_joined && self.0.is_gone(dead), Ordering::SeqCst);
    }
}

fn open(path: &Path) -> Result<&'static Mapping> {
    Mapping::open(path, Kind::Memory, 100, 8, |mapping| Box::new(Recorder(mapping)))
}

/// Another process that has the file, with its place there.
struct Other(Child, ProcessId);

impl Other {
    fn new(file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "mapped::tests::another_process", "--nocapture", "--test-threads=1"])
            .env("MAPPED_FILE", file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let number = lines.find_map(|line| Some(line.split_once("> ")?.1.trim().parse().unwrap()));
        Self(child, ProcessId::from_packed(number.expect("it opens the file")).unwrap())
    }

    /// Suspends it. All its threads stand still then.
    fn suspend(&self) {
        let id = self.0.id().cast_signed();
        // SAFETY: a child that was not waited for, and stays so: its end is not asked for.
        let told = unsafe {
            libc::kill(id, libc::SIGSTOP);
            libc::waitpid(id, std::ptr::null_mut(), libc::WUNTRACED)
        };
        assert_eq!(told, id);
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the other process does: it stays until it is killed, or its parent ends.
#[test]
fn another_process() {
    let Some(file) = std::env::var_os("MAPPED_FILE") else { return };
    println!("> {}", open(file.as_ref()).unwrap().me().packed());
    assert_eq!(std::io::stdin().lines().count(), 0);
}

#[test]
fn there_is_room_for_so_many_processes_and_the_next_one_sweeps_each_of_the_dead_once() {
    let folder = format!("/dev/shm/mapped-{}", std::process::id());
    let (folder, file) = (Path::new(&folder), Path::new(&folder).join("memory"));
    create_dir_all(folder).unwrap();
    let others: Vec<_> = (0..MOST_PROCESSES).map(|_| Other::new(&file)).collect();
    let processes: Vec<_> = others.iter().map(|other| other.1).collect();
    assert!(open(&file).err().unwrap().to_string().ends_with("no more"));
    // So none sweeps another.
    others.iter().for_each(Other::suspend);
    drop(others);
    let mapping = open(&file).unwrap();
    assert!(lock(&SWEPT).contains(&processes[0]), "its slot is taken");
    mapping.sweep();
    let mut swept = lock(&SWEPT).clone();
    swept.sort_by_key(|process| process.index());
    assert_eq!(swept, processes);
    assert!(processes[1..].iter().all(|process| mapping.is_gone(*process) && mapping.pid(process.index()) == 0));
    assert!(!TAKEN_OVER.load(Ordering::SeqCst));
    remove_dir_all(folder).unwrap();
}
