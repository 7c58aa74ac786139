//! The rules: pure, std only.
