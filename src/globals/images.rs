//! One queue per process, even when it loads two copies.
//!
//! Two copies of the library file are two images in memory, each with statics of its own: a thread that waits in one
//! would never hear a notification in the other. So all copies of the package use the image that was loaded first.
//! Every image carries a marker, and the dynamic loader lists images in the order in which they were loaded.
//! `lib/agent/load-binding.js` of each copy loads its own image, asks it for the file of the first image with the marker,
//! and uses that one. An image is pinned when its first agent starts, so the first image stays.

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
    let (marker, file) = marker::first()?;
    (marker != marker::own()).then(|| file.to_string_lossy().into_owned())
}

/// Where images are ELF files, the marker is a note: those of all images are in memory, as they were loaded. To look a
/// symbol up, the loader would open the file by its path, where there may be another file by now, or none.
#[cfg(all(unix, not(target_vendor = "apple")))]
mod marker {
    use std::ffi::{CStr, OsString, c_int, c_void};
    use std::os::unix::ffi::OsStringExt;
    use std::slice;

    #[cfg(target_pointer_width = "32")]
    use libc::Elf32_Phdr as Header;
    #[cfg(target_pointer_width = "64")]
    use libc::Elf64_Phdr as Header;

    const PT_LOAD: u32 = 1;
    const PT_NOTE: u32 = 4;

    /// Longer notes than those of any library are not searched: Node's own file may have a program in one, and that
    /// program this library.
    const LONGEST: usize = 4096;

    #[repr(C)]
    struct Note {
        name_size: u32,
        description_size: u32,
        kind: u32,
        /// Filled up to a multiple of four bytes, as the format wants it, by the alignment of the structure.
        name: [u8; super::MARKER.len()],
    }

    #[used]
    #[unsafe(link_section = ".note.atomics-waitasync")]
    static NOTE: Note =
        Note { name_size: super::MARKER.len() as u32, description_size: 0, kind: 1, name: *super::MARKER };

    /// Returns the address of the marker of this image.
    pub(super) fn own() -> usize {
        (&raw const NOTE.name).addr()
    }

    fn is_loaded(segment: &Header, headers: &[Header]) -> bool {
        let end = |header: &Header| header.p_vaddr.checked_add(header.p_memsz);
        let mut loaded = headers.iter().filter(|header| header.p_type == PT_LOAD);
        loaded.any(|header| header.p_vaddr <= segment.p_vaddr && end(segment).is_some() && end(segment) <= end(header))
    }

    /// Returns the marker and the file of the first image with one.
    pub(super) fn first() -> Option<(usize, OsString)> {
        unsafe extern "C" fn look(image: *mut libc::dl_phdr_info, _: usize, first: *mut c_void) -> c_int {
            // SAFETY: the loader passes a live record, and `first` is the argument of `dl_iterate_phdr`, below.
            let (image, first) = unsafe { (&*image, &mut *first.cast::<Option<(usize, OsString)>>()) };
            if image.dlpi_name.is_null() || image.dlpi_phdr.is_null() {
                return 0;
            }
            // SAFETY: the image is not unloaded during this call; it has so many headers.
            let headers = unsafe { slice::from_raw_parts(image.dlpi_phdr, image.dlpi_phnum.into()) };
            let is_note = |segment: &&Header| segment.p_type == PT_NOTE && segment.p_memsz as usize <= LONGEST;
            for segment in headers.iter().filter(is_note).filter(|segment| is_loaded(segment, headers)) {
                let start = image.dlpi_addr as usize + segment.p_vaddr as usize;
                // SAFETY: the segment is loaded, and nothing writes to notes.
                let notes = unsafe { slice::from_raw_parts(start as *const u8, segment.p_memsz as usize) };
                if let Some(offset) = notes.windows(super::MARKER.len()).position(|bytes| bytes == super::MARKER) {
                    // SAFETY: a C string that lives as long as the image.
                    let file = unsafe { CStr::from_ptr(image.dlpi_name) };
                    *first = Some((start + offset, OsString::from_vec(file.to_bytes().to_vec())));
                    return 1;
                }
            }
            0
        }

        let mut first = None;
        // SAFETY: `look` has the type that is asked for, is called during this call only, and does not unwind.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut first).cast()) };
        first
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn the_own_image_is_the_first() {
            assert_eq!(super::first().map(|(marker, _)| marker), Some(super::own()));
        }
    }
}

/// Elsewhere, the marker is a symbol.
#[cfg(any(windows, target_vendor = "apple"))]
mod marker {
    use std::ffi::{OsStr, OsString};

    #[unsafe(no_mangle)]
    #[used]
    static ATOMICS_WAITASYNC_PROTOCOL_1: u8 = 1;

    pub(super) fn own() -> usize {
        (&raw const ATOMICS_WAITASYNC_PROTOCOL_1).addr()
    }

    /// Returns the marker and the file of the first image with one. Only addons are opened.
    pub(super) fn first() -> Option<(usize, OsString)> {
        super::loader::files()
            .into_iter()
            .filter(|file| file.as_encoded_bytes().ends_with(b".node"))
            .find_map(|file| Some((marker_of(&file)?, file)))
    }

    /// Returns the address of the marker in the image loaded from `file`.
    #[cfg(unix)]
    fn marker_of(file: &OsStr) -> Option<usize> {
        use libloading::os::unix::{Library, RTLD_LAZY};
        const RTLD_NOLOAD: std::ffi::c_int = 0x10;
        // SAFETY: with RTLD_NOLOAD nothing is loaded and no initialiser runs. Dropping the handle only takes back the
        // reference that opening the library has added.
        let library = unsafe { Library::open(Some(file), RTLD_LAZY | RTLD_NOLOAD) }.ok()?;
        // SAFETY: the symbol's value is only used as a number.
        unsafe { library.get::<*const u8>(super::MARKER) }.ok().map(|symbol| symbol.as_raw_ptr().addr())
    }

    #[cfg(windows)]
    fn marker_of(file: &OsStr) -> Option<usize> {
        use libloading::os::windows::Library;
        let library = Library::open_already_loaded(file).ok()?;
        // SAFETY: the symbol's value is only used as a number.
        unsafe { library.get::<*const u8>(super::MARKER) }.ok().map(|symbol| symbol.as_raw_ptr().addr())
    }
}

#[cfg(target_vendor = "apple")]
mod loader {
    use std::ffi::{CStr, OsString, c_char};
    use std::os::unix::ffi::OsStringExt;

    unsafe extern "C" {
        safe fn _dyld_image_count() -> u32;
        /// Null if there are not so many images.
        safe fn _dyld_get_image_name(index: u32) -> *const c_char;
    }

    /// Lists the files of the images, in the order of loading.
    pub(super) fn files() -> Vec<OsString> {
        let names = (0.._dyld_image_count()).map(|index| _dyld_get_image_name(index)).filter(|name| !name.is_null());
        // SAFETY: each name is a C string that lives as long as its image. The images of this package are pinned. That
        // another image is unloaded during this call cannot be ruled out: the system has no way to list images that
        // prevents it.
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
            // SAFETY: the buffer has as many units as the call is told. The length is 0 if the module is gone.
            let length = unsafe { GetModuleFileNameW(module, file.as_mut_ptr(), MANY.into()) };
            OsString::from_wide(&file[..length as usize])
        };
        modules.into_iter().map(file_of).collect()
    }
}
