//! One queue per process, even when two copies of the package are loaded.
//!
//! Two copies of the library file are two images in memory, each with statics of its own: a thread that waits in one would never hear a
//! notification in the other. So all copies of the package use the image that was loaded first. Every image carries a marker symbol, and
//! the dynamic loader lists images in the order in which they were loaded. `lib/agent/binding.js` of each copy loads its own image, asks
//! it for the file of the first image with the marker, and uses that one. An image is pinned when its first agent starts, so the first
//! image stays.

use std::ffi::OsString;

/// Marks an image of this package. The number in its name is the version of the interface between `lib/` and this library. It changes
/// when a `lib/` of the former version could not use a library of the new one, or the other way round; and, once a version has
/// been published, when the agent or the robust list, which the copies of `lib/` in a thread share, gets or loses a member.
#[unsafe(no_mangle)]
#[used]
static ATOMICS_WAITASYNC_PROTOCOL_1: u8 = 1;

const MARKER: &[u8] = b"ATOMICS_WAITASYNC_PROTOCOL_1\0";

/// The file of the first image with the marker, unless that is this image.
pub(crate) fn other_first_image() -> Option<String> {
    let (marker, file) = files().into_iter().find_map(|file| Some((marker_of(&file)?, file)))?;
    (marker != (&raw const ATOMICS_WAITASYNC_PROTOCOL_1).addr()).then(|| file.to_string_lossy().into_owned())
}

/// The files of the addons that are loaded, in the order they were loaded.
///
/// The list is complete before any of the files is opened. On Linux the loader calls back while it holds one of its locks. If the callback
/// opened a library, it would take another lock of the loader second; a thread that loads or unloads a library takes the two in the
/// opposite order.
fn files() -> Vec<OsString> {
    let mut files = loader::files();
    files.retain(|file| file.as_encoded_bytes().ends_with(b".node"));
    files
}

#[cfg(all(unix, not(target_vendor = "apple")))]
mod loader {
    use std::ffi::{CStr, OsString, c_int, c_void};
    use std::os::unix::ffi::OsStringExt;

    pub(super) use libc::RTLD_NOLOAD;

    pub(super) fn files() -> Vec<OsString> {
        unsafe extern "C" fn add(image: *mut libc::dl_phdr_info, _: usize, files: *mut c_void) -> c_int {
            // SAFETY: the loader passes a live record, and `files` is what `dl_iterate_phdr` was called with, below.
            let (name, files) = unsafe { ((*image).dlpi_name, &mut *files.cast::<Vec<OsString>>()) };
            if !name.is_null() {
                // SAFETY: a C string that lives as long as the image, which is not unloaded during this call.
                files.push(OsString::from_vec(unsafe { CStr::from_ptr(name) }.to_bytes().to_vec()));
            }
            0
        }

        let mut files: Vec<OsString> = Vec::new();
        // SAFETY: `add` has the type that is asked for, is called during this call only, and does not unwind.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut files).cast()) };
        files
    }
}

#[cfg(target_vendor = "apple")]
mod loader {
    use std::ffi::{CStr, OsString, c_char, c_int};
    use std::os::unix::ffi::OsStringExt;

    pub(super) const RTLD_NOLOAD: c_int = 0x10;

    unsafe extern "C" {
        safe fn _dyld_image_count() -> u32;
        /// Null if there are not so many images.
        safe fn _dyld_get_image_name(index: u32) -> *const c_char;
    }

    pub(super) fn files() -> Vec<OsString> {
        let names = (0.._dyld_image_count()).map(|index| _dyld_get_image_name(index)).filter(|name| !name.is_null());
        // SAFETY: each name is a C string that lives as long as its image. The images of this package are pinned. That another image is
        // unloaded during this call cannot be ruled out: the system has no way to list images that prevents it.
        names.map(|name| OsString::from_vec(unsafe { CStr::from_ptr(name) }.to_bytes().to_vec())).collect()
    }
}

#[cfg(windows)]
mod loader {
    use std::ffi::{OsString, c_void};
    use std::os::windows::ffi::OsStringExt;
    use std::ptr;

    type Handle = *mut c_void;

    /// No process loads so many modules, and no path has so many units.
    const MANY: u16 = 1 << 15;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        safe fn GetCurrentProcess() -> Handle;
        fn K32EnumProcessModules(process: Handle, modules: *mut Handle, bytes: u32, needed: *mut u32) -> i32;
        fn GetModuleFileNameW(module: Handle, file: *mut u16, length: u32) -> u32;
    }

    pub(super) fn files() -> Vec<OsString> {
        let (mut modules, mut needed) = (vec![ptr::null_mut(); MANY.into()], 0);
        let bytes = u32::try_from(size_of_val(&*modules)).expect("256 kB");
        // SAFETY: the buffer has as many bytes as the call is told.
        unsafe { K32EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), bytes, &raw mut needed) };
        modules.truncate(needed as usize / size_of::<Handle>());
        let mut file = vec![0; MANY.into()];
        let file_of = |module| {
            // SAFETY: the buffer has as many units as the call is told. The length is 0 if the module has been unloaded.
            let length = unsafe { GetModuleFileNameW(module, file.as_mut_ptr(), MANY.into()) };
            OsString::from_wide(&file[..length as usize])
        };
        modules.into_iter().map(file_of).collect()
    }
}

/// The address of the marker in the image loaded from `file`.
#[cfg(unix)]
fn marker_of(file: &std::ffi::OsStr) -> Option<usize> {
    use libloading::os::unix::{Library, RTLD_LAZY};
    // SAFETY: with RTLD_NOLOAD nothing is loaded and no initialiser runs. Dropping the handle only takes back the reference that opening
    // the library has added.
    let library = unsafe { Library::open(Some(file), RTLD_LAZY | loader::RTLD_NOLOAD) }.ok()?;
    // SAFETY: the symbol's value is only used as a number.
    unsafe { library.get::<*const u8>(MARKER) }.ok().map(|symbol| symbol.as_raw_ptr().addr())
}

/// The address of the marker in the image loaded from `file`.
#[cfg(windows)]
fn marker_of(file: &std::ffi::OsStr) -> Option<usize> {
    use libloading::os::windows::Library;
    let library = Library::open_already_loaded(file).ok()?;
    // SAFETY: the symbol's value is only used as a number.
    unsafe { library.get::<*const u8>(MARKER) }.ok().map(|symbol| symbol.as_raw_ptr().addr())
}
