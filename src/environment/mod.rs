//! The calls between JavaScript and native code, both ways.

mod environment;
pub mod exports;
mod operations;
mod registers;

pub(crate) use environment::{Bell, Environment, bell_for, contained, pin_buffer};
pub(crate) use registers::{
    AWAITED_HERE, Answer, BATCH, FREED, HELD_ELSEWHERE, HELD_HERE, NEWS, NOT_ADOPTED, NOT_LOCKED, RegistersRef,
    from_number, to_number,
};
