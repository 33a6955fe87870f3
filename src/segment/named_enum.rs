//! The macro that declares enums of words, so that a variant, its number and its name are written once.

/// Declares an enum whose variants have names. The segment stores a variant as its number, which is its place in the
/// list, or as its name.
macro_rules! named_enum {
    (
        $(#[$of_enum:meta])*
        pub enum $name:ident { $( $(#[$of_variant:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$of_enum])*
        pub enum $name { $( $(#[$of_variant])* $variant, )+ }

        impl $name {
            /// All of them, each in the place of its number.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }
    };
}

pub(crate) use named_enum;

/// The one of `all` that has this number.
pub(super) fn numbered<T: Copy>(all: &[T], number: u64) -> Option<T> {
    usize::try_from(number).ok().and_then(|number| all.get(number).copied())
}
