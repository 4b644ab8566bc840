//! The lock of a name: taking it, and giving it back.

use std::fs::{File, create_dir_all};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::mailbox::Lock;
use super::state::{self, LARGEST, State, announce, announce_reader, withdraw_announcement};
use super::system::{
    self, downgrade, identity_of, is_local, may_open, read_at, try_lock, unlock, wait_for_lock, write_at,
};
use super::timed::{self, Limit};
use super::{Identity, Mode, Opened, is_passing};

/// How often a file is opened that somebody removes or replaces meanwhile.
const MOST_TRIES: u32 = 1000;

/// A folder of names.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Folder {
    pub(super) path: PathBuf,
    /// Whether states are flushed to the disk.
    is_durable: bool,
    /// The device that it is on, where the system tells.
    drive: Option<u64>,
}

impl Folder {
    /// Makes it, unless it is there. Fails if it is on a drive whose locks cannot be relied on.
    pub(crate) fn new(path: PathBuf, is_durable: bool, any_drive: bool) -> Result<Self> {
        create_dir_all(&path)?;
        if !any_drive && !is_local(&path)? {
            return Err(Error::other("it is on a network or FUSE drive, whose locks are not reliable"));
        }
        let drive = drive_of(&path);
        Ok(Self { path, is_durable, drive })
    }

    /// Makes it again once somebody has removed it: not in the place of a drive that is unmounted, on which others see it.
    fn restore(&self, missing: Error) -> Result<()> {
        let drive = self.path.ancestors().find_map(drive_of);
        if drive == self.drive { create_dir_all(&self.path) } else { Err(missing) }
    }
}

fn drive_of(path: &Path) -> Option<u64> {
    identity_of(path).ok().flatten().map(|(device, _)| device)
}

/// A file of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Which {
    Lock,
    Gate,
}

/// A name of a folder in a mode: what requests wait for together.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Name {
    folder: Arc<Folder>,
    lock: Arc<Path>,
    gate: Arc<Path>,
    mode: Mode,
}

/// What requests for a lock have in common.
#[derive(Clone)]
pub struct Asked {
    pub(crate) name: Name,
    /// What the requester says of itself, for the state.
    pub(crate) description: String,
    /// For how long it may have the lock.
    pub(crate) max_hold: Option<Duration>,
}

impl Asked {
    /// Tries to take the lock, whose time then begins.
    pub(super) fn take(&self, is_attempt: bool) -> Result<Option<Grant>> {
        let Self { name, description, max_hold } = self;
        let grant = if is_attempt { name.attempt(description) } else { name.take(description) }?;
        grant.map(|grant| grant.limited(*max_hold)).transpose()
    }
}

/// A locked file, which is unlocked before it is closed (invariant 3).
#[derive(Debug)]
pub(super) struct Locked(pub(super) Opened);

impl Locked {
    fn file(&self) -> &File {
        &self.0.0
    }

    /// Unlocks it, and returns its descriptor.
    pub(super) fn unlocked(self) -> Opened {
        self.0.clone()
    }

    fn try_new(opened: Opened, mode: Mode) -> Result<Option<Self>> {
        Ok(try_lock(&opened.0, mode)?.then(|| Self(opened)))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        unlock(self.file());
    }
}

/// The gate of a name, as a newcomer finds it.
enum Gate {
    /// Until this is dropped nobody waits there; newcomers may pass together.
    Open(Option<Locked>),
    Shut,
}

/// A lock that was granted. Dropping it gives the lock back with the mark left: as a death does.
#[derive(Debug)]
pub(super) struct Grant {
    name: Name,
    locked: Locked,
    pub(super) token: u64,
    pub(super) owner_died: bool,
    /// The state in the file, of an exclusive lock.
    bytes: Vec<u8>,
    limit: Option<Limit>,
}

impl Name {
    /// `key`: the name as its files have it.
    pub(crate) fn new(folder: Arc<Folder>, key: &str, mode: Mode) -> Self {
        let [lock, gate] = ["lock", "gate"].map(|ending| folder.path.join(format!("{key}.{ending}")).into());
        Self { folder, lock, gate, mode }
    }

    fn path(&self, which: Which) -> &Arc<Path> {
        if which == Which::Lock { &self.lock } else { &self.gate }
    }

