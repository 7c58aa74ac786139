//! The referee for Dou Shou Qi (Jungle, Animal Chess): a gRPC service that creates games, judges every
//! move by every rule, runs the clocks, and tells what happened.
//!
//! The house, in reading order; an arrow means "may name":
//! `main -> app -> service -> runtime -> game -> rules`.

pub mod rules;

pub mod game;

pub mod runtime;

pub mod service;

pub mod config;

pub mod telemetry;

pub mod app;
