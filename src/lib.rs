//! The referee for Dou Shou Qi (Jungle, Animal Chess).

pub mod rules;
