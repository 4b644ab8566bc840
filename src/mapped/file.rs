//! Opens a file of mapped memory, or makes it.

use std::fs::{File, OpenOptions, Permissions, remove_file, rename};
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::layout::{HEADER_BYTES, Header};
use super::open_error::OpenError;
use super::system;

/// How often a file is looked for that others remove or replace meanwhile.
const MOST_TRIES: u32 = 1000;

fn invalid<T>(what: &str) -> Result<T, OpenError> {
    Err(OpenError::Invalid(what.into()))
}

/// Opens the file at `path`, or makes it. Its header is `wanted`, but for the boot.
pub(super) fn open(path: &Path, wanted: Header) -> Result<File, OpenError> {
    let (_, size) = wanted.ends().ok_or_else(|| OpenError::System(ErrorKind::OutOfMemory.into()))?;
    for _ in 0..MOST_TRIES {
        match options().open(path) {
            Ok(file) => {
                let found = check(&file, wanted, size)?;
                if found.boot == wanted.boot {
                    return Ok(file);
                }
                replace(path, &file, wanted, size)?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make(path, wanted, size, |made| system::link(made, path))?;
            }
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return invalid("it is a symbolic link"),
            Err(error) if error.kind() == ErrorKind::IsADirectory => return invalid("it is a folder"),
            Err(error) => return Err(error.into()),
        }
    }
    invalid("it is removed or replaced all the time")
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Checks that a file is ours, of the wanted kind and lengths. Returns its header.
fn check(file: &File, wanted: Header, size: usize) -> Result<Header, OpenError> {
    let data = file.metadata()?;
    if !data.is_file() {
        return invalid("it is no regular file");
    }
    if data.uid() != system::user() {
        return invalid("it belongs to another user");
    }
    if data.mode() & 0o022 != 0 {
        return invalid("others than its owner may write to it");
    }
    let mut bytes = [0; HEADER_BYTES];
    let header = match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Header::from_bytes(&bytes),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
        Err(error) => return Err(error.into()),
    };
    let Some(header) = header else { return invalid("it was not made by this version of atomics-waitasync") };
    if header.kind != wanted.kind {
        return invalid("it was made for something else");
    }
    if header.boot != wanted.boot {
        return Ok(header);
    }
    if header.data_bytes != wanted.data_bytes {
        return Err(OpenError::Length(header.data_bytes));
    }
    if header.table_bytes != wanted.table_bytes || data.len() != size as u64 {
        return invalid("it has been truncated or changed");
    }
    Ok(header)
}

/// Makes a file, and gives it a name by `name`. Until then it has none, and if this process dies, nobody sees it.
fn make(
    path: &Path,
    header: Header,
    size: usize,
    name: impl FnOnce(&File) -> std::io::Result<()>,
) -> Result<(), OpenError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::EISDIR) => system::unknown_drive(None),
        _ => error.into(),
    })?;
    system::check_drive(&file)?;
    // Whatever the umask has taken away.
    file.set_permissions(Permissions::from_mode(0o600))?;
    // SAFETY: the descriptor is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size.cast_signed() as libc::off_t) } {
        0 => {}
        number => return Err(Error::from_raw_os_error(number).into()),
    }
    file.write_all_at(&header.to_bytes(), 0)?;
    // If this process has no room for it, there is to be no file either.
    let room = system::map(&file, size)?;
    // SAFETY: nobody knows of it.
    unsafe { system::unmap(room, size) };
    match name(&file) {
        // Another process was quicker.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        named => Ok(named?),
    }
}

/// Replaces a file of an earlier boot. Others that find it wait here, and then find the new one.
fn replace(path: &Path, old: &File, header: Header, size: usize) -> Result<(), OpenError> {
    system::lock_whole(old)?;
    let identity = |data: &std::fs::Metadata| (data.dev(), data.ino());
    match path.symlink_metadata() {
        Ok(there) if identity(&there) == identity(&old.metadata()?) => make(path, header, size, |made| {
            let mut temporary = path.as_os_str().to_owned();
            temporary.push(".new");
            // Of one that died here.
            let _ = remove_file(&temporary);
            system::link(made, temporary.as_ref())?;
            rename(temporary, path)
        }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}
