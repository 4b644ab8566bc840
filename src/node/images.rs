//! One queue per process, even when two copies of the package are loaded.
//!
//! Two files are two images with two sets of statics, and a thread waiting in one would never hear a notification in the
//! other. So the copy that was loaded first serves everybody: each image that speaks this protocol carries a marker
//! symbol, the dynamic loader lists images in the order they were loaded, and `lib/binding.js` of every copy asks its own
//! image for the first marked one and uses that file. Images are pinned when they register, so the first one stays.

#![allow(unsafe_code, reason = "looking a symbol up in an image that is already loaded")]

use std::ffi::OsString;

/// Marks an image of this package. The number is that of the interface between `lib/` and this library: it changes
/// when they could no longer be mixed.
#[unsafe(no_mangle)]
#[used]
static ATOMICS_WAITASYNC_PROTOCOL_1: u8 = 1;

const MARKER: &[u8] = b"ATOMICS_WAITASYNC_PROTOCOL_1\0";

/// The file of the first image with the marker, unless that is this image.
pub(crate) fn other_first_image() -> Option<String> {
    let (marker, file) = files().into_iter().find_map(|file| Some((marker_of(&file)?, file)))?;
    (marker != (&raw const ATOMICS_WAITASYNC_PROTOCOL_1).addr()).then(|| file.to_string_lossy().into_owned())
}

fn is_addon(file: &[u8]) -> bool {
    file.ends_with(b".node")
}

/// The files of the addons that are loaded, in the order they were loaded.
///
/// A list, made before any of them is looked at: the loader calls back with one of its locks held. A callback that asked it
/// for a library would take its other lock second, and a thread that loads or unloads a library takes them the other way
/// round.
#[cfg(target_os = "linux")]
fn files() -> Vec<OsString> {
    use std::ffi::{CStr, c_int, c_void};
    use std::os::unix::ffi::OsStringExt;

    unsafe extern "C" fn add(image: *mut libc::dl_phdr_info, _: usize, files: *mut c_void) -> c_int {
        // SAFETY: the loader passes a live record, and `files` is what `dl_iterate_phdr` was called with, below.
        let (name, files) = unsafe { ((*image).dlpi_name, &mut *files.cast::<Vec<OsString>>()) };
        if !name.is_null() {
            // SAFETY: a C string that lives as long as the image, which is not unloaded during this call.
            let file = unsafe { CStr::from_ptr(name) }.to_bytes();
            if is_addon(file) {
                files.push(OsString::from_vec(file.to_vec()));
            }
        }
        0
    }

    let mut files: Vec<OsString> = Vec::new();
    // SAFETY: `add` has the type that is asked for, is called during this call only, and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut files).cast()) };
    files
}

/// The files of the addons that are loaded, in the order they were loaded. A list, as on Linux.
#[cfg(not(target_os = "linux"))]
fn files() -> Vec<OsString> {
    use findshlibs::{SharedLibrary, TargetSharedLibrary};

    let mut files = Vec::new();
    TargetSharedLibrary::each(|image| {
        if is_addon(image.name().as_encoded_bytes()) {
            files.push(image.name().to_owned());
        }
    });
    files
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
