//! A folder of names: it is made at its first use, and again where somebody has removed it.

use std::fs::create_dir_all;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use super::system::{identity_of, is_local};

/// A folder of names.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct Folder {
    pub(super) path: PathBuf,
    /// Whether states are flushed to the disk.
    pub(super) is_durable: bool,
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
    pub(super) fn restore(&self, missing: Error) -> Result<()> {
        let drive = self.path.ancestors().find_map(drive_of);
        if drive == self.drive { create_dir_all(&self.path) } else { Err(missing) }
    }
}

fn drive_of(path: &Path) -> Option<u64> {
    identity_of(path).ok().flatten().map(|(device, _)| device)
}
