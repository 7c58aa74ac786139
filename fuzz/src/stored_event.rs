//! An event as a log on disk holds it.

use jungle_referee::game::{CodeError, Game, Record, Span, Time, decode_event, encode_event};
use jungle_referee::rules::Side;

/// The first eight bytes say when it happened, the rest is the event. Any bytes are refused, with the place, or
/// are an event that is written and read again without a change; a part of an event is never one, nor is an event
/// with more behind it; and a creation makes a game, whatever its settings.
pub fn stored_event(data: &[u8]) {
    let Some((at, bytes)) = data.split_first_chunk() else { return };
    let at = Time::from_micros(u64::from_le_bytes(*at));
    let event = match decode_event(bytes, at) {
        Ok(event) => event,
        Err(CodeError { what, at }) => {
            assert!(at <= bytes.len() && !what.is_empty());
            return;
        }
    };
    let mut written = Vec::new();
    encode_event(&event, &mut written);
    assert_eq!(decode_event(&written, at).as_ref(), Ok(&event));
    assert!(written.len() <= bytes.len(), "its own form is the shortest");
    assert!(decode_event(&[&written[..], &[0]].concat(), at).is_err(), "{written:?} with a byte more");
    for cut in 0..written.len() {
        assert!(decode_event(&written[..cut], at).is_err(), "{event:?} cut after {cut} bytes of {written:?}");
    }
    if let Some(game) = Game::fold(&[Record { sequence: 1, written: at, event }]) {
        let later = game.deadline().unwrap_or(at) + Span::from_days(1);
        assert!(Side::ALL.iter().all(|side| game.remaining(*side, later) <= game.remaining(*side, at)));
    }
}
