//! The codec of the contract's calls: prost's, with buffers as small as the messages are.
//!
//! The library takes 8 KiB for each call, and a stream keeps them for as long as it lives; few answers here
//! have a thousand bytes. A larger message makes its buffer grow.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::ProstCodec;

/// How large a buffer begins, in bytes: what the system's allocator still has at hand in each thread.
const BUFFER: usize = 1_024;

/// How much is gathered of messages that are ready together, in bytes: as the library has it.
const TOGETHER: usize = 32 * 1_024;

/// Reads and writes prost's messages with small buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmallBuffers<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for SmallBuffers<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for SmallBuffers<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = <ProstCodec<T, U> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(BufferSettings::new(BUFFER, TOGETHER))
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(BUFFER, TOGETHER))
    }
}
