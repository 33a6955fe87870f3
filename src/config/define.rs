//! The two macros that declare tables and choices, so that a key's type, default, limits, unit and meaning are
//! written once.

/// Declares the struct of one TOML table, its defaults, and its [`Table`](crate::config::Table) of keys.
///
/// A line reads `name: type = default, limits, unit;` below the comment that explains the key to users. A key that
/// only some algorithms know ends in `, only ["dqn"];` with their names.
macro_rules! table {
    (
        $(#[doc = $table_doc:literal])+
        [$table:ident] $name:ident {
            $( $(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:expr, $limits:expr, $unit:literal $(, only $algorithms:expr)?; )+
        }
    ) => {
        $(#[doc = $table_doc])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $( $(#[doc = $doc])+ #[serde(with = "crate::config::key_type::field")] pub $key: $type, )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $key: $default, )+ }
            }
        }

        impl $name {
            /// The declaration of this table: what checks, errors and the reference are made from.
            pub const TABLE: crate::config::Table = crate::config::Table {
                name: stringify!($table),
                doc: concat!($($table_doc),+),
                keys: &[ $( crate::config::Key {
                    table: stringify!($table),
                    name: stringify!($key),
                    doc: concat!($($doc),+),
                    kind: <$type as crate::config::KeyType>::KIND,
                    optional: <$type as crate::config::KeyType>::OPTIONAL,
                    limits: $limits,
                    unit: $unit,
                    algorithms: {
                        const ALGORITHMS: &[&[&str]] = &[$(&$algorithms)?];
                        if let [algorithms] = ALGORITHMS { algorithms } else { &[] }
                    },
                }, )+ ],
            };
        }
    };
}

/// Declares an enum of words, such as `"huber"` and `"mse"`, with the meaning of each.
macro_rules! choice {
    (
        $(#[doc = $enum_doc:literal])+
        $name:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $word:literal, )+ }
    ) => {
        $(#[doc = $enum_doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[doc = $doc])+ #[serde(rename = $word)] $variant, )+
        }

        impl crate::config::KeyType for $name {
            const KIND: crate::config::Kind =
                crate::config::Kind::Choice(&[ $( crate::config::Choice { word: $word, doc: concat!($($doc),+) }, )+ ]);
        }
    };
}

pub(crate) use {choice, table};
