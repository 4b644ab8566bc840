//! Why a file cannot be mapped.

use std::io::Error;

/// Why there is no mapping.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// This system, file system or processor cannot do it: what is missing.
    Unavailable(String),
    /// The file has so many bytes of data.
    Length(u64),
    /// The file is none of ours: what is wrong with it.
    Invalid(String),
    /// As many processes have it as can.
    Full,
    System(Error),
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::System(error)
    }
}
