//! Tables for people, with columns as wide as their widest cell.

use std::fmt;

/// A table whose first row is its header.
pub struct Table {
    rows: Vec<Vec<String>>,
    to_the_left: &'static [usize],
    indent: usize,
}

impl Table {
    /// An empty table. The columns in `to_the_left` are aligned to the left, the others to the right; each line
    /// begins with `indent` spaces.
    pub fn new(header: &[&str], to_the_left: &'static [usize], indent: usize) -> Self {
        Self { rows: vec![header.iter().map(|&name| name.into()).collect()], to_the_left, indent }
    }

    /// Appends a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let padded = if self.to_the_left.contains(&column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
                line.push_str(if column > 0 { "  " } else { "" });
                line.push_str(&padded);
            }
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
