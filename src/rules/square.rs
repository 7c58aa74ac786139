//! Squares of the board, and sets of them.
//!
//! Here lives the grid alone: seven files, nine ranks, how a square is named
//! and in which order squares are listed. What a square *is* (river, trap, den)
//! lives in `terrain`, so that the geometry can be read without the rules.

use std::fmt;
use std::str::FromStr;

/// One of the 63 squares: a file `a`–`g` and a rank `1`–`9` (section 1).
///
/// Squares are ordered file before rank, from a1 to g9: the order in which
/// everything that lists squares lists them (section 7).
///
/// # Examples
/// ```
/// use jungle_referee::rules::Square;
/// let den: Square = "d9".parse()?;
/// assert_eq!((den.file(), den.rank()), (3, 8));
/// assert_eq!(den.to_string(), "d9");
/// # Ok::<(), jungle_referee::rules::SquareError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Square(u8);

/// How many files the board has: `a` to `g`.
pub const FILES: u8 = 7;
/// How many ranks the board has: `1` to `9`.
pub const RANKS: u8 = 9;

impl Square {
    /// Every square, from a1 to g9, file before rank.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Square;
    /// let names: Vec<String> = Square::ALL.iter().map(Square::to_string).collect();
    /// assert_eq!(names[..2], ["a1", "a2"]);
    /// assert_eq!(names[62], "g9");
    /// ```
    pub const ALL: [Square; 63] = {
        let mut all = [Square(0); 63];
        let mut index = 0u8;
        while index < 63 {
            all[index as usize] = Square(index);
            index += 1;
        }
        all
    };

    /// The square on `file` (0–6 for `a`–`g`) and `rank` (0–8 for `1`–`9`), if there is one.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Square;
    /// assert_eq!(Square::new(3, 0).map(|s| s.to_string()).as_deref(), Some("d1"));
    /// assert_eq!(Square::new(7, 0), None);
    /// ```
    #[must_use]
    pub const fn new(file: u8, rank: u8) -> Option<Square> {
        if file < FILES && rank < RANKS { Some(Square(file * RANKS + rank)) } else { None }
    }

    /// The place of this square in [`Square::ALL`]: 0–62, file × 9 + rank.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Square;
    /// assert!(Square::ALL.iter().enumerate().all(|(i, s)| s.index() == i));
    /// ```
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The square with this [`index`](Square::index), if it is below 63.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Square;
    /// assert_eq!(Square::from_index(9).map(|s| s.to_string()).as_deref(), Some("b1"));
    /// assert_eq!(Square::from_index(63), None);
    /// ```
    #[must_use]
    pub const fn from_index(index: u8) -> Option<Square> {
        if index < 63 { Some(Square(index)) } else { None }
    }

    /// The file, 0–6 for `a`–`g`.
    #[must_use]
    pub const fn file(self) -> u8 {
        self.0 / RANKS
    }

    /// The rank, 0–8 for `1`–`9`, counted from Red's edge.
    #[must_use]
    pub const fn rank(self) -> u8 {
        self.0 % RANKS
    }

    /// The same square seen from the other side of the board: turned half round.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Square;
    /// let a1: Square = "a1".parse()?;
    /// assert_eq!(a1.turned().to_string(), "g9");
    /// # Ok::<(), jungle_referee::rules::SquareError>(())
    /// ```
    #[must_use]
    pub const fn turned(self) -> Square {
        Square(62 - self.0)
    }

    /// The square on a file and a rank known to be on the board; for tables built at compile time.
    pub(super) const fn on(file: u8, rank: u8) -> Square {
        Square(file % FILES * RANKS + rank % RANKS)
    }

    /// The square's name, `a1` to `g9`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self.index()]
    }

    /// The square's [`index`](Square::index) as a byte, for who keeps squares as bytes.
    pub(crate) const fn byte(self) -> u8 {
        self.0
    }
}

/// The names of [`Square::ALL`].
#[rustfmt::skip]
static NAMES: [&str; 63] = [
    "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9",
    "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9",
    "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9",
    "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9",
    "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9",
    "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9",
    "g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8", "g9",
];

impl fmt::Display for Square {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Square {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that names no square: a square is `a`–`g` and then `1`–`9`, two bytes in all.
///
/// # Examples
/// ```
/// use jungle_referee::rules::Square;
/// for text in ["", "d", "D4", "h1", "a0", "d4 ", "--"] {
///     let error = text.parse::<Square>().unwrap_err();
///     assert_eq!(error.to_string(), "a square is a file a-g and a rank 1-9, such as d4");
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct SquareError;

impl fmt::Display for SquareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a square is a file a-g and a rank 1-9, such as d4")
    }
}

impl std::error::Error for SquareError {}

impl FromStr for Square {
    type Err = SquareError;

    fn from_str(text: &str) -> Result<Square, SquareError> {
        let &[file, rank] = text.as_bytes() else {
            return Err(SquareError);
        };
        let file = file.checked_sub(b'a').ok_or(SquareError)?;
        let rank = rank.checked_sub(b'1').ok_or(SquareError)?;
        Square::new(file, rank).ok_or(SquareError)
    }
}

/// A set of squares; walks them from a1 to g9, each once.
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Square, SquareSet};
/// let set: SquareSet = ["b1", "a2", "b1"].iter().flat_map(|s| s.parse()).collect();
/// assert_eq!(set.len(), 2);
/// assert_eq!(set.iter().map(|s| s.to_string()).collect::<Vec<_>>(), ["a2", "b1"]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SquareSet(u64);

impl SquareSet {
    /// The set of no squares.
    pub const EMPTY: SquareSet = SquareSet(0);

    /// This set and one square more.
    #[must_use]
    pub const fn with(self, square: Square) -> SquareSet {
        SquareSet(self.0 | 1 << square.0)
    }

    /// This set without that square.
    #[must_use]
    pub const fn without(self, square: Square) -> SquareSet {
        SquareSet(self.0 & !(1 << square.0))
    }

    /// The squares of either set.
    #[must_use]
    pub const fn union(self, other: SquareSet) -> SquareSet {
        SquareSet(self.0 | other.0)
    }

    /// Whether the square is one of the set.
    #[must_use]
    pub const fn contains(self, square: Square) -> bool {
        self.0 >> square.0 & 1 == 1
    }

    /// How many squares the set has, 0–63.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether the set has no square.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as a number: bit n is the square of index n.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The set that this number is; `None` if it has a bit that is no square.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<SquareSet> {
        if bits >> Square::ALL.len() == 0 { Some(SquareSet(bits)) } else { None }
    }

    /// The squares from a1 to g9.
    #[must_use]
    pub const fn iter(self) -> Squares {
        Squares(self.0)
    }
}

impl fmt::Debug for SquareSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<Square> for SquareSet {
    fn from_iter<I: IntoIterator<Item = Square>>(squares: I) -> SquareSet {
        squares.into_iter().fold(SquareSet::EMPTY, SquareSet::with)
    }
}

impl IntoIterator for SquareSet {
    type Item = Square;
    type IntoIter = Squares;

    fn into_iter(self) -> Squares {
        self.iter()
    }
}

/// The squares of a [`SquareSet`], from a1 to g9.
#[derive(Clone, Debug)]
pub struct Squares(u64);

impl Iterator for Squares {
    type Item = Square;

    #[inline]
    fn next(&mut self) -> Option<Square> {
        let index = u8::try_from(self.0.trailing_zeros()).ok()?;
        let square = Square::from_index(index)?;
        self.0 &= self.0 - 1;
        Some(square)
    }
}
