//! One queue per process, even when two copies of the package are loaded.
//!
//! Two files are two images with two sets of statics, and a thread waiting in one would never hear a notification in the
//! other. So the copy that was loaded first serves everybody: each image that speaks this protocol carries a marker
//! symbol, the dynamic loader lists images in the order they were loaded, and `lib/binding.js` of every copy asks its own
//! image for the first marked one and uses that file. Images are pinned when they register, so the first one stays.

#![allow(unsafe_code, reason = "looking a symbol up in an image that is already loaded")]

use findshlibs::{SharedLibrary, TargetSharedLibrary};

/// Marks an image of this package. The number is that of the interface between `lib/` and this library: it changes
/// when they could no longer be mixed.
#[unsafe(no_mangle)]
#[used]
static ATOMICS_WAITASYNC_PROTOCOL_1: u8 = 1;

const MARKER: &[u8] = b"ATOMICS_WAITASYNC_PROTOCOL_1\0";

/// The file of the first image with the marker, unless that is this image.
pub(crate) fn other_first_image() -> Option<String> {
    let mut first = None;
    TargetSharedLibrary::each(|image| {
        if first.is_none() && image.name().to_string_lossy().ends_with(".node") {
            first = marker_of(image.name()).map(|marker| (marker, image.name().to_string_lossy().into_owned()));
        }
    });
    let (marker, file) = first?;
    (marker != (&raw const ATOMICS_WAITASYNC_PROTOCOL_1).addr()).then_some(file)
}

/// The address of the marker in the image loaded from `file`.
#[cfg(unix)]
fn marker_of(file: &std::ffi::OsStr) -> Option<usize> {
    use libloading::os::unix::{Library, RTLD_LAZY};
    // SAFETY: with RTLD_NOLOAD nothing is loaded and no initialiser runs; dropping the handle only takes back the
    // reference just added.
    let library = unsafe { Library::open(Some(file), RTLD_LAZY | RTLD_NOLOAD) }.ok()?;
    // SAFETY: the symbol's value is only used as a number.
    unsafe { library.get::<*const u8>(MARKER) }.ok().map(|symbol| symbol.as_raw_ptr().addr())
}

/// "Only if it is loaded already."
#[cfg(any(target_os = "linux", target_os = "android"))]
const RTLD_NOLOAD: std::ffi::c_int = 4;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
const RTLD_NOLOAD: std::ffi::c_int = 0x10;

/// The address of the marker in the image loaded from `file`.
#[cfg(windows)]
fn marker_of(file: &std::ffi::OsStr) -> Option<usize> {
    use libloading::os::windows::Library;
    let library = Library::open_already_loaded(file).ok()?;
    // SAFETY: the symbol's value is only used as a number.
    unsafe { library.get::<*const u8>(MARKER) }.ok().map(|symbol| symbol.as_raw_ptr().addr())
}