    /// Whether the path of a file still leads there.
    pub(super) fn leads_to(&self, which: Which, identity: Identity) -> Result<bool> {
        Ok(identity_of(self.path(which))? == Some(identity))
    }

    /// Takes the lock if nobody has it, or awaits it in line.
    pub(super) fn take(&self, description: &str) -> Result<Option<Grant>> {
        for _ in 0..MOST_TRIES {
            let Gate::Open(gate) = self.pass_gate()? else { return Ok(None) };
            let kept = timed::take_kept(&self.lock).filter(|_| may_open(&self.lock));
            let opened = kept.map_or_else(|| self.open(), Ok)?;
            let Some(locked) = Locked::try_new(opened, self.mode)? else { return Ok(None) };
            let grant = self.grant(locked, description)?;
            if let Some(gate) = gate {
                timed::keep(&self.gate, gate.unlocked());
            }
            if grant.is_some() {
                return Ok(grant);
            }
        }
        Err(replaced())
    }

    /// Makes one attempt. It passes the first in line if the lock is free: that one's process may be suspended.
    pub(super) fn attempt(&self, description: &str) -> Result<Option<Grant>> {
        // Readers may pass a gate together, but an attempt to prove the lock free would keep others from it.
        let shared = if self.mode == Mode::Shared { self.take(description)? } else { None };
        if shared.is_some() { Ok(shared) } else { self.take_free(description, |_| true) }
    }

    /// Takes the lock if nobody has it, whoever has the gate. Its token has to be as wanted.
    pub(super) fn take_free(&self, description: &str, is_token: impl Fn(u64) -> bool) -> Result<Option<Grant>> {
        for _ in 0..MOST_TRIES {
            let Some(locked) = self.lock_free()? else { return Ok(None) };
            if !is_token(read_state(locked.file())?.0.token) {
                return Ok(None);
            }
            if self.mode == Mode::Shared && !downgrade(locked.file())? {
                return Ok(None);
            }
            if let Some(grant) = self.grant(locked, description)? {
                return Ok(Some(grant));
            }
        }
        Err(replaced())
    }

    fn lock_free(&self) -> Result<Option<Locked>> {
        Locked::try_new(self.open()?, Mode::Exclusive)
    }

    /// Returns the token of a lock that nobody has. It has the lock for a moment.
    pub(super) fn token_if_free(&self) -> Result<Option<u64>> {
        self.lock_free()?.map(|locked| Ok(read_state(locked.file())?.0.token)).transpose()
    }

