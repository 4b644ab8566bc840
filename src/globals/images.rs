//! One queue per process, even when it loads two copies.
//!
//! Two copies of the library file are two images in memory, each with statics of its own: a thread that waits in one
//! would never hear a notification in the other. So all copies of the package use the image that came first.
//! `lib/agent/load-binding.js` of each copy loads its own image, asks it for the file of the first one, and uses that.
//!
//! Each image has a marker, which is a symbol. An image that is asked makes its symbols global, which Node does not
//! when it loads an addon, and stays loaded for ever. Then it looks the marker up: the loader finds that of the image
//! that has done so first. Windows has no such order of symbols, but lists the modules of a process in that of their
//! loading. There an image is pinned when its first agent starts.

use napi_derive::napi;

/// Marks an image of this package. The number in its name is the version of the interface between `lib/` and this
/// library. It changes when a `lib/` of the former version could not use a library of the new one, or the other way
/// round; and, once a version has been published, when the agent or the robust list, which the copies of `lib/` in a
/// thread share, gets or loses a member. From then on `lib/` must compare the number with its own, too: for the path of
/// a loaded library glibc gives that library, even if an installation has replaced the file, and `lib/` with it.
const MARKER: &[u8; 29] = b"ATOMICS_WAITASYNC_PROTOCOL_1\0";

/// Returns the file of the first image with the marker, unless ours. It may be gone by now.
#[napi(catch_unwind)]
pub fn other_first_image() -> Option<String> {
    marker::other_first().map(|file| file.to_string_lossy().into_owned())
}

#[unsafe(no_mangle)]
#[used]
static ATOMICS_WAITASYNC_PROTOCOL_1: u8 = 1;

#[cfg(unix)]
mod marker {
    use std::ffi::{CStr, OsString, c_void};
    use std::os::unix::ffi::OsStringExt;
    use std::{mem, ptr};

    use libc::{RTLD_DEFAULT, RTLD_GLOBAL, RTLD_LAZY, RTLD_NOLOAD};
    use libloading::os::unix::Library;

    pub(super) fn other_first() -> Option<OsString> {
        // By a function that is no symbol: a use of the marker here could mean the first image's.
        let (own, file) = image_of(image_of as *const c_void)?;
        // SAFETY: with RTLD_NOLOAD nothing is loaded and no initialiser runs.
        let library = unsafe { Library::open(Some(file), RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL) };
        mem::forget(library);
        // SAFETY: the name is a C string, and the symbol's value is only used as a number.
        let (first, file) = image_of(unsafe { libc::dlsym(RTLD_DEFAULT, super::MARKER.as_ptr().cast()) })?;
        (first != own).then_some(file)
    }

    /// Returns the base and the file of the image at this address.
    fn image_of(address: *const c_void) -> Option<(usize, OsString)> {
        // SAFETY: a record of numbers and pointers, which may be null.
        let mut image: libc::Dl_info = unsafe { mem::zeroed() };
        // SAFETY: the record is live, and any address may be asked for.
        if unsafe { libc::dladdr(address, ptr::from_mut(&mut image)) } == 0 {
            return None;
        }
        // SAFETY: a C string that lives as long as the image; this one and the first stay loaded.
        let file = unsafe { CStr::from_ptr(image.dli_fname) }.to_bytes().to_vec();
        Some((image.dli_fbase.addr(), OsString::from_vec(file)))
    }
}

#[cfg(windows)]
mod marker {
    use std::ffi::{OsString, c_void};
    use std::os::windows::ffi::OsStringExt;
    use std::ptr;

    use libloading::os::windows::Library;

    type Handle = *mut c_void;

    /// No process loads so many modules, and no path has so many units.
    const MANY: u16 = 1 << 15;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        safe fn GetCurrentProcess() -> Handle;
        fn K32EnumProcessModules(process: Handle, modules: *mut Handle, bytes: u32, needed: *mut u32) -> i32;
        fn GetModuleFileNameW(module: Handle, file: *mut u16, length: u32) -> u32;
    }

    /// Finds the first image with a marker. Only addons are opened.
    pub(super) fn other_first() -> Option<OsString> {
        let is_addon = |file: &OsString| file.as_encoded_bytes().ends_with(b".node");
        let (marker, file) = files().into_iter().filter(is_addon).find_map(|file| {
            let library = Library::open_already_loaded(&file).ok()?;
            // SAFETY: the symbol's value is only used as a number.
            let marker = unsafe { library.get::<*const u8>(super::MARKER) }.ok()?;
            Some((marker.as_raw_ptr().addr(), file))
        })?;
        (marker != (&raw const super::ATOMICS_WAITASYNC_PROTOCOL_1).addr()).then_some(file)
    }

    /// Lists the files of the modules, in the order of loading.
    fn files() -> Vec<OsString> {
        let (mut modules, mut needed) = (vec![ptr::null_mut(); MANY.into()], 0);
        let bytes = u32::try_from(size_of_val(&*modules)).expect("256 kB");
        // SAFETY: the buffer has as many bytes as the call is told.
        unsafe { K32EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), bytes, &raw mut needed) };
        modules.truncate(needed as usize / size_of::<Handle>());
        let mut file = vec![0; MANY.into()];
        let file_of = |module| {
            // SAFETY: the buffer has as many units as the call is told. The length is 0 if the module is gone.
            let length = unsafe { GetModuleFileNameW(module, file.as_mut_ptr(), MANY.into()) };
            OsString::from_wide(&file[..length as usize])
        };
        modules.into_iter().map(file_of).collect()
    }
}
