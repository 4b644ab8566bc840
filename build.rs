//! Lets napi-rs set the linker up for a Node addon.

#[path = "core/build.rs"]
mod core;

fn main() {
    napi_build::setup();
    core::main();
}