    fn pass_gate(&self) -> Result<Gate> {
        let path = &self.gate;
        let Some(identity) = identity_of(path)? else { return Ok(Gate::Open(None)) };
        let kept = timed::take_kept(path).filter(|(_, known)| *known == identity);
        match kept.map_or_else(|| spared(|| system::open(path)), Ok) {
            Ok(gate) => Ok(Locked::try_new(gate, Mode::Shared)?.map_or(Gate::Shut, |gate| Gate::Open(Some(gate)))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Gate::Open(None)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn open_to_wait(&self, which: Which) -> Result<Opened> {
        match which {
            Which::Lock => self.open(),
            Which::Gate => Ok(spared(|| open_or_create(&self.folder, self.path(which)))?.0),
        }
    }

    /// Blocks until the gate or the lock is locked. The gate is locked alone in either mode; the lock counts only once
    /// `grant` has looked at it. Fails with `Interrupted` if the thread was interrupted.
    pub(super) fn wait(&self, which: Which, (file, _): &Opened) -> Result<()> {
        if which == Which::Lock {
            return wait_for_lock(file, self.mode);
        }
        if self.mode == Mode::Shared {
            announce_reader(file);
        }
        wait_for_lock(file, Mode::Exclusive)
    }

    fn open(&self) -> Result<Opened> {
        let (opened, is_new) = spared(|| open_or_create(&self.folder, &self.lock))?;
        if is_new && self.folder.is_durable {
            #[cfg(unix)]
            File::open(&self.folder.path)?.sync_all()?;
        }
        Ok(opened)
    }

    /// Makes a grant of a locked file; none if the path does not lead there any more (invariant 2).
    pub(super) fn grant(&self, locked: Locked, description: &str) -> Result<Option<Grant>> {
        let (State { token, is_marked }, is_new) = read_state(locked.file())?;
        let mut grant =
            Grant { name: self.clone(), locked, token, owner_died: is_marked, bytes: Vec::new(), limit: None };
        if self.mode == Mode::Exclusive {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            grant.token = (token + 1).max(since_1970.as_micros() as u64);
            grant.bytes = state::marked(grant.token, since_1970.as_millis() as u64, description);
            grant.write()?;
        } else if is_new {
            // For `query`. Readers that do so at the same time write the same.
            let mut bytes = state::marked(0, 0, description);
            state::unmark(&mut bytes);
            write_at_start(grant.locked.file(), &bytes)?;
        }
        announce(grant.locked.file(), self.mode);
        if grant.is_held()? {
            return Ok(Some(grant));
        }
        // The file is elsewhere, where nobody has died.
        Box::new(grant).return_unused();
        Ok(None)
    }
}

impl Grant {
    /// Bounds the hold, if it is to be. Fails if the system gives no thread for it: then the lock is given back.
    pub(super) fn limited(mut self, time: Option<Duration>) -> Result<Self> {
        if let Some(time) = time {
            match timed::begin(&self.locked.0.0, time) {
                Ok(limit) => self.limit = Some(limit),
                Err(error) => {
                    Box::new(self).return_unused();
                    return Err(error);
                }
            }
        }
        Ok(self)
    }

    fn write(&self) -> Result<()> {
        let file = self.locked.file();
        write_at_start(file, &self.bytes)?;
        if self.name.folder.is_durable { file.sync_data() } else { Ok(()) }
    }
}

impl Lock for Grant {
    fn granted(&self) -> (u64, bool) {
        (self.token, self.owner_died)
    }

    fn left(&self) -> Option<Duration> {
        self.limit.map(timed::left)
    }

    /// Whether the path still leads to the locked file.
    fn is_held(&self) -> Result<bool> {
        if self.left() == Some(Duration::ZERO) {
            return Ok(false);
        }
        self.name.leads_to(Which::Lock, self.locked.0.1)
    }

    /// The mark is left if the holder `died`.
    fn release(self: Box<Self>, died: bool) -> Result<bool> {
        let mut grant = *self;
        if grant.limit.take().is_some_and(|limit| !timed::end(limit)) {
            return Ok(false);
        }
        if !grant.bytes.is_empty() && !died {
            state::unmark(&mut grant.bytes);
            grant.write()?;
        }
        let is_held = grant.is_held()?;
        if is_held {
            let opened = grant.locked.unlocked();
            withdraw_announcement(&opened.0);
            timed::keep(&grant.name.lock, opened);
        }
        Ok(is_held)
    }

    fn is_durable(&self) -> bool {
        self.name.folder.is_durable && !self.bytes.is_empty()
    }
}

/// Opens a file; once more without the kept descriptors, if one is lacking.
fn spared<T>(open: impl Fn() -> Result<T>) -> Result<T> {
    open().or_else(|error| if is_passing(&error) && timed::close_kept() { open() } else { Err(error) })
}

fn replaced() -> Error {
    Error::other("the file of the lock is removed or replaced again and again")
}

/// Opens a file, and makes it first if it is not there. In a folder of several users, `O_CREAT` may fail for those that
/// are there (`fs.protected_regular`).
fn open_or_create(folder: &Folder, path: &Path) -> Result<(Opened, bool)> {
    for _ in 0..MOST_TRIES {
        match system::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            result => return result.map(|opened| (opened, false)),
        }
        match system::create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == ErrorKind::NotFound => folder.restore(error)?,
            result => return result.map(|opened| (opened, true)),
        }
    }
    Err(replaced())
}

/// Reads the state, and whether the file is new.
fn read_state(file: &File) -> Result<(State, bool)> {
    let mut bytes = [0; LARGEST];
    let length = uninterrupted(|| read_at(file, &mut bytes))?;
    Ok((state::read(&bytes[..length])?, length == 0))
}

/// Writes by one call.
fn write_at_start(file: &File, bytes: &[u8]) -> Result<()> {
    let length = uninterrupted(|| write_at(file, bytes))?;
    // The disk is full.
    if length == bytes.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

fn uninterrupted(mut call: impl FnMut() -> Result<usize>) -> Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
