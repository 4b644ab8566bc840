//! Lets napi-rs set the linker up for a Node addon.

fn main() {
    napi_build::setup();
}
