//! Sets `cfg(linux)` where the features of Linux are used.

use std::env;

pub(crate) fn main() {
    println!("cargo::rustc-check-cfg=cfg(linux)");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && env::var_os("CARGO_FEATURE_OTHER_SYSTEMS").is_none() {
        println!("cargo::rustc-cfg=linux");
    }
}
