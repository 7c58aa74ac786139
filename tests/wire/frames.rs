//! HTTP/2 by the byte: frames that a well-behaved client would send, and the pieces of such as it would not.

/// What a client greets with, before its settings.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a client greets with: the preface and empty settings.
pub(crate) const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Kinds of frames.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 1;
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
    pub(crate) const PADDED: u8 = 8;
    pub(crate) const PRIORITY: u8 = 32;
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], stream.to_be_bytes().as_slice(), payload].concat()
}

/// A header that is in no table.
pub(crate) fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// The headers of a call, as a block.
pub(crate) fn call_headers(name: &str) -> Vec<u8> {
    let headers = [
        literal(":method", "POST"),
        literal(":scheme", "http"),
        literal(":path", &format!("/jungle.v1.RefereeService/{name}")),
        literal(":authority", "here"),
        literal("content-type", "application/grpc"),
        literal("te", "trailers"),
    ];
    headers.concat()
}

/// The beginning of a call.
pub(crate) fn call(stream: u32, name: &str) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS, stream, &call_headers(name))
}

/// The end of a call: its message, as gRPC frames it.
pub(crate) fn message(stream: u32, message: &impl prost::Message) -> Vec<u8> {
    frame(kind::DATA, flag::END_STREAM, stream, &framed(&message.encode_to_vec()))
}

/// A message with gRPC's five bytes before it.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a short message").to_be_bytes();
    [&[0], length.as_slice(), message].concat()
}
