//! Set-up, training and test commands.
fn main() {}
