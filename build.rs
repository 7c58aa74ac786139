//! Compiles the contract with protox, a Rust compiler of .proto files: no `protoc` is needed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

const FILES: [&str; 3] = ["jungle/v1/game.proto", "jungle/v1/error_reason.proto", "jungle/v1/referee.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    // protox keeps the source info, so that reflection shows the comments.
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    fs::write(out.join("jungle_v1.bin"), descriptors.encode_to_vec())?;
    let configured = tonic_prost_build::configure().build_transport(true);
    configured.codec_path("crate::service::codec::SmallBuffers").compile_fds(descriptors)?;
    Ok(())
}
