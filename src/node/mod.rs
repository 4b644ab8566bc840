//! A Node environment: what JavaScript calls, and what calls JavaScript.

mod agent;
pub mod binding;
mod images;
