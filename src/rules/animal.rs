//! The two sides and their animals.
//!
//! Here lives who there is; how strong each is depends on the ladder of the
//! ruleset and lives in `ruleset`.

use std::fmt;

/// A player's colour: Red sits on ranks 1–3 and moves first (section 1).
///
/// # Examples
/// ```
/// use jungle_referee::rules::Side;
/// assert_eq!(Side::Red.opponent(), Side::Blue);
/// assert_eq!(Side::Blue.to_string(), "Blue");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Ranks 1–3, upper-case letters; moves first.
    Red,
    /// Ranks 7–9, lower-case letters.
    Blue,
}

impl Side {
    /// Both sides, Red first.
    pub const ALL: [Side; 2] = [Side::Red, Side::Blue];

    /// The other side.
    #[must_use]
    pub const fn opponent(self) -> Side {
        match self {
            Side::Red => Side::Blue,
            Side::Blue => Side::Red,
        }
    }

    /// 0 for Red, 1 for Blue: the place in a table with one entry a side.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Side::Red => 0,
            Side::Blue => 1,
        }
    }

    /// The side's letter in a position text: `r` or `b`.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Side::Red => 'r',
            Side::Blue => 'b',
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Red => "Red",
            Side::Blue => "Blue",
        })
    }
}

/// A kind of animal. A side has at most one of each.
///
/// # Examples
/// ```
/// use jungle_referee::rules::Animal;
/// assert_eq!(Animal::Leopard.letter(), 'P');
/// assert_eq!(Animal::from_letter('p'), Some(Animal::Leopard));
/// assert_eq!(Animal::from_letter('x'), None);
/// assert_eq!(Animal::Leopard.to_string(), "leopard");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Animal {
    /// The strongest by the ladder; the rat alone of the weaker takes it (`RAT_ELEPHANT`).
    Elephant,
    /// Jumps over the river (`JUMP`).
    Lion,
    /// Jumps over the river, in some rulesets along a rank only (`JUMP`).
    Tiger,
    /// Below the tiger in every ladder.
    Leopard,
    /// In the ladders `WOLF_OVER_DOG` and `DOG_OVER_WOLF`.
    Wolf,
    /// In the ladder `DOG_OVER_FOX`, in the wolf's place.
    Fox,
    /// Above or below the wolf, as the ladder says; above the fox.
    Dog,
    /// Above the rat alone.
    Cat,
    /// The only swimmer (`RIVER`), and the elephant's bane (`RAT_ELEPHANT`).
    Rat,
}

impl Animal {
    /// Every animal that any ladder knows.
    pub const ALL: [Animal; 9] = [
        Animal::Elephant,
        Animal::Lion,
        Animal::Tiger,
        Animal::Leopard,
        Animal::Wolf,
        Animal::Fox,
        Animal::Dog,
        Animal::Cat,
        Animal::Rat,
    ];

    /// The animal's letter in a position text, upper case.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Animal::Elephant => 'E',
            Animal::Lion => 'L',
            Animal::Tiger => 'T',
            Animal::Leopard => 'P',
            Animal::Wolf => 'W',
            Animal::Fox => 'F',
            Animal::Dog => 'D',
            Animal::Cat => 'C',
            Animal::Rat => 'R',
        }
    }

    /// The animal with this letter, of either case.
    #[must_use]
    pub fn from_letter(letter: char) -> Option<Animal> {
        let upper = letter.to_ascii_uppercase();
        Animal::ALL.into_iter().find(|a| a.letter() == upper)
    }

    /// 0–8: the place in [`Animal::ALL`], for tables with one entry an animal.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Animal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Animal::Elephant => "elephant",
            Animal::Lion => "lion",
            Animal::Tiger => "tiger",
            Animal::Leopard => "leopard",
            Animal::Wolf => "wolf",
            Animal::Fox => "fox",
            Animal::Dog => "dog",
            Animal::Cat => "cat",
            Animal::Rat => "rat",
        })
    }
}

/// One animal of one side.
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Animal, Piece, Side};
/// let rat = Piece { side: Side::Blue, animal: Animal::Rat };
/// assert_eq!(rat.letter(), 'r');
/// assert_eq!(Piece::from_letter('R'), Some(Piece { side: Side::Red, animal: Animal::Rat }));
/// assert_eq!(rat.to_string(), "Blue's rat");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Piece {
    /// Whose it is.
    pub side: Side,
    /// What it is.
    pub animal: Animal,
}

impl Piece {
    /// Its letter in a position text: upper case for Red, lower case for Blue.
    #[must_use]
    pub const fn letter(self) -> char {
        match self.side {
            Side::Red => self.animal.letter(),
            Side::Blue => self.animal.letter().to_ascii_lowercase(),
        }
    }

    /// The piece that a letter of a position text stands for.
    #[must_use]
    pub fn from_letter(letter: char) -> Option<Piece> {
        let side = if letter.is_ascii_uppercase() { Side::Red } else { Side::Blue };
        Animal::from_letter(letter).map(|animal| Piece { side, animal })
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}'s {}", self.side, self.animal)
    }
}
