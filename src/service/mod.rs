//! The wire: tonic services over the registry. Reads requests, asks, and writes answers; knows no rule.
//!
//! The generated types are named here and nowhere else.

pub mod calls;

mod caller;
mod codec;
mod decode;
mod encode;
pub mod health;
pub mod pace;
mod referee;
mod status;
pub mod tally;
pub mod trace;

pub use caller::{ConnectionInfo, Keys};
pub use referee::{Referee, ServiceLimits};

/// The types and services generated from `proto/jungle/v1`.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::restriction,
    clippy::wildcard_enum_match_arm
)]
pub mod proto {
    tonic::include_proto!("jungle.v1");

    /// The descriptors of the contract, with its comments.
    pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/jungle_v1.bin"));
}

/// The answer to a call that met a fault of ours.
#[must_use]
pub fn internal_fault() -> tonic::Status {
    status::internal()
}
