//! The bytes of events are written down in `docs/log.md`: they never change their meaning.

mod game;
mod support;

use game::{t, usual};
use jungle_referee::game::{
    AbortedBy, Caller, Creation, Ending, Event, Kind, Marks, Moved, OfferResult, Request, Span, create, decode_event,
    encode_event,
};
use jungle_referee::rules::{Animal, Outcome, Piece, Reason, Side, Square, Violation};
use support::mv;

fn event(kind: Kind) -> Event {
    Event { at: t(0), kind, ending: None, request: None }
}

#[track_caller]
fn check(event: &Event, expected: &str) {
    let mut bytes = Vec::new();
    encode_event(event, &mut bytes);
    let written: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written, expected.replace(' ', ""), "{event:?}");
    assert_eq!(decode_event(&bytes, event.at).as_ref(), Ok(event));
    // No part of it is an event, nor is more than it.
    for length in 0..bytes.len() {
        assert!(decode_event(&bytes[..length], event.at).is_err(), "{length} bytes of {event:?}");
    }
    bytes.push(0);
    assert!(decode_event(&bytes, event.at).is_err());
}

fn moved(side: Side, text: &str) -> Moved {
    let (captured, offer) = (None, OfferResult::NotAsked);
    Moved { side, mv: mv(text), captured, waived: false, charged: Span::ZERO, grace_used: Span::ZERO, offer }
}

/// "I read your data file with a program of my own, by what your document says."
#[test]
fn events_are_written_as_the_document_says() {
    let plain = Moved { charged: Span::from_micros(1_500_000), ..moved(Side::Red, "a3a4") };
    check(&event(Kind::Moved(plain)), "04 08 30 00 e0c65b 00");
    let rich = Moved {
        captured: Some(Animal::Rat),
        waived: true,
        charged: Span::from_micros(127),
        grace_used: Span::from_micros(128),
        offer: OfferResult::Made,
        ..moved(Side::Blue, "g9g8")
    };
    let outcome = Outcome { winner: Some(Side::Blue), reason: Reason::AllCaptured, scored: true };
    let request = Request { caller: Caller::Seat(Side::Blue), id: 0xab, digest: 0x0102_0304 };
    let last = Event {
        ending: Some(Ending { outcome, abort_reason: None }),
        request: Some(request),
        ..event(Kind::Moved(rich))
    };
    let id = format!("{:032x}", 0xab);
    check(&last, &format!("e4 fbd9 03 7f 8001 0e {id} 0000000001020304"));
    check(&event(Kind::Resumed { down_since: t(0) }), "12 80c097d1edff9603");
    let outcome = Outcome { winner: None, reason: Reason::Aborted, scored: false };
    let ending = Some(Ending { outcome, abort_reason: Some("why".into()) });
    check(&Event { ending, ..event(Kind::Aborted(AbortedBy::Service)) }, "91 c0 03 776879");
    let piece = Piece { side: Side::Red, animal: Animal::Lion };
    let mv = mv("d4a4");
    let b4: Square = "b4".parse().expect("a square");
    let violation = Violation::JumpBlocked { piece, from: mv.from, to: mv.to, rats: [None, Some(b4)] };
    check(&event(Kind::Refused { side: Side::Red, mv, violation: Box::new(violation) }), "05 1e 03 05 01 3f 0c");
}

/// "A game of last year is judged by the switches that it had, whatever its preset says today."
#[test]
fn a_creation_holds_every_switch_and_mark() {
    let marks = Marks { labels: vec!["cup".into()], external_reference: "b7".into() };
    let creation = Creation { marks, ..usual().into() };
    let written = "00 06 796573686f75 00 01 00 1d 01 64 0a 00 00 00 00 00 00 00 80c0ddeec102 01 03 637570 02 6237";
    check(&create(creation.into(), None, t(0)), written);
}
